"""What the cores say about hosts, services and groups, for all processes of one run.

Each table is asked at most once for each site, however many processes there are
(docs/spec/bp.md, "Calculation"). Rows of hosts and services have the same layout, so that a node
need not know which it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import define, field, frozen

from monrest.base.values import Row
from monrest.bp.node_state import CRITICAL, OK
from monrest.query.column_names import CoreType
from monrest.query.model import CoreFilter, Group, Test
from monrest.sites.normalise import RowTypes

ObjectName: TypeAlias = tuple[str, str]
"""A host and a service; no service: the host itself."""

MOST_SHOWN = 10
"""Problems that the text of a node names."""


_CHECKED: RowTypes = (
    ("state", "int"),
    ("has_been_checked", "int"),
    ("state_type", "int"),
    ("last_hard_state", "int"),
    ("last_hard_state_change", "time"),
    ("last_check", "time"),
    ("last_state_change", "time"),
    ("acknowledged", "int"),
    ("scheduled_downtime_depth", "int"),
    ("plugin_output", "string"),
    ("long_plugin_output", "string"),
)
HOST_COLUMNS: RowTypes = (
    ("name", "string"),
    ("display_name", "string"),
    *_CHECKED,
    ("custom_variables", "dict"),
)
SERVICE_COLUMNS: RowTypes = (
    ("host_name", "string"),
    ("description", "string"),
    *_CHECKED,
    ("host_custom_variables", "dict"),
)
(
    HOST,
    SERVICE,
    STATE,
    CHECKED,
    STATE_TYPE,
    HARD_STATE,
    HARD_CHANGE,
    LAST_CHECK,
    LAST_CHANGE,
    ACKNOWLEDGED,
    DOWNTIME,
    OUTPUT,
    LONG_OUTPUT,
    VARIABLES,
) = range(len(HOST_COLUMNS))
"""Positions in the rows of both; what a status filter needs follows, and last the site's id."""

PEER = -1

_SERVICES: RowTypes = (
    ("num_services", "int"),
    ("num_services_ok", "int"),
    ("num_services_warn", "int"),
    ("num_services_crit", "int"),
    ("num_services_unknown", "int"),
    ("num_services_pending", "int"),
    ("worst_service_state", "int"),
)
SERVICEGROUP_COLUMNS: RowTypes = (("name", "string"), *_SERVICES)
HOSTGROUP_COLUMNS: RowTypes = (
    ("name", "string"),
    *_SERVICES,
    ("num_hosts", "int"),
    ("num_hosts_up", "int"),
    ("num_hosts_down", "int"),
    ("num_hosts_unreach", "int"),
    ("num_hosts_pending", "int"),
    ("worst_host_state", "int"),
)

_FEW = 50
"""Names up to which a core is asked for them alone; it tests every row against each of them."""


@define
class Needs:
    """What the nodes of all processes look at; ``member_…`` are groups whose members are rows.

    ``every_host`` and ``every_service``: a status filter has to look at all of them.
    """

    hosts: set[str] = field(factory=set)
    services_of: set[str] = field(factory=set)
    hostgroups: set[str] = field(factory=set)
    servicegroups: set[str] = field(factory=set)
    member_hostgroups: set[str] = field(factory=set)
    member_servicegroups: set[str] = field(factory=set)
    every_host: bool = False
    every_service: bool = False
    host_columns: dict[str, CoreType] = field(factory=dict)
    service_columns: dict[str, CoreType] = field(factory=dict)

    def questions(self) -> list[CoreQuestion]:
        """Give what to ask, at most one question for each table."""
        questions: list[CoreQuestion] = []
        if self.member_hostgroups:
            self.host_columns["groups"] = "list"
            self.service_columns["host_groups"] = "list"
        if self.member_servicegroups:
            self.service_columns["groups"] = "list"
        if self.every_host or self.hosts or self.member_hostgroups:
            limit = _limit(("name", "=", self.hosts), ("groups", ">=", self.member_hostgroups))
            layout = _layout(HOST_COLUMNS, self.host_columns)
            questions.append(CoreQuestion("hosts", layout, None if self.every_host else limit))
        if (
            self.every_service
            or self.services_of
            or self.member_hostgroups
            or self.member_servicegroups
        ):
            limit = _limit(
                ("host_name", "=", self.services_of),
                ("host_groups", ">=", self.member_hostgroups),
                ("groups", ">=", self.member_servicegroups),
            )
            layout = _layout(SERVICE_COLUMNS, self.service_columns)
            questions.append(
                CoreQuestion("services", layout, None if self.every_service else limit)
            )
        for table, layout, names in (
            ("hostgroups", HOSTGROUP_COLUMNS, self.hostgroups),
            ("servicegroups", SERVICEGROUP_COLUMNS, self.servicegroups),
        ):
            if names:
                questions.append(CoreQuestion(table, layout, _limit(("name", "=", names))))
        return questions


@frozen
class CoreQuestion:
    """One table, what is wanted of it, and of which rows (None: of all)."""

    table: str
    layout: RowTypes
    filter: CoreFilter | None


def _layout(base: RowTypes, more: dict[str, CoreType]) -> RowTypes:
    present = {name for name, _ in base}
    return (*base, *((name, kind) for name, kind in more.items() if name not in present))


