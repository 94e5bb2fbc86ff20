"""Cutting work into pieces of about 64 KiB, so that no call keeps the interpreter for long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from monrest.base.values import Row, RowList

Encoded = TypeVar("Encoded", bytes, memoryview)

PIECE = 65536
"""Wanted size of a piece in bytes."""

FIRST_ROWS = 16
MOST_ROWS = 1000
MOST_FRAGMENTS = 256
GONE: Row = []
"""Stands for a row that was rendered and released; never changed."""


def let_go(rows: RowList) -> Iterator[Row]:
    """Go through ``rows``, and remove them from a list.

    The memory of what was rendered becomes free while the rest is still being written.
    """
    if not isinstance(rows, list):
        yield from rows
        return
    for at, row in enumerate(rows):
        rows[at] = GONE
        yield row


def batches(rows: RowList, encode: Callable[[list[Row]], Encoded]) -> Iterator[Encoded]:
    """Encode ``rows`` in batches whose size follows the size of the bytes that come out.

    ``encode`` gets the rows of one batch, which are released as they are taken.
    """
    left, step = let_go(rows), FIRST_ROWS
    while batch := list(islice(left, step)):
        piece = encode(batch)
        # Growing by four at most: one batch of short rows says little about the next.
        fitting = len(batch) * PIECE // max(1, len(piece))
        step = max(1, min(MOST_ROWS, fitting, step * 4))
        del batch
        yield piece


def gathered(fragments: Iterable[bytes]) -> Iterator[bytes]:
    """Join small fragments into pieces of half of ``PIECE`` and more.

    A piece holds at most ``MOST_FRAGMENTS`` of them.
    """
    waiting: list[bytes] = []
    size = 0
    for fragment in fragments:
        waiting.append(fragment)
        size += len(fragment)
        if size >= PIECE // 2 or len(waiting) >= MOST_FRAGMENTS:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
