"""Differences of two texts by lines: the text of GET /config/diff, and merges.

A plain longest-common-subsequence search takes minutes for a file of 20,000 services, which are
much alike: merging changes of half of 1,000 services takes difflib 18 seconds, and this 0.6. So
lines that occur once on each side are the fixed points, what is left between two of those is
small, or is taken as changed from its first to its last line.

``merge3`` of PyPI finds what two sides kept by difflib too, and with the lines found here merges as
``merge`` does; it is under the GPL, which this project is not.

Rules: docs/spec/objectconfig.md, "Staged changes and the disk".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from difflib import Match, SequenceMatcher
from typing import TypeVar

H = TypeVar("H", bound=Hashable)

CommonLines = tuple[int, int, int]
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


def matches(a: Sequence[bytes], b: Sequence[bytes]) -> list[CommonLines]:
    """The common parts of ``a`` and ``b``, in order; neighbours are joined."""
    common: list[CommonLines] = []
    _match(a, b, 0, 0, common)
    return _joined(common)


def _ends(a: Sequence[H], b: Sequence[H]) -> tuple[int, int]:
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return head, tail


def _match(
    a: Sequence[bytes], b: Sequence[bytes], at: int, bt: int, common: list[CommonLines]
) -> None:
    """Match lines: those at the ends, those that occur once, and all where few are left.

    ``a`` and ``b`` begin at ``at`` and ``bt``.
    """
    head, tail = _ends(a, b)
    common.append((at, bt, head))
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    at, bt = at + head, bt + head
    if len(a) * len(b) <= _PRODUCT:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        common.extend((at + i, bt + j, size) for i, j, size in blocks)
    elif fixed := next(filter(None, (_fixed(a, b, width) for width in _WIDTHS)), None):
        i = j = 0
        for start, other, count in [*fixed, (len(a), len(b), 0)]:
            _match(a[i:start], b[j:other], at + i, bt + j, common)
            common.append((at + start, bt + other, count))
            i, j = start + count, other + count
    common.append((at + len(a), bt + len(b), tail))


def _fixed(a: Sequence[bytes], b: Sequence[bytes], width: int) -> list[CommonLines]:
    """The first lines of ``width`` lines that occur once on each side."""
    return _once(
        *(list(zip(*(side[start:] for start in range(width)), strict=False)) for side in (a, b))
    )


def _once(a: Sequence[H], b: Sequence[H]) -> list[CommonLines]:
    """Match what occurs exactly once on each side, as much of it as is in the same order."""
    left, right = Counter(a), Counter(b)
    where = {item: index for index, item in enumerate(b) if right[item] == 1}
    pairs = [
        (index, where[item]) for index, item in enumerate(a) if left[item] == 1 and item in where
    ]
    return _joined([(i, j, 1) for i, j in _rising(pairs)])


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest part of ``pairs`` whose second numbers rise."""
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


def _joined(stretches: Sequence[CommonLines]) -> list[CommonLines]:
    joined: list[CommonLines] = []
    for i, j, count in stretches:
        if joined:
            start, other, size = joined[-1]
            if start + size == i and other + size == j:
                joined[-1] = (start, other, size + count)
                continue
        if count:
            joined.append((i, j, count))
    return joined


class _LineMatcher(SequenceMatcher[bytes]):
    """difflib with the matches of ``matches``: groups of changes with the lines around them."""

    def __init__(self, a: Sequence[bytes], b: Sequence[bytes]) -> None:
        super().__init__(a=(), b=(), autojunk=False)
        # Not by ``set_seqs``, which reads them for difflib's own search.
        self.a, self.b = a, b

    def get_matching_blocks(self) -> list[Match]:
        end = (len(self.a), len(self.b), 0)
        return [Match(*stretch) for stretch in (*matches(self.a, self.b), end)]


_CONTEXT = 3
_BLANKS = re.compile(rb"\s+")
_UNENDED = "\n\\ No newline at end of file\n"


def unified(
    path: str,
    old: bytes | None,
    new: bytes | None,
    times: tuple[int, int],
    *,
    ignore_whitespace: bool = False,
) -> str:
    """Return the diff with three lines of context; empty when nothing differs.

    None is a file that is not there. ``times``, in nanoseconds since the epoch, are those of
    the file on disk and of the change. ``ignore_whitespace``: lines that differ in white space
    only count as equal, and appear as they are on disk.
    """
    first, second = split_lines(old or b""), split_lines(new or b"")
    matcher = _LineMatcher(first, second)
    if ignore_whitespace:
        matcher.a, matcher.b = (
            [_BLANKS.sub(b"", line) for line in lines] for lines in (first, second)
        )
    output: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        _, old_start, _, new_start, _ = group[0]
        _, _, old_end, _, new_end = group[-1]
        output.append(f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n")
        for tag, i, j, start, end in group:
            if tag == "equal":
                output += [_line(" ", line) for line in first[i:j]]
            else:
                output += [_line("-", line) for line in first[i:j]]
                output += [_line("+", line) for line in second[start:end]]
    if not output:
        return ""
    heads = [f"--- {path}\t{_moment(times[0])}\n", f"+++ {path}\t{_moment(times[1])}\n"]
    return "".join([*heads, *output])


def _moment(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} +0000"


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return str(start + 1)
    # An empty range is named by the line before it.
    return f"{start + 1 if count else start},{count}"


def _line(mark: str, line: bytes) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode("latin-1")
    return mark + text if text.endswith("\n") else mark + text + _UNENDED


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
        was = old[place[0] : start[0]]
        ours, others = left[place[1] : start[1]], right[place[2] : start[2]]
        if ours == was:
            merged += others
        elif others in (was, ours):
            merged += ours
        else:
            return None
        merged += old[start[0] : start[0] + count]
        place = (start[0] + count, start[1] + count, start[2] + count)
    return b"".join(merged)


def _common(
    left: Sequence[CommonLines],
    right: Sequence[CommonLines],
    old: Sequence[bytes],
    mine: Sequence[bytes],
    theirs: Sequence[bytes],
) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Return the stretches of ``old`` that both sides kept, and last of all the ends."""
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
