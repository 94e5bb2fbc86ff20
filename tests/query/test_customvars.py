"""Custom variables: columns and visibility."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.query.column_names import Visibility, variable_columns
from tests.table import each


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
    everything = Visibility(patterns=(), all_visible=True)
    keys, values = variable_columns(everything, prefix, variables)
    assert dict(zip(keys, values, strict=True)) == expected


@each(
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
