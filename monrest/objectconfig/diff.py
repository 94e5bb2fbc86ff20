"""What two texts have in common, line by line: the text of GET /config/diff, and merges.

A plain longest-common-subsequence search takes minutes for a file of 20,000 services, which are
much alike. So equal ends are taken off first, then definitions that occur once on each side are
the fixed points, then lines that do; what is left between two of those is small, or is taken as
changed from its first to its last line.

Rules: docs/spec/objectconfig.md, "Staged changes and the disk".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import accumulate
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
    """Give what ``a`` and ``b`` have in common, in order; neighbours are joined."""
    found: list[CommonLines] = []
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
    a: Sequence[bytes], b: Sequence[bytes], at: int, bt: int, found: list[CommonLines]
) -> None:
    """Match whole definitions, and lines between those that match."""
    first, second = _chunks(a), _chunks(b)
    starts = list(accumulate(map(len, first), initial=at))
    others = list(accumulate(map(len, second), initial=bt))
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


def _between(
    a: Sequence[bytes], b: Sequence[bytes], at: int, bt: int, found: list[CommonLines]
) -> None:
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


def _fixed(a: Sequence[bytes], b: Sequence[bytes], width: int) -> list[CommonLines]:
    """Match the first lines of ``width`` lines that occur once."""
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


def _joined(found: Sequence[CommonLines]) -> list[CommonLines]:
    joined: list[CommonLines] = []
    for i, j, count in found:
        if joined:
            one, other, size = joined[-1]
            if one + size == i and other + size == j:
                joined[-1] = (one, other, size + count)
                continue
        joined.append((i, j, count))
    return joined


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
    """Give the diff with three lines of context; empty when nothing differs.

    None is a file that is not there. ``times``, in nanoseconds since the epoch, are those of
    the file on disk and of the change. ``ignore_whitespace``: lines that differ in white space
    only count as equal, and are shown as they are on disk.
    """
    first, second = split_lines(old or b""), split_lines(new or b"")
    if ignore_whitespace:
        common = matches(
            [_BLANKS.sub(b"", line) for line in first], [_BLANKS.sub(b"", line) for line in second]
        )
    else:
        common = matches(first, second)
    output: list[str] = []
    for hunk in _hunks(common, len(first), len(second)):
        output += _shown(hunk, first, second)
    if not output:
        return ""
    heads = [f"--- {path}\t{_moment(times[0])}\n", f"+++ {path}\t{_moment(times[1])}\n"]
    return "".join([*heads, *output])


def _moment(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} +0000"


ChangedLines = tuple[int, int, int, int]
"""The lines ``[i:j]`` on disk become those of two other numbers in the new text."""


def _hunks(common: Sequence[CommonLines], old: int, new: int) -> Iterator[list[ChangedLines]]:
    """Give the changes, those together whose context touches."""
    hunk: list[ChangedLines] = []
    i = j = 0
    for start, other, count in [*common, (old, new, 0)]:
        if start > i or other > j:
            if hunk and i - hunk[-1][1] > 2 * _CONTEXT:
                yield hunk
                hunk = []
            hunk.append((i, start, j, other))
        i, j = start + count, other + count
    if hunk:
        yield hunk


def _shown(
    hunk: Sequence[ChangedLines], old: Sequence[bytes], new: Sequence[bytes]
) -> Iterator[str]:
    before = min(_CONTEXT, hunk[0][0])
    after = min(_CONTEXT, len(old) - hunk[-1][1])
    removed = _range(hunk[0][0] - before, hunk[-1][1] + after)
    added = _range(hunk[0][2] - before, hunk[-1][3] + after)
    yield f"@@ -{removed} +{added} @@\n"
    place = hunk[0][0] - before
    for i, j, start, end in hunk:
        yield from (_line(" ", line) for line in old[place:i])
        yield from (_line("-", line) for line in old[i:j])
        yield from (_line("+", line) for line in new[start:end])
        place = j
    yield from (_line(" ", line) for line in old[place : place + after])


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
