"""Totals and statistics (docs/spec/query.md, "Statistics")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred, FirstError, gatherResults

from monrest.api.endpoint import STATISTICS_PARAMETERS, Context, Endpoint, Handler
from monrest.api.lists import reselect
from monrest.api.visibility import SYSTEM
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.query.bind import typo
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition
from monrest.query.totals import StatsField, StatsSpec
from monrest.rows.columns import CONTACTS, HOSTS, PROCESSINFO, SERVICES
from monrest.rows.columns.status_columns import COUNTERS
from monrest.rows.fetch import fetch_stats
from monrest.rows.statistics_specs import (
    CONTACT_TOTALS,
    HOST_STATS,
    HOST_TOTALS,
    SERVICE_STATS,
    SERVICE_TOTALS,
    check_stats,
    described,
    with_ratios,
)

Conditions = Callable[[tuple[str, ...]], tuple[Condition, ...]]


def _counts(schema: TableSchema, spec: StatsSpec) -> tuple[Column, ...]:
    return tuple(
        Column(one.name, "number", "", described(schema.name, one.condition)) for one in spec.fields
    )


def _statistic(
    schema: TableSchema, spec: StatsSpec, conditions: Conditions = lambda _: ()
) -> Handler:
    columns = _counts(schema, spec)

    async def handler(context: Context, request: RestRequest, arguments: tuple[str, ...]) -> Answer:
        answer = await fetch_stats(context, request, schema, spec, extra=conditions(arguments))
        return await reselect(context, request, evolve(answer, columns=columns))

    return handler


def _in_group(arguments: tuple[str, ...]) -> tuple[Condition, ...]:
    return (Condition("groups", ">=", arguments[0], "path"),)


_FUNCTIONS = {"avg": "average", "min": "least", "max": "greatest", "sum": "sum of the"}

_SINCE = {"1": "in the last minute", "all": "since the start of the core"}


def _check_column(name: str) -> Column:
    """Declare a field of /checks/stats; its name says it all: ``hosts_active_5_perc``."""
    kind, *middle, function = name.split("_")
    subject = " ".join(middle)
    if subject in ("execution time", "latency"):
        text = f"{_FUNCTIONS[function]} {subject} of active checks of {kind}"
        return Column(name, "number", "s", text)
    mode = middle[0]
    if subject.endswith("state change"):
        text = f"{_FUNCTIONS[function]} percentage of state changes of {kind} with {mode} checks"
        return Column(name, "number", "%", text)
    if len(middle) == 1:
        return Column(name, "number", "", f"number of {kind} with {mode} checks")
    span = middle[1]
    since = _SINCE.get(span, f"in the last {span} minutes")
    share = "percentage" if function == "perc" else "number"
    text = f"{share} of {kind} with {mode} checks that were checked {since}"
    return Column(name, "number", "%" if function == "perc" else "", text)


CHECK_COLUMNS = tuple(
    _check_column(name)
    for kind in ("hosts", "services")
    for name in sorted(with_ratios(kind, {one.name: 0 for one in check_stats(kind, 0).fields}))
)


async def checks(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer /checks/stats: both tables at the same time, filters and visibility applied.

    What only one of them has is empty in the other; what neither has is a typing error.
    """
    now = int(context.wall.now())
    unseen: tuple[set[str], set[str]] = (set(), set())
    waiting = [
        Deferred.fromCoroutine(
            fetch_stats(context, request, schema, check_stats(kind, now), unseen=strange)
        )
        for kind, schema, strange in zip(
            ("hosts", "services"), (HOSTS, SERVICES), unseen, strict=True
        )
    ]
    try:
        hosts, services = await gatherResults(waiting, consumeErrors=True)
    except FirstError as error:
        for one in waiting:
            one.cancel()
        error.subFailure.raiseException()
        raise
    if nowhere := unseen[0] & unseen[1]:
        raise typo(sorted(nowhere))
    value = {**with_ratios("hosts", hosts.value), **with_ratios("services", services.value)}
    failed = {one.site: one for one in (*hosts.failed_sites, *services.failed_sites)}
    answer = Document(
        value={name: value[name] for name in sorted(value)},
        columns=CHECK_COLUMNS,
        failed_sites=tuple(failed.values()),
        backend_seconds=max(hosts.backend_seconds, services.backend_seconds),
    )
    return await reselect(context, request, answer)


_PROCESS_FIELDS = tuple(
    sorted(["cached_log_messages", *COUNTERS, *(f"{one}_rate" for one in COUNTERS)])
)
PROCESS_STATS = StatsSpec(tuple(StatsField(name, None, "sum", name) for name in _PROCESS_FIELDS))
PROCESS_COLUMNS = tuple(
    Column(name, "number", "", f"{PROCESSINFO.columns[name].column.description}, all cores added")
    for name in _PROCESS_FIELDS
)


async def process(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer /processinfo/stats: the counters of all cores added."""
    answer = await fetch_stats(context, request, PROCESSINFO, PROCESS_STATS)
    value: dict[str, Any] = {
        name: float(number) if name.endswith("_rate") else int(number)
        for name, number in answer.value.items()
    }
    return await reselect(context, request, evolve(answer, value=value, columns=PROCESS_COLUMNS))


def _endpoint(
    path: str,
    description: str,
    schema: TableSchema,
    spec: StatsSpec,
    conditions: Conditions = lambda _: (),
) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        handler=_statistic(schema, spec, conditions),
        shape="object",
        parameters=STATISTICS_PARAMETERS,
        columns=_counts(schema, spec),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    _endpoint("/hosts/totals", "hosts by state", HOSTS, HOST_TOTALS),
    _endpoint("/hosts/stats", "host statistics", HOSTS, HOST_STATS),
    _endpoint("/services/totals", "services by state", SERVICES, SERVICE_TOTALS),
    _endpoint("/services/stats", "service statistics", SERVICES, SERVICE_STATS),
    _endpoint(
        "/hostgroups/<name>/stats",
        "alias of /hosts/stats?groups[gte]=<name>",
        HOSTS,
        HOST_STATS,
        _in_group,
    ),
    _endpoint(
        "/servicegroups/<name>/stats",
        "alias of /services/stats?service_groups[gte]=<name>",
        SERVICES,
        SERVICE_STATS,
        _in_group,
    ),
    _endpoint("/contacts/totals", "number of contacts", CONTACTS, CONTACT_TOTALS),
    Endpoint(
        path="/checks/stats",
        description="check statistics",
        text=(
            "Filters apply to hosts and to services; a column that only one of them has is empty "
            "in the other, so that `description=ping` counts no host. Averages divide by all "
            "objects with active (or passive) checks, those never checked included."
        ),
        handler=checks,
        shape="object",
        parameters=STATISTICS_PARAMETERS,
        columns=CHECK_COLUMNS,
    ),
    Endpoint(
        path="/processinfo/stats",
        description="counters of the cores",
        roles=(SYSTEM,),
        handler=process,
        shape="object",
        parameters=STATISTICS_PARAMETERS,
        columns=PROCESS_COLUMNS,
    ),
)
