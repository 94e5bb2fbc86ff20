"""From states to the alerts of an Alertmanager (docs/spec/webhooks.md, "Alertmanager"). Pure.

An alert is what its labels are, so a problem that gets another severity is another alert: the
first one ends when the second one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from monrest.events.model import Event, object_subject, rfc3339
from monrest.webhooks.bodies import severity_of, state_of, text_of, title_of
from monrest.webhooks.store import StoredAlert

AHEAD = 240.0
"""Seconds for which an alert is firing without being told again, so that none outlives us."""

_HARD = "HARD"


def subject_of(site: str, host: str, service: str) -> str:
    """Give the object that an alert is about."""
    return f"{site}:{object_subject(host, service)}"


def object_of_alert(one: StoredAlert) -> str:
    """Give the same of a stored alert, whose own name has its severity behind it."""
    return one.subject.rpartition("#")[0]


def alert_of(event: Event, groups: Sequence[str]) -> StoredAlert:
    """Give the alert of a problem, firing since the event."""
    labels = {
        "alertname": event.service or "Host",
        "host": event.host,
        "service": event.service,
        "site": event.site,
        "severity": severity_of(event),
        # With commas around, so that one of them can be matched: groups=~".*,web,.*".
        "groups": f",{','.join(groups)}," if groups else "",
    }
    annotations = {"summary": title_of(event), "description": text_of(event)}
    return StoredAlert(
        subject=f"{subject_of(event.site, event.host, event.service)}#{labels['severity']}",
        alert={
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": {name: value for name, value in annotations.items() if value},
        },
        starts=event.time,
    )


def is_alert(event: Event) -> bool:
    """Whether an event says that something is wrong, or well, that is not just suspected."""
    state = state_of(event)
    if event.type != "state" or state is None:
        return False
    return state == 0 or event.data.get("state_type") == _HARD


def after_event(
    event: Event, groups: Sequence[str], known: Mapping[str, StoredAlert]
) -> list[StoredAlert]:
    """Give the alerts that an event changes; ``known`` are those of its object, by name."""
    new = alert_of(event, groups) if state_of(event) else None
    changed = [
        evolve(one, ends=max(event.time, one.starts), told=False)
        for one in known.values()
        if one.ends is None and (new is None or one.subject != new.subject)
    ]
    if new is not None:
        before = known.get(new.subject)
        if before is None or before.ends is not None:
            changed.append(new)
        elif before.alert["annotations"] != new.alert["annotations"]:
            # The labels stay, since they are what the alert is known by.
            alert = {**before.alert, "annotations": new.alert["annotations"]}
            changed.append(evolve(before, alert=alert, told=False))
    return changed


def after_look(
    problems: Mapping[str, StoredAlert],
    known: Iterable[StoredAlert],
    silent: frozenset[str],
    now: float,
) -> list[StoredAlert]:
    """Give the alerts that a look at all present ``problems`` changes.

    Nothing is known of the objects of ``silent`` sites, which stay as they are.
    """
    changed = []
    firing = set()
    for one in known:
        if one.ends is not None:
            continue
        firing.add(one.subject)
        if one.subject not in problems and one.subject.partition(":")[0] not in silent:
            changed.append(evolve(one, ends=max(now, one.starts), told=False))
    changed += [one for name, one in problems.items() if name not in firing]
    return changed


def posted(one: StoredAlert, now: float) -> dict[str, Any]:
    """Give an alert as the Alertmanager takes it."""
    # The clock of a core may be ahead; what is over has an end that is not to come.
    ends = now + AHEAD if one.ends is None else min(one.ends, now)
    return {**one.alert, "startsAt": rfc3339(min(one.starts, ends)), "endsAt": rfc3339(ends)}
