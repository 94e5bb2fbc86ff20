"""Which hosts and services a report is about, on which sites.

Objects are chosen like the rows of any list, so that the user's rights hold, and only then is
the log read for them.

Rules: docs/spec/availability.md, "Objects of a report".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import define, evolve, field, frozen

from monrest.accounts.contacts import NO_CONTACT
from monrest.api.endpoint import Context
from monrest.api.lists import local_schema, select
from monrest.api.visibility import HOSTS as ALL_HOSTS
from monrest.api.visibility import SERVICES as ALL_SERVICES
from monrest.availability.report_arguments import ObjectKinds, ReportArguments
from monrest.base.errors import Forbidden, NotFound, SitesFailed
from monrest.base.values import Column, RestRequest, Rows, SiteProblem
from monrest.logs.ask import wants_cache
from monrest.logs.cache import LogCache
from monrest.logs.source import Wanted
from monrest.logs.state_events import ObjectKey
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition, FilterTree, Operator, leaves, rewritten
from monrest.rows.columns import HOSTGROUPS, HOSTS, SERVICEGROUPS, SERVICES
from monrest.rows.fetch import fetch
from monrest.sites.site import Site

_OF_HOSTS = {"host": "name", "host_name": "name"}
_OF_SERVICES = {"host": "host_name", "service": "description"}
OBJECT_COLUMNS: Mapping[str, tuple[str, Operator]] = {
    "host": ("host", "="),
    "service": ("service", "="),
    "hostgroup": ("host_groups", ">="),
    "servicegroup": ("service_groups", ">="),
}
"""The columns with the names by which a report selects its objects."""
_UNKNOWN = -1
_SERVICE_NAMES = frozenset({"service", "description", "service_description"})


@frozen(kw_only=True)
class Scope:
    """The objects of the path: conditions for hosts, for services, and how the hosts are found.

    ``by_service``: the hosts are those of the services. ``schema``, ``exists`` and ``word`` are
    for the check whether the object of the path is there at all; no schema: the path names none.
    """

    hosts: tuple[Condition, ...] = ()
    services: tuple[Condition, ...] = ()
    by_service: bool = False
    schema: TableSchema | None = None
    exists: tuple[Condition, ...] = ()
    word: str = ""


@define
class ChosenObjects:
    """The objects by site id, each with its present state; and the sites that did not answer."""

    states: dict[str, dict[ObjectKey, int]] = field(factory=dict)
    problems: dict[str, SiteProblem] = field(factory=dict)

    def add(self, site: str, host: Any, service: Any, state: Any) -> None:
        """Note an object, unless the core lies about its name; a wrong state is unknown."""
        if isinstance(host, str) and isinstance(service, str):
            is_state = type(state) is int
            self.states.setdefault(site, {})[host, service] = state if is_state else _UNKNOWN

    def take(self, rows: Rows) -> None:
        """Note the failures of one question."""
        self.problems.update((failed_site.site, failed_site) for failed_site in rows.failed_sites)


def in_hostgroup(name: str) -> Scope:
    """The members of a host group and their services."""
    return Scope(
        hosts=(Condition("groups", ">=", name, "path"),),
        services=(Condition("host_groups", ">=", name, "path"),),
        schema=HOSTGROUPS,
        exists=(Condition("name", "=", name, "path"),),
        word="hostgroup",
    )


def in_servicegroup(name: str) -> Scope:
    """The members of a service group and their hosts."""
    return Scope(
        services=(Condition("groups", ">=", name, "path"),),
        by_service=True,
        schema=SERVICEGROUPS,
        exists=(Condition("name", "=", name, "path"),),
        word="servicegroup",
    )


async def choose(
    cache: LogCache, context: Context, request: RestRequest, scope: Scope, asked: ReportArguments
) -> ChosenObjects:
    """The objects that the user may see.

    Those of a site that is down are the ones in its log in the cache, where the log of the whole
    report is there. Raise NotFound when the object of the path is none of them, Forbidden for a
    user without the right to see any object at all, and what ``fetch`` raises.
    """
    chosen = ChosenObjects()
    conditions: list[FilterTree] = [*asked.objects]
    for word, name in asked.chosen.items():
        conditions.append(Condition(*OBJECT_COLUMNS[word], name, word))
    failure: SitesFailed | None = None
    try:
        cores = _ask_cores(context, request, chosen)
        await _choose(cores, scope, asked.kind, conditions, chosen)
    except SitesFailed as error:
        failure = error
        chosen.problems.update((problem.site, problem) for problem in error.problems)
    if chosen.problems:
        await _choose_by_log(cache, context, request, scope, asked, conditions, chosen)
    if not any(chosen.states.values()):
        if failure is not None:
            raise failure
        await _explain(context, request, scope, chosen)
    return chosen


ObjectKind: TypeAlias = Literal["hosts", "services"]
FoundObject: TypeAlias = tuple[str, Any, Any, Any]
"""Site, host, service (empty for a host) and state, as a core or a log has them."""
Ask: TypeAlias = Callable[[ObjectKind, Sequence[FilterTree]], Awaitable[Iterable[FoundObject]]]


async def _choose(
    ask: Ask,
    scope: Scope,
    kind: ObjectKinds,
    conditions: Sequence[FilterTree],
    chosen: ChosenObjects,
) -> None:
    """Note the objects that ``ask`` finds; hosts also by conditions on their services."""
    if kind != "hosts":
        for found in await ask("services", (*scope.services, *for_services(conditions))):
            chosen.add(*found)
    if kind == "services":
        return
    of_hosts = [condition for condition in conditions if not about_services(condition)]
    of_services = [condition for condition in conditions if about_services(condition)]
    allowed: set[tuple[str, str]] | None = None
    if scope.by_service or of_services:
        services = await ask("services", (*scope.services, *for_services(of_services)))
        allowed = {(site, host) for site, host, _, _ in services if isinstance(host, str)}
    for site, host, _, state in await ask("hosts", (*scope.hosts, *for_hosts(of_hosts))):
        if allowed is None or (isinstance(host, str) and (site, host) in allowed):
            chosen.add(site, host, "", state)


def _ask_cores(context: Context, request: RestRequest, chosen: ChosenObjects) -> Ask:
    """Find objects in the cores; sites that fail are noted in ``chosen``."""

    async def ask(kind: ObjectKind, trees: Sequence[FilterTree]) -> Iterable[FoundObject]:
        schema, names = (HOSTS, "name")
        if kind == "services":
            schema, names = (SERVICES, "host_name,description")
        columns = f"{names},state,has_been_checked,peer_key"
        rows = await _rows(context, request, schema, columns, trees)
        chosen.take(rows)
        return (
            (site, host, service[0] if service else "", state if checked else 0)
            for host, *service, state, checked, site in rows.once()
        )

    return ask


def for_hosts(trees: Iterable[FilterTree]) -> tuple[FilterTree, ...]:
    """The same conditions on the columns of hosts."""
    return tuple(_renamed(tree, {**_OF_HOSTS, "host_groups": "groups"}) for tree in trees)


def for_services(trees: Iterable[FilterTree]) -> tuple[FilterTree, ...]:
    """The same conditions on the columns of services."""
    return tuple(_renamed(tree, {**_OF_SERVICES, "service_groups": "groups"}) for tree in trees)


async def _rows(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    columns: str,
    trees: Sequence[FilterTree],
) -> Rows:
    sites = tuple(pair for pair in request.parameters if pair[0] in ("backend", "backends"))
    inner = evolve(request, parameters=(("columns", columns), *sites))
    rows = await fetch(context, inner, schema, extra=tuple(trees))
    assert isinstance(rows, Rows)
    return rows


def about_services(tree: FilterTree) -> bool:
    """Whether a condition is about services, also where hosts are chosen by it."""
    return any(
        condition.column in _SERVICE_NAMES or condition.column == "service_groups"
        for condition in leaves([tree])
    )


def _renamed(tree: FilterTree, names: Mapping[str, str]) -> FilterTree:
    """The same conditions with the columns of another collection."""
    return rewritten(
        tree,
        lambda condition: evolve(condition, column=names.get(condition.column, condition.column)),
    )


_NAMES = frozenset({"name", "host", "host_name", *_SERVICE_NAMES})


def _of_names(name: str, *columns: str) -> TableSchema:
    declared = tuple(Column(column, "string") for column in columns)
    return evolve(local_schema(name, declared, columns), folded=False)


_HOSTS_BY_NAME = _of_names("hosts", "name")
_SERVICES_BY_NAME = _of_names("services", "host_name", "description")


async def _choose_by_log(
    cache: LogCache,
    context: Context,
    request: RestRequest,
    scope: Scope,
    asked: ReportArguments,
    conditions: list[FilterTree],
    chosen: ChosenObjects,
) -> None:
    """Note the objects of sites that are down, for a user who sees all of them.

    Only names are known of them, so nothing is noted where other conditions choose objects.
    """
    identity = request.identity
    trees = [*scope.hosts, *scope.services, *for_services(conditions)]
    if (
        not wants_cache(request)
        or not (identity.may(ALL_HOSTS) and identity.may(ALL_SERVICES))
        or not all(condition.column in _NAMES for condition in leaves(trees))
    ):
        return
    wanted = Wanted(
        since=asked.since,
        until=asked.span.end,
        hosts=asked.kind != "services",
        services=asked.kind != "hosts" or any(map(about_services, conditions)),
        texts="latest",
    )
    for site in context.sites.sites:
        if site.id not in chosen.problems or site.breaker.error is None:
            continue
        keys = await cache.objects(site, wanted)
        log = _ask_log(context, request, site.id, keys or ())
        await _choose(log, scope, asked.kind, conditions, chosen)


def _ask_log(context: Context, request: RestRequest, site: str, keys: Collection[ObjectKey]) -> Ask:
    """Find those of ``keys``, which a log has; their present states are unknown."""

    async def ask(kind: ObjectKind, trees: Sequence[FilterTree]) -> Iterable[FoundObject]:
        schema, columns = _HOSTS_BY_NAME, "name"
        if kind == "services":
            schema, columns = _SERVICES_BY_NAME, "host_name,description"
        wanted = tuple(_renamed(tree, {"service_description": "description"}) for tree in trees)
        records = [
            {"name": host, "host_name": host, "description": service}
            for host, service in keys
            if bool(service) == (kind == "services")
        ]
        every = evolve(request, parameters=(("columns", columns),))
        answer = await select(context, every, schema, records, extra=wanted)
        assert isinstance(answer, Rows)
        return [(site, row[0], row[1] if row[1:] else "", None) for row in answer.rows]

    return ask


async def _explain(
    context: Context, request: RestRequest, scope: Scope, chosen: ChosenObjects
) -> None:
    """Nothing was found: raise the reason if it is not simply that there is nothing."""
    identity = request.identity
    if (
        not chosen.problems
        and not identity.may(ALL_HOSTS)
        and not identity.may(ALL_SERVICES)
        and await context.contacts.of(identity.user) == NO_CONTACT
    ):
        raise Forbidden(
            f"insufficient permissions for user {identity.user}",
            f"only contacts and users with the role {ALL_HOSTS} or {ALL_SERVICES} see objects"
            f"{identity.why_not(ALL_HOSTS)}",
        )
    if scope.schema is None or any(existing.op not in ("=", ">=") for existing in scope.exists):
        return
    rows = await _rows(context, request, scope.schema, scope.exists[0].column, scope.exists)
    if any(True for _ in rows.once()):
        return
    chosen.take(rows)
    missing = NotFound(
        f"no such {scope.word}", " ".join(existing.value for existing in scope.exists)
    )
    if chosen.problems:
        missing.problems = tuple(chosen.problems.values())
        missing.description += ", and not every site answered"
    raise missing


def on_sites(context: Context, chosen: ChosenObjects) -> list[tuple[Site, dict[ObjectKey, int]]]:
    """The sites that have any of the objects, in configured order."""
    return [
        (site, chosen.states[site.id]) for site in context.sites.sites if chosen.states.get(site.id)
    ]
