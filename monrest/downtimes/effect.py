"""What a core has followed already: the commands whose effect is there.

Rules: docs/spec/downtimes.md, "Once".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

from twisted.internet.interfaces import IReactorTime

from monrest.base.values import Capabilities
from monrest.downtimes.downtime_commands import AUTHOR, Order
from monrest.downtimes.model import Downtime
from monrest.livestatus.command import Target
from monrest.query.model import CoreFilter, Group, Pushed, Test
from monrest.sites.fanout import SiteAnswer, fan_out
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

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
    """What has a downtime of this occurrence."""
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
    found, waiting = {host}, [host]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


async def _ask(
    site: Site, table: str, layout: RowTypes, limit: CoreFilter | None, clock: IReactorTime
) -> SiteAnswer:
    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        known = tuple(name for name, _ in layout if core.has(table, name))
        return Pushed(table=table, columns=known, filter=limit)

    (answer,) = (await fan_out((site,), plan, layout, clock)).answers
    return answer
