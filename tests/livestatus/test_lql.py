"""Requests: the template, the stack of filters, and that nothing can be injected."""

import operator
import re

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities
from monrest.livestatus.lql import (
    LONGEST_LINE,
    HarmfulRequestError,
    build,
    simplified,
)
from monrest.query.model import Group, Pushed, Stat, Test
from tests.examples import examples
from tests.table import each

TABLES = {"hosts": {"name": "string", "state": "int", "groups": "list"}}
NAEMON = Capabilities(kind="naemon", tables=TABLES, key="n")
ICINGA2 = Capabilities(kind="icinga2", tables=TABLES, key="i")
KINDS = ["naemon", "mk", "icinga2", "shinken", "lmd"]


def lines(pushed, capabilities=NAEMON):
    request = build(pushed, capabilities)
    assert request.endswith(b"\n\n")
    text = request.decode().split("\n")
    assert text[-2:] == ["", ""]
    assert "" not in text[:-2]
    return text[:-2]


def body(pushed, capabilities=NAEMON):
    return lines(pushed, capabilities)[4:]


def test_template():
    pushed = Pushed(
        table="hosts",
        columns=("name", "state"),
        filter=Group("and", (Test("state", "=", "0"), Test("name", "~~", "^web"))),
        sort=(("name", False), ("state", True)),
        limit=10,
        auth_user="jörg",
    )
    assert lines(pushed) == [
        "GET hosts",
        "ResponseHeader: fixed16",
        "KeepAlive: on",
        "OutputFormat: json",
        "Columns: name state",
        "Filter: state = 0",
        "Filter: name ~~ ^web",
        "Sort: name asc",
        "Sort: state desc",
        "Limit: 10",
        "AuthUser: jörg",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_headers_that_only_some_cores_know(kind):
    pushed = Pushed(
        table="hosts", columns=("name",), sort=(("name", False),), limit=5, auth_user="admin"
    )
    text = lines(pushed, Capabilities(kind=kind, key=kind))
    sorts = kind in ("naemon", "lmd")
    assert ("Sort: name asc" in text) is sorts
    assert ("Limit: 5" in text) is sorts  # else the wrong rows would be cut off
    assert ("AuthUser: admin" in text) is (kind in ("naemon", "mk", "lmd"))
    unsorted = Pushed(table="hosts", columns=("name",), limit=5)
    assert "Limit: 5" in lines(unsorted, Capabilities(kind=kind, key=kind))


T1, T2, T3 = Test("a", "=", "1"), Test("b", ">=", "x y"), Test("c", "~", "")
NOT_T2 = Test("b", "!>=", "x y")


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (None, []),
        (T1, ["Filter: a = 1"]),
        (T3, ["Filter: c ~"]),
        (Group("and", ()), []),
        (Group("and", (T1,)), ["Filter: a = 1"]),
        (Group("and", (T1, Group("and", (T2, T3)))), ["Filter: a = 1", "Filter: b >= x y", "Filter: c ~"]),
        (Group("or", (T1, T2)), ["Filter: a = 1", "Filter: b >= x y", "Or: 2"]),
        (Group("or", (T1, Group("or", (T2, T3)))), ["Filter: a = 1", "Filter: b >= x y", "Filter: c ~", "Or: 3"]),
        (
            Group("or", (T1, Group("and", (T2, T3)))),
            ["Filter: a = 1", "Filter: b >= x y", "Filter: c ~", "And: 2", "Or: 2"],
        ),
        (NOT_T2, ["Filter: b >= x y", "Negate:"]),
        (Group("or", (T1, NOT_T2)), ["Filter: a = 1", "Filter: b >= x y", "Negate:", "Or: 2"]),
        (Group("or", (T1, Group("and", ()))), []),
        (Group("and", (T1, Group("and", ()))), ["Filter: a = 1"]),
    ],
)  # fmt: skip
def test_filters(tree, expected):
    assert body(Pushed(table="hosts", filter=tree)) == expected


def test_impossible_filter_asks_for_a_contradiction():
    nothing = ["Filter: name = 0", "Filter: name != 0"]
    for tree in (Group("or", ()), Group("and", (T1, Group("or", ())))):
        assert body(Pushed(table="hosts", columns=("groups", "name"), filter=tree))[1:] == nothing


