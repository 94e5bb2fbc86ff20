"""Output and exit of a run: UTF-8 with every locale, and no traceback at the end.

A reader that leaves (``monrest r ... | head``) raises OutputClosedError once, after which the
stream is a hole, so that Python's own flush at exit stays quiet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from io import TextIOWrapper

from monrest.client.exchange import ClientError, plain

FAILED = 1
"""Exit status where something was tried and did not work."""

USAGE = 2
"""Exit status of a wrong command line."""

UNKNOWN = 3
"""Exit status of both for a monitoring core, to which 1 and 2 are states."""


class UsageError(ClientError):
    """The command line is wrong; the text says what was expected."""


class OutputClosedError(Exception):
    """The reader of standard output has stopped reading."""


def prepare() -> None:
    """Make both streams UTF-8; bytes that were no UTF-8 come out as they came in."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")


def write(data: bytes) -> None:
    """Write to standard output; OutputClosedError without a reader, ClientError otherwise."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    except OSError as error:
        raise _failed(error) from None


def write_text(text: str) -> None:
    """Like ``write`` for a text."""
    write(text.encode("utf-8", "surrogateescape"))


def flush() -> None:
    """Hand everything written to the system; same errors as ``write``."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _failed(error) from None


def note(text: str) -> None:
    """Write a line to standard error; a closed one is no reason to fail."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        return


def _failed(error: OSError) -> Exception:
    # What is still in the buffer would fail again at exit.
    with open(os.devnull, "wb") as hole:  # noqa: PTH123  pathlib costs 8 ms at start
        os.dup2(hole.fileno(), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return OutputClosedError()
    return ClientError(f"cannot write to standard output: {error.strerror}")


def aligned(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows below their titles, as aligned columns; what could steer a terminal is taken out."""
    cells = [
        [plain(cell).replace("\n", " ").replace("\t", " ") for cell in row]
        for row in (titles, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in cells
    )
