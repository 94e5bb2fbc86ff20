"""The catalogue of columns, and what the statistics count, field by field."""

import pytest

from monrest.base.values import Capabilities
from monrest.query.column_names import DerivedColumn
from monrest.query.pushdown import Pushable
from monrest.query.totals import batches, count_rows, merge_stats, plan_stats
from monrest.rows.columns import JOINED, PSEUDO_COLUMNS, SCHEMAS
from monrest.rows.columns.declaring import (
    change_or_start,
    command_check,
    data_source,
    info,
    integer,
    state_order,
    table,
    text,
)
from monrest.rows.statistics import (
    HOST_STATS,
    SERVICE_STATS,
    check_stats,
    with_ratios,
)
from tests.table import each


@each("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_sources_of_derived_columns_exist(schema):
    for one in schema.columns.values():
        if isinstance(one, DerivedColumn):
            for source in one.sources:
                # A core column may be shadowed by the column that is computed from it.
                assert source in PSEUDO_COLUMNS or source in schema.columns, one.name


@each("name", JOINED)
def test_joined_columns_are_those_of_the_other_collection(name):
    for joined in JOINED[name]:
        other = SCHEMAS[joined.collection].columns
        found = {
            one.removeprefix(joined.prefix)
            for one in SCHEMAS[name].columns
            if one.startswith(joined.prefix)
        }
        if joined.collection == "services":
            other = {one: each for one, each in other.items() if not one.startswith("host_")}
        if joined.collection == "contacts":
            other = {one: each for one, each in other.items() if one != "last_update"}
        if name == "logs":
            assert found == set(other)
        else:
            assert found >= set(other)
        for column in other:
            mine = SCHEMAS[name].columns[joined.prefix + column]
            assert mine.column.type == other[column].column.type
            assert type(mine) is type(other[column])


def test_sources_of_joined_columns_are_joined_too():
    column = SCHEMAS["comments"].columns["service_last_state_change_order"]
    assert isinstance(column, DerivedColumn)
    assert column.sources == ("service_last_state_change", "program_start")


@each("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_keys_name_columns(schema):
    for column in (*schema.order, *schema.aliases.values(), *schema.q_aliases.values()):
        assert column in schema.columns
    for column, _ in (*schema.perf, *schema.custom):
        assert column in schema.columns


def test_a_name_declared_twice_is_refused():
    with pytest.raises(ValueError, match="column name is declared twice"):
        table(text({"name": "one"}), integer({"name": "two"}))


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


@each(
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


@each(
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


@each("pushed", [True, False], ids=["by the core", "here"])
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


COMMENTS = [[3, "ann", "a", 17, 1], [4, "bob", "b"]]


@each(
    ("function", "given", "expected"),
    [
        (info, (None,), ""),
        (info, ([],), ""),
        (info, (COMMENTS,), "id:3 author:ann: text:a, id:4 author:bob: text:b"),
        *((state_order, (state,), order) for state, order in ((0, 0), (1, 1), (2, 4), (3, 3))),
        (state_order, (None,), None),
        (change_or_start, (7, 5), 7),
        (change_or_start, (0, 5), 5),
        (change_or_start, (None, 5), 5),
        (change_or_start, (0, None), 0),
        (command_check, (9, 5, 77.9), 9),
        (command_check, (5, 5, 77.9), 77),
        (command_check, (0, 5, 77.9), 0),
        (data_source, ("1.5.1",), "Livestatus 1.5.1"),
    ],
)
def test_functions_of_derived_columns(function, given, expected):
    assert function(*given) == expected
