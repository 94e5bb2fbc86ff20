"""Rows of services by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.bp.core_rows import Services

NAMES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=8)
WIDTH = 3


@given(NAMES, NAMES)
def test_the_last_row_of_a_pair(first, second):
    services, wanted = Services(), {}
    for site, pairs in (("s1", first), ("s2", second)):
        rows = [[*pair, at] for at, pair in enumerate(pairs)]
        services.add(rows, site, WIDTH)
        wanted |= dict(zip(pairs, rows, strict=True))
        assert all(len(row) == WIDTH + 1 and row[-1] == site for row in rows)
    for pair in {*first, *second, ("q", "q")}:
        assert services.get(pair) is wanted.get(pair)
        assert (pair in services) == (pair in wanted)
    assert sorted(services.values()) == sorted(wanted.values())


@pytest.mark.parametrize("name", [None, 5, ["a"]])
def test_names_that_are_none(name):
    for row in ([name, "x", 0], ["b", name, 0]):
        with pytest.raises(TypeError):
            Services().add([["a", "x", 0], row], "s1", WIDTH)
