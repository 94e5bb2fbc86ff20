"""The commands of recurring downtimes, which of them cores have followed, and their objects.

Rules: docs/spec/downtimes.md, "Commands to the core", "Once" and "Check".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from monrest.base.errors import BadRequest, SitesFailed
from monrest.base.schedule import cron
from monrest.base.values import Capabilities
from monrest.commands.fill import orders
from monrest.commands.lookups import FoundTargets, existing
from monrest.downtimes.model import HOST, HOSTGROUP, SERVICE, SERVICEGROUP, Downtime
from monrest.livestatus.catalogue import Command, find
from monrest.livestatus.command import CoreCommand, Target
from monrest.query.model import CoreFilter, Group, Pushed, Test
from monrest.sites.fanout import SiteAnswer, fan_out
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

AUTHOR = "(cron)"
"""The author of the downtimes, as the cores show it."""

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
    kind, name = _COMMANDS[record["target"]]
    if record["target"] == HOST:
        name = _WITH_CHILDREN.get(record["childoptions"], name)
    command = find(kind, name)
    assert command is not None
    return command


_DOWNTIMES: RowTypes = (
    ("host_name", "string"),
    ("service_description", "string"),
    ("comment", "string"),
    ("end_time", "int"),
    ("fixed", "int"),
    ("duration", "int"),
)
_FAMILY: RowTypes = (("name", "string"), ("childs", "list"))
_MEMBERS: Mapping[str, tuple[str, RowTypes]] = {
    "hostgroups": ("hosts", (("groups", "list"), ("name", "string"))),
    "servicegroups": (
        "services",
        (("groups", "list"), ("host_name", "string"), ("description", "string")),
    ),
}

Reach: TypeAlias = Callable[[Order], Set[Target]]
"""The hosts and services that a command is about."""


async def in_effect(
    site: Site,
    orders: Sequence[Order],
    downtime: Downtime,
    at: int,
    until: int,
    clock: IReactorTime,
) -> set[str]:
    """The keys of those orders that a core has followed already; raises SitesFailed.

    Followed is what all hosts and services show that it is about: groups their members, hosts
    with children these as well. A downtime is recognised by author, comment, begin, end and
    kind. That of another record with all of these is as good.
    """
    there = await _set(site, downtime, at, until, clock)
    if not there:
        return set()
    reach = await _reach(site, orders, clock)
    return {order.key for order in orders if (about := reach(order)) and about <= there}


async def _set(
    site: Site, downtime: Downtime, at: int, until: int, clock: IReactorTime
) -> set[Target]:
    mine = Group("and", (Test("author", "=", AUTHOR), Test("start_time", "=", str(at))))
    answer = await _ask(site, "downtimes", _DOWNTIMES, mine, clock)
    wanted: dict[int, Any] = {2: downtime.record["comment"], 3: until}
    if answer.capabilities.has("downtimes", "fixed"):
        wanted[4] = int(downtime.fixed)
    if not downtime.fixed and answer.capabilities.has("downtimes", "duration"):
        wanted[5] = downtime.record["duration"] * 60
    return {
        Target("services", row[0], row[1]) if row[1] else Target("hosts", row[0])
        for row in answer.rows
        if all(row[column] == value for column, value in wanted.items())
    }


async def _reach(site: Site, orders: Sequence[Order], clock: IReactorTime) -> Reach:
    """Ask for the members of groups and the children of hosts, as far as they matter."""
    members: dict[Target, set[Target]] = {}
    for kind, (table, layout) in _MEMBERS.items():
        groups = {order.target.name for order in orders if order.target.kind == kind}
        if groups:
            some = Group("or", tuple(Test("groups", ">=", name) for name in sorted(groups)))
            answer = await _ask(site, table, layout, some, clock)
            for of, *name in answer.rows:
                for group in groups.intersection(of):
                    members.setdefault(Target(kind, group), set()).add(Target(table, *name))
    children: dict[str, Sequence[str]] = {}
    if any(order.with_children for order in orders):
        answer = await _ask(site, "hosts", _FAMILY, None, clock)
        children = {name: childs for name, childs in answer.rows if childs}

    def reach(order: Order) -> Set[Target]:
        if order.target.kind in _MEMBERS:
            return members.get(order.target, set())
        if not order.with_children:
            return {order.target}
        return {Target("hosts", name) for name in _family(order.target.name, children)}

    return reach


def _family(host: str, children: Mapping[str, Iterable[str]]) -> set[str]:
    """A host with its children, and theirs."""
    family, waiting = {host}, [host]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - family
        family |= new
        waiting += new
    return family


async def _ask(
    site: Site, table: str, layout: RowTypes, limit: CoreFilter | None, clock: IReactorTime
) -> SiteAnswer:
    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        names = tuple(name for name, _ in layout if core.has(table, name))
        return Pushed(table=table, columns=names, filter=limit)

    (answer,) = (await fan_out((site,), plan, layout, clock)).answers
    return answer


async def find_objects(
    sites: Sequence[Site], targets: Set[Target], clock: IReactorTime
) -> FoundTargets:
    """The sites of each object, among those that answer: no answer at all is no error."""
    if not sites or not targets:
        return FoundTargets()
    try:
        return await existing(sites, targets, clock)
    except SitesFailed as error:
        return FoundTargets(problems={problem.site: problem for problem in error.problems})


def line(text: str) -> str:
    """One line of ``error``."""
    return f"  - ERROR: {text}"


def wanted(downtime: Downtime) -> set[Target]:
    """The objects that a check looks for: of services their hosts as well."""
    targets = set(downtime.targets())
    if downtime.target == SERVICE:
        targets |= {Target("hosts", target.name) for target in targets}
    return targets


def check(
    downtime: Downtime, sites: Sequence[Site], unknown: Sequence[str], objects: FoundTargets
) -> list[str]:
    """The lines of what is wrong with a downtime; ``sites`` are its own.

    While one of them cannot be asked, nothing is missing.
    """
    lines = [line(f"unknown backend: {key}") for key in unknown]
    for at, entry in enumerate(downtime.record["schedule"]):
        try:
            cron(entry, f"schedule.{at}")
        except BadRequest as error:
            lines.append(line(f"cannot be scheduled: {error.description}"))
    keys = {site.id for site in sites}
    if keys & objects.problems.keys():
        return lines

    def there(target: Target) -> bool:
        return not keys.isdisjoint(objects.on(target))

    if downtime.target != SERVICE:
        kind = downtime.target
        return lines + [
            line(f"{kind} {target.name} not found")
            for target in downtime.targets()
            if not there(target)
        ]
    hosts, services = downtime.record["host"], downtime.record["service"]
    for host in hosts:
        if not there(Target("hosts", host)):
            lines.append(line(f"host {host} not found"))
        elif not any(there(Target("services", host, service)) for service in services):
            lines.append(line(f"host {host} has none of the services"))
    lines += [
        line(f"service {service} not found on any of the hosts")
        for service in services
        if not any(there(Target("services", host, service)) for host in hosts)
    ]
    return lines
