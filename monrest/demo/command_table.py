"""Every command the core knows, by name; the global ones are here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monrest.demo.command_events import (
    check_commands,
    comment_commands,
    downtime_commands,
    notification_commands,
)
from monrest.demo.command_model import CommandSpec, Values, arguments
from monrest.demo.command_toggles import contact_commands, setting_commands, toggle_commands
from monrest.demo.core import Core
from monrest.demo.simulation import Simulation

_SWITCHES = {
    "NOTIFICATIONS": "enable_notifications",
    "EVENT_HANDLERS": "enable_event_handlers",
    "FLAP_DETECTION": "enable_flap_detection",
    "PERFORMANCE_DATA": "process_performance_data",
    "HOST_FRESHNESS_CHECKS": "check_host_freshness",
    "SERVICE_FRESHNESS_CHECKS": "check_service_freshness",
}

_STARTING = {
    "ACCEPTING_PASSIVE_HOST_CHECKS": "accept_passive_host_checks",
    "ACCEPTING_PASSIVE_SVC_CHECKS": "accept_passive_service_checks",
    "EXECUTING_HOST_CHECKS": "execute_host_checks",
    "EXECUTING_SVC_CHECKS": "execute_service_checks",
    "OBSESSING_OVER_HOST_CHECKS": "obsess_over_hosts",
    "OBSESSING_OVER_SVC_CHECKS": "obsess_over_services",
}


def _switching(attribute: str, value: int) -> Any:
    def obey(core: Core, _simulation: Simulation, _values: Values) -> None:
        setattr(core.switches, attribute, value)
        core.tell("program")

    return obey


def _setting(attribute: str) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        setattr(core.switches, attribute, values["event_handler_command"])
        core.tell("program")

    return obey


def _log(core: Core, _simulation: Simulation, values: Values) -> None:
    core.log.write(core.wall.now(), values["message"])


def _restart(core: Core, _simulation: Simulation, _values: Values) -> None:
    """A restart keeps all states, as with a retention file, and is seen by its start time."""
    core.log.write(core.wall.now(), "Caught 'Hangup', restarting...")
    if core.restart is not None:
        core.restart()
        return
    core.program_start = core.now()
    core.tell("program")


def _nothing(_core: Core, _simulation: Simulation, _values: Values) -> None:
    """Saving state has nothing to save here; stopping is for who started the simulation."""


def _global_commands() -> dict[str, CommandSpec]:
    found = {
        "LOG": CommandSpec(arguments("message:str"), _log),
        "RESTART_PROCESS": CommandSpec((), _restart),
        "RESTART_PROGRAM": CommandSpec((), _restart),
    }
    for name in ("SHUTDOWN_PROCESS", "SHUTDOWN_PROGRAM", "SAVE_STATE_INFORMATION",
                 "READ_STATE_INFORMATION"):  # fmt: skip
        found[name] = CommandSpec((), _nothing)
    for kind, word in (("HOST", "host"), ("SVC", "service")):
        found[f"CHANGE_GLOBAL_{kind}_EVENT_HANDLER"] = CommandSpec(
            arguments("event_handler_command:str"), _setting(f"global_{word}_event_handler")
        )
    for names, verbs in ((_SWITCHES, ("DISABLE", "ENABLE")), (_STARTING, ("STOP", "START"))):
        for value, verb in enumerate(verbs):
            for name, attribute in names.items():
                found[f"{verb}_{name}"] = CommandSpec((), _switching(attribute, value))
    return found


COMMANDS: Mapping[str, CommandSpec] = {
    **_global_commands(),
    **toggle_commands(),
    **contact_commands(),
    **setting_commands(),
    **downtime_commands(),
    **comment_commands(),
    **check_commands(),
    **notification_commands(),
}
"""Name to what it takes and does."""
