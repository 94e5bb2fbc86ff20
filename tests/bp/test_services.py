"""Rows of services by name, found by where they stood before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monrest.bp.services import NOWHERE, Services

NAMES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=8)


def settled(pairs, known=NOWHERE, value=0):
    services = Services()
    services.add([[*pair, at + value] for at, pair in enumerate(pairs)])
    for _ in services.settle(known):
        pass
    return services


@given(NAMES, NAMES)
def test_the_last_row_of_a_pair_whatever_was_before(before, after):
    """Like a dictionary of the rows, however the places of another answer look."""
    known = settled(before).places
    services = settled(after, known, 100)
    wanted = {pair: [*pair, at + 100] for at, pair in enumerate(after)}
    for pair in {*before, *after, ("q", "q")}:
        assert services.get(pair) == wanted.get(pair)
        assert (pair in services) == (pair in wanted)
    assert sorted(services.values()) == sorted(wanted.values())
    assert (services.places is known) == (before == after)
