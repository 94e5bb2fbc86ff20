"""External commands: reading a line as Naemon does, and what each of them does.

Success is silent; what is wrong with a command is answered as text
(docs/spec/livestatus.md, "Commands on the wire").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.objects import CoreDowntime, Host, HostOrService
from monrest.demo.simulation import Simulation
from monrest.demo.states import (
    Result,
    acknowledge,
    cancel,
    notify,
    process,
    remove_acknowledgement,
    schedule,
    split_output,
    stop_flapping,
)


@frozen
class ExternalArgument:
    """One argument. ``type`` is an object type, id, ulong, int, bool, timestamp or str.

    ``optional`` arguments may be empty or missing, and are then None or empty text.
    """

    name: str
    type: str
    optional: bool = False


@frozen
class GivenCommand:
    """A command that was given: its name, and its arguments by name.

    An argument that names an object is the object itself.
    """

    simulation: Simulation
    name: str
    values: Mapping[str, Any]

    def __getitem__(self, argument: str) -> Any:
        return self.values[argument]

    @property
    def core(self) -> Core:
        return self.simulation.core

    @property
    def target(self) -> Any:
        """The host, service or contact that the first argument names."""
        return self.targets[0]

    @property
    def targets(self) -> list[Any]:
        """The same, or the members of the group that the first argument names."""
        name, first = next(iter(self.values.items()))
        if name == "contactgroup_name":
            return [self.core.inventory.contacts[member] for member in first.members]
        return list(first.members) if name.endswith("group_name") else [first]

    @property
    def last(self) -> Any:
        """The last argument."""
        return list(self.values.values())[-1]

    @property
    def switches_on(self) -> int:
        """1 for ENABLE and START, 0 for DISABLE and STOP."""
        return int(self.name.startswith(("ENABLE", "START")))

    def is_for(self, target: HostOrService) -> bool:
        """Whether the command is for objects of this kind."""
        return ("_SVC_" in self.name) is not isinstance(target, Host)


Obey: TypeAlias = Callable[[GivenCommand], None]


@frozen
class ExternalCommand:
    """A command: its arguments in order and the function that obeys."""

    arguments: tuple[ExternalArgument, ...]
    obey: Obey


class CommandError(Exception):
    """A command that the core refuses; the text is for the client."""


_COMMAND = re.compile(r"\[(\d+)\] ([A-Z_]+)(?:;(.*))?\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER = re.compile(r"(-?)(\d+)(.*)\Z", re.DOTALL)


def decode(text: str) -> str:
    r"""Undo the backslashes of an argument: ``\n`` is a newline, ``\X`` is X."""
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text)


def run(simulation: Simulation, line: str) -> str | None:
    """Execute ``[time] NAME;arguments``. Answers None, or why the core refuses it."""
    core = simulation.core
    match = _COMMAND.match(decode(line))
    if match is None:
        return "Malformed command: '[TIMESTAMP] NAME;ARGUMENTS' expected"
    name, rest = match[2], match[3]
    core.last_command_check = core.now()
    command = COMMANDS.get(name)
    if command is None:
        return f"Unknown command '{name}'"
    try:
        values = _read_arguments(core, command, rest)
    except CommandError as error:
        return str(error)
    if name != "LOG":
        # Newlines of arguments stay two characters in the log.
        text = name if rest is None else f"{name};{rest}"
        core.note(f"EXTERNAL COMMAND: {text}")
    command.obey(GivenCommand(simulation, name, values))
    core.happened("command")
    return None


def _read_arguments(core: Core, command: ExternalCommand, rest: str | None) -> dict[str, Any]:
    """Check and convert the arguments; a text at the end keeps its semicolons.

    Raises CommandError.
    """
    arguments = command.arguments
    widths = [2 if argument.type == "service" else 1 for argument in arguments]
    most = sum(widths) - 1 if arguments and arguments[-1].type == "str" else -1
    parts = [] if rest is None else rest.split(";", most)
    values: dict[str, Any] = {}
    for number, (argument, width) in enumerate(zip(arguments, widths, strict=True)):
        taken, parts = parts[:width], parts[width:]
        if len(taken) == width and any(taken):
            values[argument.name] = _convert(core, argument, number, taken)
        elif argument.optional:
            values[argument.name] = "" if argument.type == "str" else None
        else:
            raise CommandError(
                f"No value for argument {argument.name} provided, and no default found"
            )
    if arguments and parts:
        raise CommandError(f"Too many arguments to command - expected {len(arguments)}")
    return values


def _convert(core: Core, argument: ExternalArgument, number: int, taken: list[str]) -> Any:
    kind, text = argument.type, taken[0]
    if kind == "str":
        return text
    if kind in ("id", "ulong", "timestamp", "int", "bool"):
        return _number(argument, number, text)
    table: Mapping[Any, Any] = getattr(core.inventory, f"{kind}s")
    target = table.get(tuple(taken) if kind == "service" else text)
    if target is None:
        raise _invalid(argument, kind, number)
    return target


def _number(argument: ExternalArgument, position: int, text: str) -> int:
    kind = "ulong" if argument.type in ("id", "timestamp") else argument.type
    word = "ulong" if argument.type == "id" else argument.type
    where = f"Couldn't parse {word} argument {argument.name} (argument {position})"
    match = _NUMBER.match(text.strip())
    if match is None:
        raise CommandError(f"{where}: No digits found in {kind} '{text}'")
    sign, digits, rest = match.groups()
    if rest or (sign and kind != "int"):
        raise CommandError(f"{where}: Invalid characters ({rest or sign}) in {kind} '{text}'")
    value = int(sign + digits)
    if kind == "bool" and value not in (0, 1):
        raise CommandError(f"{where}: 0 or 1 expected, not '{text}'")
    if argument.type == "id" and not value:
        raise _invalid(argument, kind, position)
    return value


def _invalid(argument: ExternalArgument, kind: str, position: int) -> CommandError:
    return CommandError(
        f"Failed validation of {argument.name} as type {kind} (argument {position})"
    )


Pick: TypeAlias = Callable[[GivenCommand], Iterable[HostOrService]]


def _targets(given: GivenCommand) -> list[HostOrService]:
    """The objects that the first argument names."""
    return given.targets


def _hosts(given: GivenCommand) -> list[Host]:
    """The hosts among the objects, or of the services among them, each once."""
    return list({id(item.host): item.host for item in given.targets}.values())


def _services(given: GivenCommand) -> list[HostOrService]:
    """The services among the objects; those of hosts among them."""
    services: list[HostOrService] = []
    for item in given.targets:
        services += item.services if isinstance(item, Host) else [item]
    return services


def _behind(host: Host) -> Iterator[Host]:
    """All hosts behind a host, each once."""
    seen: set[int] = set()
    waiting = list(host.children)
    while waiting:
        child = waiting.pop()
        if id(child) not in seen:
            seen.add(id(child))
            waiting += child.children
            yield child


def _with_children(given: GivenCommand) -> Iterable[HostOrService]:
    return [given["host_name"], *_behind(given["host_name"])]


def _beyond(given: GivenCommand) -> Iterable[HostOrService]:
    for host in _behind(given["host_name"]):
        yield host
        yield from host.services


def _switching(attribute: str, pick: Pick) -> Obey:
    """Switch one thing of objects on or off; nothing happens to those where it is so already."""

    def obey(given: GivenCommand) -> None:
        core, value = given.core, given.switches_on
        for target in pick(given):
            if getattr(target, attribute) == value:
                continue
            target.change(attribute, value)
            if attribute == "flap_detection_enabled" and not value:
                text = "stopped flapping (flap detection disabled)"
                stop_flapping(core, target, "DISABLED", text)
            if attribute == "active_checks_enabled" and value and target.check_command:
                span = max(target.check_interval * INTERVAL_LENGTH, 1)
                given.simulation.plan(target, core.wall.now() + core.rng.random() * span)
            core.changed(target)

    return obey


def _setting(attribute: str) -> Obey:
    """Set something to the last argument."""

    def obey(given: GivenCommand) -> None:
        given.target.change(attribute, getattr(given.last, "name", given.last))
        given.core.changed(given.target)

    return obey


def _present(attribute: str) -> Obey:
    """The same of what belongs to the present state and no configuration."""

    def obey(given: GivenCommand) -> None:
        setattr(given.target, attribute, given.last)
        given.core.changed(given.target)

    return obey


def _variable(given: GivenCommand) -> None:
    """Only variables that the configuration has can be changed."""
    target, name = given.target, given["varname"].upper().removeprefix("_")
    if name in target.custom_variables:
        target.change("custom_variables", target.custom_variables | {name: given["varvalue"]})
        given.core.changed(target)


def _program(attribute: str) -> Obey:
    """Switch something of the whole program, or set its event handler."""

    def obey(given: GivenCommand) -> None:
        value = given.last if given.values else given.switches_on
        setattr(given.core.switches, attribute, value)
        given.core.happened("program")

    return obey


def _restart(given: GivenCommand) -> None:
    """A restart keeps all states, as with a retention file, and is seen by its start time."""
    core = given.core
    core.note("Caught 'Hangup', restarting...")
    if core.restart is not None:
        core.restart()
        return
    core.program_start = core.now()
    core.happened("program")


def _nothing(_given: GivenCommand) -> None:
    """Saving state has nothing to save here; only its own process ends the simulation."""


def _plan_downtime(given: GivenCommand, target: HostOrService, trigger: int) -> CoreDowntime | None:
    return schedule(
        given.core,
        target,
        start=given["start_time"],
        end=given["end_time"],
        fixed=given["fixed"],
        triggered_by=trigger,
        duration=given["duration"],
        author=given["author"],
        comment=given["comment"],
    )


def _downtimes(pick: Pick) -> Obey:
    def obey(given: GivenCommand) -> None:
        for target in pick(given):
            _plan_downtime(given, target, given["trigger_id"])

    return obey


def _propagated(given: GivenCommand) -> None:
    trigger = given["trigger_id"]
    first = _plan_downtime(given, given.target, trigger)
    if "TRIGGERED" in given.name and first is not None:
        trigger = first.id
    for child in _behind(given["host_name"]):
        _plan_downtime(given, child, trigger)


def _delete_downtime(given: GivenCommand) -> None:
    downtime = given.core.downtimes.get(given["downtime_id"])
    if downtime is not None and given.is_for(downtime.target):
        cancel(given.core, downtime.id)


def _delete_downtimes(given: GivenCommand) -> None:
    """Delete the downtimes that fit every given filter; without any filter none."""
    values = given.values
    host, service = values.get("hostname", ""), values.get("service_desc", "")
    start, comment = values["start_time"], values["comment"]
    group = values.get("hostgroup_name")
    if not (host or service or start or comment or group):
        return
    members = None if group is None else {item.name for item in group.members}
    for downtime in list(given.core.downtimes.values()):
        target = downtime.target
        if (
            (not host or target.host.name == host)
            and (members is None or target.host.name in members)
            and (not service or target.description == service)
            and (not start or downtime.start_time == start)
            and (not comment or downtime.comment == comment)
        ):
            cancel(given.core, downtime.id)


def _acknowledge(given: GivenCommand) -> None:
    acknowledge(
        given.core,
        given.target,
        sticky=given["sticky"],
        send=given["notify"],
        persistent=given["persistent"],
        end=given.values.get("timestamp") or 0,
        author=given["author"],
        comment=given["comment"],
    )


def _remove_acknowledgement(given: GivenCommand) -> None:
    remove_acknowledgement(given.core, given.target)


def _add_comment(given: GivenCommand) -> None:
    author, text, persistent = given["author"], given["comment"], given["persistent"]
    given.core.add_comment(given.target, author, text, persistent=persistent, source=1)


def _delete_comment(given: GivenCommand) -> None:
    comment = given.core.comments.get(given["comment_id"])
    if comment is not None and given.is_for(comment.target):
        given.core.delete_comment(comment.id)


def _delete_comments(given: GivenCommand) -> None:
    for number in list(given.target.comments):
        given.core.delete_comment(number)


def _schedule_checks(pick: Pick) -> Obey:
    def obey(given: GivenCommand) -> None:
        forced = "FORCED" in given.name
        for target in pick(given):
            if target.check_command and (forced or target.active_checks_enabled):
                at = max(given["check_time"], given.core.wall.now())
                given.simulation.plan(target, at, forced=forced)
                given.core.changed(target)

    return obey


def _result(given: GivenCommand) -> None:
    """A passive result; of an object that takes none, nothing happens."""
    core, target, state = given.core, given.target, given["status_code"]
    accepting = getattr(core.switches, f"accept_passive_{target.kind}_checks")
    most = 2 if isinstance(target, Host) else 3
    if not (accepting and target.accept_passive_checks) or state > most:
        return
    first, lines, perf = split_output(given["plugin_output"])
    core.note(f"PASSIVE {target.kind.upper()} CHECK: {target.label};{state};{first}")
    result = Result(state=state, output=first, long_output=lines, perf_data=perf, passive=True)
    process(core, target, result)


def _custom_notification(given: GivenCommand) -> None:
    core, target, options = given.core, given.target, given["options"]
    if options & 4:
        target.current_notification_number += 1
    forced = bool(options & 2)
    notify(core, target, "CUSTOM", given["author"], given["comment"], forced=forced)
    core.changed(target)


_DOWNTIME = (
    "start_time:timestamp;end_time:timestamp;fixed:bool;trigger_id:ulong;duration:ulong;"
    "author:str;comment:str"
)
_ACK = "sticky:int;notify:bool;persistent:bool"
_TEXT = "author:str;comment:str"
_AT = "check_time:timestamp"
_VARIABLE = "varname:str;varvalue:str?"
_FILTERS = "hostname:str?;service_desc:str?;start_time:timestamp?;comment:str?"
_HOST, _SERVICE = "host_name:host", "service:service"

_PLAIN: Mapping[str, tuple[str, Obey]] = {
    "LOG": ("message:str", lambda given: given.core.note(given["message"])),
    "RESTART_PROCESS": ("", _restart),
    "RESTART_PROGRAM": ("", _restart),
    "SHUTDOWN_PROCESS": ("", _nothing),
    "SHUTDOWN_PROGRAM": ("", _nothing),
    "SAVE_STATE_INFORMATION": ("", _nothing),
    "READ_STATE_INFORMATION": ("", _nothing),
    "CHANGE_GLOBAL_HOST_EVENT_HANDLER": (
        "event_handler_command:str",
        _program("global_host_event_handler"),
    ),
    "CHANGE_GLOBAL_SVC_EVENT_HANDLER": (
        "event_handler_command:str",
        _program("global_service_event_handler"),
    ),
    "CHANGE_CONTACT_HOST_NOTIFICATION_TIMEPERIOD": (
        "contact_name:contact;timeperiod:timeperiod",
        _setting("host_notification_period"),
    ),
    "CHANGE_CONTACT_SVC_NOTIFICATION_TIMEPERIOD": (
        "contact_name:contact;timeperiod:timeperiod",
        _setting("service_notification_period"),
    ),
    "CHANGE_CUSTOM_CONTACT_VAR": (f"contact_name:contact;{_VARIABLE}", _variable),
    "SCHEDULE_HOST_SVC_DOWNTIME": (f"{_HOST};{_DOWNTIME}", _downtimes(_services)),
    **{
        f"SCHEDULE_{group.upper()}_{kind}_DOWNTIME": (
            f"{group}_name:{group};{_DOWNTIME}",
            _downtimes(pick),
        )
        for group in ("hostgroup", "servicegroup")
        for kind, pick in (("HOST", _hosts), ("SVC", _services))
    },
    "SCHEDULE_AND_PROPAGATE_HOST_DOWNTIME": (f"{_HOST};{_DOWNTIME}", _propagated),
    "SCHEDULE_AND_PROPAGATE_TRIGGERED_HOST_DOWNTIME": (f"{_HOST};{_DOWNTIME}", _propagated),
    "DEL_DOWNTIME_BY_HOST_NAME": (_FILTERS, _delete_downtimes),
    "DEL_DOWNTIME_BY_HOSTGROUP_NAME": (f"hostgroup_name:hostgroup;{_FILTERS}", _delete_downtimes),
    "DEL_DOWNTIME_BY_START_TIME_COMMENT": ("start_time:timestamp?;comment:str?", _delete_downtimes),
    "SCHEDULE_HOST_SVC_CHECKS": (f"{_HOST};{_AT}", _schedule_checks(_services)),
    "SCHEDULE_FORCED_HOST_SVC_CHECKS": (f"{_HOST};{_AT}", _schedule_checks(_services)),
    "PROCESS_HOST_CHECK_RESULT": (f"{_HOST};status_code:ulong;plugin_output:str?", _result),
    "PROCESS_SERVICE_CHECK_RESULT": (f"{_SERVICE};status_code:ulong;plugin_output:str?", _result),
}

_OF_BOTH: Mapping[str, tuple[str, Obey]] = {
    "SCHEDULE_{}_DOWNTIME": (f"{{}};{_DOWNTIME}", _downtimes(_targets)),
    "DEL_{}_DOWNTIME": ("downtime_id:id", _delete_downtime),
    "ACKNOWLEDGE_{}_PROBLEM": (f"{{}};{_ACK};{_TEXT}", _acknowledge),
    "ACKNOWLEDGE_{}_PROBLEM_EXPIRE": (f"{{}};{_ACK};timestamp:timestamp;{_TEXT}", _acknowledge),
    "REMOVE_{}_ACKNOWLEDGEMENT": ("{}", _remove_acknowledgement),
    "ADD_{}_COMMENT": (f"{{}};persistent:bool;{_TEXT}", _add_comment),
    "DEL_{}_COMMENT": ("comment_id:id", _delete_comment),
    "DEL_ALL_{}_COMMENTS": ("{}", _delete_comments),
    "SCHEDULE_{}_CHECK": (f"{{}};{_AT}", _schedule_checks(_targets)),
    "SCHEDULE_FORCED_{}_CHECK": (f"{{}};{_AT}", _schedule_checks(_targets)),
    "SEND_CUSTOM_{}_NOTIFICATION": (f"{{}};options:ulong;{_TEXT}", _custom_notification),
    "SET_{}_NOTIFICATION_NUMBER": (
        "{};notification_number:int",
        _present("current_notification_number"),
    ),
    "DELAY_{}_NOTIFICATION": ("{};notification_time:timestamp", _present("next_notification")),
    "CHANGE_{}_MODATTR": ("{};value:ulong", _present("modified_attributes")),
    "CHANGE_CUSTOM_{}_VAR": (f"{{}};{_VARIABLE}", _variable),
    "CHANGE_NORMAL_{}_CHECK_INTERVAL": ("{};check_interval:ulong", _setting("check_interval")),
    "CHANGE_RETRY_{}_CHECK_INTERVAL": ("{};check_interval:ulong", _setting("retry_interval")),
    "CHANGE_MAX_{}_CHECK_ATTEMPTS": ("{};check_attempts:ulong", _setting("max_check_attempts")),
    "CHANGE_{}_CHECK_TIMEPERIOD": ("{};timeperiod:timeperiod", _setting("check_period")),
    "CHANGE_{}_NOTIFICATION_TIMEPERIOD": (
        "{};timeperiod:timeperiod",
        _setting("notification_period"),
    ),
}
"""Commands for hosts (HOST) and for services (SVC); the other braces are the object."""

_CHECKS = "active_checks_enabled"
_PASSIVE = "accept_passive_checks"
_NOTIFICATIONS = "notifications_enabled"

_ENABLED: Mapping[str, tuple[str, Obey]] = {
    "NOTIFICATIONS": ("", _program("enable_notifications")),
    "EVENT_HANDLERS": ("", _program("enable_event_handlers")),
    "FLAP_DETECTION": ("", _program("enable_flap_detection")),
    "PERFORMANCE_DATA": ("", _program("process_performance_data")),
    "HOST_FRESHNESS_CHECKS": ("", _program("check_host_freshness")),
    "SERVICE_FRESHNESS_CHECKS": ("", _program("check_service_freshness")),
    "{}_CHECK": ("{}", _switching(_CHECKS, _targets)),
    "{}_NOTIFICATIONS": ("{}", _switching(_NOTIFICATIONS, _targets)),
    "{}_EVENT_HANDLER": ("{}", _switching("event_handler_enabled", _targets)),
    "{}_FLAP_DETECTION": ("{}", _switching("flap_detection_enabled", _targets)),
    "PASSIVE_{}_CHECKS": ("{}", _switching(_PASSIVE, _targets)),
    "HOST_SVC_CHECKS": (_HOST, _switching(_CHECKS, _services)),
    "HOST_SVC_NOTIFICATIONS": (_HOST, _switching(_NOTIFICATIONS, _services)),
    "HOST_AND_CHILD_NOTIFICATIONS": (_HOST, _switching(_NOTIFICATIONS, _with_children)),
    "ALL_NOTIFICATIONS_BEYOND_HOST": (_HOST, _switching(_NOTIFICATIONS, _beyond)),
    **{
        f"{group.upper()}_{name}": (f"{group}_name:{group}", _switching(what, pick))
        for group in ("hostgroup", "servicegroup")
        for name, what, pick in (
            ("HOST_CHECKS", _CHECKS, _hosts),
            ("SVC_CHECKS", _CHECKS, _services),
            ("HOST_NOTIFICATIONS", _NOTIFICATIONS, _hosts),
            ("SVC_NOTIFICATIONS", _NOTIFICATIONS, _services),
            ("PASSIVE_HOST_CHECKS", _PASSIVE, _hosts),
            ("PASSIVE_SVC_CHECKS", _PASSIVE, _services),
        )
    },
    **{
        f"{owner.upper()}_{kind}_NOTIFICATIONS": (
            f"{owner}_name:{owner}",
            _switching(attribute, _targets),
        )
        for owner in ("contact", "contactgroup")
        for kind, attribute in (
            ("HOST", "host_notifications_enabled"),
            ("SVC", "service_notifications_enabled"),
        )
    },
}
"""Commands that begin with ENABLE and DISABLE."""

_STARTED: Mapping[str, tuple[str, Obey]] = {
    "ACCEPTING_PASSIVE_HOST_CHECKS": ("", _program("accept_passive_host_checks")),
    "ACCEPTING_PASSIVE_SVC_CHECKS": ("", _program("accept_passive_service_checks")),
    "EXECUTING_HOST_CHECKS": ("", _program("execute_host_checks")),
    "EXECUTING_SVC_CHECKS": ("", _program("execute_service_checks")),
    "OBSESSING_OVER_HOST_CHECKS": ("", _program("obsess_over_hosts")),
    "OBSESSING_OVER_SVC_CHECKS": ("", _program("obsess_over_services")),
    "OBSESSING_OVER_{}": ("{}", _switching("obsess", _targets)),
}
"""Commands that begin with START and STOP."""


def _commands() -> dict[str, ExternalCommand]:
    """Every command of the tables, for hosts and for services."""
    rows = [
        *_PLAIN.items(),
        *_OF_BOTH.items(),
        *(
            (f"{verb}_{name}", row)
            for verb in ("ENABLE", "DISABLE")
            for name, row in _ENABLED.items()
        ),
        *((f"{verb}_{name}", row) for verb in ("START", "STOP") for name, row in _STARTED.items()),
    ]
    commands = {}
    for name, (arguments, obey) in rows:
        kinds = (("HOST", _HOST), ("SVC", _SERVICE)) if "{}" in name else (("", ""),)
        for kind, owner in kinds:
            commands[name.format(kind)] = ExternalCommand(_arguments(arguments.format(owner)), obey)
    return commands


def _arguments(text: str) -> tuple[ExternalArgument, ...]:
    """Read ``host_name:host;comment:str?``; a question mark makes one optional."""
    arguments = []
    for item in filter(None, text.split(";")):
        name, _, kind = item.partition(":")
        arguments.append(ExternalArgument(name, kind.rstrip("?"), kind.endswith("?")))
    return tuple(arguments)


COMMANDS: Mapping[str, ExternalCommand] = _commands()
"""Every command the core knows, by name."""
