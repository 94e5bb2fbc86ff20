"""What the statistics count, field by field."""

import pytest

from monrest.base.values import Capabilities
from monrest.query.pushdown import Pushable
from monrest.query.totals import batches, count_rows, merge_stats, plan_stats
from monrest.rows.statistics import (
    HOST_STATS,
    SERVICE_STATS,
    check_stats,
    with_ratios,
)
from tests.table import each

OK = {
    "name": "h", "description": "s", "state": 0, "has_been_checked": 1, "check_type": 0,
    "scheduled_downtime_depth": 0, "acknowledged": 0, "active_checks_enabled": 1,
    "state_type": 1, "is_flapping": 0, "flap_detection_enabled": 1, "notifications_enabled": 1,
    "event_handler_enabled": 1, "accept_passive_checks": 1, "childs": [], "host_state": 0,
    "host_acknowledged": 0, "host_scheduled_downtime_depth": 0,
}  # fmt: skip

ALWAYS = "total total_active hard"


def counted(spec, **changes):
    """The fields that one object with these values counts in."""
    values = {**OK, **changes}
    columns = spec.columns()
    result = count_rows(
        spec, [[values[name] for name in columns]], {one: at for at, one in enumerate(columns)}
    )
    assert result[0] == 1
    return {name for name, value in merge_stats(spec, [result]).items() if value}


@each(
    ("changes", "fields"),
    [
        ({}, f"{ALWAYS} up plain_up"),
        ({"scheduled_downtime_depth": 2}, f"{ALWAYS} up up_and_scheduled"),
        ({"acknowledged": 1}, f"{ALWAYS} up"),
        ({"active_checks_enabled": 0}, f"{ALWAYS} up plain_up up_and_disabled_active active_checks_disabled_active"),
        (
            {"active_checks_enabled": 0, "check_type": 1},
            "total total_passive hard up plain_up up_and_disabled_passive "
            "active_checks_disabled_passive",
        ),
        ({"has_been_checked": 0}, f"{ALWAYS} pending plain_pending"),
        ({"has_been_checked": 0, "scheduled_downtime_depth": 1}, f"{ALWAYS} pending pending_and_scheduled"),
        (
            {"has_been_checked": 0, "active_checks_enabled": 0},
            f"{ALWAYS} pending plain_pending pending_and_disabled active_checks_disabled_active",
        ),
        ({"state": 1}, f"{ALWAYS} down plain_down down_and_unhandled down_hard down_hard_unhandled"),
        ({"state": 1, "state_type": 0}, "total total_active soft down plain_down down_and_unhandled down_soft"),
        ({"state": 1, "acknowledged": 1}, f"{ALWAYS} down down_and_ack down_hard"),
        ({"state": 1, "scheduled_downtime_depth": 1}, f"{ALWAYS} down down_and_scheduled down_hard"),
        # Without active checks a host that is down is never unhandled.
        (
            {"state": 1, "active_checks_enabled": 0, "check_type": 1},
            "total total_passive hard down plain_down down_hard down_and_disabled_passive "
            "active_checks_disabled_passive",
        ),
        (
            {"state": 1, "childs": ["x"]},
            f"{ALWAYS} down plain_down down_and_unhandled down_hard down_hard_unhandled outages",
        ),
        ({"childs": ["x"]}, f"{ALWAYS} up plain_up"),
        (
            {"state": 2, "childs": ["x"]},
            f"{ALWAYS} unreachable plain_unreachable unreachable_and_unhandled unreachable_hard "
            "unreachable_hard_unhandled",
        ),
        ({"is_flapping": 1}, f"{ALWAYS} up plain_up flapping"),
        ({"flap_detection_enabled": 0}, f"{ALWAYS} up plain_up flapping_disabled"),
        ({"notifications_enabled": 0}, f"{ALWAYS} up plain_up notifications_disabled"),
        ({"event_handler_enabled": 0}, f"{ALWAYS} up plain_up eventhandler_disabled"),
        ({"accept_passive_checks": 0}, f"{ALWAYS} up plain_up passive_checks_disabled"),
    ],
)  # fmt: skip
def test_host_stats(changes, fields):
    assert counted(HOST_STATS, **changes) == set(fields.split())


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, f"{ALWAYS} ok plain_ok"),
        ({"scheduled_downtime_depth": 1}, f"{ALWAYS} ok ok_and_scheduled"),
        ({"has_been_checked": 0}, f"{ALWAYS} pending plain_pending"),
        ({"active_checks_enabled": 0}, f"{ALWAYS} ok plain_ok ok_and_disabled_active active_checks_disabled_active"),
        (
            {"state": 2},
            f"{ALWAYS} critical plain_critical critical_and_unhandled critical_hard "
            "critical_hard_unhandled",
        ),
        # In contrast to hosts, services without active checks can be unhandled.
        (
            {"state": 1, "active_checks_enabled": 0, "check_type": 1},
            "total total_passive hard warning plain_warning warning_and_unhandled warning_hard "
            "warning_hard_unhandled warning_and_disabled_passive active_checks_disabled_passive",
        ),
        (
            {"state": 3, "state_type": 0},
            "total total_active soft unknown plain_unknown unknown_and_unhandled unknown_soft",
        ),
        ({"state": 2, "host_state": 1}, f"{ALWAYS} critical plain_critical critical_hard critical_on_down_host"),
        ({"state": 2, "host_acknowledged": 1}, f"{ALWAYS} critical plain_critical critical_hard"),
        ({"state": 2, "host_scheduled_downtime_depth": 1}, f"{ALWAYS} critical plain_critical critical_hard"),
        ({"state": 2, "acknowledged": 1}, f"{ALWAYS} critical critical_and_ack critical_hard"),
    ],
)  # fmt: skip
def test_service_stats(changes, fields):
    assert counted(SERVICE_STATS, **changes) == set(fields.split())


