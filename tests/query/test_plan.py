"""What goes down to which core: pushed only where the answer is provably the same."""

from __future__ import annotations

import itertools
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve

from monrest.base.values import Capabilities, Column
from monrest.query.bind import Bound, bind
from monrest.query.column_names import ColumnNames, CoreColumn, TableSchema, View
from monrest.query.functions import Moment
from monrest.query.model import Group, Stat, Test
from monrest.query.parse import parse_query
from monrest.query.plan import SitePlan, layout, plan
from monrest.query.sendable import PENDING_COLUMNS, in_icinga
from monrest.query.totals import columns_of, core_test
from tests.table import each

NOW = 1_795_242_791.0
COLUMNS = {
    "name": ("string", "string", ""),
    "address": ("string", "string", ""),
    "state": ("int", "number", ""),
    "has_been_checked": ("int", "number", ""),
    "latency": ("float", "number", "s"),
    "last_check": ("int", "time", ""),
    "groups": ("list", "array_of_strings", ""),
    "comments": ("list", "array_of_strings", ""),
    "check_command": ("string", "string", ""),
    "perf_data": ("string", "string", ""),
    "notes_url": ("string", "string", ""),
    "notes_url_expanded": ("string", "string", ""),
    "custom_variables": ("dict", "object", ""),
    "time": ("int", "time", ""),
    "lineno": ("int", "number", ""),
}


def schema(name: str = "hosts", table: str = "hosts", merge: str = "concat") -> TableSchema:
    return TableSchema(
        name=name,
        table=table,
        columns={
            key: CoreColumn(column=Column(key, api, unit), core_type=kind)
            for key, (kind, api, unit) in COLUMNS.items()
        },
        order=("time", "lineno") if merge == "logs" else ("name",),
        perf=(("perf_data", ""),),
        custom=(("custom_variables", "_"),),
        merge=merge,
    )


def capabilities(kind: str, without: str = "") -> Capabilities:
    columns = {key: kind_ for key, (kind_, _, _) in COLUMNS.items() if key != without}
    return Capabilities(kind=kind, tables={"hosts": columns, "log": columns}, key=kind + without)


NAEMON = capabilities("naemon")
ICINGA = capabilities("icinga2")
OVER_ICINGA = evolve(capabilities("lmd"), over_icinga2=True, key="lmd over icinga2")


def planned(
    params: str, core: Capabilities = NAEMON, table: TableSchema | None = None, **more: bool
) -> SitePlan:
    pairs = tuple(
        (name, value)
        for name, _, value in (part.partition("→") for part in params.split("&") if part)
    )
    bound: Bound = bind(
        parse_query(pairs),
        ColumnNames(table or schema(), {}),
        View(commands=more.pop("commands", True)),
        Moment(now=NOW, zone=ZoneInfo("UTC")),
    )
    made = plan(bound, layout(bound, [core]), core, **more)
    assert made is not None
    return made


@each(
    ("params", "expected", "exact"),
    [
        ("name→web01", Test("name", "=", "web01"), True),
        ("name[ne]→web01", Test("name", "!=", "web01"), True),
        ("name→ web01", None, False),  # a core cuts blanks at the ends of a value
        ("name→web01 ", None, False),
        ("name→\U0001f600", None, False),  # mangled by a core's JSON
        ("name[gt]→web", None, False),  # order of texts is ours
        ("notes_url→x/$HOSTNAME$", Test("notes_url", "=", "x/$HOSTNAME$"), True),
        ("notes_url_expanded→x/web01", None, False),  # compared before its macros are replaced
        ("state→1", Test("state", "=", "1"), True),
        ("state→1.0", Test("state", "=", "1"), True),
        ("state→1.5", None, False),
        ("state→2147483647", Test("state", "=", "2147483647"), True),
        ("state→4294967296", None, False),  # a Naemon reads 0
        ("state[lt]→2147483648", None, False),
        ("last_check[gt]→-99999999999", None, False),
        ("state→down", Test("state", "=", "1"), True),
        ("state→up,down", Group("or", (Test("state", "=", "0"), Test("state", "=", "1"))), True),
        ("state[gte]→1", Test("state", ">=", "1"), True),
        ("state[regex]→1", None, False),
        ("last_check[gt]→-1h", Test("last_check", ">", str(int(NOW) - 3600)), True),
        ("latency[gt]→2", Test("latency", ">=", "1.999999998000"), False),
        ("latency→2", None, False),
        ("name[sregex]→^web", Test("name", "~", "^web"), True),
        ("name[sregex]→web{2}", None, False),
        ("name[nregex]→we.b", None, False),
        ("groups[gte]→linux", Test("groups", ">=", "linux"), True),
        ("groups[lte]→linux", Test("groups", "!>=", "linux"), True),
        ("groups[notin]→linux", Test("groups", "!>=", "linux"), True),
        ("groups→", Test("groups", "=", ""), True),
        ("groups[ne]→", Test("groups", "!=", ""), True),
        ("comments→", None, False),  # a Naemon takes any row for empty
        ("comments[ne]→", None, False),
        ("groups→linux", None, False),
        ("groups[regex]→linux", None, False),
        ("groups[gte]→7", None, False),
        ("comments[gte]→7", None, False),
        ("_WORKER→local", Test("custom_variables", "=", "WORKER local"), True),
        ("_WORKER→", None, False),
        ("_worker→local", None, False),
        ("_WORKER[gt]→1", None, False),
        ("pl[gt]→1", None, False),
        ("peer_key→s1", None, False),
        ("q→name = a or state = 1", Group("or", (Test("name", "=", "a"), Test("state", "=", "1"))), True),
        ("q→name = a or pl > 1", None, False),
        ("q→name = a and pl > 1", Test("name", "=", "a"), False),
        ("name→a&state→1", Group("and", (Test("name", "=", "a"), Test("state", "=", "1"))), True),
    ],
)  # fmt: skip
def test_filters_for_naemon(params: str, expected: object, exact: bool) -> None:
    made = planned(params)
    assert made.pushed.filter == expected
    assert made.filtered is exact


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("name→web01", Test("name", "=", "web01")),
        ("state→1", Group("and", (Test("has_been_checked", "=", "1"), Test("state", "=", "1")))),
        ("state→0", Group("or", (Test("has_been_checked", "=", "0"), Test("state", "=", "0")))),
        ("state[ne]→0", Group("and", (Test("has_been_checked", "=", "1"), Test("state", "!=", "0")))),
        ("state[gt]→0", None),
        ("last_check[gt]→5", None),
        ("_WORKER→local", None),
        ("check_command→ping", None),
    ],
)  # fmt: skip
def test_filters_for_icinga_2(params: str, expected: object) -> None:
    assert planned(params, ICINGA).pushed.filter == expected


