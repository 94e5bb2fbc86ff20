"""Rows of services by name, found by where they stood before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.bp.core_rows import NOWHERE, Services

NAMES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=8)
WIDTH = 3


def settled(rows, known=NOWHERE):
    services = Services(known)
    services.add(rows, "s1", WIDTH)
    for _ in services.settle():
        pass
    return services


@given(NAMES, NAMES, st.sets(st.integers(0, 7)))
def test_the_last_row_of_a_pair_whatever_was_before(before, after, kept):
    """Like a dictionary of the rows, however the places of another answer look."""
    rows = [[*pair, at] for at, pair in enumerate(before)]
    known = settled(rows).places
    wanted = {pair: [*pair, at + 100] for at, pair in enumerate(after)}
    given = [[*pair, at + 100] for at, pair in enumerate(after)]
    for at in kept:
        # What a site has said in the same words is the same object.
        if at < min(len(before), len(after)) and before[at] == after[at]:
            given[at] = rows[at]
    wanted = {pair: given[at] for at, pair in enumerate(after)}
    services = settled(given, known)
    for pair in {*before, *after, ("q", "q")}:
        assert services.get(pair) is wanted.get(pair)
        assert (pair in services) == (pair in wanted)
    assert sorted(services.values()) == sorted(wanted.values())
    assert (services.places.of is known.of) == (before == after)
    assert all(len(row) == WIDTH + 1 and row[-1] == "s1" for row in given)


@pytest.mark.parametrize("name", [None, 5, ["a"]])
def test_names_that_are_none(name):
    known = settled([["a", "x", 0], ["b", "x", 0]]).places
    for row in ([name, "x", 0], ["b", name, 0]):
        with pytest.raises(TypeError):
            settled([["a", "x", 0], row], known)
