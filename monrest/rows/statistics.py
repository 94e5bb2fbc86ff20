"""Totals and statistics: what they count, as data, their resources, and figures for Prometheus.

Rules: docs/spec/query.md, "Statistics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from monrest.query.model import Condition, CoreFilter, Pushed, Stat, Test, conjuncts, joined
from monrest.query.sendable import uses
from monrest.query.states import NUMBERS, PENDING
from monrest.query.totals import START, StatsField, StatsSpec
from monrest.rows.columns import CONTACTS, HOSTS, PROCESSINFO, SERVICES
from monrest.rows.columns.status_columns import COUNTERS
from monrest.rows.fetch import Conditions, fetch_stats
from monrest.sites.site import Site

CHECKED = Test("has_been_checked", "=", "1")
UNCHECKED = Test("has_been_checked", "=", "0")
IN_DOWNTIME = Test("scheduled_downtime_depth", ">", "0")
NO_DOWNTIME = Test("scheduled_downtime_depth", "=", "0")
ACKNOWLEDGED = Test("acknowledged", "=", "1")
NOT_ACKNOWLEDGED = Test("acknowledged", "=", "0")
ACTIVE = Test("check_type", "=", "0")
PASSIVE = Test("check_type", "=", "1")
CHECKS_OFF = Test("active_checks_enabled", "=", "0")
CHECKS_ON = Test("active_checks_enabled", "=", "1")
SOFT = Test("state_type", "=", "0")
HARD = Test("state_type", "=", "1")


def _every(*items: CoreFilter) -> CoreFilter:
    every = joined("and", conjuncts(items))
    assert every is not None
    return every


def _common() -> dict[str, CoreFilter]:
    """The fields that hosts and services share."""
    return {
        "total_active": ACTIVE,
        "total_passive": PASSIVE,
        "pending": UNCHECKED,
        "plain_pending": _every(UNCHECKED, NO_DOWNTIME, NOT_ACKNOWLEDGED),
        "pending_and_disabled": _every(UNCHECKED, CHECKS_OFF),
        "pending_and_scheduled": _every(UNCHECKED, IN_DOWNTIME),
        "flapping": Test("is_flapping", "=", "1"),
        "flapping_disabled": Test("flap_detection_enabled", "=", "0"),
        "notifications_disabled": Test("notifications_enabled", "=", "0"),
        "eventhandler_disabled": Test("event_handler_enabled", "=", "0"),
        "active_checks_disabled_active": _every(ACTIVE, CHECKS_OFF),
        "active_checks_disabled_passive": _every(PASSIVE, CHECKS_OFF),
        "passive_checks_disabled": Test("accept_passive_checks", "=", "0"),
        "soft": SOFT,
        "hard": HARD,
    }


def _healthy(word: str) -> dict[str, CoreFilter]:
    state = _every(CHECKED, Test("state", "=", "0"))
    return {
        word: state,
        f"plain_{word}": _every(state, NO_DOWNTIME, NOT_ACKNOWLEDGED),
        f"{word}_and_disabled_active": _every(state, ACTIVE, CHECKS_OFF),
        f"{word}_and_disabled_passive": _every(state, PASSIVE, CHECKS_OFF),
        f"{word}_and_scheduled": _every(state, IN_DOWNTIME),
    }


def _problem(word: str, number: int, unhandled: CoreFilter) -> dict[str, CoreFilter]:
    state = Test("state", "=", str(number))
    return {
        word: state,
        f"plain_{word}": _every(state, NO_DOWNTIME, NOT_ACKNOWLEDGED),
        f"{word}_and_ack": _every(state, ACKNOWLEDGED),
        f"{word}_and_scheduled": _every(state, IN_DOWNTIME),
        f"{word}_and_disabled_active": _every(state, ACTIVE, CHECKS_OFF),
        f"{word}_and_disabled_passive": _every(state, PASSIVE, CHECKS_OFF),
        f"{word}_and_unhandled": _every(state, unhandled),
        f"{word}_soft": _every(state, SOFT),
        f"{word}_hard": _every(state, HARD),
        f"{word}_hard_unhandled": _every(state, HARD, unhandled),
    }


_HOST_UNHANDLED = _every(CHECKS_ON, NOT_ACKNOWLEDGED, NO_DOWNTIME)
_SERVICE_UNHANDLED = _every(
    NOT_ACKNOWLEDGED,
    NO_DOWNTIME,
    Test("host_state", "=", "0"),
    Test("host_acknowledged", "=", "0"),
    Test("host_scheduled_downtime_depth", "=", "0"),
)


def _spec(fields: Mapping[str, CoreFilter | None]) -> StatsSpec:
    return StatsSpec(tuple(StatsField(name, fields[name]) for name in sorted(fields)))


def _service_problem(word: str, number: int) -> dict[str, CoreFilter]:
    on_down_host = _every(Test("state", "=", str(number)), Test("host_state", "!=", "0"))
    problem = _problem(word, number, _SERVICE_UNHANDLED)
    return {**problem, f"{word}_on_down_host": on_down_host}


HOST_STATS = _spec(
    {
        "total": None,
        **_common(),
        **_healthy("up"),
        **_problem("down", 1, _HOST_UNHANDLED),
        **_problem("unreachable", 2, _HOST_UNHANDLED),
        "outages": _every(Test("state", "=", "1"), Test("childs", "!=", "")),
    }
)
SERVICE_STATS = _spec(
    {
        "total": None,
        **_common(),
        **_healthy("ok"),
        **_service_problem("warning", 1),
        **_service_problem("critical", 2),
        **_service_problem("unknown", 3),
    }
)


def _only(spec: StatsSpec, names: tuple[str, ...]) -> StatsSpec:
    return StatsSpec(tuple(figure for figure in spec.fields if figure.name in names))


HOST_TOTALS = _only(
    HOST_STATS,
    (
        "total",
        "pending",
        "up",
        "down",
        "down_and_unhandled",
        "unreachable",
        "unreachable_and_unhandled",
    ),
)
SERVICE_TOTALS = _only(
    SERVICE_STATS,
    (
        "total",
        "pending",
        "ok",
        *tuple(
            f"{word}{suffix}"
            for word in ("warning", "critical", "unknown")
            for suffix in ("", "_and_unhandled")
        ),
    ),
)
CONTACT_TOTALS = _spec({"total": None})


def described(kind: str, condition: CoreFilter | None) -> str:
    """The description of a count: ``number of hosts with state = 1 and acknowledged = 1``."""
    tests = conjuncts(() if condition is None else (condition,))
    words = [
        f"{test.column} {test.op} {test.value}" if test.value else f"{test.column} not empty"
        for test in tests
        if isinstance(test, Test)
    ]
    return f"number of {kind}{' with ' if words else ''}{' and '.join(words)}"


MINUTES = (1, 5, 15, 60)


def check_stats(kind: str, now: int) -> StatsSpec:
    """The statistics of one table for /checks/stats; ``kind`` is hosts or services."""
    fields: list[StatsField] = []
    for word, base in (("active", ACTIVE), ("passive", PASSIVE)):
        fields.append(StatsField(f"{kind}_{word}_sum", base))
        for minutes in MINUTES:
            since = Test("last_check", ">=", str(now - 60 * minutes))
            name = f"{kind}_{word}_{minutes}_sum"
            fields.append(StatsField(name, _every(base, CHECKED, since)))
        started = Test("last_check", ">=", START)
        fields.append(StatsField(f"{kind}_{word}_all_sum", _every(base, CHECKED, started)))
        name = f"{kind}_{word}_state_change"
        fields += _extremes(name, "percent_state_change", _every(base, CHECKED))
    checked = _every(ACTIVE, CHECKED)
    for column in ("execution_time", "latency"):
        fields += _extremes(f"{kind}_{column}", column, checked)
    return StatsSpec(tuple(fields))


def _extremes(name: str, column: str, condition: CoreFilter) -> list[StatsField]:
    return [
        StatsField(f"{name}_sum", condition, "sum", column),
        StatsField(f"{name}_min", condition, "min", column),
        StatsField(f"{name}_max", condition, "max", column),
    ]


def with_ratios(kind: str, sums: dict[str, float]) -> dict[str, float]:
    """Averages and percentages of one table, from sums over all sites.

    Averages divide by all active (or passive) objects, those never checked included.
    """
    result = dict(sums)
    for word in ("active", "passive"):
        every = sums[f"{kind}_{word}_sum"]
        for span in (*map(str, MINUTES), "all"):
            part = sums[f"{kind}_{word}_{span}_sum"]
            result[f"{kind}_{word}_{span}_perc"] = 100 * part / every if every else 0
        _average(result, f"{kind}_{word}_state_change", every)
    for column in ("execution_time", "latency"):
        _average(result, f"{kind}_{column}", sums[f"{kind}_active_sum"])
    return result


def _average(result: dict[str, float], name: str, count: float) -> None:
    total = result[f"{name}_sum"]
    result[f"{name}_avg"] = total / count if count and total else 0


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
"""The endpoints that count in one table; the handlers of the others stand below."""

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
    """The number of hosts and services by state, for Prometheus (docs/spec/metrics.md).

    Each site is asked one grouped question about hosts and one about services; a core that cannot
    group sends the four columns of all objects.
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