def test_what_a_core_lacks_is_never_sent_to_it() -> None:
    made = planned("address→x", capabilities("naemon", "address"))
    assert made.pushed.filter is None
    assert "address" not in made.pushed.columns
    assert not made.filtered


def test_masked_columns_are_not_asked_about() -> None:
    made = planned("check_command[regex]→secret", commands=False)
    assert made.pushed.filter is None
    assert not made.filtered


@pytest.mark.parametrize(
    ("params", "sort", "limit"),
    [
        ("limit→10", (("name", False),), 10),
        ("limit→10&offset→5", (("name", False),), 15),
        ("limit→10&sort→-state", (("state", True), ("name", False)), 10),
        ("limit→10&sort→name", (("name", False),), 10),
        ("limit→10&sort→latency", (), None),  # printed with fewer digits than compared
        ("limit→10&sort→groups", (), None),
        ("limit→10&sort→pl", (), None),
        ("limit→10&pl[gt]→1", (("name", False),), None),
        ("limit→10&columns→to_rows(groups)", (("name", False),), None),
        ("limit→10&columns→count(*),state", (), None),
        ("columns→name as n&sort→-n&limit→3", (("name", True),), 3),
        ("sort→-state", (("state", True), ("name", False)), None),
        ("", (("name", False),), None),
    ],
)
def test_limit_and_sort(params: str, sort: object, limit: int | None) -> None:
    made = planned(params)
    assert (made.pushed.sort, made.pushed.limit) == (sort, limit)


@pytest.mark.parametrize(
    ("params", "sort", "limit"),
    [
        ("limit→10", (), 10),
        ("limit→10&sort→name", (), 10),
        ("limit→10&sort→-name", (("name", True),), 10),
        ("limit→10&sort→state", (("state", False), ("name", False)), 10),
        ("state→1&offset→5&limit→3", (), 8),
        ("name→a&limit→3", (("name", False),), 3),
        ("groups[gte]→a&limit→3", (("name", False),), 3),
        ("q→name = a or state = 1&limit→3", (("name", False),), 3),
    ],
)
def test_a_core_whose_order_is_ours_is_not_asked_to_sort(params, sort, limit) -> None:
    made = planned(params, evolve(NAEMON, ordered=frozenset({"hosts"})))
    assert (made.pushed.sort, made.pushed.limit) == (sort, limit)
    assert made.sorted
    other = planned(params, evolve(NAEMON, ordered=frozenset({"services"})))
    assert other.pushed.sort


def test_a_core_that_does_not_sort_gets_no_limit() -> None:
    made = planned("limit→10", ICINGA)
    assert made.pushed.limit is None
    assert not made.sorted


COUNT = Stat("count")


@pytest.mark.parametrize(
    ("params", "columns", "stats"),
    [
        ("columns→count(*)", (), (COUNT,)),
        ("columns→count(*),state", ("state",), (COUNT,)),
        ("columns→avg(state),name", ("name",), (COUNT, Stat("sum", "state"))),
        ("columns→min(last_check),max(last_check)", (), (COUNT, Stat("min", "last_check"), Stat("max", "last_check"))),
        ("columns→count(*),peer_name", (), (COUNT,)),
        ("columns→uniq(),state", ("state",), (COUNT,)),
        ("columns→count(*)&state→1", (), (COUNT,)),
    ],
)  # fmt: skip
def test_aggregation_goes_down(params: str, columns: object, stats: object) -> None:
    made = planned(params)
    assert (made.pushed.columns, made.pushed.stats) == (columns, stats)


