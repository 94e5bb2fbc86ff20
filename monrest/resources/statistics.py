"""Totals and statistics (api.md, "Statistics resources"; query-engine.md, section 17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred, FirstError, gatherResults

from monrest.query.model import Condition
from monrest.query.schema import TableSchema
from monrest.query.totals import StatsField, StatsSpec
from monrest.resources.columns import CONTACTS, HOSTS, PROCESSINFO, SERVICES
from monrest.resources.columns.status import COUNTERS
from monrest.resources.declare import Context, Endpoint, Handler
from monrest.resources.fetch import fetch_stats, reselect
from monrest.resources.specs import (
    CONTACT_TOTALS,
    HOST_STATS,
    HOST_TOTALS,
    SERVICE_STATS,
    SERVICE_TOTALS,
    check_stats,
    with_ratios,
)
from monrest.values import Answer, Column, Document, RestRequest

Conditions = Callable[[tuple[str, ...]], tuple[Condition, ...]]


def _counts(spec: StatsSpec) -> tuple[Column, ...]:
    return tuple(
        Column(one.name, "number", "", f"number of objects: {one.name.replace('_', ' ')}")
        for one in spec.fields
    )


def _statistic(
    schema: TableSchema, spec: StatsSpec, conditions: Conditions = lambda _: ()
) -> Handler:
    columns = _counts(spec)

    async def handler(context: Context, request: RestRequest, arguments: tuple[str, ...]) -> Answer:
        answer = await fetch_stats(context, request, schema, spec, extra=conditions(arguments))
        return reselect(context, request, evolve(answer, columns=columns))

    return handler


def _in_group(column: str) -> Conditions:
    return lambda arguments: (Condition(column, ">=", arguments[0], "path"),)


def _check_column(name: str) -> Column:
    if name.endswith("_perc") or "state_change" in name:
        return Column(name, "number", "%", "")
    if "_execution_time_" in name or "_latency_" in name:
        return Column(name, "number", "s", "")
    return Column(name, "number", "", "")


CHECK_COLUMNS = tuple(
    _check_column(name)
    for kind in ("hosts", "services")
    for name in sorted(with_ratios(kind, {one.name: 0 for one in check_stats(kind, 0).fields}))
)


async def checks(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer /checks/stats: both tables at the same time, filters and visibility applied."""
    now = int(context.clock.seconds())
    waiting = [
        Deferred.fromCoroutine(fetch_stats(context, request, schema, check_stats(kind, now)))
        for kind, schema in (("hosts", HOSTS), ("services", SERVICES))
    ]
    try:
        hosts, services = await gatherResults(waiting, consumeErrors=True)
    except FirstError as error:
        for one in waiting:
            one.cancel()
        error.subFailure.raiseException()
        raise
    value = {**with_ratios("hosts", hosts.value), **with_ratios("services", services.value)}
    failed = {one.site: one for one in (*hosts.failed_sites, *services.failed_sites)}
    answer = Document(
        value={name: value[name] for name in sorted(value)},
        columns=CHECK_COLUMNS,
        failed_sites=tuple(failed.values()),
        backend_seconds=max(hosts.backend_seconds, services.backend_seconds),
    )
    return reselect(context, request, answer)


_PROCESS_FIELDS = tuple(
    sorted(["cached_log_messages", *COUNTERS, *(f"{one}_rate" for one in COUNTERS)])
)
PROCESS_STATS = StatsSpec(tuple(StatsField(name, None, "sum", name) for name in _PROCESS_FIELDS))
PROCESS_COLUMNS = tuple(Column(name, "number") for name in _PROCESS_FIELDS)


async def process(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer /processinfo/stats: the counters of all cores added."""
    answer = await fetch_stats(context, request, PROCESSINFO, PROCESS_STATS)
    value: dict[str, Any] = {
        name: float(number) if name.endswith("_rate") else int(number)
        for name, number in answer.value.items()
    }
    return reselect(context, request, evolve(answer, value=value, columns=PROCESS_COLUMNS))


def _endpoint(path: str, description: str, handler: Handler, spec: StatsSpec) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        handler=handler,
        shape="object",
        columns=_counts(spec),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    _endpoint("/hosts/totals", "hosts by state", _statistic(HOSTS, HOST_TOTALS), HOST_TOTALS),
    _endpoint("/hosts/stats", "host statistics", _statistic(HOSTS, HOST_STATS), HOST_STATS),
    _endpoint(
        "/services/totals",
        "services by state",
        _statistic(SERVICES, SERVICE_TOTALS),
        SERVICE_TOTALS,
    ),
    _endpoint(
        "/services/stats", "service statistics", _statistic(SERVICES, SERVICE_STATS), SERVICE_STATS
    ),
    _endpoint(
        "/hostgroups/<name>/stats",
        "alias of /hosts/stats?groups[gte]=<name>",
        _statistic(HOSTS, HOST_STATS, _in_group("groups")),
        HOST_STATS,
    ),
    _endpoint(
        "/servicegroups/<name>/stats",
        "alias of /services/stats?service_groups[gte]=<name>",
        _statistic(SERVICES, SERVICE_STATS, _in_group("groups")),
        SERVICE_STATS,
    ),
    _endpoint(
        "/contacts/totals",
        "number of contacts",
        _statistic(CONTACTS, CONTACT_TOTALS),
        CONTACT_TOTALS,
    ),
    Endpoint(
        path="/checks/stats",
        description="check statistics",
        handler=checks,
        shape="object",
        columns=CHECK_COLUMNS,
    ),
    Endpoint(
        path="/processinfo/stats",
        description="counters of the cores",
        handler=process,
        shape="object",
        columns=PROCESS_COLUMNS,
    ),
)
