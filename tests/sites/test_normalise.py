"""Rows of other cores in the common layout."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.values import Capabilities
from monrest.livestatus.core_errors import ProtocolError
from monrest.query.column_names import EMPTY
from monrest.query.model import Pushed, Stat, Test
from monrest.sites.asking import prepare
from monrest.sites.normalise import normaliser, with_companions
from monrest.sites.static import NAEMON, icinga2, joined

NAGIOS = joined(NAEMON)
NAEMON_CORE = Capabilities(kind="naemon", tables=NAGIOS, key="n")
MK_CORE = Capabilities(kind="mk", tables=NAGIOS, key="m")
ICINGA2_CORE = Capabilities(kind="icinga2", tables=icinga2(), key="i")


def typed(table, *names):
    return tuple((name, NAGIOS[table].get(name, "string")) for name in names)


def icinga(table, row, *wanted):
    """The wanted columns of one row of Icinga 2, given as a dictionary."""
    layout = typed(table, *(wanted or row))
    asked = tuple(name for name, _ in layout if ICINGA2_CORE.has(table, name))
    columns = with_companions(table, asked, ICINGA2_CORE)
    transform = normaliser(table, columns, ICINGA2_CORE, layout)
    values = [row[name] for name in columns]
    return values if transform is None else transform([values])[0]


def test_a_naemon_costs_nothing():
    layout = typed("hosts", "name", "state", "groups")
    names = ("name", "state", "groups")
    assert normaliser("hosts", names, NAEMON_CORE, layout) is None
    assert prepare(Pushed(table="hosts", columns=names), NAEMON_CORE, layout).transform is None
    assert with_companions("hosts", names, NAEMON_CORE) is names


def test_columns_that_are_taken_apart_are_looked_at_and_nothing_else_is_touched():
    layout = typed("services", "description", "custom_variables", "state", "host_perf_data")
    names = tuple(name for name, _ in layout)
    transform = normaliser("services", names, NAEMON_CORE, layout)
    good, bad = ["ping", {"A": "b"}, 0, "rta=1"], [7, ["A"], "up", ["rta"]]
    rows = [good, bad]
    variables = good[1]
    assert transform(rows) is rows
    assert rows == [["ping", {"A": "b"}, 0, "rta=1"], [7, {}, "up", '["rta"]']]
    assert rows[0] is good
    assert good[1] is variables
    assert transform([]) == []


@pytest.mark.parametrize("kind", ["naemon", "mk", "lmd"])
def test_all_columns_of_groups_are_looked_at(kind):
    core = Capabilities(kind=kind, tables=NAGIOS, key=kind)
    names = ("name", "num_hosts", "worst_host_state", "members")
    transform = normaliser("hostgroups", names, core, typed("hostgroups", *names))
    assert transform([[["a"], "many", None, 5]]) == [['["a"]', 0, 0, []]]
    assert transform([["web", 2, 1, ["h"]]]) == [["web", 2, 1, ["h"]]]


def test_numbers_and_lists_that_no_json_can_hold_as_text():
    transform = normaliser("hosts", ("perf_data",), NAEMON_CORE, typed("hosts", "perf_data"))
    deep = []
    for _ in range(500):
        deep = [deep]
    assert transform([[2**70], [deep]]) == [[str(2**70)], [""]]


def test_missing_columns_are_empty_by_type():
    layout = (
        ("gone_s", "string"), ("name", "string"), ("gone_i", "int"), ("gone_f", "float"),
        ("gone_l", "list"), ("state", "int"), ("gone_d", "dict"), ("gone_t", "time"),
    )  # fmt: skip
    transform = normaliser("hosts", ("state", "name"), NAEMON_CORE, layout)
    assert transform([[1, "a"], [2, "b"]]) == [
        ["", "a", 0, 0.0, [], 1, {}, 0],
        ["", "b", 0, 0.0, [], 2, {}, 0],
    ]
    assert transform([]) == []
    assert EMPTY["list"] == []


def test_a_layout_without_columns_keeps_the_number_of_rows():
    assert normaliser("hosts", ("name",), NAEMON_CORE, ())([["a"], ["b"]]) == [[], []]


def test_old_cores_with_pairs_of_custom_variables():
    layout = typed("hosts", "name", "custom_variables")
    transform = normaliser("hosts", ("name", "custom_variables"), MK_CORE, layout)
    assert transform([["a", [["X", "1"], ["Y", 2]]]]) == [["a", {"X": "1", "Y": "2"}]]
    assert normaliser("hosts", ("name",), MK_CORE, typed("hosts", "name")) is None


@pytest.mark.parametrize(
    ("column", "sent", "wanted"),
    [
        ("acknowledged", True, 1),
        ("is_flapping", False, 0),
        ("custom_variables", [["LOCATION", "Berlin"], ["n", 5]], {"LOCATION": "Berlin", "n": "5"}),
        ("custom_variables", [["a"], 3, ["b", None]], {"b": ""}),
        ("custom_variable_values", ["x", 5, 1.5, None], ["x", "5", "1.5", ""]),
        ("modified_attributes_list", 0, []),
        ("check_options", "", 0),
        ("first_notification_delay", "", 0.0),
        ("check_period", None, ""),
        ("perf_data", None, ""),
        ("latency", None, 0.0),
        ("check_interval", 5, 5.0),
        ("plugin_output", "text", "text"),
        ("parents", ["p"], ["p"]),
        ("comments_with_info", [[1, "me", "text"]], [[1, "me", "text", 0, 0, 0, 0]]),
        ("downtimes_with_info", [[1, "me", "t"]], [[1, "me", "t", 0, 0, 0, 0, 0, 0]]),
        ("services_with_state", [["a", 3, 0], ["b", 3, 1]], [["a", 0, 0], ["b", 3, 1]]),
        ("services_with_info", [["a", 3, 0, ""]], [["a", 0, 0, ""]]),
        ("services_with_state", "nonsense", []),
    ],
)
def test_values_of_icinga(column, sent, wanted):
    row = icinga("hosts", {column: sent})
    assert row == [wanted]
    assert type(row[0]) is type(wanted)


@pytest.mark.parametrize(
    ("table", "prefix", "row", "wanted"),
    [
        ("hosts", "", {"state": 1, "has_been_checked": 0}, 0),
        ("hosts", "", {"state": 1, "has_been_checked": 1}, 1),
        ("services", "", {"state": 3, "has_been_checked": 0}, 0),
        ("services", "", {"last_check": -1, "has_been_checked": 0}, 0),
        ("services", "", {"last_state": 3, "has_been_checked": 0}, 0),
        ("services", "", {"state_type": 0, "has_been_checked": 0}, 1),
        ("services", "", {"state_type": 0, "has_been_checked": 1}, 0),
        ("services", "host_", {"host_state": 1, "host_has_been_checked": 0}, 0),
        ("services", "host_", {"host_hard_state": 1, "host_has_been_checked": 0}, 0),
        ("comments", "service_", {"service_state": None, "service_has_been_checked": None}, 0),
        ("hosts", "", {"num_services_unknown": 3, "num_services_pending": 2}, 1),
        ("hosts", "", {"num_services_unknown": 1, "num_services_pending": 2}, 0),
        ("hostgroups", "", {"num_hosts_down": 3, "num_hosts_pending": 2}, 1),
    ],
)
def test_pending_objects_of_icinga(table, prefix, row, wanted):
    column = next(iter(row))
    asked = with_companions(table, (column,), ICINGA2_CORE)
    assert set(asked) == set(row)
    assert icinga(table, row, column) == [wanted]


@pytest.mark.parametrize(
    ("warn", "crit", "unknown", "pending", "worst"),
    [(0, 0, 2, 2, 0), (1, 0, 2, 2, 1), (1, 0, 3, 2, 3), (1, 1, 3, 2, 2), (0, 0, 1, 0, 3)],
)
def test_worst_service_of_icinga(warn, crit, unknown, pending, worst):
    row = {
        "worst_service_state": 3,
        "num_services_warn": warn,
        "num_services_crit": crit,
        "num_services_unknown": unknown,
        "num_services_pending": pending,
    }
    assert icinga("hostgroups", row, "worst_service_state") == [worst]
    row["worst_service_state"] = 2
    assert icinga("hostgroups", row, "worst_service_state") == [2]


@pytest.mark.parametrize(
    ("down", "unreachable", "pending", "worst"), [(1, 0, 1, 0), (2, 0, 1, 1), (1, 1, 1, 2)]
)
def test_worst_host_of_icinga(down, unreachable, pending, worst):
    row = {
        "worst_host_state": 1,
        "num_hosts_down": down,
        "num_hosts_unreach": unreachable,
        "num_hosts_pending": pending,
    }
    assert icinga("hostgroups", row, "worst_host_state") == [worst]


def test_members_of_icinga_groups():
    hosts = icinga("hostgroups", {"members_with_state": [["h1", 0], ["h2", 1]]})
    assert hosts == [[["h1", 0, 1], ["h2", 1, 1]]]
    services = icinga("servicegroups", {"members_with_state": [["h1", "ping", 0, 2]]})
    assert services == [[["h1", "ping", 2, 1]]]


def test_the_log_has_a_state_of_its_own():
    assert with_companions("log", ("state", "state_type"), ICINGA2_CORE) == ("state", "state_type")
    row = {"state": 3, "state_type": "HARD", "plugin_output": None}
    layout = (("state", "int"), ("state_type", "string"), ("plugin_output", "string"))
    transform = normaliser("log", tuple(row), ICINGA2_CORE, layout)
    assert transform([list(row.values())]) == [[3, "HARD", ""]]


def test_what_is_sent_has_the_companions():
    pushed = Pushed(table="hosts", columns=("name", "state"))
    ask = prepare(pushed, ICINGA2_CORE, typed("hosts", "name", "state"))
    assert b"\nColumns: name state has_been_checked\n" in ask.request
    assert ask.width == 3
    assert ask.transform([["h", 1, 0]]) == [["h", 0]]


def test_of_stats_only_the_numbers_are_checked():
    pushed = Pushed(table="hosts", columns=("state",), stats=(Stat("count"), Stat("max", "state")))
    ask = prepare(pushed, ICINGA2_CORE, typed("hosts", "name"))
    assert ask.width == 3
    assert ask.transform([["1", 2, 0.5], [None, 3, None]]) == [["1", 2, 0.5], [None, 3, 0]]
    for lie in ("x", "7", True, [], {}):
        with pytest.raises(ProtocolError):
            ask.transform([["1", 2, 1], ["0", 2, lie]])


def test_log_queries_are_known_as_such():
    since = Test("time", ">=", "0")
    asked = Pushed(table="log", columns=("time",), filter=since, waits_long=True)
    assert prepare(asked, NAEMON_CORE).log


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)  # fmt: skip
JSON_TYPES = {"string": str, "int": (int, float), "time": (int, float), "float": float,
              "list": list, "dict": dict}  # fmt: skip


TABLES = st.sampled_from(["hosts", "hostgroups", "servicegroups", "comments", "log"])


@given(TABLES, st.data())
def test_whatever_icinga_sends_has_the_right_types_afterwards(table, data):
    names = data.draw(
        st.lists(st.sampled_from(sorted(NAGIOS[table])), min_size=1, max_size=6, unique=True)
    )
    layout = typed(table, *names)
    asked = tuple(name for name in names if ICINGA2_CORE.has(table, name))
    columns = with_companions(table, asked, ICINGA2_CORE)
    transform = normaliser(table, columns, ICINGA2_CORE, layout)
    rows = data.draw(st.lists(st.lists(anything, min_size=len(columns), max_size=len(columns)),
                              max_size=3))  # fmt: skip
    if not columns:
        return
    done = transform(rows)
    assert len(done) == len(rows)
    for row in done:
        orjson.dumps(row)
        for (_, core_type), value in zip(layout, row, strict=True):
            assert isinstance(value, JSON_TYPES[core_type])
            assert not isinstance(value, bool)
