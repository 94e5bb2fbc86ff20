"""Commands that make something happen: downtimes, comments, checks, results, notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from monrest.demo.checks import Result, process, split_output
from monrest.demo.command_model import CommandSpec, Values, arguments
from monrest.demo.command_toggles import (
    children_of,
    hosts_of,
    services_of,
    targets_of,
)
from monrest.demo.core import Core
from monrest.demo.downtimes import (
    acknowledge,
    cancel,
    cancel_matching,
    remove_acknowledgement,
    schedule,
)
from monrest.demo.notifications import notify
from monrest.demo.objects import Downtime, Host, Target, label
from monrest.demo.simulation import Simulation

_DOWNTIME = ("start_time:timestamp;end_time:timestamp;fixed:bool;trigger_id:ulong;"
             "duration:ulong;author:str;comment:str")  # fmt: skip
_ACK = "sticky:int;notify:bool;persistent:bool"
_OWNERS = (("HOST", "host_name:host"), ("SVC", "service:service"))


def _plan(core: Core, target: Target, values: Values, trigger: int) -> Downtime | None:
    return schedule(
        core,
        target,
        start=values["start_time"],
        end=values["end_time"],
        fixed=values["fixed"],
        triggered_by=trigger,
        duration=values["duration"],
        author=values["author"],
        comment=values["comment"],
    )


def _downtime(pick: Callable[[Values], Iterable[Target]]) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        for target in pick(values):
            _plan(core, target, values, values["trigger_id"])

    return obey


def _propagated(*, triggered: bool) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        first = _plan(core, values["host_name"], values, values["trigger_id"])
        trigger = first.id if triggered and first is not None else values["trigger_id"]
        for child in children_of(values["host_name"]):
            _plan(core, child, values, trigger)

    return obey


def _delete_downtime(*, service: bool) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        found = core.downtimes.get(values["downtime_id"])
        if found is not None and isinstance(found.target, Host) is not service:
            cancel(core, found.id)

    return obey


def _delete_by(core: Core, _simulation: Simulation, values: Values) -> None:
    """Delete the downtimes that fit every given filter; without any filter none."""
    host, service = values.get("hostname", ""), values.get("service_desc", "")
    start, comment = values["start_time"], values["comment"]
    group = values.get("hostgroup_name")
    if not (host or service or start or comment or group):
        return
    members = None if group is None else {item.name for item in group.members}

    def matches(downtime: Downtime) -> bool:
        target = downtime.target
        return (
            (not host or target.host.name == host)
            and (members is None or target.host.name in members)
            and (not service or target.description == service)
            and (not start or downtime.start_time == start)
            and (not comment or downtime.comment == comment)
        )

    cancel_matching(core, matches)


def downtime_commands() -> dict[str, CommandSpec]:
    """SCHEDULE_…_DOWNTIME and DEL_…_DOWNTIME…."""
    found = {
        "SCHEDULE_HOST_SVC_DOWNTIME": CommandSpec(
            arguments(f"host_name:host;{_DOWNTIME}"), _downtime(services_of)
        ),
        "SCHEDULE_AND_PROPAGATE_HOST_DOWNTIME": CommandSpec(
            arguments(f"host_name:host;{_DOWNTIME}"), _propagated(triggered=False)
        ),
        "SCHEDULE_AND_PROPAGATE_TRIGGERED_HOST_DOWNTIME": CommandSpec(
            arguments(f"host_name:host;{_DOWNTIME}"), _propagated(triggered=True)
        ),
        "DEL_DOWNTIME_BY_HOST_NAME": CommandSpec(
            arguments("hostname:str?;service_desc:str?;start_time:timestamp?;comment:str?"),
            _delete_by,
        ),
        "DEL_DOWNTIME_BY_HOSTGROUP_NAME": CommandSpec(
            arguments(
                "hostgroup_name:hostgroup;hostname:str?;service_desc:str?;"
                "start_time:timestamp?;comment:str?"
            ),
            _delete_by,
        ),
        "DEL_DOWNTIME_BY_START_TIME_COMMENT": CommandSpec(
            arguments("start_time:timestamp?;comment:str?"), _delete_by
        ),
    }
    for kind, owner in _OWNERS:
        found[f"SCHEDULE_{kind}_DOWNTIME"] = CommandSpec(
            arguments(f"{owner};{_DOWNTIME}"), _downtime(targets_of)
        )
        found[f"DEL_{kind}_DOWNTIME"] = CommandSpec(
            arguments("downtime_id:id"), _delete_downtime(service=kind == "SVC")
        )
    for group in ("hostgroup", "servicegroup"):
        spec = arguments(f"{group}_name:{group};{_DOWNTIME}")
        start = f"SCHEDULE_{group.upper()}"
        found[f"{start}_HOST_DOWNTIME"] = CommandSpec(spec, _downtime(hosts_of))
        found[f"{start}_SVC_DOWNTIME"] = CommandSpec(spec, _downtime(services_of))
    return found


# ---------------------------------------------------------------- comments, acknowledgements


def _target(values: Values) -> Target:
    target: Target = values["host_name"] if "host_name" in values else values["service"]
    return target


def _acknowledge(core: Core, _simulation: Simulation, values: Values) -> None:
    acknowledge(
        core,
        _target(values),
        sticky=values["sticky"],
        send=values["notify"],
        persistent=values["persistent"],
        end=values.get("timestamp") or 0,
        author=values["author"],
        comment=values["comment"],
    )


def _remove_acknowledgement(core: Core, _simulation: Simulation, values: Values) -> None:
    remove_acknowledgement(core, _target(values))


def _add_comment(core: Core, _simulation: Simulation, values: Values) -> None:
    persistent = values["persistent"]
    author, text = values["author"], values["comment"]
    core.add_comment(_target(values), author, text, persistent=persistent, source=1)


def _delete_comment(*, service: bool) -> Any:
    def obey(core: Core, _simulation: Simulation, values: Values) -> None:
        found = core.comments.get(values["comment_id"])
        if found is not None and isinstance(found.target, Host) is not service:
            core.delete_comment(found.id)

    return obey


def _delete_comments(core: Core, _simulation: Simulation, values: Values) -> None:
    for number in list(_target(values).comments):
        core.delete_comment(number)


def comment_commands() -> dict[str, CommandSpec]:
    """Comments and acknowledgements of hosts and services."""
    found: dict[str, CommandSpec] = {}
    for kind, owner in _OWNERS:
        found[f"ACKNOWLEDGE_{kind}_PROBLEM"] = CommandSpec(
            arguments(f"{owner};{_ACK};author:str;comment:str"), _acknowledge
        )
        found[f"ACKNOWLEDGE_{kind}_PROBLEM_EXPIRE"] = CommandSpec(
            arguments(f"{owner};{_ACK};timestamp:timestamp;author:str;comment:str"), _acknowledge
        )
        only = arguments(owner)
        found[f"REMOVE_{kind}_ACKNOWLEDGEMENT"] = CommandSpec(only, _remove_acknowledgement)
        found[f"ADD_{kind}_COMMENT"] = CommandSpec(
            arguments(f"{owner};persistent:bool;author:str;comment:str"), _add_comment
        )
        found[f"DEL_{kind}_COMMENT"] = CommandSpec(
            arguments("comment_id:id"), _delete_comment(service=kind == "SVC")
        )
        found[f"DEL_ALL_{kind}_COMMENTS"] = CommandSpec(only, _delete_comments)
    return found


# ---------------------------------------------------------------- checks


def _schedule_check(pick: Callable[[Values], Iterable[Target]], *, forced: bool) -> Any:
    def obey(core: Core, simulation: Simulation, values: Values) -> None:
        for target in pick(values):
            if target.check_command and (forced or target.active_checks_enabled):
                at = max(values["check_time"], core.wall.now())
                simulation.plan(target, at, forced=forced)
                core.changed(target)

    return obey


def _result(core: Core, _simulation: Simulation, values: Values) -> None:
    """A passive result; of an object that takes none, nothing happens."""
    target, state, raw = _target(values), values["status_code"], values["plugin_output"]
    host = isinstance(target, Host)
    switches = core.switches
    accepting = (
        switches.accept_passive_host_checks if host else switches.accept_passive_service_checks
    )
    if not (accepting and target.accept_passive_checks) or state > (2 if host else 3):
        return
    kind = "HOST" if host else "SERVICE"
    first, lines, perf = split_output(raw)
    core.log.write(core.wall.now(), f"PASSIVE {kind} CHECK: {label(target)};{state};{first}")
    process(
        core,
        target,
        Result(state=state, output=first, long_output=lines, perf_data=perf, passive=True),
    )


def check_commands() -> dict[str, CommandSpec]:
    """SCHEDULE_…CHECK and PROCESS_…_CHECK_RESULT."""
    found: dict[str, CommandSpec] = {}
    time = "check_time:timestamp"
    for word, forced in (("", False), ("FORCED_", True)):
        for kind, owner in _OWNERS:
            obey = _schedule_check(targets_of, forced=forced)
            found[f"SCHEDULE_{word}{kind}_CHECK"] = CommandSpec(arguments(f"{owner};{time}"), obey)
        found[f"SCHEDULE_{word}HOST_SVC_CHECKS"] = CommandSpec(
            arguments(f"host_name:host;{time}"), _schedule_check(services_of, forced=forced)
        )
    for kind, owner in (("HOST", "host_name:host"), ("SERVICE", "service:service")):
        found[f"PROCESS_{kind}_CHECK_RESULT"] = CommandSpec(
            arguments(f"{owner};status_code:ulong;plugin_output:str?"), _result
        )
    return found


# ---------------------------------------------------------------- notifications


def _custom(core: Core, _simulation: Simulation, values: Values) -> None:
    target, options = _target(values), values["options"]
    if options & 4:
        target.current_notification_number += 1
    forced = bool(options & 2)
    notify(core, target, "CUSTOM", values["author"], values["comment"], forced=forced)
    core.changed(target)


def _number(core: Core, _simulation: Simulation, values: Values) -> None:
    _target(values).current_notification_number = values["notification_number"]
    core.changed(_target(values))


def _delay(core: Core, _simulation: Simulation, values: Values) -> None:
    _target(values).next_notification = values["notification_time"]
    core.changed(_target(values))


def notification_commands() -> dict[str, CommandSpec]:
    """SEND_CUSTOM_…, SET_…_NOTIFICATION_NUMBER, DELAY_…."""
    found: dict[str, CommandSpec] = {}
    for kind, owner in _OWNERS:
        found[f"SEND_CUSTOM_{kind}_NOTIFICATION"] = CommandSpec(
            arguments(f"{owner};options:ulong;author:str;comment:str"), _custom
        )
        found[f"SET_{kind}_NOTIFICATION_NUMBER"] = CommandSpec(
            arguments(f"{owner};notification_number:int"), _number
        )
        found[f"DELAY_{kind}_NOTIFICATION"] = CommandSpec(
            arguments(f"{owner};notification_time:timestamp"), _delay
        )
    return found
