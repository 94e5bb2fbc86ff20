"""Reading the object files again while the core runs, and what survives that.

All objects are new ones, and those that were there before keep their state, comments and
downtimes (docs/spec/demo.md, "Objects").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import fields

from monrest.config import ConfigTool
from monrest.demo.core import PROGRAM_VERSION, Core
from monrest.demo.inventory import Inventory
from monrest.demo.objects import MODIFIED, Checkable, Host, Service, Target
from monrest.demo.simulation import Simulation
from monrest.objectconfig.definitions import ObjectConfigError, read_file, unreadable
from monrest.objectconfig.document import FileProblem
from monrest.objectconfig.registration import ConfiguredSite, build, load
from monrest.objectconfig.site_files import discover

_STATE = tuple(
    one.name
    for kind in (Host, Service)
    for one in fields(kind)
    if one.name.startswith("last_time_")
)
_FIRST_OF_STATE = "state"
_CONTACT_SWITCHES = (
    "host_notifications_enabled",
    "service_notifications_enabled",
    "host_notification_period",
    "service_notification_period",
)
_ATTRIBUTES = {
    "notifications_enabled": "notifications_enabled",
    "active_checks_enabled": "active_checks_enabled",
    "passive_checks_enabled": "accept_passive_checks",
    "event_handler_enabled": "event_handler_enabled",
    "flap_detection_enabled": "flap_detection_enabled",
    "performance_data_enabled": "process_performance_data",
    "obsessive_handler_enabled": "obsess",
    "event_handler_command": "event_handler",
    "check_command": "check_command",
    "normal_check_interval": "check_interval",
    "retry_check_interval": "retry_interval",
    "max_check_attempts": "max_check_attempts",
    "freshness_checks_enabled": "check_freshness",
    "check_timeperiod": "check_period",
    "custom_variable": "custom_variables",
    "notification_timeperiod": "notification_period",
}
"""Words of ``modified_attributes`` to what commands change under them."""


def _state_names() -> tuple[str, ...]:
    names = [one.name for one in fields(Checkable)]
    return tuple(names[names.index(_FIRST_OF_STATE) :])


_KEPT = _state_names()


def read(path: Path) -> ConfiguredSite:
    """Read a site: a folder of object files, or the main file of a core that names them.

    Raises ObjectConfigError with everything a core would refuse.
    """
    try:
        return _read(path)
    except OSError as error:
        raise unreadable(error) from None


def _read(path: Path) -> ConfiguredSite:
    if path.is_dir():
        return load(path)
    found = discover(ConfigTool(core_conf=str(path)))
    files = [read_file(Path(one.path)) for one in found.files]
    problems = [FileProblem(str(path), 0, text) for text in found.problems]
    problems += [problem for item in files for problem in item.problems]
    if not files and not problems:
        problems.append(FileProblem(str(path), 0, "no object files (*.cfg) found"))
    return build([item for file in files for item in file.definitions], problems)


def report(path: Path) -> tuple[int, str]:
    """What ``--check-config`` says, and its exit status: errors, or how many objects there are."""
    try:
        site = read(path)
    except ObjectConfigError as error:
        lines = [f"Error: {problem}" for problem in error.problems]
        return 1, "\n".join([*lines, f"Total Errors: {len(lines)}", ""])
    counts = [
        f"Checked {len(table)} {name}."
        for name, table in (
            ("hosts", site.hosts),
            ("services", site.services),
            ("host groups", site.hostgroups),
            ("service groups", site.servicegroups),
            ("contacts", site.contacts),
            ("contact groups", site.contactgroups),
            ("commands", site.commands),
            ("time periods", site.timeperiods),
        )
    ]
    return 0, "\n".join([*counts, "Total Errors: 0", ""])


def restart(core: Core, simulation: Simulation, fresh: Inventory) -> None:
    """Put new objects in force."""
    old = core.inventory
    for target in old.targets():
        target.check_serial += 1  # what was planned for it is void
    for target in fresh.targets():
        before = old.find(target.host.name, target.description)
        if before is not None:
            _carry(before, target)
    for name, contact in fresh.contacts.items():
        known = old.contacts.get(name)
        if known is not None and known.modified_attributes:
            for switch in (*_CONTACT_SWITCHES, "modified_attributes"):
                setattr(contact, switch, getattr(known, switch))
    _forget(core, fresh)
    old.replace(fresh)
    core.state_serial += 1
    now = core.now()
    core.program_start = now
    core.log.write(core.wall.now(), f"Naemon {PROGRAM_VERSION} starting... (PID={core.pid})")
    simulation.replan()
    core.tell("program")


def _carry(before: Target, target: Target) -> None:
    for name in _KEPT:
        setattr(target, name, getattr(before, name))
    for name in _STATE:
        if hasattr(before, name):
            setattr(target, name, getattr(before, name))
    for word, attribute in _ATTRIBUTES.items():
        if before.modified_attributes & MODIFIED[word]:
            setattr(target, attribute, getattr(before, attribute))
    target.comments, target.downtimes = before.comments, before.downtimes
    for comment in target.comments.values():
        comment.target = target
    for downtime in target.downtimes.values():
        downtime.target = target


def _forget(core: Core, fresh: Inventory) -> None:
    """Take away what belongs to objects that are gone."""
    kept = {id(target) for target in fresh.targets()}
    entries: tuple[dict[int, Any], ...] = (core.comments, core.downtimes)
    for table in entries:
        for number in [n for n, entry in table.items() if id(entry.target) not in kept]:
            del table[number]
