"""Totals and statistics (docs/spec/query.md, "Statistics"), and figures for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred, FirstError, gatherResults

from monrest.api.endpoint import STATISTICS_PARAMETERS, Context, Endpoint
from monrest.api.lists import reselect
from monrest.api.visibility import SYSTEM
from monrest.base.meters import Sample
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.livestatus.core_errors import LivestatusError
from monrest.query.bind import typo
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition, Pushed, Stat
from monrest.query.sendable import uses
from monrest.query.states import NUMBERS, PENDING
from monrest.query.totals import StatsField, StatsSpec
from monrest.rows.columns import CONTACTS, HOSTS, PROCESSINFO, SERVICES
from monrest.rows.columns.status_columns import COUNTERS
from monrest.rows.fetch import Conditions, fetch_stats
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
from monrest.sites.site import Site


def _counting(
    path: str,
    description: str,
    schema: TableSchema,
    spec: StatsSpec,
    conditions: Conditions = lambda _: (),
) -> Endpoint:
    columns = tuple(
        Column(figure.name, "number", "", described(schema.name, figure.condition))
        for figure in spec.fields
    )

    async def handler(context: Context, request: RestRequest, arguments: tuple[str, ...]) -> Answer:
        answer = await fetch_stats(context, request, schema, spec, extra=conditions(arguments))
        return await reselect(context, request, evolve(answer, columns=columns))

    return Endpoint(
        path=path,
        description=description,
        handler=handler,
        shape="object",
        parameters=STATISTICS_PARAMETERS,
        columns=columns,
    )


def _in_group(arguments: tuple[str, ...]) -> tuple[Condition, ...]:
    return (Condition("groups", ">=", arguments[0], "path"),)


ENDPOINTS: tuple[Endpoint, ...] = (
    _counting("/hosts/totals", "hosts by state", HOSTS, HOST_TOTALS),
    _counting("/hosts/stats", "host statistics", HOSTS, HOST_STATS),
    _counting("/services/totals", "services by state", SERVICES, SERVICE_TOTALS),
    _counting("/services/stats", "service statistics", SERVICES, SERVICE_STATS),
    _counting(
        "/hostgroups/<name>/stats",
        "alias of /hosts/stats?groups[gte]=<name>",
        HOSTS,
        HOST_STATS,
        _in_group,
    ),
    _counting(
        "/servicegroups/<name>/stats",
        "alias of /services/stats?service_groups[gte]=<name>",
        SERVICES,
        SERVICE_STATS,
        _in_group,
    ),
    _counting("/contacts/totals", "number of contacts", CONTACTS, CONTACT_TOTALS),
)
"""Those that count in one table; the handlers of the others stand below."""

_FUNCTIONS = {"avg": "average", "min": "least", "max": "greatest", "sum": "sum of the"}

_SINCE = {"1": "in the last minute", "all": "since the start of the core"}


def _check_column(name: str) -> Column:
    """A field of /checks/stats, described by its name: ``hosts_active_5_perc``."""
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
    for name in sorted(
        with_ratios(kind, {figure.name: 0 for figure in check_stats(kind, 0).fields})
    )
)


@Endpoint(
    path="/checks/stats",
    description="check statistics",
    text=(
        "Filters apply to hosts and to services; a column that only one of them has is empty "
        "in the other, so that `description=ping` counts no host. Averages divide by all "
        "objects with active (or passive) checks, those never checked included."
    ),
    shape="object",
    parameters=STATISTICS_PARAMETERS,
    columns=CHECK_COLUMNS,
)
async def checks(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
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
        for waiter in waiting:
            waiter.cancel()
        error.subFailure.raiseException()
        raise
    # A column that neither table has is a typing error.
    if nowhere := unseen[0] & unseen[1]:
        raise typo(sorted(nowhere))
    value = {**with_ratios("hosts", hosts.value), **with_ratios("services", services.value)}
    failed = {
        failed_site.site: failed_site
        for failed_site in (*hosts.failed_sites, *services.failed_sites)
    }
    answer = Document(
        value={name: value[name] for name in sorted(value)},
        columns=CHECK_COLUMNS,
        failed_sites=tuple(failed.values()),
        backend_seconds=max(hosts.backend_seconds, services.backend_seconds),
    )
    return await reselect(context, request, answer)


_PROCESS_FIELDS = tuple(
    sorted(["cached_log_messages", *COUNTERS, *(f"{counter}_rate" for counter in COUNTERS)])
)
PROCESS_STATS = StatsSpec(tuple(StatsField(name, None, "sum", name) for name in _PROCESS_FIELDS))
PROCESS_COLUMNS = tuple(
    Column(name, "number", "", f"{PROCESSINFO.columns[name].column.description}, all cores added")
    for name in _PROCESS_FIELDS
)


@Endpoint(
    path="/processinfo/stats",
    description="counters of the cores",
    roles=(SYSTEM,),
    shape="object",
    parameters=STATISTICS_PARAMETERS,
    columns=PROCESS_COLUMNS,
)
async def process(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    answer = await fetch_stats(context, request, PROCESSINFO, PROCESS_STATS)
    value: dict[str, Any] = {
        name: float(number) if name.endswith("_rate") else int(number)
        for name, number in answer.value.items()
    }
    return await reselect(context, request, evolve(answer, value=value, columns=PROCESS_COLUMNS))


_GROUPS = ("state", "has_been_checked", "acknowledged", "scheduled_downtime_depth")
_TABLES = (("hosts", tuple(NUMBERS["host"])), ("services", tuple(NUMBERS["service"])))


@frozen
class Estate:
    """How many hosts and services are in which state, for Prometheus (docs/spec/metrics.md).

    Each site is asked one grouped question about hosts and one about services; a core that cannot
    group gives the four columns of all.
    """

    sites: Callable[[], Sequence[Site]]

    async def measured(self) -> list[Sample]:
        """Count the objects of each site that is up; one that fails is left out."""
        asked = [
            Deferred.fromCoroutine(_counted(site, table, words))
            for site in self.sites()
            if site.connected
            for table, words in _TABLES
        ]
        return [sample for samples in await gatherResults(asked) for sample in samples]


async def _counted(site: Site, table: str, words: Sequence[str]) -> list[Sample]:
    capabilities = site.capabilities
    grouped = capabilities is not None and all(
        "group" in uses(capabilities, table, name) for name in _GROUPS
    )
    stats = (Stat("count"),) if grouped else ()
    try:
        rows = await site.ask(Pushed(table=table, columns=_GROUPS, stats=stats))
    except LivestatusError:
        return []
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        # Cores write the values by which they group as texts.
        state, checked, acknowledged, depth, *count = (int(value or 0) for value in row)
        word = PENDING if not checked else words[state] if state < len(words) else str(state)
        counts[word, "1" if acknowledged or depth else "0"] += count[0] if count else 1
    return [(table, (site.id, *labels), count) for labels, count in counts.items()]