CHECKED = {
    "check_type": 0, "has_been_checked": 1, "last_check": 10_000, "percent_state_change": 2.5,
    "execution_time": 0.5, "latency": 0.25,
}  # fmt: skip


def sums(kind, *objects, now=10_000, start=0):
    spec = check_stats(kind, now)
    columns = spec.columns()
    rows = [[{**CHECKED, **one}[name] for name in columns] for one in objects]
    result = count_rows(spec, rows, {one: at for at, one in enumerate(columns)}, start)
    return merge_stats(spec, [result])


@pytest.mark.parametrize(
    ("age", "spans"),
    [
        (0, "1 5 15 60 all"),
        (60, "1 5 15 60 all"),
        (61, "5 15 60 all"),
        (300, "5 15 60 all"),
        (901, "60 all"),
        (3601, "all"),
        (5000, "all"),
        (5001, ""),
    ],
)
def test_spans_of_checks(age, spans):
    found = sums("hosts", {"last_check": 10_000 - age}, start=5000)
    counted = [span for span in ("1", "5", "15", "60", "all") if found[f"hosts_active_{span}_sum"]]
    assert counted == spans.split()


@pytest.mark.parametrize("pushed", [True, False], ids=["by the core", "here"])
def test_a_core_that_started_just_when_another_span_begins(pushed):
    """Two fields then have the same condition; all the same each has its number."""
    start = 10_000 - 300
    spec = batches(check_stats("hosts", 10_000))[0]
    columns = spec.columns()
    if pushed:
        capabilities = Capabilities(kind="naemon", tables={"hosts": dict.fromkeys(columns, "int")})
        part = Pushable(exact=True, filter=None)
        planned = plan_stats(spec, "hosts", part, None, capabilities, start)
        result = list(range(len(planned.stats)))
    else:
        rows = [[{**CHECKED, "last_check": start}[name] for name in columns]]
        result = count_rows(spec, rows, {one: at for at, one in enumerate(columns)}, start)
    found = merge_stats(spec, [result])
    assert len(found) == len(spec.fields) == len(result) - 1
    assert pushed or found["hosts_active_all_sum"] == found["hosts_active_5_sum"] == 1


def test_ratios():
    found = with_ratios(
        "services",
        sums(
            "services",
            {"execution_time": 1.0, "latency": 0.5},
            {"execution_time": 3.0, "latency": 0.0, "last_check": 9_000},
            {"has_been_checked": 0, "last_check": 0, "execution_time": 99.0},
            {"check_type": 1, "percent_state_change": 8.0, "execution_time": 99.0},
            start=1,
        ),
    )
    assert found["services_active_sum"] == 3
    assert found["services_passive_sum"] == 1
    assert found["services_active_5_sum"] == 1
    assert found["services_active_5_perc"] == pytest.approx(100 / 3)
    assert found["services_active_60_perc"] == pytest.approx(200 / 3)
    assert found["services_passive_1_perc"] == 100
    assert found["services_execution_time_sum"] == 4
    assert found["services_execution_time_min"] == 1
    assert found["services_execution_time_max"] == 3
    # The divisor is all active objects, those never checked included.
    assert found["services_execution_time_avg"] == pytest.approx(4 / 3)
    assert found["services_latency_min"] == 0
    assert found["services_active_state_change_avg"] == pytest.approx(5 / 3)
    assert found["services_passive_state_change_avg"] == 8
