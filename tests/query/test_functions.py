"""Functions, calculations and the text and number of values."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.query.functions import (
    AGGREGATES,
    CANONICAL,
    DISAGGREGATES,
    FUNCTIONS,
    MOST_MADE,
    Moment,
    build,
    calculate,
    number_of,
    text_of,
)
from monrest.query.model import Literal_
from tests.table import each

NOW = 1_795_242_791.75
MOMENT = Moment(now=NOW, zone=ZoneInfo("Europe/Berlin"))
WEB01 = {
    "name": "web01", "state": 0, "num_services": 4, "alias": "Web 01 \u2013 ü", "rta": 0.03,
    "latency": 0.875, "empty": "", "nothing": None, "groups": ["web", "linux"], "ten": "10",
    "time": 1795242191, "none": [], "flag": True, "info": {"b": 1, "a": [2]},
}  # fmt: skip
ROW = list(WEB01.values())


def column(name: str) -> Any:
    at = list(WEB01).index(name)
    return lambda row: row[at]


def argument(one: Any) -> Any:
    """``'text'`` and numbers are literals, other texts columns, functions themselves."""
    if isinstance(one, str) and one.startswith("'"):
        return Literal_(one[1:-1])
    return column(one) if isinstance(one, str) else one if callable(one) else Literal_(one)


def run(name: str, *arguments: Any) -> Any:
    return build(CANONICAL.get(name, name), [argument(one) for one in arguments], MOMENT)(ROW)


CASES: list[tuple[Any, ...]] = [
    ("lower", "alias", "web 01 \u2013 ü"), ("lower", "state", "0"), ("lower", "'ÄÖ'", "äö"),
    ("lc", "'A'", "a"), ("upper", "alias", "WEB 01 \u2013 Ü"), ("uc", "'a'", "A"),
    ("upper", "groups", "WEB,LINUX"), ("upper", "flag", "1"),
    ("substr", "name", -2, "01"), ("substr", "name", 0, -1, "web0"), ("substr", "name", 0, 3, "web"),
    ("substring", "name", 3, "01"), ("substr", "name", 5, ""), ("substr", "name", 6, None),
    ("substr", "name", -9, "web01"), ("substr", "name", -9, 5, "w"), ("substr", "name", -9, 2, None),
    ("substr", "name", 3, -4, ""), ("substr", "name", "'x'", "web01"), ("substr", "name", 1, "'x'", ""),
    ("substr", "alias", -1, "ü"), ("substr", "state", 0, "0"), ("substr", "name", "'2'", "b01"),
    ("substr", "name", 10**18, None), ("substr", "empty", 0, ""), ("substr", "groups", 2, 3, "b,l"),
    ("calc", "rta", "'*'", 1000, 30.0), ("calc", "num_services", "'*'", 2, 8),
    ("calc", "num_services", "'/'", 2, 2), ("calc", "num_services", "'/'", 3, 4 / 3),
    ("calc", "num_services", "''", 1, 5), ("calc", "num_services", "' '", 1, 5),
    ("calc", "num_services", "'-'", "'1.5'", 2.5), ("calc", "num_services", "'+'", "'x'", 4),
    ("calc", "num_services", "'/'", 0, None), ("calc", "rta", "'/'", "'x'", None),
    ("calc", "ten", "'*'", 2, 20), ("calc", "name", "'*'", 2, "web01"), ("calc", "empty", "'+'", 1, ""),
    ("calc", "groups", "'+'", 1, "web,linux"), ("calc", "flag", "'+'", 1, 2),
    ("calc", 1e308, "'*'", 10, None), ("calc", 10**18, "'*'", 10**18, 1e36),
    ("s", "name", "'[0-9]+'", "'X'", "webX"), ("s", "name", "'/[0-9]/'", "'X'", "webXX"),
    ("s", "name", "'web'", "''", "01"), ("s", "name", "'(e)'", "'$1'", "w$1b01"),
    ("s", "name", "'WEB'", "'x'", "web01"), ("s", "name", "'(?i)WEB'", "'x'", "x01"),
    ("s", "state", 0, "'zero'", "zero"), ("s", "name", "'01'", 7, "web7"),
    ("s", "groups", "','", "' '", "web linux"), ("s", "name", "'/'", "'x'", "web01"),
    ("concat", "name", "';'", "state", "web01;0"), ("concat", "'Host: '", "name", "Host: web01"),
    ("concat", "name", "web01"), ("concat", "nothing", ""), ("concat", "name", "nothing", "'x'", "web01x"),
    ("concat", "groups", "'!'", "web,linux!"), ("concat", 5.0, 0.5, "50.5"),
    ("fmt", "'%s is %d'", "name", "state", "web01 is 0"), ("fmt", "'%.1f'", "latency", "0.9"),
    ("unit", "rta", "'s'", 0.03), ("unit", "rta", 0.03), ("unit", "groups", "'x'", ["web", "linux"]),
    ("age", "time", 600), ("age", 1000, 1795241791), ("age", "name", "web01"), ("age", "ten", 1795242781),
    ("age", -1e300, 1e300), ("age", "none", ""),
    ("duration", 90, "1m 30s"), ("duration", "'90'", "1m 30s"), ("duration", "name", "web01"),
    ("duration", "latency", "875ms"), ("duration", "empty", ""),
    ("utc", 0, "1970-01-01 00:00:00 UTC"), ("utc", "'0'", "1970-01-01 00:00:00 UTC"),
    ("utc", "time", "'%H:%M'", "06:23"), ("date", "time", "'%H:%M %Z'", "07:23 CET"),
    ("date", 0, "1970-01-01 01:00:00 CET"), ("utc", 0.5, "'%S.%MILLI'", "00.500"),
    ("utc", "name", "web01"), ("utc", 1e300, "1e+300"), ("utc", 0, "''", "1970-01-01 00:00:00 UTC"),
    ("hoststate", 0, "UP"), ("hoststate", 1, "DOWN"), ("hoststate", 2, "UNREACHABLE"),
    ("hoststate", 3, "UNKNOWN"), ("hststate", 4, "PENDING"), ("hoststate", 5, None), ("hoststate", -1, None),
    ("hoststate", 1.0, "DOWN"), ("hoststate", 1.5, None), ("hoststate", "'1'", "DOWN"),
    ("hoststate", "name", "web01"),
    ("servicestate", 0, "OK"), ("servicestate", 1, "WARNING"), ("servicestate", 2, "CRITICAL"),
    ("servicestate", 3, "UNKNOWN"), ("svcstate", 4, "PENDING"), ("svcstate", 9, None),
    ("servicestate", "state", "OK"),
]  # fmt: skip


@each("case", CASES)
def test_functions(case: tuple[Any, ...]) -> None:
    *call, expected = case
    result = run(*call)
    assert result == expected
    assert type(result) is type(expected)


ROW_FUNCTIONS = FUNCTIONS.keys() - AGGREGATES - DISAGGREGATES
NULLS = [
    ("lower",), ("upper",), ("substr", 0), ("calc", "'+'", 1), ("s", "'a'", "'b'"), ("unit", "'s'"),
    ("age",), ("duration",), ("utc",), ("date",), ("hoststate",), ("servicestate",),
]  # fmt: skip


def test_null_stays_null_in_all_but_two() -> None:
    assert {name for name, *_ in NULLS} | {"concat", "fmt"} == ROW_FUNCTIONS
    for name, *arguments in NULLS:
        assert run(name, "nothing", *arguments) is None
    assert run("concat", "nothing", "nothing") == ""
    assert run("fmt", "'%s|%d'", "nothing", "nothing") == "|0"


def test_functions_of_functions() -> None:
    inner = build("substr", [column("name"), Literal_(0), Literal_(3)], MOMENT)
    assert run("upper", inner) == "WEB"
    assert run("concat", inner, "'-'", inner) == "web-web"
    assert run("fmt", "'%5s|'", inner) == "  web|"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("s", [lambda _row: "a" * 1000, "'a'", f"'{'x' * 100}'"]),
        ("concat", [lambda _row: "a" * 50_000] * 3),
        ("fmt", [f"'{'%999d' * 100}'", "state"]),
    ],
)
def test_texts_do_not_grow_without_bound(name: str, arguments: list[Any]) -> None:
    with pytest.raises(BadRequest) as caught:
        run(name, *arguments)
    assert caught.value.description == f"{name}: makes a text longer than {MOST_MADE} characters"


def test_long_texts_of_the_core_pass() -> None:
    text = "a" * 300_000
    assert run("concat", lambda _row: text, "'!'") == text + "!"
    assert run("fmt", "'%s!'", lambda _row: text) == text + "!"
    assert run("s", lambda _row: text, "'b'", "'c'") == text


@each(
    ("template", "values", "expected"),
    [
        ("%d %i %u", [1, 2.9, "3"], "1 2 3"), ("%5d|%-5d|%05d|%+d", [1, 2, 3, 4], "    1|2    |00003|+4"),
        ("%.3d", [7], "007"), ("% d", [7], " 7"), ("%x %X %o %#x", [255, 255, 8, 255], "ff FF 10 0xff"),
        ("%u", [-1], "18446744073709551615"), ("%x", [-1], "ffffffffffffffff"), ("%d", [-1.9], "-1"),
        ("%f %.2f %8.3f|", [1, 2.345, 3], "1.000000 2.35 " + "   3.000|"),
        ("%e %.1E %g %G", [12345.678, 0.5, 1e-10, 1e20], "1.234568e+04 5.0E-01 1e-10 1E+20"),
        ("%s %5s|%-5s|%.2s|", ["a", "b", "c", "def"], "a     b|c    |de|"), ("%s", [5.0], "5"),
        ("%s", [["a", "b"]], "a,b"), ("%d", [["7"]], "7"), ("%s", [True], "1"),
        ("%c%c", [65, "252"], "Aü"), ("%3c|", [65], "  A|"), ("%c", [-1], "\ufffd"), ("%c", [0xD800], "\ufffd"),
        ("%c", [1e300], "\ufffd"), ("%c", ["x"], ""), ("%.0c", [65], "A"),
        ("100%%", [1], "100%"), ("%%%s", [1], "%1"), ("%q %s", [1], "%q 1"), ("%", [1], "%"),
        ("%5", [1], "%5"), ("%*d %s", [1], "%*d 1"), ("%1$s %s", [1], "%1$s 1"), ("%z%y%b%p%a", [1], "%z%y%b%p%a"),
        ("%ld %hd %lld %hhd", [1, 2, 3, 4], "1 2 3 4"),
        ("%s %d %f %c|", [], " 0 0.000000 |"), ("%s", ["a", "b"], "a"), ("", ["a"], ""),
        ("%d %.1f", ["x", "y"], "0 0.0"), ("%d", ["12.9"], "12"), ("%d", [float("nan")], "0"),
        ("ü%s😀", ["é"], "üé😀"), ("%999d", [1], "1".rjust(999)), ("%.999f", [0], "0." + "0" * 999),
        ("%00005d", [1], "00001"), ("%d", [1e300], str(int(1e300))), ("%s %(name)s {0}", ["x"], "x %(name)s {0}"),
    ],
)  # fmt: skip
def test_formats(template: str, values: list[Any], expected: str) -> None:
    values = values or [None]
    assert run("fmt", f"'{template}'", *[lambda _row, one=one: one for one in values]) == expected


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.lists(st.integers() | st.text(max_size=3), max_size=3)
)  # fmt: skip


@given(
    st.text(alphabet="%sdiufegGEXxoc+-# 0159.hlqn*$", max_size=20) | st.text(max_size=20),
    st.lists(VALUES, min_size=1, max_size=3),
)
def test_any_format_is_filled_or_refused(template: str, values: list[Any]) -> None:
    readers: list[Any] = [lambda _row, one=one: one for one in values]
    try:
        read = build("fmt", [Literal_(template), *readers], MOMENT)
    except BadRequest:
        assert "n" in template or re.search("[0-9]{4}", template)
        return
    result = read([])
    assert isinstance(result, str)
    if "%" not in template:
        assert result == template


@given(VALUES)
def test_every_function_takes_every_value(value: Any) -> None:
    for name, *arguments in [*NULLS, ("concat",)]:
        result = run(name, lambda _row: value, *arguments)
        if value is None:
            assert result in (None, "")
        elif name in ("lower", "upper", "s", "concat"):
            assert isinstance(result, str)


@each(
    ("first", "steps", "expected"),
    [
        (2, [("*", "num_services"), ("-", 1), ("*", 3)], 21), ("state", [("+", "num_services")], 4),
        (4, [("*", 2)], 8), (4, [("/", 3)], 4 / 3), (4, [("/", 2)], 2), (4, [("*", 1.5)], 6.0),
        (4.0, [("/", 2)], 2.0), (1, [("/", 0)], ""), (1, [("/", "nothing"), ("+", 5)], ""),
        ("nothing", [("+", 1)], 1), ("name", [("+", 1)], 1), ("ten", [("+", 1)], 11),
        (1, [("-", "nothing")], 1), ("''", [("-", 3)], -3), ("num_services", [], 4),
        (10**18, [("*", 10**18), ("*", 10**18)], 1e54), (1e308, [("*", 10)], ""), ("flag", [("+", 1)], 2),
        (7, [("/", -2)], -3.5), (-6, [("/", 3)], -2),
    ],
)  # fmt: skip
def test_calculations(first: Any, steps: list[tuple[str, Any]], expected: Any) -> None:
    compute = calculate(argument(first), [(op, argument(one)) for op, one in steps])
    result = compute(ROW)
    assert result == expected
    assert type(result) is type(expected)


@given(VALUES, st.lists(st.tuples(st.sampled_from("+-*/"), VALUES), max_size=30))
def test_calculations_give_numbers_that_can_be_written(
    first: Any, steps: list[tuple[str, Any]]
) -> None:
    result = calculate(lambda _row: first, [(op, lambda _row, one=one: one) for op, one in steps])(
        []
    )
    assert result == "" or number_of(result) == result
    if isinstance(result, int) and steps:
        assert -(2**64) < result < 2**64


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""), ("", ""), ("a", "a"), (5, "5"), (5.0, "5"), (-0.0, "0"), (0.1, "0.1"), (1e22, "1e+22"),
        (-2.5, "-2.5"), (True, "1"), (False, "0"), ([], ""), (["a", 1, None, 2.0], "a,1,,2"),
        ([["ping", 0], ["x", 1]], "ping,0,x,1"), (("a", "b"), "a,b"), ({"b": 1, "a": "ü"}, '{"a":"ü","b":1}'),
        ([{"a": 1}], '{"a":1}'), ({}, "{}"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_text_of(value: Any, expected: str) -> None:
    assert text_of(value) == expected


@each(
    ("value", "expected"),
    [
        (5, 5), (5.5, 5.5), (True, 1), (None, None), ([5], None), ({}, None), ("5", 5), ("-5", -5), ("+5", 5),
        ("5.0", 5.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1E-3", 0.001), (" 5 ", 5), ("007", 7),
        ("18446744073709551615", 2**64 - 1), ("18446744073709551616", 2.0**64), ("9" * 40, 1e40),
        ("9" * 400, None), ("1e999", None), ("", None), (" ", None), ("-", None), (".", None), ("1.2.3", None),
        ("0x10", None), ("inf", None), ("nan", None), ("1_000", None), ("\u0661", None), ("5 6", None), ("5a", None),
        ("1,5", None), (float("nan"), None), (float("inf"), None), ("- 5", None), (2**64, 2.0**64), (-(2**70), -(2.0**70)), (10**400, None), ("9" * 100_000, None),
    ],
)  # fmt: skip
def test_number_of(value: Any, expected: Any) -> None:
    result = number_of(value)
    assert result == expected
    assert type(result) is type(expected)


@given(st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_number_is_that_number(number: float) -> None:
    assert number_of(text_of(number)) == number


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_every_value_has_a_text(value: Any) -> None:
    assert isinstance(text_of(value), str)
    number_of(value)


def test_thousands_of_brackets_have_a_text() -> None:
    deep: list[Any] = ["x"]
    for _ in range(5000):
        deep = [deep]
    assert text_of(deep) == ""
    nested: dict[str, Any] = {}
    for _ in range(5000):
        nested = {"x": nested}
    assert text_of(nested) == ""


def test_utc_is_the_zone_of_utc_only() -> None:
    moment = Moment(now=0.0, zone=UTC)
    assert build("date", [Literal_(0)], moment)([]) == "1970-01-01 00:00:00 UTC"
