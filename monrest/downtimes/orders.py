"""What cores are told for one occurrence, and how it is found again there (section 4.5). Pure."""

from __future__ import annotations

from attrs import frozen

from monrest.commands.catalogue import find
from monrest.commands.fill import orders
from monrest.commands.values import CoreCommand, Target
from monrest.downtimes.record import HOST, HOSTGROUP, SERVICE, SERVICEGROUP, Downtime

AUTHOR = "(cron)"
"""By whom the downtimes are, as the cores show it."""

_COMMANDS = {
    HOST: "schedule_host_downtime",
    SERVICE: "schedule_svc_downtime",
    HOSTGROUP: "schedule_hostgroup_host_downtime",
    SERVICEGROUP: "schedule_servicegroup_svc_downtime",
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
    name = _COMMANDS[downtime.target]
    if downtime.target == HOST:
        name = _WITH_CHILDREN.get(record["childoptions"], name)
    found: list[Order] = []
    for target in downtime.targets():
        command = find(target.kind, name)
        assert command is not None
        found += [
            Order(target=target, command=order, with_children=name in _WITH_CHILDREN.values())
            for order in orders(command, target, arguments)
        ]
    return found
