"""What cores are told for one occurrence, and how it is found again there. Pure.

Rules: docs/spec/downtimes.md, "What a core is told".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from monrest.commands.fill import orders
from monrest.downtimes.model import HOST, HOSTGROUP, SERVICE, SERVICEGROUP, Downtime
from monrest.livestatus.catalogue import Command, find
from monrest.livestatus.command import CoreCommand, Target

AUTHOR = "(cron)"
"""By whom the downtimes are, as the cores show it."""

_COMMANDS = {
    HOST: ("hosts", "schedule_host_downtime"),
    SERVICE: ("services", "schedule_svc_downtime"),
    HOSTGROUP: ("hostgroups", "schedule_hostgroup_host_downtime"),
    SERVICEGROUP: ("servicegroups", "schedule_servicegroup_svc_downtime"),
}
_WITH_CHILDREN = {
    1: "schedule_and_propagate_triggered_host_downtime",
    2: "schedule_and_propagate_host_downtime",
}


@frozen(kw_only=True)
class Order:
    """One command for every site that has ``target``; ``key`` names it in what is stored."""

    target: Target
    command: CoreCommand
    with_children: bool = False

    @property
    def key(self) -> str:
        """The same text for the same command."""
        return ";".join((self.command.name, *self.command.fields))


def orders_of(downtime: Downtime, at: int) -> list[Order]:
    """The commands for the occurrence of ``at``, which begins then, however late they come."""
    record = downtime.record
    arguments = {
        "start_time": str(at),
        "end_time": str(downtime.until(at)),
        "fixed": str(int(downtime.fixed)),
        "triggered_by": "0",
        "duration": "0" if downtime.fixed else str(record["duration"] * 60),
        "comment_author": AUTHOR,
        "comment_data": record["comment"],
    }
    command = command_of(record)
    with_children = command.name in _WITH_CHILDREN.values()
    return [
        Order(target=target, command=order, with_children=with_children)
        for target in downtime.targets()
        for order in orders(command, target, arguments)
    ]


def command_of(record: Mapping[str, Any]) -> Command:
    """The command that sets the downtimes of a record."""
    kind, name = _COMMANDS[record["target"]]
    if record["target"] == HOST:
        name = _WITH_CHILDREN.get(record["childoptions"], name)
    command = find(kind, name)
    assert command is not None
    return command
