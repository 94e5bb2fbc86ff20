"""Merging two changes of one text: what one side changed, what both did alike, or a conflict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.objectconfig import diff
from monrest.objectconfig.diff import matches, merge, split_lines

LINES = st.lists(
    st.sampled_from([b"define host {\n", b"  a\n", b"  b\n", b"}\n", b"\n", b"#define x {\n"]),
    max_size=30,
)
TEXTS = st.builds(lambda parts, end: b"".join(parts) + end, LINES, st.sampled_from([b"", b"x"]))


def text(*words):
    return b"".join(word.encode() + b"\n" for word in words)


BASE = text("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (text("a", "B", "c", "d", "e"), BASE, text("a", "B", "c", "d", "e")),
        (BASE, text("a", "b", "c", "d"), text("a", "b", "c", "d")),
        (
            text("A", "b", "c", "d", "e"),
            text("a", "b", "c", "d", "E"),
            text("A", "b", "c", "d", "E"),
        ),
        (
            text("b", "c", "d", "e"),
            text("a", "b", "c", "d", "e", "f"),
            text("b", "c", "d", "e", "f"),
        ),
        (
            text("a", "x", "b", "c", "d", "e"),
            text("a", "b", "c", "e"),
            text("a", "x", "b", "c", "e"),
        ),
        (
            text("a", "b", "x", "d", "e"),
            text("a", "b", "x", "d", "e"),
            text("a", "b", "x", "d", "e"),
        ),
        # The same change, and another one of each.
        (
            text("A", "b", "X", "d", "e"),
            text("a", "b", "X", "d", "E"),
            text("A", "b", "X", "d", "E"),
        ),
        (text("a", "X", "c", "d", "e"), text("a", "Y", "c", "d", "e"), None),
        (text("a", "c", "d", "e"), text("a", "Y", "c", "d", "e"), None),
        # Next to each other: nobody knows whether they belong together.
        (text("a", "B", "c", "d", "e"), text("a", "b", "C", "d", "e"), None),
        # Both added at the end: nobody knows in which order.
        (BASE + b"x\n", BASE + b"y\n", None),
        (b"", text("a", "b", "c", "d", "E"), None),
    ],
)
def test_merges(mine, theirs, expected):
    assert merge(BASE, mine, theirs) == expected
    assert merge(BASE, theirs, mine) == expected


def test_line_ends_count():
    assert merge(b"a\nb\nc\n", b"a\r\nb\nc\n", b"a\nb\nC\n") == b"a\r\nb\nC\n"
    assert merge(b"a\nb\nc", b"A\nb\nc", b"a\nb\nc\n") == b"A\nb\nc\n"


@given(base=TEXTS, mine=TEXTS, theirs=TEXTS)
def test_a_side_that_changed_nothing_takes_the_other(base, mine, theirs):
    assert merge(base, mine, base) == mine
    assert merge(base, base, theirs) == theirs
    assert merge(base, mine, mine) == mine
    assert merge(base, mine, theirs) == merge(base, theirs, mine)


@given(
    st.lists(st.sampled_from(["mine", "theirs", "both", "neither"]), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_changes_apart_from_each_other_all_arrive(changes, random):
    """Every second line stays, each of the others is changed, removed or gets a neighbour."""
    sides = {"base": [], "mine": [], "theirs": [], "merged": []}
    for number, who in enumerate(changes):
        old = [f"old {number}\n"]
        new = random.choice([[], [f"new {number}\n"], [*old, f"more {number}\n"]])
        for side, found in sides.items():
            changed = {"base": False, "merged": who != "neither"}.get(side, who in (side, "both"))
            found += [*(new if changed else old), f"kept {number}\n"]
    base, mine, theirs, merged = ("".join(part).encode() for part in sides.values())
    assert merge(base, mine, theirs) == merged


def check(first, second):
    found = matches(first, second)
    i = j = 0
    for start, other, count in found:
        assert count > 0
        assert start >= i
        assert other >= j
        assert first[start : start + count] == second[other : other + count]
        i, j = start + count, other + count
    assert i <= len(first)
    assert j <= len(second)
    return found


@given(first=LINES, second=LINES, product=st.sampled_from([0, 4, 250_000]))
def test_what_two_texts_have_in_common_is_in_both_in_order(first, second, product):
    before, diff._PRODUCT = diff._PRODUCT, product
    try:
        check(first, second)
    finally:
        diff._PRODUCT = before


def test_services_that_are_much_alike_are_told_apart():
    def definition(host, number):
        return split_lines(
            f"define service {{\n  service_description s{number}\n  host_name h{host}\n"
            "  use generic\n}\n\n".encode()
        )

    first = [line for host in range(60) for n in range(20) for line in definition(host, n)]
    second = [line.replace(b"use generic", b"use other") for line in first]
    found = check(first, second)
    assert sum(count for *_, count in found) == len(first) - 1200
