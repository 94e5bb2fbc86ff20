"""The log lines for reports and events, and the cores as a source of them.

A report over a year reads more lines than fit into memory, so a source hands them over in slices
and forgets them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from typing import Protocol

from attrs import frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import ProtocolError
from monrest.logs.line import DAY, Texts, in_order
from monrest.logs.reader import Slices, core_slices
from monrest.logs.state_events import TimedLine
from monrest.query.model import CoreFilter, Group, Pushed, Test, joined
from monrest.query.regex import escape, pushability
from monrest.sites.federation.federated_site import openly
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

MOST_LINES = 20_000
"""Lines of a slice, unless a single second has more."""

FEW_HOSTS = 20
"""Hosts up to which a log is asked for their lines alone."""

_LAYOUT: RowTypes = (("time", "time"), ("message", "string"))
_ALERT, _PROGRAM, _STATE = (Test("class", "=", str(number)) for number in (1, 2, 6))
_PATTERNS = {
    (True, False): "HOST (ALERT|STATE|DOWNTIME ALERT)$",
    (False, True): "SERVICE (ALERT|STATE)$|DOWNTIME ALERT$",
    (True, True): "(ALERT|STATE)$",
}
HOST_STATES = ("HOST ALERT", "INITIAL HOST STATE", "CURRENT HOST STATE")
SERVICE_STATES = ("SERVICE ALERT", "INITIAL SERVICE STATE", "CURRENT SERVICE STATE")
_HOST_DOWNTIME, _SERVICE_DOWNTIME = "HOST DOWNTIME ALERT", "SERVICE DOWNTIME ALERT"
_TRANSITIONS = Group("and", (_STATE, Test("message", "~", "TIMEPERIOD TRANSITION")))


@frozen(kw_only=True)
class Wanted:
    """The needed lines, from ``since`` to ``until`` at least (Unix seconds, both included).

    States of ``hosts`` and of ``services``, with downtimes; of the hosts in ``names``, None for
    all. ``program``: starts and stops as well. ``transitions``: changes of time periods and
    nothing else. ``texts``: which of several lines with the same state are needed.
    ``classes``: all lines of these classes, and nothing else; a source yields those that it has
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
    """Returns the log lines of a site; at least those that are wanted, there may be more."""

    def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        """Slices in the order of time; within a second in the order of the log.

        Raise LivestatusError when the site does not answer as it should.
        """
        ...  # the body of a protocol


@frozen
class CoreLog:
    """The lines from the core itself."""

    most: int = MOST_LINES

    async def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        # Starts and stops of the core count for all that see the object.
        site = openly(site)
        await site.verdict()
        assert site.capabilities is not None
        end = wanted.until + 1
        low = wanted.since
        slices = Slices(low, end, now=end, seconds=DAY)
        asked = Pushed(
            table="log",
            columns=("time", "message"),
            filter=core_filter(wanted, site.capabilities),
            waits_long=True,
        )
        async for rows in core_slices(site, asked, _LAYOUT, slices, self.most):
            if rows:
                newest_first = site.capabilities.newest_first
                yield _in_order(rows, low, slices.low, newest_first=newest_first)
            low = slices.low


CORES = CoreLog()
"""The cores themselves, without a cache."""


def one_of(column: str, values: Iterable[object]) -> CoreFilter:
    return Group("or", tuple(Test(column, "=", str(value)) for value in values))


def core_filter(wanted: Wanted, capabilities: Capabilities) -> CoreFilter:
    types = Test("type", "~", _PATTERNS[wanted.hosts, wanted.services])
    return _filter(wanted, types, lambda names: _by_name(names, capabilities))


def cache_filter(wanted: Wanted, *, named: bool) -> CoreFilter:
    """The same lines, of all named hosts; ``named``: the core has a column for them."""
    types = [
        *((_HOST_DOWNTIME, *HOST_STATES) if wanted.hosts else (_HOST_DOWNTIME,)),
        *((_SERVICE_DOWNTIME, *SERVICE_STATES) if wanted.services else ()),
    ]

    def by_name(names: Collection[str]) -> CoreFilter:
        if named:
            return one_of("host_name", sorted(names))
        patterns = (f": {escape(name)};" for name in sorted(names))
        return Group("or", tuple(Test("message", "~", pattern) for pattern in patterns))

    return _filter(wanted, one_of("type", types), by_name)


def _filter(
    wanted: Wanted,
    types: CoreFilter,
    by_name: Callable[[Collection[str]], CoreFilter | None],
) -> CoreFilter:
    if wanted.classes is not None:
        return one_of("class", sorted(wanted.classes))
    if wanted.transitions:
        return _TRANSITIONS
    tests = [Group("or", (_ALERT, _STATE)), types]
    if wanted.names is not None and len(wanted.names) <= FEW_HOSTS:
        named = by_name(wanted.names)
        if named is not None:
            tests.append(named)
    states = Group("and", tuple(tests))
    return Group("or", (states, _PROGRAM)) if wanted.program else states


def _by_name(names: Collection[str], capabilities: Capabilities) -> CoreFilter | None:
    """Lines of these hosts, None where a core might not find a name."""
    if not names or not all(_plain(name) for name in names):
        return None
    if not capabilities.icinga2:
        tests = [Test("host_name", "=", name) for name in sorted(names)]
        return joined("or", tests)
    # There the column is empty in the lines of hosts.
    patterns = [f": {escape(name)};" for name in sorted(names)]
    if any(pushability(pattern, ignore_case=False) != "exact" for pattern in patterns):
        return None
    tests = [Test("message", "~", pattern) for pattern in patterns]
    return joined("or", tests)


def _plain(name: str) -> bool:
    return name == name.strip() and all(
        " " <= letter <= "\uffff" and letter != "\x7f" for letter in name
    )


def _in_order(rows: list[Row], low: int, high: int, *, newest_first: bool) -> list[TimedLine]:
    """Lines by time and, within a second, as they stand in the log."""
    if {int} != {type(row[0]) for row in rows} or {str} != {type(row[1]) for row in rows}:
        raise ProtocolError("a log line without time or text")
    if not all(low <= row[0] < high for row in rows):
        raise ProtocolError("a log line of another time than asked for")
    return in_order([(time, message) for time, message in rows], newest_first=newest_first)
