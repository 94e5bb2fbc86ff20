"""Lists and counters of members, made of what the user may see.

A core counts all services of a host or a group. For a user who does not see all of them these
columns are made here, of those that are visible (docs/spec/accounts.md, "Visibility").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve, field, frozen

from monrest.api.endpoint import Context
from monrest.api.visibility import visibility
from monrest.base.room import Share
from monrest.base.values import Capabilities, Identity, Row, SiteProblem
from monrest.query.column_names import EMPTY, CoreType, View, secret
from monrest.query.flow import SitePart
from monrest.query.limit import Limit
from monrest.query.model import Pushed
from monrest.query.plan import Layout
from monrest.sites.fanout import fan_out
from monrest.sites.normalise import RowTypes, as_list
from monrest.sites.site import Site

_HOST: RowTypes = (
    *(("name", "string"), ("state", "int"), ("has_been_checked", "int")),
    *(("state_type", "int"), ("last_hard_state", "int")),
)
_SERVICE: RowTypes = (("host_name", "string"), ("description", "string"), *_HOST[1:])
_OUTPUT: RowTypes = (("plugin_output", "string"),)
_HOST_GROUPS: RowTypes = (("host_groups", "list"),)

_GROUP: RowTypes = (("name", "string"), ("members", "list"))

_STATES = {"ok": 0, "warn": 1, "crit": 2, "unknown": 3, "up": 0, "down": 1, "unreach": 2}
_HOST_RANK = {0: 0, 2: 1, 1: 2}
_SERVICE_RANK = {0: 0, 1: 1, 3: 2, 2: 3}
"""The severity of states: down is worse than unreachable, critical worse than unknown."""

_SHOWN: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("contacts", "groups"): (0,),
    ("contactgroups", "members"): (0,),
    ("hostgroups", "members"): (0,),
    ("hostgroups", "members_with_state"): (0, 1, 2),
    ("servicegroups", "members"): (0, 1),
    ("servicegroups", "members_with_state"): (0, 1, 2, 3),
    ("hosts", "services"): (1,),
    ("hosts", "services_with_state"): (1, 2, 3),
    ("hosts", "services_with_info"): (1, 2, 3, 6),
}
"""The values of a member that a list shows, as positions in the rows of ``_HOST``, ``_SERVICE``."""


@frozen(kw_only=True)
class Hidden:
    """The columns of a query that are made of the visible members; nothing where there are none.

    ``key`` is the column by which members are found: of hosts their name, of groups a list.
    """

    table: str
    columns: tuple[str, ...] = ()
    key: str = ""
    prefix: str = ""

    def __bool__(self) -> bool:
        return bool(self.columns)


def hidden(
    table: str, shape: Layout, view: View, cores: Sequence[Capabilities]
) -> tuple[Hidden, Layout]:
    """The columns that the core must not count for this user, and the layout with its key.

    The groups of a contact are looked up as well where a core has no column for them.
    """
    columns: tuple[str, ...]
    lacking = not all(core.has("contacts", "groups") for core in cores)
    if table == "contacts":
        columns = ("groups",) if lacking and "groups" in shape.index else ()
    elif view.members or table == "log":
        columns = ()
    else:
        columns = tuple(name for name, _ in shape.columns if secret(name) == "members")
    if not columns:
        return Hidden(table=table), shape
    if table.endswith("groups"):
        hidden_rows = Hidden(table=table, columns=columns, key="members")
    elif table in ("hosts", "contacts"):
        hidden_rows = Hidden(table=table, columns=columns, key="name")
    else:
        hidden_rows = Hidden(table="hosts", columns=columns, key="host_name", prefix="host_")
    for name in (hidden_rows.key, "name") if table == "hostgroups" else (hidden_rows.key,):
        if name not in shape.index:
            core_type: CoreType = "list" if name == "members" else "string"
            shape = evolve(shape, columns=(*shape.columns, (name, core_type)))
    return hidden_rows, shape


@define(eq=False)
class _Members:
    """The members that the user sees at one site; ``groups`` by the name of a contact."""

    hosts: dict[str, Row] = field(factory=dict)
    services: dict[tuple[str, str], Row] = field(factory=dict)
    by_host: dict[str, list[Row]] = field(factory=dict)
    by_group: dict[str, list[Row]] = field(factory=dict)
    """Services by the groups of their hosts: another instance names no hidden host as a member."""
    groups: dict[str, list[Row]] = field(factory=dict)

    def add(self, table: str, rows: Sequence[Row], _: Limit) -> None:
        for row in rows:
            name = str(row[0])
            if table == "contactgroups":
                for member in as_list(row[1]):
                    self.groups.setdefault(str(member), []).append(row)
            elif table == "hosts":
                self.hosts[name] = row
            else:
                self.services[name, str(row[1])] = row
                self.by_host.setdefault(name, []).append(row)
                for group in as_list(row[-1]) if len(row) > len(_SERVICE) else ():
                    self.by_group.setdefault(str(group), []).append(row)

    def of(self, hidden: Hidden, key: Any, name: str, user: str) -> tuple[list[Row], list[Row]]:
        """The visible members of a row: hosts (of contacts their groups) and services."""
        if hidden.table == "contacts":
            return self.groups.get(str(key), []), []
        if hidden.key != "members":
            return [], self.by_host.get(str(key), [])
        if hidden.table == "contactgroups":
            return [[user]] if user in key else [], []
        if hidden.table == "servicegroups":
            pairs = [
                (str(item[0]), str(item[1])) for item in key if isinstance(item, list) and item[1:]
            ]
            return [], [self.services[pair] for pair in pairs if pair in self.services]
        names = [str(item) for item in key]
        hosts = [self.hosts[name] for name in names if name in self.hosts]
        return hosts, self.by_group.get(name, [])


@frozen(kw_only=True, eq=False)
class VisibleMembers:
    """The members that a user sees at each site; ``problems``: of sites without an answer."""

    hidden: Hidden
    shape: Layout
    user: str
    sites: Mapping[str, _Members]
    problems: tuple[SiteProblem, ...] = ()

    def put_into(self, part: SitePart) -> SitePart:
        """The part with rows that have nothing of hidden members.

        One without an answer about the members has no rows any more.
        """
        return evolve(part, rows=[], stored=_VisibleRows(self, part))

    def rows(self, site: str, rows: Sequence[Row]) -> list[Row]:
        """Some rows of a site with what the user sees of their members."""
        index = self.shape.index
        key = index[self.hidden.key]
        named = index.get("name", key)
        types = dict(self.shape.columns)
        places = [
            (index[name], name.removeprefix(self.hidden.prefix), types[name])
            for name in self.hidden.columns
        ]
        members = self.sites.get(site)
        if members is None:
            return []
        hidden_rows = []
        for row in rows:
            whose = row[key] if self.hidden.key != "members" else as_list(row[key])
            hosts, services = members.of(self.hidden, whose, str(row[named]), self.user)
            row = [*row]
            for place, name, core_type in places:
                value = _value(self.hidden.table, name, hosts, services)
                row[place] = EMPTY[core_type] if value is None else value
            hidden_rows.append(row)
        return hidden_rows


@frozen
class _VisibleRows:
    members: VisibleMembers
    part: SitePart

    def batches(self) -> Iterator[list[Row]]:
        for batch in self.part.batches():
            yield self.members.rows(self.part.constants["peer_key"], batch)


async def visible_members(
    context: Context,
    identity: Identity,
    hidden: Hidden,
    shape: Layout,
    sites: Sequence[Site],
    share: Share,
) -> VisibleMembers:
    """Ask the sites for what the user sees of the members that these columns are made of."""
    members = {site.id: _Members() for site in sites}
    problems: dict[str, SiteProblem] = {}
    strict = context.config.auth.strict_host_authorization
    asked: list[tuple[str, RowTypes]] = []
    if hidden.table == "hostgroups":
        asked.append(("hosts", _HOST))
    if hidden.table == "contacts":
        asked.append(("contactgroups", _GROUP))
    elif hidden.table != "contactgroups":
        wants_output = f"{hidden.prefix}services_with_info" in hidden.columns
        further = _HOST_GROUPS if hidden.table == "hostgroups" else ()
        asked.append(("services", _SERVICE + (_OUTPUT if wants_output else further)))
    for table, columns in asked:
        seen = visibility(identity, table, strict)

        def pushed(_site: Site, capabilities: Capabilities) -> Pushed:
            present = tuple(name for name, _ in columns if capabilities.has(table, name))  # noqa: B023
            return Pushed(table=table, columns=present, filter=seen)  # noqa: B023

        gathered = await fan_out(sites, pushed, columns, context.clock, share=share)
        problems |= {problem.site: problem for problem in gathered.problems}
        for answer in gathered.answers:
            add = partial(members[answer.site.id].add, table, answer.rows)
            await context.compute(add, len(answer.rows) * len(columns))
    return VisibleMembers(
        hidden=hidden,
        shape=shape,
        user=identity.user,
        sites={
            name: site_members for name, site_members in members.items() if name not in problems
        },
        problems=tuple(problems.values()),
    )


def _value(table: str, column: str, hosts: list[Row], services: list[Row]) -> Any:
    """A list, a counter or a worst state by the name of its column; None for any other."""
    rule = _SHOWN.get((table, column))
    if rule is not None:
        rows = services if table in ("hosts", "servicegroups") else hosts
        if len(rule) == 1:
            return [row[rule[0]] for row in rows]
        return [[row[at] for at in rule] for row in rows]
    of_hosts = "host" in column
    # A service has the name of its host before its own.
    rows, at = (hosts, 1) if of_hosts else (services, 2)
    hard = at + 3 if "_hard" in column else at
    states = [
        # A hard state is the last one that was hard, unless the present one is.
        row[at] if row[at + 2] == 1 else row[hard]
        for row in rows
        if row[at + 1]
    ]
    word = column.rsplit("_", 1)[-1]
    if word in ("hosts", "services"):
        return len(rows)
    if word == "pending":
        return len(rows) - len(states)
    if word in _STATES:
        return states.count(_STATES[word])
    if column.startswith("worst_"):
        rank = _HOST_RANK if of_hosts else _SERVICE_RANK
        return max((state for state in states if state in rank), key=rank.__getitem__, default=0)
    return None
