"""What the statistics count (docs/spec/query.md, "Statistics"), as data."""

from __future__ import annotations

from collections.abc import Mapping

from monrest.query.model import CoreFilter, Test, conjuncts, joined
from monrest.query.totals import START, StatsField, StatsSpec

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
    """What a count counts, in words: ``number of hosts with state = 1 and acknowledged = 1``."""
    tests = conjuncts(() if condition is None else (condition,))
    words = [
        f"{test.column} {test.op} {test.value}" if test.value else f"{test.column} not empty"
        for test in tests
        if isinstance(test, Test)
    ]
    return f"number of {kind}{' with ' if words else ''}{' and '.join(words)}"


MINUTES = (1, 5, 15, 60)


def check_stats(kind: str, now: int) -> StatsSpec:
    """What /checks/stats needs of one table; ``kind`` is hosts or services."""
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
