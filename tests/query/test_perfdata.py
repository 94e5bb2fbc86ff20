"""Performance data: the tables, and texts nobody would write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.query import perfdata
from monrest.query.perfdata import columns, expanded
from monrest.query.scalars import MOST_INTEGER
from tests.table import each

# parent, name, value, unit, warn, crit, min, max
Entry = tuple[str, str, str, str, str, str, str, str]

TABLE: list[tuple[str, list[Entry]]] = [
    ("rta=0.030ms;3000.000;5000.000;0; pl=0%;80;100;;", [
        ("", "rta", "0.030", "ms", "3000.000", "5000.000", "0", ""),
        ("", "pl", "0", "%", "80", "100", "", ""),
    ]),
    ("'C:\\ used'=80,5%;75;90;0;100 'C:\\ free'=20GB;@10:20;~:5;0;100", [
        ("", "C:\\ used", "80.5", "%", "75", "90", "0", "100"),
        ("", "C:\\ free", "20", "GB", "@10:20", "~:5", "0", "100"),
    ]),
    ("a=U b=-5.5 c=10c", [
        ("", "a", "U", "", "", "", "", ""),
        ("", "b", "-5.5", "", "", "", "", ""),
        ("", "c", "10", "c", "", "", "", ""),
    ]),
    ("label with spaces=7;8;9 other=1", [
        ("", "label with spaces", "7", "", "8", "9", "", ""),
        ("", "other", "1", "", "", "", "", ""),
    ]),
    ("a=1;10:20;-5:5", [("", "a", "1", "", "10-20", "-5-5", "", "")]),
    ("a=1;2;3;4;5;6", [("", "a", "1", "", "2", "3", "4", "5")]),
    ("a=1 [check_x]", [("", "a", "1", "", "", "", "", "")]),
    ("a=1 [error msg=5] b=2", [
        ("", "a", "1", "", "", "", "", ""), ("", "b", "2", "", "", "", "", ""),
    ]),
    ("temp=20°C load=1.0", [
        ("", "temp", "20", "", "", "", "", ""), ("", "°C load", "1.0", "", "", "", "", ""),
    ]),
    ("x::y::a=1 b=2 ::d=4", [
        ("x::y", "a", "1", "", "", "", "", ""), ("x::y", "b", "2", "", "", "", "", ""),
        ("", "d", "4", "", "", "", "", ""),
    ]),
    ("x::y::a=1 b=2 z::c=3 ::d=4", [
        ("x::y", "a", "1", "", "", "", "", ""), ("x::y", "b", "2", "", "", "", "", ""),
        ("z", "c", "3", "", "", "", "", ""), ("", "d", "4", "", "", "", "", ""),
    ]),
    ("=1", []), ("a = 1", []), ("", []), ("a", []), ("a=", []), ("==1", []), ("'=1", [
        ("", "'", "1", "", "", "", "", ""),
    ]),
    (" =1", []), ("''=1", []),
    # exponents, and a plus sign
    ("d=1e3", [("", "d", "1e3", "", "", "", "", "")]),
    ("b=+2 c=1,5e-3s;1", [
        ("", "b", "+2", "", "", "", "", ""), ("", "c", "1.5e-3", "s", "1", "", "", ""),
    ]),
    ("e=5e f=5eV", [("", "e", "5", "e", "", "", "", ""), ("", "f", "5", "eV", "", "", "", "")]),
    ("a=+ b=1", [("", "+ b", "1", "", "", "", "", "")]),
    # Addresses
    ("10.0.0.1rta=1ms;2 10.0.0.2PL=0% x=1", [
        ("10.0.0.1", "rta", "1", "ms", "2", "", "", ""), ("10.0.0.2", "PL", "0", "%", "", "", "", ""),
        ("", "x", "1", "", "", "", "", ""),
    ]),
    ("fe80::1rtmax=1 2001:db8::17rtamax=2ms", [
        ("fe80", "1rtmax", "1", "", "", "", "", ""),
        ("2001:db8::17", "rtamax", "2", "ms", "", "", "", ""),
    ]),
    ("p::a=1 fe80::1pl=3% b=2", [
        ("p", "a", "1", "", "", "", "", ""), ("fe80::1", "pl", "3", "%", "", "", "", ""),
        ("p", "b", "2", "", "", "", "", ""),
    ]),
    # Quotes, units, thresholds
    ("'it''s'=1 \"q\"=2 'a'b'=3", [
        ("", "it''s", "1", "", "", "", "", ""), ("", '"q"', "2", "", "", "", "", ""),
        ("", "a'b", "3", "", "", "", "", ""),
    ]),
    ("a=5kB/s b=5µs c=5%", [
        ("", "a", "5", "kB/s", "", "", "", ""), ("", "b", "5", "µs", "", "", "", ""),
        ("", "c", "5", "%", "", "", "", ""),
    ]),
    ("a=1;10:;:20 b=1;1.5:2,5;a", [
        ("", "a", "1", "", "10:", ":20", "", ""), ("", "b", "1", "", "1.5-2,5", "", "", ""),
    ]),
    ("a=1;;;0;10 b=u;1", [
        ("", "a", "1", "", "", "", "0", "10"), ("", "b", "u", "", "1", "", "", ""),
    ]),
    ("a=foo b=1", [("", "foo b", "1", "", "", "", "", "")]),
    ("a[0]=1 b[1]=2", [("", "a[0]", "1", "", "", "", "", ""), ("", "b[1]", "2", "", "", "", "", "")]),
    ("' a b '=1 it's=2", [
        ("", "a b", "1", "", "", "", "", ""), ("", "it's", "2", "", "", "", "", ""),
    ]),
    ("'h w::a b'=1 c=2", [
        ("h w", "a b", "1", "", "", "", "", ""), ("h w", "c", "2", "", "", "", "", ""),
    ]),
    ("a=1;;3 b=1;1:2:3\nc=1;;;4", [
        ("", "a", "1", "", "", "3", "", ""), ("", "b", "1", "", "1:2:3", "", "", ""),
        ("", "c", "1", "", "", "", "4", ""),
    ]),
    ("a=1 b==2", [("", "a", "1", "", "", "", "", "")]),
    ("[x=1][y=2]a=1 [b]c=2", [
        ("", "a", "1", "", "", "", "", ""), ("", "[b]c", "2", "", "", "", "", ""),
    ]),
    # What is left of the value before goes before the next label.
    ("a=1;2;3;4;5;6 b=2", [
        ("", "a", "1", "", "2", "3", "4", "5"), ("", ";6 b", "2", "", "", "", "", ""),
    ]),
    ("2.2.2.2rtmax=1 ::1rtamax=2", [
        ("", "2.2.2.2rtmax", "1", "", "", "", "", ""), ("::1", "rtamax", "2", "", "", "", "", ""),
    ]),
    ("a=٣ b=1²", [("", "٣ b", "1", "²", "", "", "", "")]),
    ("/=5MB;1;2 /var=6MB", [
        ("", "/", "5", "MB", "1", "2", "", ""), ("", "/var", "6", "MB", "", "", "", ""),
    ]),
]  # fmt: skip


def entry(one: dict[str, str]) -> Entry:
    parent, name, value, unit = (one[part] for part in ("parent", "name", "value", "unit"))
    return (parent, name, value, unit, one["warn"], one["crit"], one["min"], one["max"])


@each(("text", "expected"), TABLE)
def test_entries(text: str, expected: list[Entry]) -> None:
    assert [entry(one) for one in expanded(text)] == expected


def test_the_list_is_all_text_with_the_trimmed_original() -> None:
    first, second = expanded("rta=0.030ms;3000.000;5000.000;0; pl=0%;80;100;;")
    assert first == {
        "crit": "5000.000", "max": "", "min": "0", "name": "rta",
        "orig": "rta=0.030ms;3000.000;5000.000;0;", "parent": "", "unit": "ms", "value": "0.030",
        "warn": "3000.000",
    }  # fmt: skip
    assert list(second) == sorted(second)
    assert second["orig"] == "pl=0%;80;100;;"
    assert [one["value"] for one in expanded("a=1 a=2")] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "prefix", "expected"),
    [
        ("rta=0.030ms;1;2 pl=0%", "", {"rta": 0.03, "rta_unit": "ms", "pl": 0, "pl_unit": "%"}),
        ("pl=20%", "host_", {"host_pl": 20, "host_pl_unit": "%"}),
        ("x::a=1 b=2", "", {"x::a": 1, "x::a_unit": "", "x::b": 2, "x::b_unit": ""}),
        ("x::a=1", "host_", {"host_x::a": 1, "host_x::a_unit": ""}),
        ("10.0.0.1rta=1ms", "", {"10.0.0.1::rta": 1, "10.0.0.1::rta_unit": "ms"}),
        ("a=U", "", {"a": "U", "a_unit": ""}),
        ("a=1 a=2", "", {"a": 1, "a_unit": ""}),
        ("a=0 a=2s", "", {"a": 0, "a_unit": ""}),
        ("a=1ms a_unit=5", "", {"a": 1, "a_unit": "ms"}),
        ("a_unit=5 a=1ms", "", {"a_unit": 5, "a_unit_unit": "", "a": 1}),
        ("'C:\\ used'=80,5%", "", {"C:\\ used": 80.5, "C:\\ used_unit": "%"}),
        ("", "", {}),
        ("nothing here", "host_", {}),
    ],
)
def test_scalar_columns(text: str, prefix: str, expected: dict[str, Any]) -> None:
    assert columns(text, prefix) == expected


def test_the_caller_may_change_what_it_gets() -> None:
    columns("a=1").clear()
    expanded("a=1")[0].clear()
    expanded("a=1").clear()
    assert columns("a=1") == {"a": 1, "a_unit": ""}
    assert expanded("a=1")[0]["name"] == "a"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", 1), ("0.030", 0.03), ("-5", -5), ("-5.5", -5.5), ("+2", 2), ("1e3", 1000.0),
        ("5.", 5.0), (".5", 0.5), ("18446744073709551615", 18446744073709551615),
        ("U", "U"), ("1.2.3", "1.2.3"), ("-", "-"), (".", "."), ("1-2", "1-2"), ("1.5-2", "1.5-2"),
        ("9" * 400 + ".0", "9" * 400 + ".0"), ("1e999", "1e999"),
    ],
)  # fmt: skip
def test_numbers(value: str, expected: object) -> None:
    found = columns(f"x={value}")["x"]
    assert found == expected
    assert type(found) is type(expected)


def test_the_label() -> None:
    assert list(columns("x::a=1 ::b=2")) == ["x::a", "x::a_unit", "b", "b_unit"]


HOSTILE = st.text(alphabet="a1=;:'[]. ,-+eEU%/~@\n\0é°", max_size=60) | st.text(max_size=60)


def expansion(text: str, prefix: str) -> dict[str, object]:
    """All further keys of a row with their values."""
    return dict(zip(*perfdata.expansion(prefix, text), strict=True))


@given(HOSTILE)
def test_any_text_is_read(text: str) -> None:
    entries = expanded(text)
    scalars = columns(text, "p_")
    assert len(entries) <= text.count("=")
    assert all(type(part) is str for one in entries for part in one.values())
    labels = [
        f"{one['parent']}::{one['name']}" if one["parent"] else one["name"] for one in entries
    ]
    assert set(scalars) == {f"p_{label}{end}" for label in labels for end in ("", "_unit")}
    for one in entries:
        assert one["value"]
        assert one["orig"] == one["orig"].strip()


def test_a_comma_and_a_range_in_all_keys_of_a_row() -> None:
    text = "a=1,5;10:20;1:2 a=2"
    found = expansion(text, "")
    assert found["a"] == 1.5
    assert found["perf_data_expanded"] == expanded(text)
    assert expansion("a = 1", "") == {}


def test_the_first_of_equal_keys_counts():
    text = "a=1s a_unit=2 a=3 b_unit=5 b=6s perf_data_expanded=7"
    assert expansion(text, "") == {
        "a": 1, "a_unit": "s", "b_unit": 5, "b_unit_unit": "", "b": 6,
        "perf_data_expanded": expanded(text),
    }  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.text(alphabet="abcé _/", min_size=1).filter(str.strip),
            st.integers() | st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from(["", "s", "ms", "%", "kB/s", "µs"]),
            st.lists(st.integers(0, 99).map(str) | st.just(""), min_size=4, max_size=4),
        ),
        max_size=5,
    )
)
def test_what_plugins_write_reads_back(rows: list[tuple[str, float, str, list[str]]]) -> None:
    text = " ".join(
        f"'{label}'={value}{unit};{';'.join(limits)}" for label, value, unit, limits in rows
    )
    entries = expanded(text)
    assert len(entries) == len(rows)
    for one, (label, value, unit, limits) in zip(entries, rows, strict=True):
        assert (one["name"], one["value"], one["unit"]) == (label.strip(), str(value), unit)
        # Integers are exact as far as answers can hold them.
        number = columns(f"x={one['value']}")["x"]
        assert number == (value if abs(value) < MOST_INTEGER else float(value))
        assert [one["warn"], one["crit"], one["min"], one["max"]] == limits


@pytest.mark.parametrize(
    ("piece", "count"),
    [
        ("a", 0), ("=", 0), ("[", 0), ("[a", 0), ("[a=", 0), ("a=", 0), ("a=x", 0), ("'", 0),
        ("1", 0), (" ", 0), ("a=1;", 50_000), ("a=1[", 50_000), ("a:", 0),
    ],
)  # fmt: skip
def test_long_texts_take_no_longer_than_they_are(piece: str, count: int) -> None:
    # With time that grows as the square this would not end.
    assert len(expanded(piece * 50_000)) == count


def test_a_long_label_and_a_long_value() -> None:
    name, digits = "x" * 50_000, "9" * 50_000
    assert [one["name"] for one in expanded(f"{name}=1")] == [name]
    assert columns(f"a={digits}")["a"] == digits
    assert [one["name"] for one in expanded(f"{'a:' * 25_000}=1")] == ["a:" * 25_000]


SIMPLE = st.lists(
    st.builds(
        "{}={}{}{}{}".format,
        st.sampled_from(
            ["a", "a_unit", "b", "pl", "/x", "1", "10.0.0.1rta", "p::q", "'a b'", "é", "a\t"]
        ),
        st.sampled_from(
            ["1", "1.5", "1,5", "-2", "U", "u", "+3", "1e5", "1.2.3", "01", "99999999999999999999"]
        ),
        st.sampled_from(["", "s", "%", "ms", "kB/s", "µs"]),
        st.lists(st.sampled_from(["", "5", "1:2", "~:9", "@3", "1,5"]), max_size=6)
        .map(";".join)
        .map(lambda one: ";" + one if one else ""),
        st.sampled_from(["", "", "", " ", "x", ";"]),
    ),
    max_size=5,
).map(" ".join)


@given(
    SIMPLE | HOSTILE,
    st.sampled_from(["", "host_"]),
)
def test_the_expansion_is_the_list_and_the_columns(text: str, prefix: str) -> None:
    values = expanded(text)
    whole = {f"{prefix}perf_data_expanded": values} if values else {}
    assert expansion(text, prefix) == {**columns(text, prefix), **whole}


@each(
    "piece",
    ["=", "a=1,", "[a=", "]", "[=]", "-", "é", "aé", "1:", "::", "1e", "x ", "fe80:", "10.0.0."],
)
@each("frame", ["{}", "a=1{}", "{}=1", "a=1[{}", "a=1;{}"])
def test_hostile_texts_are_read_to_their_end(piece: str, frame: str) -> None:
    text = frame.format(piece * (20_000 // len(piece)))
    assert columns(f"{text} [b=c]x=1 z::last=7s")["z::last"] == 7


@given(HOSTILE, HOSTILE)
def test_what_follows_changes_no_value_before_it(text: str, more: str) -> None:
    # Blocks in brackets may begin in the one and end in the other.
    text, more = (one.replace("[", "").replace("]", "") for one in (text, more))
    before = expanded(text + " ")
    assert expanded(f"{text} {more}")[: len(before)] == before
