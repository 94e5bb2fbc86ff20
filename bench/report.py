"""Measured lines as a table, for a terminal and for a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

HEAD = ("what", "ours", "limit", "ratio", "target", "")


@frozen(kw_only=True)
class Line:
    """One measured line.

    ``ours`` and ``limit`` are texts with units, ``ratio`` what is compared with the target, and
    ``met`` whether it keeps to it.
    """

    what: str
    ours: str
    limit: str
    ratio: str
    target: str
    met: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells in the order of ``HEAD``."""
        verdict = "ok" if self.met else "MISSED"
        return self.what, self.ours, self.limit, self.ratio, self.target, verdict


def milliseconds(seconds: float) -> str:
    """Seconds as text in milliseconds, as exact as the size makes sense."""
    value = seconds * 1000
    return f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms"


def times(what: str, ours: float, limit: float, most: float, *, beside: str = "") -> Line:
    """A line whose target is ``ours`` at most ``most`` times ``limit``, both in seconds."""
    ratio = ours / limit
    return Line(
        what=what,
        ours=milliseconds(ours),
        limit=milliseconds(limit) + beside,
        ratio=f"{ratio:.2f}x",
        target=f"<= {most:g}x",
        met=ratio <= most,
    )


def plain(lines: Sequence[Line]) -> str:
    """The table for a terminal."""
    rows = [HEAD, *(line.cells for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    written = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows
    ]
    written.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in written)


def markdown(lines: Sequence[Line], machine: str) -> str:
    """The table as Markdown, with a line about the machine."""
    rows = [
        HEAD,
        ("---",) * len(HEAD),
        *(tuple(cell.replace("|", "\\|") for cell in line.cells) for line in lines),
    ]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\nMeasured in one run on {machine}; compare ratios, not times.\n"
