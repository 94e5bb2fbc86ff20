"""Measured lines as a table, for a terminal and for a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

HEAD = ("what", "ours", "limit", "ratio", "target", "")

MEANINGS = (
    (r"peak memory above idle", "memory that one reader of the largest answer costs"),
    (r"by name, keep-alive", "latency of a small request, against a handler that does nothing"),
    (r"clients, workers =", "throughput of small requests by the number of processes"),
    (r"by name, \d+ clients", "throughput of small requests in one process"),
    (r"with an API key", "what checking an API key costs"),
    (r"straight in one process|^\d+ services, all columns", "the cost of a row without a daemon"),
    (r"all services, (all|three) columns", "a large answer, against reading and parsing rows"),
    (r"clients ask for the same", "identical requests share one query"),
    (r"bytes from the core", "what the daemon adds to a count in the core"),
    (r"^limit=100 sorted.*against", "a page does not depend on the size of the table"),
    (r"p99 of one host", "how long a large answer delays small ones"),
    (r"sites, each|sites, \d+ of", "many sites take as long as one; a dead one adds nothing"),
    (r"slow readers", "clients that do not read cost no memory"),
    (r"bodies", "uploads that never end cost no memory"),
    (r"longest pause", "how long the daemon does not look at its sockets"),
    (r"two workers", "memory of another process"),
    (r"commands in one request", "many commands at once"),
    (r"through a webhook", "the cost of a delivered event"),
    (r"from the command to", "delay of an event"),
    (r"an event of a core that", "delay of an event where a core is asked each second"),
    (r"questions for events", "what a core is asked that cannot wait"),
    (r"client of a stream", "memory of a client that listens"),
    (r"alerts at once to each", "the cost of many events at once"),
    (r"event to each of", "the cost of an event for each client"),
    (r"reloads of a core", "a reload of the core costs no request"),
    (r"^log lines into", "speed of the first import into the log cache"),
    (r"cached lines", "a page of the log cache"),
    (r"count\(\*\) of .* lines in", "counting in the database of the log cache"),
    (r"lines from a core", "memory of a month of log without the log cache"),
    (r"month's availability", "availability from the log cache"),
    (r"^\.\.\. and its memory", "the same, without keeping lines"),
    (r"SLA report", "a report with its PDF"),
    (r"heartbeat", "one round of calls in a cluster"),
    (r"parsing the object files", "reading an object configuration"),
    (r"business processes", "one calculation of all processes"),
    (r"^idle", "memory and start of a daemon without work"),
    (r"processor time of a small", "the cost of a small request without waiting"),
    (r": [\d,]+ services \(", "growth from one site to fifty"),
)  # fmt: skip
"""What a line tells, by a pattern of its ``what``; the first one that is found."""


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


def meaning(what: str) -> str:
    """What a line tells; empty for a line that nobody explained."""
    return next((text for pattern, text in MEANINGS if re.search(pattern, what)), "")


def markdown(lines: Sequence[Line], machine: str) -> str:
    """The table as Markdown, with a line about the machine."""
    head = (*HEAD[:-1], "met", "means")
    rows = [
        head,
        ("---",) * len(head),
        *(
            tuple(cell.replace("|", "\\|") for cell in (*line.cells, meaning(line.what)))
            for line in lines
        ),
    ]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\nMeasured in one run on {machine}; compare ratios, not times.\n"
