"""Custom variables: shapes, columns and visibility (query-engine.md, section 12)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.query.customvars import Visibility, columns, normalise

NAMES = st.text(alphabet="ABab_é", min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("value", "names", "values", "expected"),
    [
        ({"WORKER": "local"}, (), (), {"WORKER": "local"}),
        ([["WORKER", "local"], ["NUM", "10"]], (), (), {"WORKER": "local", "NUM": "10"}),
        (None, ["A", "B"], ["1", "2"], {"A": "1", "B": "2"}),
        ({}, ["A"], ["1"], {"A": "1"}),
        ([], ["A"], ["1"], {"A": "1"}),
        ({"A": "dict"}, ["A"], ["list"], {"A": "dict"}),
        ({"worker": "local"}, (), (), {"worker": "local"}),
        ({"n": 5, "f": 5.0, "b": True, "none": None}, (), (), {"n": "5", "f": "5", "b": "1", "none": ""}),
        ({"list": ["a", "b"], "dict": {"k": 1}}, (), (), {"list": "a,b", "dict": '{"k":1}'}),
        ([["A"], "junk", [], ["B", "1", "more"]], (), (), {"A": "", "B": "1"}),
        ({"": "nameless"}, (), (), {}),
        (None, ["A", "B"], ["1"], {"A": "1"}),
        ("text", None, None, {}),
        (5, (), (), {}),
    ],
)  # fmt: skip
def test_every_shape_becomes_names_and_texts(
    value: Any, names: Any, values: Any, expected: dict[str, str]
) -> None:
    assert normalise(value, names, values) == expected


@given(st.dictionaries(NAMES, st.text(max_size=5)))
def test_all_shapes_say_the_same(variables: dict[str, str]) -> None:
    pairs = [list(pair) for pair in variables.items()]
    assert normalise(variables) == variables
    assert normalise(pairs) == variables
    assert normalise(None, list(variables), list(variables.values())) == variables
    assert list(normalise(pairs)) == list(variables)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)))  # fmt: skip
def test_whatever_a_core_sends_is_read(value: Any) -> None:
    for name, one in normalise(value).items():
        assert name
        assert isinstance(one, str)


@pytest.mark.parametrize(
    ("variables", "prefix", "expected"),
    [
        ({"WORKER": "local", "num": "10"}, "_", {"_WORKER": "local", "_NUM": "10"}),
        ({"WORKER": "local"}, "_HOST", {"_HOSTWORKER": "local"}),
        ({}, "_", {}),
        ({"worker": "a", "WORKER": "b", "Worker": "c"}, "_", {"_WORKER": "b"}),
        ({"worker": "a", "Worker": "c"}, "_", {"_WORKER": "a"}),
    ],
)
def test_columns(variables: dict[str, str], prefix: str, expected: dict[str, str]) -> None:
    assert columns(variables, prefix) == expected


@pytest.mark.parametrize(
    ("patterns", "name", "host", "expected"),
    [
        (("_WORKER",), "WORKER", False, True),
        (("WORKER",), "WORKER", False, True),
        (("worker",), "WORKER", False, True),
        (("WORKER",), "worker", False, True),
        (("_WORKER",), "WORKER", True, False),
        (("_HOSTWORKER",), "WORKER", True, True),
        (("HOSTWORKER",), "WORKER", True, True),
        (("_HOST*",), "WORKER", True, True),
        (("_HOSTW*",), "WORKER", True, True),
        (("_HOSTX*",), "WORKER", True, False),
        (("*",), "WORKER", True, False),
        (("*WORKER",), "WORKER", True, False),
        (("*",), "WORKER", False, True),
        (("_*",), "WORKER", False, True),
        (("W*R",), "WORKER", False, True),
        (("W*K*R",), "WORKER", False, True),
        (("W*E*K",), "WORKER", False, False),
        (("WORK",), "WORKER", False, False),
        (("A", "B", "W*"), "WORKER", False, True),
        ((), "WORKER", False, False),
        (("WO?KER", "W[O]RKER", "W.*"), "WORKER", False, False),
        (("AB*BA",), "ABA", False, False),
    ],
)
def test_visibility(patterns: tuple[str, ...], name: str, host: bool, expected: bool) -> None:
    view = Visibility(patterns=patterns, all_visible=False)
    assert view.visible(name, host=host) is expected
    assert view.filter({name: "x", "OTHER": "y"}, host=host).get(name) == (
        "x" if expected else None
    )


def test_who_sees_everything_gets_a_copy() -> None:
    variables = {"A": "1"}
    view = Visibility(patterns=(), all_visible=True)
    assert view.visible("A")
    assert view.visible("A", host=True)
    shown = view.filter(variables, True)
    assert shown == variables
    assert shown is not variables


@given(st.text(alphabet="AB*", max_size=8), st.text(alphabet="AB", min_size=1, max_size=8))
def test_stars_stand_for_anything(pattern: str, name: str) -> None:
    assert Visibility(patterns=(pattern,)).visible(name) is fnmatchcase(name, pattern)
    hosts = Visibility(patterns=(f"_HOST{pattern}",))
    assert hosts.visible(name, host=True) is fnmatchcase(name, pattern)
