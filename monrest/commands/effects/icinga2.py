"""What Icinga 2 does not know, as a 2.13.6 answered when it was asked for every command."""

from __future__ import annotations

from collections.abc import Iterator


def _names() -> Iterator[str]:
    for word in ("HOST", "SVC"):
        yield f"CHANGE_CONTACT_{word}_NOTIFICATION_TIMEPERIOD"
        yield f"CHANGE_GLOBAL_{word}_EVENT_HANDLER"
        yield f"CHANGE_{word}_MODATTR"
        yield f"CHANGE_{word}_NOTIFICATION_TIMEPERIOD"
        yield f"SET_{word}_NOTIFICATION_NUMBER"
        for verb in ("START", "STOP"):
            yield f"{verb}_ACCEPTING_PASSIVE_{word}_CHECKS"
            yield f"{verb}_OBSESSING_OVER_{word}"
            yield f"{verb}_OBSESSING_OVER_{word}_CHECKS"
        for verb in ("ENABLE", "DISABLE"):
            yield f"{verb}_CONTACT_{word}_NOTIFICATIONS"
            yield f"{verb}_CONTACTGROUP_{word}_NOTIFICATIONS"
    for verb in ("ENABLE", "DISABLE"):
        yield f"{verb}_ALL_NOTIFICATIONS_BEYOND_HOST"
        yield f"{verb}_HOST_AND_CHILD_NOTIFICATIONS"
        yield f"{verb}_HOST_FRESHNESS_CHECKS"
        yield f"{verb}_SERVICE_FRESHNESS_CHECKS"
    yield from ("CHANGE_CUSTOM_CONTACT_VAR", "LOG")
    yield from ("DEL_DOWNTIME_BY_HOSTGROUP_NAME", "DEL_DOWNTIME_BY_START_TIME_COMMENT")
    yield from ("READ_STATE_INFORMATION", "SAVE_STATE_INFORMATION")
    yield from ("RESTART_PROGRAM", "SHUTDOWN_PROGRAM")


UNKNOWN_TO_ICINGA2 = frozenset(_names())
"""Core names of the commands that it refuses."""
