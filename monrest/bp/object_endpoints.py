"""The hosts and services of business processes (docs/spec/bp.md, "Links")."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from attrs import define, evolve, field

from monrest.api.endpoint import LIST_PARAMETERS, SITE_PARAMETERS, Context, Endpoint
from monrest.api.lists import local_schema, select, sparse
from monrest.base.concurrency import sliced
from monrest.base.values import Answer, Column, RestRequest, Rows, SiteProblem
from monrest.bp.endpoints import found, readable
from monrest.bp.references import Key
from monrest.bp.store import Stored
from monrest.query.model import Condition, FilterTree, Group
from monrest.query.parse import parse_query
from monrest.query.schema import CoreColumn, CoreType, TableSchema
from monrest.rows.columns import HOSTS, SERVICES
from monrest.rows.fetch import fetch

_FEW = 50
"""Objects up to which a core is asked for them alone."""
_SLICE = 50

_TYPE = Column("_type", "string", "", "host or service")
_HOST_NAME = Column("host_name", "string", "", "name of the host")


async def objects(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/bp/<nr>/objects: what the process refers to."""
    process = await found(context, request, where[0])
    return await _answer(context, request, await context.bp.objects(process))


async def recursive(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/bp/<nr>/objects/recursive: also what linked processes refer to."""
    process = await found(context, request, where[0])
    visible = await readable(context, request.identity)
    return await _answer(context, request, await _linked(context, process, visible))


async def _linked(context: Context, process: Stored, visible: Callable[[Stored], bool]) -> set[Key]:
    """Give what the process and all linked ones refer to; each process is looked at once."""
    sites = context.sites.select()
    numbers: dict[Key, set[str]] = {}
    for table in ("hosts", "services"):
        for (_, host, service), number in (await context.bp.carriers(table, sites, None)).items():
            numbers.setdefault((host, service), set()).add(number)
    known = {one.id: one for one in await context.bp.several() if visible(one)}
    result: set[Key] = set()
    seen, waiting = {process.id}, [process]
    while waiting:
        keys = await context.bp.objects(waiting.pop())
        result |= keys
        linked = {
            number
            for host, service in keys
            for key in ((host, service), (host, ""))
            for number in numbers.get(key, ())
        }
        for number in sorted(linked - seen):
            if number in known:
                seen.add(number)
                waiting.append(known[number])
    return result


async def _answer(context: Context, request: RestRequest, keys: set[Key]) -> Answer:
    """Give the rows of these objects that the asker may see."""
    query = parse_query(request.parameters)
    sites = tuple(pair for pair in request.parameters if pair[0] in ("backend", "backends"))
    inner = evolve(request, parameters=sites)
    made = _Records()
    hosts = {host for host, service in keys if not service}
    services = {key for key in keys if key[1]}
    if hosts:
        rows = await fetch(context, inner, HOSTS, extra=_hosts(hosts))
        await sliced(made.take(rows, "host", lambda row: row["name"] in hosts), context.clock)
    if services:
        rows = await fetch(context, inner, SERVICES, extra=_services(services))
        work = made.take(
            rows, "service", lambda row: (row["host_name"], row["description"]) in services
        )
        await sliced(work, context.clock)
    problems = tuple(made.problems.values())
    if not made.records:
        # Nothing says whether a name in a filter is a typing error.
        context.sites.select(request.sites or query.backends)
        return Rows(columns=(_TYPE, _HOST_NAME), rows=[], failed_sites=problems)
    answer = await select(context, request, made.schema(), made.sorted())
    optional = frozenset(made.columns) - {"_type", "host_name"}
    answer = await sparse(context, request, answer, optional)
    return evolve(answer, failed_sites=problems, backend_seconds=made.seconds)


def _hosts(names: set[str]) -> tuple[FilterTree, ...]:
    if len(names) > _FEW:
        return ()
    return (Group("or", tuple(Condition("name", "=", name, "path") for name in sorted(names))),)


def _services(keys: set[Key]) -> tuple[FilterTree, ...]:
    if len(keys) > _FEW:
        return ()
    each = (
        (Condition("host_name", "=", host, "path"), Condition("description", "=", name, "path"))
        for host, name in sorted(keys)
    )
    return (Group("or", tuple(Group("and", both) for both in each)),)


@define(eq=False)
class _Records:
    """Rows of both collections as records, with everything that is known of their columns."""

    records: list[dict[str, Any]] = field(factory=list)
    columns: dict[str, Column] = field(factory=lambda: {"_type": _TYPE, "host_name": _HOST_NAME})
    held: dict[str, CoreType] = field(factory=dict)
    problems: dict[str, SiteProblem] = field(factory=dict)
    seconds: float = 0.0

    def take(
        self, answer: Answer, kind: str, wanted: Callable[[Mapping[str, Any]], bool]
    ) -> Generator[None]:
        """Add the rows that are wanted."""
        assert isinstance(answer, Rows)
        self.problems.update((one.site, one) for one in answer.failed_sites)
        self.seconds += answer.backend_seconds
        for column in answer.columns:
            self.columns.setdefault(column.name, column)
            self._hold(SERVICES if kind == "service" else HOSTS, column.name)
        names = [column.name for column in answer.columns]
        for at, row in enumerate(answer.rows):
            if at % _SLICE == _SLICE - 1:
                yield
            record: dict[str, Any] = dict(zip(names, row, strict=False))
            if not wanted(record):
                continue
            more = answer.expand(row) if answer.expand is not None else {}
            for name in more:
                self.columns.setdefault(name, Column(name))
            if kind == "host":
                record["host_name"] = record["name"]
            self.records.append({**more, **record, "_type": kind})

    def _hold(self, schema: TableSchema, name: str) -> None:
        declared = schema.columns.get(name)
        if isinstance(declared, CoreColumn):
            self.held.setdefault(name, declared.core_type)

    def schema(self) -> TableSchema:
        """Give the schema of the records."""
        return local_schema("objects", tuple(self.columns.values()), (), self.held)

    def sorted(self) -> Iterable[Mapping[str, Any]]:
        """Give the records by host, the host itself before its services."""
        return sorted(
            self.records,
            key=lambda one: (
                str(one["host_name"]),
                one["_type"],
                str(one.get("description", "")),
                str(one.get("peer_key", "")),
            ),
        )


_COLUMNS = (_TYPE, _HOST_NAME)
_TEXT = (
    "Rows of `/hosts` and `/services` that the asker may see, with `_type` (host or service); "
    "rows of hosts have `host_name` too. "
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/bp/<nr>/objects",
        description="hosts and services of a business process",
        text=_TEXT,
        handler=objects,
        parameters=(*LIST_PARAMETERS, *SITE_PARAMETERS),
        columns=_COLUMNS,
    ),
    Endpoint(
        path="/mon/bp/<nr>/objects/recursive",
        description="hosts and services of a business process and of all that it links to",
        text=f"{_TEXT}Linked processes that the asker may not see are left out.",
        handler=recursive,
        parameters=(*LIST_PARAMETERS, *SITE_PARAMETERS),
        columns=_COLUMNS,
    ),
)
