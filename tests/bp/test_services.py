"""Rows of services by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.bp.core_rows import SERVICE_COLUMNS, CoreQuestion, CoreRows

NAMES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=8)
QUESTION = CoreQuestion("services", SERVICE_COLUMNS, None)
WIDTH = len(SERVICE_COLUMNS)


def of(host, description, state):
    return [host, description, state, *[0] * (WIDTH - 3)]


@given(NAMES, NAMES)
def test_the_last_row_of_a_pair(first, second):
    live, wanted = CoreRows([QUESTION]), {}
    for site, pairs in (("s1", first), ("s2", second)):
        rows = [of(*pair, at) for at, pair in enumerate(pairs)]
        live.take(QUESTION, site, rows, frozenset())
        wanted |= dict(zip(pairs, rows, strict=True))
        assert all(len(row) == WIDTH + 1 and row[-1] == site for row in rows)
    assert live.services == wanted


@pytest.mark.parametrize("name", [None, 5, ["a"]])
def test_names_that_are_none(name):
    for row in (of(name, "x", 0), of("b", name, 0)):
        with pytest.raises(TypeError):
            CoreRows([QUESTION]).take(QUESTION, "s1", [of("a", "x", 0), row], frozenset())
