"""Which lines two texts have in common: what a diff and a merge are made of.

A plain longest-common-subsequence search takes minutes for a file of 20,000 services, which are
much alike. So equal ends are taken off first, then definitions that occur once on each side are
the fixed points, then lines that do; what is left between two of those is small, or is taken as
changed from its first to its last line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

H = TypeVar("H", bound=Hashable)

Match = tuple[int, int, int]
"""``(i, j, n)``: the ``n`` lines from ``i`` on one side are those from ``j`` on the other."""

_PRODUCT = 250_000
"""Two stretches are searched line by line when the product of their lengths is not above."""

_WIDTHS = (1, 2, 3)
# The host of a service occurs often, its description too, one after the other only once.


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their ends; only a line feed ends one. The last one may have none."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def matches(a: Sequence[bytes], b: Sequence[bytes]) -> list[Match]:
    """Give what ``a`` and ``b`` have in common, in order; neighbours are joined."""
    found: list[Match] = []
    head, tail = _ends(a, b)
    if head:
        found.append((0, 0, head))
    _definitions(a[head : len(a) - tail], b[head : len(b) - tail], head, head, found)
    if tail:
        found.append((len(a) - tail, len(b) - tail, tail))
    return _joined(found)


def _ends(a: Sequence[H], b: Sequence[H]) -> tuple[int, int]:
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return head, tail


def _definitions(
    a: Sequence[bytes], b: Sequence[bytes], at: int, bt: int, found: list[Match]
) -> None:
    """Match whole definitions, and lines between those that match."""
    first, second = _chunks(a), _chunks(b)
    starts, others = _starts(first, at), _starts(second, bt)
    i = j = 0
    for one, other, count in [*_once(first, second), (len(first), len(second), 0)]:
        _between(
            a[starts[i] - at : starts[one] - at],
            b[others[j] - bt : others[other] - bt],
            starts[i],
            others[j],
            found,
        )
        i, j = one + count, other + count
        if count:
            found.append((starts[one], others[other], starts[i] - starts[one]))


def _chunks(lines: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Cut before each line that begins a definition, disabled ones included."""
    cuts = [
        index for index, line in enumerate(lines) if line.lstrip(b" \t#;").startswith(b"define")
    ]
    return [
        tuple(lines[start:end])
        for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True)
        if end > start
    ]


def _starts(chunks: Sequence[tuple[bytes, ...]], start: int) -> list[int]:
    starts = [start]
    for chunk in chunks:
        starts.append(starts[-1] + len(chunk))
    return starts


def _between(a: Sequence[bytes], b: Sequence[bytes], at: int, bt: int, found: list[Match]) -> None:
    """Match lines: those at the ends, those that occur once, and all where little is left."""
    if not a or not b:
        return
    head, tail = _ends(a, b)
    if head:
        found.append((at, bt, head))
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    at, bt = at + head, bt + head
    if len(a) * len(b) <= _PRODUCT:
        found.extend(
            (at + i, bt + j, size)
            for i, j, size in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
            if size
        )
    elif fixed := next(filter(None, (_fixed(a, b, width) for width in _WIDTHS)), None):
        i = j = 0
        for one, other, count in [*fixed, (len(a), len(b), 0)]:
            _between(a[i:one], b[j:other], at + i, bt + j, found)
            i, j = one + count, other + count
            if count:
                found.append((at + one, bt + other, count))
    if tail:
        found.append((at + len(a), bt + len(b), tail))


def _fixed(a: Sequence[bytes], b: Sequence[bytes], width: int) -> list[Match]:
    """Match the first lines of ``width`` lines that occur once."""
    return _once(
        *(list(zip(*(side[start:] for start in range(width)), strict=False)) for side in (a, b))
    )


def _once(a: Sequence[H], b: Sequence[H]) -> list[Match]:
    """Match what occurs exactly once on each side, as much of it as is in the same order."""
    left, right = Counter(a), Counter(b)
    where = {item: index for index, item in enumerate(b) if right[item] == 1}
    pairs = [
        (index, where[item]) for index, item in enumerate(a) if left[item] == 1 and item in where
    ]
    return _joined([(i, j, 1) for i, j in _rising(pairs)])


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give a longest part of ``pairs`` whose second numbers rise."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(ends, j)
        before.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [j]
        last[place : place + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _joined(found: Sequence[Match]) -> list[Match]:
    joined: list[Match] = []
    for i, j, count in found:
        if joined:
            one, other, size = joined[-1]
            if one + size == i and other + size == j:
                joined[-1] = (one, other, size + count)
                continue
        joined.append((i, j, count))
    return joined