def test_stats():
    pushed = Pushed(
        table="hosts",
        columns=("state",),
        stats=(
            Stat("count", filter=T1),
            Stat("count", filter=Group("and", (T1, NOT_T2))),
            Stat("sum", "latency"),
            Stat("count"),
            Stat("count", filter=Group("or", ())),
            Stat("count", filter=Group("and", ())),
        ),
    )
    assert body(pushed) == [
        "Columns: state",
        "Stats: a = 1",
        *("Stats: a = 1", "Stats: b >= x y", "StatsNegate:", "StatsAnd: 2"),
        "Stats: sum latency",
        *("Stats: state = 0", "Stats: state != 0", "StatsOr: 2"),
        *("Stats: state = 0", "Stats: state != 0", "StatsAnd: 2"),
        *("Stats: state = 0", "Stats: state != 0", "StatsOr: 2"),
    ]


def test_icinga_gets_no_stats_negate():
    tree = Group("or", (T1, NOT_T2))
    pushed = Pushed(table="hosts", stats=(Stat("count", filter=tree),))
    assert body(pushed, ICINGA2) == ["Stats: a = 1", "Stats: b < x y", "StatsOr: 2"]
    assert "StatsNegate:" in body(pushed, NAEMON)
    plain = Pushed(table="hosts", filter=tree)
    assert "Negate:" in body(plain, ICINGA2)


COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def holds(tree, row):
    if isinstance(tree, Test):
        if tree.op == "!>=":
            return not row[tree.column] >= int(tree.value)
        return COMPARE[tree.op](row[tree.column], int(tree.value))
    found = [holds(item, row) for item in tree.items]
    return any(found) if tree.connector == "or" else all(found)


def run_stack(text, word, prefix, row):
    stack = []
    for line in text:
        name, _, value = line.partition(": ")
        if name == word:
            column, op, operand = value.split(" ")
            stack.append(COMPARE[op](row[column], int(operand)))
        elif line == f"{prefix}Negate:":
            stack[-1] = not stack[-1]
        elif name in (f"{prefix}And", f"{prefix}Or"):
            count = int(value)
            assert 2 <= count <= len(stack)
            taken = [stack.pop() for _ in range(count)]
            stack.append(all(taken) if name.endswith("And") else any(taken))
    return stack


tests = st.builds(
    Test, st.sampled_from("abc"), st.sampled_from([*COMPARE, "!>="]), st.sampled_from("012")
)
trees = st.recursive(
    tests,
    lambda inner: (
        st.builds(lambda items: Group("and", tuple(items)), st.lists(inner, max_size=3))
        | st.builds(lambda items: Group("or", tuple(items)), st.lists(inner, max_size=3))
    ),
    max_leaves=10,
)
values = st.fixed_dictionaries({name: st.integers(0, 2) for name in "abc"})


@settings(max_examples=examples(300), deadline=None)
@given(trees, values, st.sampled_from(KINDS))
def test_the_stack_means_the_tree(tree, row, kind):
    core = Capabilities(kind=kind, key=kind)
    filtered = body(Pushed(table="hosts", columns=("a",), filter=tree), core)
    assert all(run_stack(filtered, "Filter", "", row)) is holds(tree, row)
    counted = body(Pushed(table="hosts", columns=("a",), stats=(Stat("count", filter=tree),)), core)
    assert run_stack(counted, "Stats", "Stats", row) == [holds(tree, row)]
    if kind in ("icinga2", "shinken"):
        assert "StatsNegate:" not in counted


@given(trees)
def test_simplified_has_no_small_groups(tree):
    def check(node):
        if isinstance(node, Group):
            assert len(node.items) > 1
            for item in node.items:
                assert not isinstance(item, Group) or item.connector != node.connector
                check(item)

    simple = simplified(tree)
    if not isinstance(simple, bool):
        check(simple)


