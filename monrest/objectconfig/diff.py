"""The text of GET /config/diff: a unified diff of one file (docs/spec/objectconfig.md, "Diff")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from monrest.objectconfig.lines import Match, matches, split_lines

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


Change = tuple[int, int, int, int]
"""The lines ``[i:j]`` on disk become those of two other numbers in the new text."""


def _hunks(common: Sequence[Match], old: int, new: int) -> Iterator[list[Change]]:
    """Give the changes, those together whose context touches."""
    hunk: list[Change] = []
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


def _shown(hunk: Sequence[Change], old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[str]:
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
