"""Joining two changes of one file: a clean merge of lines or a conflict, never a guess."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monrest.objectconfig.lines import Match, matches, split_lines


def merge(base: bytes, mine: bytes, theirs: bytes) -> bytes | None:
    """Apply to ``theirs`` what was changed from ``base`` to ``mine``; None is a conflict.

    Lines that only one side changed are taken from it, lines that both changed alike as well.
    Where both changed the same lines, or lines next to each other, it is a conflict.
    """
    if mine in (base, theirs):
        return theirs
    if theirs == base:
        return mine
    old, left, right = split_lines(base), split_lines(mine), split_lines(theirs)
    merged: list[bytes] = []
    place = (0, 0, 0)
    for start, count in _common(matches(old, left), matches(old, right), old, left, right):
        piece = _piece(
            old[place[0] : start[0]], left[place[1] : start[1]], right[place[2] : start[2]]
        )
        if piece is None:
            return None
        merged += piece
        merged += old[start[0] : start[0] + count]
        place = (start[0] + count, start[1] + count, start[2] + count)
    return b"".join(merged)


def _piece(
    old: Sequence[bytes], left: Sequence[bytes], right: Sequence[bytes]
) -> Sequence[bytes] | None:
    if left == old:
        return right
    if right in (old, left):
        return left
    return None


def _common(
    left: Sequence[Match],
    right: Sequence[Match],
    old: Sequence[bytes],
    mine: Sequence[bytes],
    theirs: Sequence[bytes],
) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Give the stretches of ``old`` that both sides kept, and last of all the ends."""
    i = j = 0
    while i < len(left) and j < len(right):
        first, second = left[i], right[j]
        start = max(first[0], second[0])
        ends = first[0] + first[2], second[0] + second[2]
        if start < min(ends):
            here = (start, first[1] + start - first[0], second[1] + start - second[0])
            yield here, min(ends) - start
        if ends[0] <= ends[1]:
            i += 1
        if ends[1] <= ends[0]:
            j += 1
    yield (len(old), len(mine), len(theirs)), 0