@each("character", [chr(n) for n in [*range(32), 127]])
@each(
    "make",
    [
        lambda text: Pushed(table="hosts", filter=Test("name", "=", text)),
        lambda text: Pushed(table="hosts", filter=Group("or", (T1, Test("name", "=", text)))),
        lambda text: Pushed(table="hosts", stats=(Stat("count", filter=Test("name", "=", text)),)),
        lambda text: Pushed(table="hosts", auth_user=text),
    ],
)
def test_no_control_character_in_any_value(character, make):
    with pytest.raises(BadRequest, match="control characters"):
        build(make(f"x{character}COMMAND [0] RESTART_PROGRAM"), NAEMON)


@each("name", ["", "a b", "a\n", "a\nFilter: x", "1a", "ä", "a:", "-"])
@each(
    "make",
    [
        lambda name: Pushed(table=name),
        lambda name: Pushed(table="hosts", columns=("name", name)),
        lambda name: Pushed(table="hosts", filter=Test(name, "=", "x")),
        lambda name: Pushed(table="hosts", stats=(Stat("sum", name),)),
        lambda name: Pushed(table="hosts", sort=((name, False),)),
        lambda name: Pushed(table="hosts", filter=Test("name", name, "x")),
    ],
)
def test_names_and_operators_are_checked(name, make):
    with pytest.raises(ValueError, match="of Livestatus"):
        build(make(name), NAEMON)


def test_limit_is_not_negative():
    assert "Limit: 0" in body(Pushed(table="hosts", limit=0))
    with pytest.raises(ValueError, match="limit"):
        build(Pushed(table="hosts", limit=-1), NAEMON)