@pytest.mark.parametrize(
    "params",
    [
        "columns→sum(latency)",  # the core adds doubles, we add what it prints
        "columns→count(*),upper(name)",
        "columns→count(*),groups",
        "columns→count(to_rows(groups))",
        "columns→count(*)&pl[gt]→1",
        "columns→avg(pl)",
        "columns→avg(calc(state,+,1))",
    ],
)
def test_aggregation_that_stays_here(params: str) -> None:
    assert planned(params).pushed.stats == ()


def test_groups_over_several_sites_are_filtered_after_the_merge() -> None:
    groups = schema("hostgroups", merge="groups")
    assert planned("state[gt]→1", table=groups, single=False).pushed.filter is None
    assert planned("state[gt]→1", table=groups).pushed.filter == Test("state", ">", "1")


def test_log_bounds_go_down_and_icinga_reads_a_day_more() -> None:
    logs = schema("logs", "log", "logs")
    made = planned("time[gte]→1000000&time[lt]→2000000&limit→5", table=logs)
    assert made.pushed.filter == Group(
        "and", (Test("time", ">=", "1000000"), Test("time", "<", "2000000"))
    )
    assert made.pushed.sort == (("time", True), ("lineno", True))
    assert made.pushed.limit == 5
    assert made.pushed.waits_long
    icinga = planned("time[gte]→1000000", ICINGA, logs)
    assert icinga.pushed.filter == Group(
        "and", (Test("time", ">=", "1000000"), Test("time", ">=", str(1000000 - 86400)))
    )


def test_a_log_is_never_read_without_a_lower_bound_on_time() -> None:
    logs = schema("logs", "log", "logs")
    for params, since in [
        ("q→time > 10 or time < 5", 0),
        ("q→time > 10.5 or (time >= 7 and name = a)", 7),
        ("q→(time > 10 or time = 9) and (time > 8 or time > 3)", 9),
        ("q→time > 10 or name = a", 0),
        ("time[ne]→5", 0),
        ("time→1.5", 1),
        ("time→99999999999", 2**31 - 1),
        ("time[gt]→99999999999", 2**31 - 1),
        ("q→time > -5 or time > -9", 0),
        ("name[ne]→", 0),
    ]:
        made = planned(params, table=logs)
        tests = made.pushed.filter
        found = tests.items if isinstance(tests, Group) else (tests,)
        assert Test("time", ">=", str(since)) in found, (params, tests)
        assert not made.filtered or "time" not in params
    made = planned("q→time > 200000 or time > 300000", ICINGA, logs)
    assert made.pushed.filter == Group(
        "and", (Test("time", ">=", "200000"), Test("time", ">=", str(200000 - 86400)))
    )
    assert planned("name→a", table=logs, push_down=False).pushed.filter == Test("time", ">=", "0")


def test_everything_can_be_left_to_us() -> None:
    made = planned("name→a&limit→1&columns→name", push_down=False)
    assert made.pushed.filter is None
    assert made.pushed.limit is None
    assert not made.filtered


def test_an_lmd_sorts_for_an_icinga2_what_means_the_same_there():
    by_name = planned("state→0&sort→name&limit→5", OVER_ICINGA)
    assert by_name.pushed.filter == planned("state→0", ICINGA).pushed.filter
    assert (by_name.pushed.limit, by_name.sorted) == (5, True)
    by_state = planned("sort→-state&limit→5", OVER_ICINGA)
    assert (by_state.pushed.limit, by_state.sorted) == (None, False)
    assert planned("columns→count(*),state", OVER_ICINGA).pushed.stats == ()


def test_the_newest_lines_of_an_icinga2_behind_an_lmd_are_found_here():
    """It passes requests for its log on, and that core does not sort."""
    table = schema("logs", "log", "logs")
    for core in (ICINGA, OVER_ICINGA):
        pushed = planned("limit→5", core, table).pushed
        assert (pushed.sort, pushed.limit) == ((), None)
    assert planned("limit→5", capabilities("lmd"), table).pushed.limit == 5


@each("column", sorted(PENDING_COLUMNS))
@each("op", ["=", "!="])
@each("value", ["0", "1", "2", "3", "-1"])
def test_rows_that_an_icinga_keeps(column, op, value):
    asked = in_icinga(Test(column, op, value))
    flag = "host_has_been_checked" if column.startswith("host_") else "has_been_checked"
    assert set(columns_of(asked)) == {column, flag}
    keeps = core_test(asked, {column: 0, flag: 1})
    for held, checked in itertools.product(range(4), (0, 1)):
        shown = held if checked else int(column == "state_type")
        fits = (shown == int(value)) == (op == "=")
        assert keeps([held, checked]) is fits, (held, checked)


@pytest.mark.parametrize("op", [">", "<", ">=", "<=", "~"])
def test_what_cannot_be_asked(op):
    assert in_icinga(Test("state", op, "1")) is None