def _limit(*limits: tuple[str, str, set[str]]) -> CoreFilter | None:
    """Give the rows that have any of the names; None for all when the names are many."""
    if sum(len(names) for _, _, names in limits) > _FEW:
        return None
    return Group(
        "or",
        tuple(Test(column, op, name) for column, op, names in limits for name in sorted(names)),
    )


_SEVERITY = (0, 1, 3, 2)


def worse(first: int, second: int) -> int:
    """Give the worse of two states of services: critical, unknown, warning, ok."""
    return max(first, second, key=lambda state: _SEVERITY[state] if 0 <= state <= 3 else 2)


@define
class NodeTally:
    """Hosts or services that a node is about.

    ``good`` count as available, ``bad`` do not. ``states`` are those of nodes: a host that is not
    up is critical. Of what is not well ``acknowledged`` and ``downtime`` are so many, and the
    ``first`` are kept with their states.
    """

    total: int = 0
    good: int = 0
    bad: int = 0
    worst: int = 0
    acknowledged: int = 0
    downtime: int = 0
    problems: int = 0
    states: set[int] = field(factory=set)
    first: list[tuple[int, Row]] = field(factory=list)

    def add(self, row: Row, raw: int, state: int, *, of_hosts: bool) -> None:
        """Count one row, which is in state ``raw`` and counts with ``state``."""
        bad = bool(state) if of_hosts else state > 1
        self.total += 1
        self.bad += bad
        self.good += not bad
        self.worst = max(self.worst, state) if of_hosts else worse(self.worst, state)
        self.states.add((CRITICAL if bad else OK) if of_hosts else state)
        self.acknowledged += bool(raw and row[ACKNOWLEDGED])
        self.downtime += bool(raw and row[DOWNTIME])
        self.problems += bool(state)
        if state and self.problems <= MOST_SHOWN:
            self.first.append((state, row))

    def handled(self, count: int) -> bool:
        """Whether so many make up for all that is bad."""
        return count > 0 and self.bad <= count


@define
class GroupCounts:
    """What sites say about the members of a group."""

    hosts: NodeTally = field(factory=NodeTally)
    services: NodeTally = field(factory=NodeTally)
    peers: set[str] = field(factory=set)

    def add(self, site: str, numbers: Sequence[int]) -> None:
        """Add the counters of one site, in the order of ``HOSTGROUP_COLUMNS``."""
        total, ok, warning, critical, unknown, pending, worst, *of_hosts = numbers
        services, hosts = self.services, self.hosts
        services.total += total
        services.good += ok + pending + warning
        services.bad += critical + unknown
        services.worst = worse(services.worst, worst)
        if of_hosts:
            total, up, down, unreachable, pending, worst = of_hosts
            hosts.total += total
            hosts.good += up + pending
            hosts.bad += down + unreachable
            hosts.worst = max(hosts.worst, worst)
        self.peers.add(site)


@define(eq=False)
class CoreRows:
    """The rows by name; of an object that several sites have, those of the first site count.

    What ``questions`` ask for has its place in a row also where no site answers.
    """

    questions: Sequence[CoreQuestion] = ()
    services: dict[ObjectName, Row] = field(factory=dict)
    hosts: dict[str, Row] = field(factory=dict)
    hostgroups: dict[str, GroupCounts] = field(factory=dict)
    servicegroups: dict[str, GroupCounts] = field(factory=dict)
    host_index: Mapping[str, int] = field(init=False)
    service_index: Mapping[str, int] = field(init=False)
    sites_of: dict[str, set[str]] = field(factory=dict)
    """Hosts by name to the sites that have one of it."""

    def __attrs_post_init__(self) -> None:
        index = {
            question.table: {name: at for at, (name, _) in enumerate(question.layout)}
            for question in self.questions
        }
        self.host_index = index.get("hosts", {})
        self.service_index = index.get("services", {})

    @cached_property
    def by_host(self) -> Mapping[str, Sequence[Row]]:
        """The services of each host, once all rows are there."""
        rows_of: dict[str, list[Row]] = {}
        for row in self.services.values():
            rows_of.setdefault(row[HOST], []).append(row)
        return rows_of

    def take(self, question: CoreQuestion, site: str, rows: Sequence[Row]) -> None:
        """Add the rows of one site, which come before those of sites that were taken earlier.

        They get the site behind their values. Raises TypeError and ValueError for a site that lies
        about its types.
        """
        width = len(question.layout)
        if question.table == "hosts":
            for row in rows:
                if len(row) == width:
                    row.append(site)
                self.hosts[row[HOST]] = row
                self.sites_of.setdefault(row[HOST], set()).add(site)
        elif question.table == "services":
            for row in rows:
                if type(row[HOST]) is not str or type(row[SERVICE]) is not str:
                    raise TypeError("a name is no text")
                if len(row) == width:
                    row.append(site)
            self.services.update(zip(map(itemgetter(HOST, SERVICE), rows), rows, strict=True))
        else:
            groups = self.hostgroups if question.table == "hostgroups" else self.servicegroups
            for row in rows:
                name, *numbers = row
                groups.setdefault(name, GroupCounts()).add(
                    site, [int(number) for number in numbers]
                )


def number(value: Any) -> int:
    """Give a number of a row; 0 for what is none, such as a lie."""
    return int(value) if isinstance(value, (int, float)) else 0


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""