def test_lone_surrogates_and_long_values_are_refused():
    with pytest.raises(BadRequest, match="Unicode"):
        build(Pushed(table="hosts", filter=Test("name", "=", "\ud83d")), NAEMON)
    long = "ü" * (LONGEST_LINE // 2)
    with pytest.raises(BadRequest, match="too long"):
        build(Pushed(table="hosts", filter=Test("name", "=", long)), NAEMON)
    assert build(Pushed(table="hosts", filter=Test("name", "=", long[:-20])), NAEMON)


@given(st.text(max_size=30))
def test_a_value_stays_on_its_line(text):
    pushed = Pushed(table="hosts", columns=("name",), filter=Test("name", "=", text))
    try:
        request = build(pushed, NAEMON)
    except BadRequest:
        assert re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", text)
        return
    assert request.count(b"\n") == 7
    assert request.split(b"\n")[5].decode() == f"Filter: name = {text}".rstrip(" ")


STATUS = {
    "connections": "int",
    "connections_rate": "float",
    "requests": "int",
    "livecheck_overflows_rate": "float",
    "num_hosts": "int",
    "program_start": "time",
}
VALUES = ("custom_variable_values", "host_custom_variable_values")
VALUES += ("current_host_custom_variable_values", "current_service_custom_variable_values")
SINCE = Test("time", ">=", "5")


def harmful():
    """Everything that a core might not survive, in each line that may name a column."""
    for table, names in [
        ("status", [name for name in STATUS if not name.startswith(("num", "program"))]),
        *[(table, VALUES) for table in ("hosts", "services", "log", "downtimes", "hostsbygroup")],
    ]:
        since = SINCE if table == "log" else None
        for name in names:
            test = Test(name, "=", "")
            for tree in (
                test,
                Test(name, "!>=", ""),
                Group("or", (test, T1)),
                Group("and", (T1, Group("or", (T2, test)))),
            ):
                both = tree if since is None else Group("and", (since, tree))
                yield Pushed(table=table, columns=(name,), filter=both)
                yield Pushed(table=table, filter=since, stats=(Stat("count", "", tree),))
            for function in ("sum", "min", "max"):
                yield Pushed(table=table, filter=since, stats=(Stat("count"), Stat(function, name)))
            yield Pushed(table=table, columns=(name,), filter=since, stats=(Stat("count"),))
            yield Pushed(
                table=table, columns=("a",), filter=since, sort=(("a", False), (name, True))
            )
    yield Pushed(table="statehist", columns=("time",), filter=SINCE)
    yield Pushed(table="log", columns=("time",))
    for tree in (
        Test("time", "<", "5"),
        Test("time", "!>=", "5"),
        Group("or", (SINCE, T1)),
        Group("or", (SINCE, SINCE)),
        T1,
    ):
        yield Pushed(table="log", columns=("time",), filter=tree)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_core_might_not_survive_is_never_written(kind):
    core = Capabilities(kind=kind, tables={"status": STATUS}, key=f"harm-{kind}")
    for pushed in harmful():
        with pytest.raises(HarmfulRequestError):
            build(pushed, core)


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_only_be_read_is_read(kind):
    core = Capabilities(kind=kind, tables={"status": STATUS}, key=f"read-{kind}")
    for pushed in (
        Pushed(table="status", columns=tuple(STATUS), filter=Test("num_hosts", ">", "1")),
        Pushed(table="hosts", columns=VALUES, filter=Test("custom_variables", "=", "A b")),
        Pushed(table="log", columns=VALUES, filter=Group("and", (T1, Group("and", (SINCE, T2))))),
        Pushed(table="log", columns=("class",), filter=Test("time", "=", "5")),
        Pushed(table="log", columns=("class",), filter=Group("or", ())),
    ):
        assert f"Columns: {' '.join(pushed.columns)}" in lines(pushed, core)


@pytest.mark.parametrize("kind", KINDS)
def test_all_and_none_are_said_with_columns_that_may_be_compared(kind):
    core = Capabilities(kind=kind, tables={"status": STATUS}, key=f"never-{kind}")
    nothing = Pushed(table="status", columns=("connections", "requests"), filter=Group("or", ()))
    assert [line for line in lines(nothing, core) if "Filter" in line] == [
        "Filter: num_hosts = 0",
        "Filter: num_hosts != 0",
    ]
    assert "Stats: num_hosts = 0" in lines(Pushed(table="status", stats=(Stat("count"),)), core)
    log = Pushed(table="log", columns=("class",), filter=Group("or", ()))
    assert lines(log, core)[5:] == ["Filter: time = 0", "Filter: time != 0"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_must_not_be_is_negated(kind):
    """A Naemon answers ``host_name != x`` on services with nothing at all."""
    core = Capabilities(kind=kind, tables={"services": {"host_name": "string"}}, key=f"not-{kind}")
    other = Test("host_name", "!=", "x")
    wanted = ["Filter: host_name = x", "Negate:"]
    for tree in (other, Group("and", (other,))):
        assert lines(Pushed(table="services", filter=tree), core)[4:] == wanted
    either = Pushed(table="services", filter=Group("or", (other, T1)))
    assert lines(either, core)[4:] == [*wanted, "Filter: a = 1", "Or: 2"]
    assert "Filter: host_name != x" in lines(Pushed(table="comments", filter=other), core)
    counted = Pushed(table="services", stats=(Stat("count", "", other),))
    assert "Stats: host_name != x" in lines(counted, core)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_what_every_core_reads(kind):
    """A Naemon takes 4294967296 for 0, whoever made the filter."""
    core = Capabilities(kind=kind, tables=TABLES, key=f"numbers-{kind}")
    for value, sent in {
        "2147483647": "2147483647",
        "-2147483647": "-2147483647",
        "4294967296": "2147483647",
        "-4294967297": "-2147483647",
        "9" * 300: "2147483647",
        "x": "x",
    }.items():
        pushed = Pushed(table="hosts", columns=("name",), filter=Test("state", "=", value))
        assert f"Filter: state = {sent}" in lines(pushed, core)
    pushed = Pushed(table="hosts", columns=("name",), filter=Test("name", "=", "4294967296"))
    assert "Filter: name = 4294967296" in lines(pushed, core)


def test_only_a_naemon_waits_and_never_with_its_log_locked():
    waits = Pushed(table="status", columns=("program_start",), news=1.5)
    assert lines(waits)[-2:] == ["WaitTrigger: log", "WaitTimeout: 1500"]
    since = Test("time", ">=", "5")
    for pushed, core in (
        (evolve(waits, table="log", columns=("time",), filter=since), NAEMON),
        (evolve(waits, news=0.0), NAEMON),
        (waits, ICINGA2),
    ):
        with pytest.raises(ValueError, match="only a Naemon waits"):
            build(pushed, core)
