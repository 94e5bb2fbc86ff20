"""Commands that switch something on or off or change a setting of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from monrest.demo.checks import stop_flapping
from monrest.demo.command_model import CommandSpec, Values, arguments
from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.objects import MODIFIED, Contact, Host, Target
from monrest.demo.simulation import Simulation

HOST, SERVICE = arguments("host_name:host"), arguments("service:service")

_TOGGLES = {
    "CHECK": ("active_checks_enabled", "active_checks_enabled"),
    "PASSIVE": ("accept_passive_checks", "passive_checks_enabled"),
    "NOTIFICATIONS": ("notifications_enabled", "notifications_enabled"),
    "EVENT_HANDLER": ("event_handler_enabled", "event_handler_enabled"),
    "FLAP_DETECTION": ("flap_detection_enabled", "flap_detection_enabled"),
    "OBSESS": ("obsess", "obsessive_handler_enabled"),
}
"""Word of a command to the attribute and the bit that it changes."""


def switch(core: Core, simulation: Simulation, target: Target, word: str, value: int) -> None:
    """Switch one thing of one object on or off; nothing happens when it is so already."""
    attribute, bit = _TOGGLES[word]
    if getattr(target, attribute) == value:
        return
    setattr(target, attribute, value)
    target.modified_attributes |= MODIFIED[bit]
    if word == "FLAP_DETECTION" and not value:
        stop_flapping(core, target, "DISABLED", "stopped flapping (flap detection disabled)")
    if word == "CHECK" and value and target.check_command:
        span = max(target.check_interval * INTERVAL_LENGTH, 1)
        simulation.plan(target, core.wall.now() + core.rng.random() * span)
    core.changed(target)


def targets_of(values: Values) -> Iterable[Target]:
    """The object, or the members of the group, that the first argument names."""
    for name in ("host_name", "service"):
        if name in values:
            return [values[name]]
    group = values.get("hostgroup_name") or values.get("servicegroup_name")
    return [] if group is None else list(group.members)


def hosts_of(values: Values) -> list[Host]:
    """The hosts among the objects, or of the services among them, each once."""
    return list({id(item.host): item.host for item in targets_of(values)}.values())


def services_of(values: Values) -> list[Target]:
    """The services among the objects; those of hosts among them."""
    found: list[Target] = []
    for item in targets_of(values):
        found += item.services if isinstance(item, Host) else [item]
    return found


def children_of(host: Host) -> Iterator[Host]:
    """All hosts behind a host, each once."""
    seen: set[int] = set()
    waiting = list(host.children)
    while waiting:
        child = waiting.pop()
        if id(child) not in seen:
            seen.add(id(child))
            waiting += child.children
            yield child


Pick = Callable[[Values], Iterable[Target]]


def _switching(word: str, value: int, pick: Pick) -> Any:
    def obey(core: Core, simulation: Simulation, values: Values) -> None:
        for target in pick(values):
            switch(core, simulation, target, word, value)

    return obey


def _with_children(values: Values) -> Iterable[Target]:
    host = values["host_name"]
    return [host, *children_of(host)]


def _beyond(values: Values) -> Iterable[Target]:
    for host in children_of(values["host_name"]):
        yield host
        yield from host.services


def toggle_commands() -> dict[str, CommandSpec]:
    """ENABLE_…, DISABLE_…, START_… and STOP_… of hosts, services and their groups."""
    found: dict[str, CommandSpec] = {}
    for verb, value in (("ENABLE", 1), ("DISABLE", 0)):
        for kind, spec in (("HOST", HOST), ("SVC", SERVICE)):
            for word in ("CHECK", "NOTIFICATIONS", "EVENT_HANDLER", "FLAP_DETECTION"):
                obey = _switching(word, value, targets_of)
                found[f"{verb}_{kind}_{word}"] = CommandSpec(spec, obey)
            obey = _switching("PASSIVE", value, targets_of)
            found[f"{verb}_PASSIVE_{kind}_CHECKS"] = CommandSpec(spec, obey)
            start = "START" if value else "STOP"
            obey = _switching("OBSESS", value, targets_of)
            found[f"{start}_OBSESSING_OVER_{kind}"] = CommandSpec(spec, obey)
        related: tuple[tuple[str, str, Pick], ...] = (
            ("HOST_SVC_CHECKS", "CHECK", services_of),
            ("HOST_SVC_NOTIFICATIONS", "NOTIFICATIONS", services_of),
            ("HOST_AND_CHILD_NOTIFICATIONS", "NOTIFICATIONS", _with_children),
            ("ALL_NOTIFICATIONS_BEYOND_HOST", "NOTIFICATIONS", _beyond),
        )
        for name, word, pick in related:
            found[f"{verb}_{name}"] = CommandSpec(HOST, _switching(word, value, pick))
        for group in ("HOSTGROUP", "SERVICEGROUP"):
            spec = arguments(f"{group.lower()}_name:{group.lower()}")
            picks: tuple[tuple[str, Pick], ...] = (("HOST", hosts_of), ("SVC", services_of))
            for kind, pick in picks:
                for name, word in (
                    (f"{group}_{kind}_CHECKS", "CHECK"),
                    (f"{group}_{kind}_NOTIFICATIONS", "NOTIFICATIONS"),
                    (f"{group}_PASSIVE_{kind}_CHECKS", "PASSIVE"),
                ):
                    found[f"{verb}_{name}"] = CommandSpec(spec, _switching(word, value, pick))
    return found


# ---------------------------------------------------------------- contacts


def _contacts(core: Core, values: Values) -> list[Contact]:
    if "contact_name" in values:
        return [values["contact_name"]]
    return [core.inventory.contacts[name] for name in values["contactgroup_name"].members]


def _contact_switch(attribute: str, value: int) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        for contact in _contacts(core, values):
            if getattr(contact, attribute) != value:
                setattr(contact, attribute, value)
                contact.modified_attributes |= MODIFIED["notifications_enabled"]

    return obey


def _contact_period(attribute: str) -> Any:
    def obey(_core: Core, _simulation: Simulation, values: Values) -> None:
        contact = values["contact_name"]
        setattr(contact, attribute, values["timeperiod"].name)
        contact.modified_attributes |= MODIFIED["notification_timeperiod"]

    return obey


def contact_commands() -> dict[str, CommandSpec]:
    """Commands on contacts and contact groups."""
    found: dict[str, CommandSpec] = {}
    for kind, word in (("HOST", "host"), ("SVC", "service")):
        for verb, value in (("ENABLE", 1), ("DISABLE", 0)):
            for owner in ("CONTACT", "CONTACTGROUP"):
                spec = arguments(f"{owner.lower()}_name:{owner.lower()}")
                obey = _contact_switch(f"{word}_notifications_enabled", value)
                found[f"{verb}_{owner}_{kind}_NOTIFICATIONS"] = CommandSpec(spec, obey)
        found[f"CHANGE_CONTACT_{kind}_NOTIFICATION_TIMEPERIOD"] = CommandSpec(
            arguments("contact_name:contact;timeperiod:timeperiod"),
            _contact_period(f"{word}_notification_period"),
        )
    found["CHANGE_CUSTOM_CONTACT_VAR"] = CommandSpec(
        arguments("contact_name:contact;varname:str;varvalue:str?"), _custom("contact_name")
    )
    return found


# ---------------------------------------------------------------- settings


def _custom(owner: str) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        target = values[owner]
        name = values["varname"].upper().removeprefix("_")
        # Only variables that the configuration has can be changed.
        if name in target.custom_variables:
            target.custom_variables[name] = values["varvalue"]
            target.modified_attributes |= MODIFIED["custom_variable"]
            if not isinstance(target, Contact):
                core.changed(target)

    return obey


def _setting(owner: str, argument: str, attribute: str, bit: str) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        target, value = values[owner], values[argument]
        setattr(target, attribute, getattr(value, "name", value))
        target.modified_attributes |= MODIFIED[bit]
        core.changed(target)

    return obey


def _modified(owner: str) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        values[owner].modified_attributes = values["value"]
        core.changed(values[owner])

    return obey


def setting_commands() -> dict[str, CommandSpec]:
    """CHANGE_… of intervals, attempts, time periods, custom variables, modified attributes."""
    found: dict[str, CommandSpec] = {}
    for kind, owner, first in (
        ("HOST", "host_name", "host_name:host"),
        ("SVC", "service", "service:service"),
    ):
        for name, argument, attribute, bit in (
            (f"NORMAL_{kind}_CHECK_INTERVAL", "check_interval:ulong", "check_interval",
             "normal_check_interval"),
            (f"RETRY_{kind}_CHECK_INTERVAL", "check_interval:ulong", "retry_interval",
             "retry_check_interval"),
            (f"MAX_{kind}_CHECK_ATTEMPTS", "check_attempts:ulong", "max_check_attempts",
             "max_check_attempts"),
            (f"{kind}_CHECK_TIMEPERIOD", "timeperiod:timeperiod", "check_period",
             "check_timeperiod"),
            (f"{kind}_NOTIFICATION_TIMEPERIOD", "timeperiod:timeperiod", "notification_period",
             "notification_timeperiod"),
        ):  # fmt: skip
            obey = _setting(owner, argument.partition(":")[0], attribute, bit)
            found[f"CHANGE_{name}"] = CommandSpec(arguments(f"{first};{argument}"), obey)
        found[f"CHANGE_CUSTOM_{kind}_VAR"] = CommandSpec(
            arguments(f"{first};varname:str;varvalue:str?"), _custom(owner)
        )
        found[f"CHANGE_{kind}_MODATTR"] = CommandSpec(
            arguments(f"{first};value:ulong"), _modified(owner)
        )
    return found
