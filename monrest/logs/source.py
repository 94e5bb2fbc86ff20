"""Where log lines come from: slices of some seconds, the oldest first, one after the other.

A report over a year reads more lines than fit into memory, so a source hands them over in slices
and forgets them. The cores themselves are one source.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

from attrs import frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import ProtocolError
from monrest.logs.line import DAY, Texts, in_order
from monrest.logs.state_events import TimedLine
from monrest.query.model import CoreFilter, Group, Pushed, Test, joined
from monrest.query.portable import pushability
from monrest.query.regex import escape
from monrest.sites.federation.federated_site import openly
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

MOST_LINES = 20_000
"""Lines of a slice, unless a single second has more."""

_LONGEST_SLICE = 1 << 31
FEW_HOSTS = 20
"""Hosts up to which a log is asked for their lines alone."""

_LAYOUT: RowTypes = (("time", "time"), ("message", "string"))
_ALERT, _PROGRAM, _STATE = (Test("class", "=", str(number)) for number in (1, 2, 6))
_TYPES = {
    (True, False): "HOST (ALERT|STATE|DOWNTIME ALERT)$",
    (False, True): "SERVICE (ALERT|STATE)$|DOWNTIME ALERT$",
    (True, True): "(ALERT|STATE)$",
}
_TRANSITIONS = Group("and", (_STATE, Test("message", "~", "TIMEPERIOD TRANSITION")))


@frozen(kw_only=True)
class Wanted:
    """Which lines, at least: from ``since`` to ``until`` (Unix seconds, both included).

    States of ``hosts`` and of ``services``, with downtimes; of the hosts in ``names``, None for
    all. ``program``: starts and stops as well. ``transitions``: changes of time periods and
    nothing else. ``texts`` says which of several lines that tell the same state are needed.
    ``classes``: all lines of these classes, and nothing else; a source tells what it has of them
    before it fails.
    """

    since: int
    until: int
    hosts: bool = True
    services: bool = True
    names: frozenset[str] | None = None
    program: bool = False
    transitions: bool = False
    texts: Texts = "none"
    classes: frozenset[int] | None = None


class LogSource(Protocol):
    """Gives the log lines of a site; at least those that are wanted, there may be more."""

    def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        """Slices in the order of time; within a second in the order of the log.

        Raise LivestatusError when the site does not answer as it should.
        """
        ...  # the body of a protocol


@frozen
class CoreLog:
    """The lines from the core itself, which is asked for one slice at a time.

    Slices shrink where a core has many lines and grow where it has few.
    """

    most: int = MOST_LINES

    async def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        # Starts and stops of the core count for all that see the object.
        site, low, seconds = openly(site), wanted.since, DAY
        await site.verdict()
        assert site.capabilities is not None
        chosen = _chosen(wanted, site.capabilities)
        while low <= wanted.until:
            high = min(low + seconds - 1, wanted.until)
            limit = self.most + 1 if high > low else None
            asked = _pushed(low, high, chosen, limit, site.capabilities)
            with site.memory.room.turn() as share:
                rows = await site.ask(asked, _LAYOUT, share)
                if limit is not None and len(rows) >= limit:
                    seconds = max(1, (high - low + 1) // 4)
                    continue
                if rows:
                    yield _in_order(rows, low, high, newest_first=site.capabilities.newest_first)
            low = high + 1
            if len(rows) <= self.most // 4:
                seconds = min(seconds * 2, _LONGEST_SLICE)


CORES = CoreLog()
"""The cores themselves, without a cache."""


def lines_from(low: int, capabilities: Capabilities, *end: Test) -> tuple[Test, ...]:
    """The conditions for lines from ``low`` on up to an ``end``; others of the time go before."""
    tests = (Test("time", ">=", str(low)), *end)
    if not capabilities.icinga2:
        return tests
    # Files are chosen by their first line against the last lower bound of the query.
    return *tests, Test("time", ">=", str(max(0, low - DAY)))


def _pushed(
    low: int, high: int, chosen: CoreFilter, limit: int | None, capabilities: Capabilities
) -> Pushed:
    times = lines_from(low, capabilities, Test("time", "<=", str(high)))
    return Pushed(
        table="log",
        columns=("time", "message"),
        filter=Group("and", (*times, chosen)),
        limit=limit,
        waits_long=True,
    )


def _chosen(wanted: Wanted, capabilities: Capabilities) -> CoreFilter:
    if wanted.classes is not None:
        return Group("or", tuple(Test("class", "=", str(one)) for one in sorted(wanted.classes)))
    if wanted.transitions:
        return _TRANSITIONS
    tests: list[CoreFilter] = [
        Group("or", (_ALERT, _STATE)),
        Test("type", "~", _TYPES[wanted.hosts, wanted.services]),
    ]
    if wanted.names is not None and len(wanted.names) <= FEW_HOSTS:
        by_name = _by_name(wanted.names, capabilities)
        if by_name is not None:
            tests.append(by_name)
    states = Group("and", tuple(tests))
    return Group("or", (states, _PROGRAM)) if wanted.program else states


def _by_name(names: Collection[str], capabilities: Capabilities) -> CoreFilter | None:
    """Lines of these hosts, None where a core might not find a name."""
    if not names or not all(_plain(name) for name in names):
        return None
    if not capabilities.icinga2:
        found = [Test("host_name", "=", name) for name in sorted(names)]
        return joined("or", found)
    # There the column is empty in the lines of hosts.
    patterns = [f": {escape(name)};" for name in sorted(names)]
    if any(pushability(one, ignore_case=False) != "exact" for one in patterns):
        return None
    found = [Test("message", "~", one) for one in patterns]
    return joined("or", found)


def _plain(name: str) -> bool:
    return name == name.strip() and all(" " <= one <= "\uffff" and one != "\x7f" for one in name)


def _in_order(rows: list[Row], low: int, high: int, *, newest_first: bool) -> list[TimedLine]:
    """Lines by time and, within a second, as they stand in the log."""
    if {int} != {type(row[0]) for row in rows} or {str} != {type(row[1]) for row in rows}:
        raise ProtocolError("a log line without time or text")
    if not all(low <= row[0] <= high for row in rows):
        raise ProtocolError("a log line of another time than asked for")
    return in_order([(time, message) for time, message in rows], newest_first=newest_first)
