"""The rows of hosts, services and groups for all processes of one run.

Each table is asked at most once for each site, however many processes there are
(docs/spec/bp.md, "Calculation"). Rows of hosts and services have the same layout, so that a node
need not know which it is about.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, nullcontext
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.errors import SitesFailed
from monrest.base.room import Share
from monrest.base.values import Capabilities, Row, SiteProblem
from monrest.bp.node_state import CRITICAL, OK
from monrest.query.column_names import CoreType
from monrest.query.model import CoreFilter, Group, Pushed, Test
from monrest.query.pushdown import both
from monrest.sites.fanout import Gathered, SiteAnswer, fan_out
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

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
    """The objects of the nodes of all processes; ``member_…`` are groups whose members are rows.

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
    """Return the rows that have any of the names; None for all when the names are many."""
    if sum(len(names) for _, _, names in limits) > _FEW:
        return None
    return Group(
        "or",
        tuple(Test(column, op, name) for column, op, names in limits for name in sorted(names)),
    )


_SEVERITY = (0, 1, 3, 2)


def worse(first: int, second: int) -> int:
    """Return the worse of two states of services: critical, unknown, warning, ok."""
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
    """Counts of the members of a group at all sites."""

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


LIE = "the core sent rows of wrong types"


@frozen
class Answers:
    """The rows of the cores, and the sites that did not answer completely."""

    live: CoreRows
    problems: tuple[SiteProblem, ...] = ()
    share: Share | None = None
    """The room that all of it has."""


ObjectPlace: TypeAlias = tuple[str, str, str]
"""A site with a host and a service of it; no service: the host itself."""

TableVisibility: TypeAlias = Callable[[str], CoreFilter | None]
"""The filter of a user on a table of the cores; None for all rows."""


@asynccontextmanager
async def gather(
    sites: Sequence[Site],
    needs: Needs,
    clock: IReactorTime,
    rule: TableVisibility = lambda _: None,
    share: Share | None = None,
) -> AsyncIterator[Answers]:
    """Ask all sites at once; those that fail or lie become problems.

    The rows have room in ``share``, or in one of their own until the block ends. Without a
    ``rule`` it is all that there is.
    """
    questions = needs.questions()
    live = CoreRows(questions)
    problems: dict[str, SiteProblem] = {}
    if not sites or not questions:
        yield Answers(live)
        return
    asked = [
        evolve(question, filter=both(question.filter, rule(question.table)))
        for question in questions
    ]
    with nullcontext(share) if share else sites[0].memory.room.turn() as share:
        waiting = [Deferred.fromCoroutine(ask(sites, question, clock, share)) for question in asked]
        answers: list[tuple[CoreQuestion, SiteAnswer]] = []
        for question, (_, outcome) in zip(
            questions, await DeferredList(waiting, consumeErrors=True), strict=True
        ):
            if isinstance(outcome, Failure):
                outcome.raiseException()
            problems.update((problem.site, problem) for problem in outcome.problems)
            # The first of several sites that have an object counts, so it is taken last.
            answers += [(question, answer) for answer in reversed(outcome.answers)]

        def take() -> list[Site]:
            lying = []
            for question, answer in answers:
                try:
                    live.take(question, answer.site.id, answer.rows)
                except (TypeError, ValueError):
                    lying.append(answer.site)
            return lying

        for site in await sites[0].memory.threads.run(take):
            problems[site.id] = SiteProblem(site.id, site.name, LIE)
        yield Answers(live, tuple(problems.values()), share)


async def ask(
    sites: Sequence[Site],
    question: CoreQuestion,
    clock: IReactorTime,
    share: Share | None = None,
) -> Gathered:
    """Ask one question; that no site answers at all is no error."""

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        types = core.tables.get(question.table)
        if not types:
            return None
        columns = tuple(name for name, _ in question.layout if name in types)
        return Pushed(table=question.table, columns=columns, filter=question.filter)

    try:
        return await fan_out(sites, plan, question.layout, clock, share=share)
    except SitesFailed as error:
        return Gathered((), error.problems, 0.0)


_CARRIERS: Mapping[str, RowTypes] = {
    "hosts": (("name", "string"), ("custom_variables", "dict")),
    "services": (("host_name", "string"), ("description", "string"), ("custom_variables", "dict")),
}


async def carriers(
    sites: Sequence[Site],
    table: str,
    variable: str,
    seen: CoreFilter | None,
    clock: IReactorTime,
) -> dict[ObjectPlace, str]:
    """Which hosts or services carry the number of a process: (site, host, service) to number.

    ``seen`` is the visibility filter of the user, None for all rows. Raises SitesFailed
    when no site answers.
    """
    layout = _CARRIERS[table]
    columns = tuple(name for name, _ in layout)
    has = Test("custom_variable_names", ">=", variable)

    def plan(_site: Site, core: Capabilities) -> Pushed | None:
        if not core.has(table, "custom_variables"):
            return None
        # Icinga 2 has no such list to search in: all rows are looked at.
        limit = seen if core.kind == "icinga2" else both(seen, has)
        return Pushed(table=table, columns=columns, filter=limit)

    places: dict[ObjectPlace, str] = {}
    if not sites:
        return places
    gathered = await fan_out(sites, plan, layout, clock)
    for answer in gathered.answers:
        for host, *service, variables in answer.rows:
            if isinstance(variables, dict) and variable in variables:
                place = answer.site.id, str(host), str(service[0]) if service else ""
                places[place] = str(variables[variable])
    return places


def number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""
