"""One request to an LMD for many of its sites (docs/spec/lmd.md, "Requests").

What is asked of each of them in one turn is asked together: rows carry the id of their site, and
order and limit count over all sites as they would over the rows put one behind the other. Each
site gets its own rows, in the order in which they came, or why it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import orjson
from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.errors import BrokenRowsError, ClientLeftError
from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    NoHeaderError,
    ProtocolError,
    RefusedError,
    first_line,
)
from monrest.livestatus.framing import RowParser, Transform, checked, parse_object, parse_rows
from monrest.livestatus.inbox import Inbox, StoredRows
from monrest.livestatus.lql import build
from monrest.livestatus.pool import CoreRequest, Pool
from monrest.query.model import CoreFilter, Group, Pushed, columns_of
from monrest.sites.normalise import RowTypes, normaliser, with_companions
from monrest.sites.transport import BehindRelayError

KEY = "peer_key"
MOST_LINES = 1000
"""Conditions of one request."""

_BAD_REQUEST = 400
_BEFORE = b'{"data":'


def lmd_question(
    pushed: Pushed, capabilities: Capabilities, layout: RowTypes | None
) -> CoreRequest:
    """The request; raise BadRequest if a value cannot be sent."""
    if layout is not None and not pushed.stats:
        companions = with_companions(pushed.table, pushed.columns, capabilities)
        pushed = evolve(pushed, columns=companions)
    groups = len(pushed.columns)
    asked = evolve(pushed, columns=(*pushed.columns, KEY))
    if pushed.sort and pushed.table != "log":
        keys = pushed.sort
        sort = (*keys[: pushed.own_keys], (KEY, False), *keys[pushed.own_keys :])
        asked = evolve(asked, sort=sort)
    width = groups + len(pushed.stats)
    if pushed.stats:
        types = capabilities.tables.get(pushed.table, {})
        numbers = tuple(at for at, name in enumerate(pushed.columns) if types[name] != "string")
        transform: Transform | None = Numbers(groups, numbers)
    else:
        transform = (
            None if layout is None
            else normaliser(pushed.table, pushed.columns, capabilities, layout)
        )  # fmt: skip
    first, *further = (build(part, capabilities) for part in _parts(asked))
    return CoreRequest(
        *(first, width, transform, pushed.waits_long), key_at=groups, further=tuple(further)
    )


def _parts(asked: Pushed) -> list[Pushed]:
    """The same question in parts that are short enough: each has some of the alternatives.

    What counts or cuts off cannot be put together again, and is left as it is.
    """
    lines = _count(asked.filter)
    if lines <= MOST_LINES or asked.stats or asked.limit is not None or asked.filter is None:
        return [asked]
    whole = asked.filter
    conditions = whole.items if isinstance(whole, Group) and whole.connector == "and" else (whole,)
    longest = max(conditions, key=_count)
    if not isinstance(longest, Group):
        return [asked]
    others = tuple(condition for condition in conditions if condition is not longest)
    room = MOST_LINES - (lines - _count(longest))
    portions: list[list[CoreFilter]] = []
    left = -1
    for item in longest.items:
        count = _count(item)
        if count > left:
            portions.append([])
            left = room
        portions[-1].append(item)
        left -= count
    return [
        evolve(asked, filter=Group("and", (*others, Group("or", tuple(portion)))))
        for portion in portions
    ]


def _count(tree: CoreFilter | None) -> int:
    return sum(1 for _ in columns_of(tree))


@frozen
class Numbers:
    """Makes numbers of what is one in rows of Stats: values of groups come as texts.

    The ``groups`` stand first; ``among`` them those at these places are numbers.
    """

    groups: int
    among: tuple[int, ...]

    def __call__(self, rows: list[Row]) -> list[Row]:
        for row in rows:
            for at in self.among:
                row[at] = _number(row[at])
            for at in range(self.groups, len(row)):
                row[at] = _number(row[at])
        return rows


def _number(value: object) -> int | float:
    if value is None:
        return 0
    try:
        number = float(value) if isinstance(value, (str, int, float)) else None
    except ValueError:
        number = None
    if number is None:
        raise ProtocolError("a statistic is not a number")
    return int(number) if number.is_integer() else number


class WrappedRows(list[Row]):
    """Rows, with the sites that ``failed`` and why."""

    failed: Mapping[str, str] = {}


class WrappedParser(RowParser):
    """Rows of one body; what ``finish`` returns are WrappedRows."""

    def __init__(self, width: int | None) -> None:
        super().__init__(width)
        self._inside = False

    def feed(self, data: bytes) -> None:
        if not self._inside:
            data = bytes(self._buffer) + data
            self._buffer = bytearray()
            if len(data) < len(_BEFORE):
                self._buffer += data
                return
            if not data.startswith(_BEFORE):
                raise ProtocolError("an answer that is not wrapped")
            data, self._inside = data[len(_BEFORE) :], True
        super().feed(data)

    def finish(self) -> WrappedRows:
        whole = parse_object(_BEFORE + self._buffer)
        failed = whole.get("failed") or {}
        if not isinstance(failed, dict):
            raise ProtocolError("no list of failed sites")
        rows = WrappedRows(self.taken() + checked(whole.get("data"), self._width, None))
        rows.failed = {str(site): first_line(str(text)) for site, text in failed.items()}
        return rows


class _Lines:
    """Parses the rows of one site of a large joint answer: each line is a JSON list of some."""

    def __init__(self) -> None:
        self._buffer = b""
        self._rows: list[Row] = []

    def feed(self, data: bytes) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._rows += parse_rows(line)

    def taken(self) -> list[Row]:
        rows, self._rows = self._rows, []
        return rows

    finish = taken


@define(eq=False)
class SiteShare:
    """The part of one site in a joint answer."""

    site: str
    asked: CoreRequest
    done: Deferred[list[Row]] = field(init=False)
    rows: list[Row] = field(factory=list)

    def drop(self) -> None:
        """Forget all rows, also those of an answer before."""
        self.rows = []
        if self.asked.stored is not None:
            self.asked.stored.begin_as(_Lines)

    def own_rows(self, rows: list[Row]) -> list[Row]:
        """The wanted rows out of those that were sent, without the id of the site."""
        return rows if self.asked.transform is None else self.asked.transform(rows)


@define(eq=False)
class JointQuery:
    """One request for ``shares``, until it is sent and while it runs."""

    shares: dict[str, SiteShare] = field(factory=dict)
    running: Deferred[dict[str, str]] | None = None

    @property
    def asked(self) -> CoreRequest:
        return next(iter(self.shares.values())).asked

    async def run(self, pool: Pool, timeout: float) -> dict[str, str]:
        """Send the query, and pass each site its rows.

        Return the sites that failed, with reasons.
        """
        asked = self.asked
        assert asked.width is not None
        parser, failed = partial(WrappedParser, asked.width + 1), dict[str, str]()
        for share in self.shares.values():
            share.drop()
        for request in (asked.request, *asked.further):
            inbox = None if asked.stored is None else asked.stored.inbox
            stored = None if inbox is None else StoredRows(inbox, None)
            named = request[:-1] + f"Backends: {' '.join(self.shares)}\n\n".encode()
            core_request = CoreRequest(named, asked.width + 1, stored=stored, parser=parser)
            answer = await pool.query(core_request, timeout)
            if stored is not None and stored.size:
                assert inbox is not None
                answer = await self._stored(inbox, stored)
            else:
                for share, rows in self._parted(answer):
                    share.rows += share.own_rows(rows)
            assert isinstance(answer, WrappedRows)
            failed.update(answer.failed)
        return failed

    async def _stored(self, inbox: Inbox, joint: StoredRows) -> list[Row]:
        """Part a large answer, in a thread; returns the last rows, which have the failed sites."""

        def part(left: Callable[[], bool]) -> tuple[list[Row], list[tuple[SiteShare, int, int]]]:
            last, places = list[Row](), []
            for last in joint.batches():
                if left():
                    raise ClientLeftError
                for share, rows in self._parted(last):
                    line = orjson.dumps(share.own_rows(rows)) + b"\n"
                    places.append((share, inbox.write(line), len(line)))
            return last, places

        inbox.begin_work()
        try:
            last, places = await inbox.memory.threads.stoppable(part, inbox.end_work)
        except BrokenRowsError as broken:
            raise broken.error from None
        for share, at, size in places:
            stored = share.asked.stored
            assert stored is not None
            stored.place(at, size)
        return last

    def _parted(self, rows: list[Row]) -> list[tuple[SiteShare, list[Row]]]:
        at = self.asked.key_at
        assert at is not None
        by_site: dict[str, list[Row]] = {}
        try:
            for row in rows:
                by_site.setdefault(row.pop(at), []).append(row)
            return [(self.shares[key], mine) for key, mine in by_site.items()]
        except (KeyError, TypeError):
            raise ProtocolError("a row of a site that was not asked") from None


@define(eq=False)
class JointQueries:
    """Asks an LMD; queries of the log go one by one over ``logs``, for these wait for their core.

    ``on_lost`` is called when a connection ended in the middle of a query.
    """

    clock: IReactorTime
    pool: Pool
    logs: Pool
    on_lost: Callable[[], None]
    _waiting: dict[object, JointQuery] = field(init=False, factory=dict)

    def query(self, site: str, asked: CoreRequest, timeout: float) -> Deferred[list[Row]]:
        """The rows of one site; fails with LivestatusError."""
        share = SiteShare(site, asked)
        inbox = None if asked.stored is None else id(asked.stored.inbox)
        key = (asked.request, asked.transform, asked.among, round(timeout, 1), inbox)
        joint = self._waiting.get(key)
        if joint is None or site in joint.shares or asked.log:
            joint = self._waiting[key] = JointQuery()
            self.clock.callLater(0, self._send, key, joint, timeout)
        joint.shares[site] = share
        share.done = Deferred(partial(self._cancelled, joint, share))
        return share.done

    def _cancelled(self, joint: JointQuery, share: SiteShare, _: Deferred[list[Row]]) -> None:
        # The rows of a request that was cancelled are still read, for the others.
        if joint.running is None:
            del joint.shares[share.site]
        elif all(other.done.called for other in joint.shares.values() if other is not share):
            joint.running.cancel()

    def _send(self, key: object, joint: JointQuery, timeout: float) -> None:
        if self._waiting.get(key) is joint:
            del self._waiting[key]
        if joint.shares:
            pool = self.logs if joint.asked.log else self.pool
            joint.running = Deferred.fromCoroutine(joint.run(pool, timeout))
            joint.running.addCallbacks(
                self._answered, self._failed, callbackArgs=(joint,), errbackArgs=(joint,)
            )

    def _answered(self, failed: Mapping[str, str], joint: JointQuery) -> None:
        for site, share in joint.shares.items():
            if share.done.called:
                continue
            if site in failed:
                share.drop()
                share.done.errback(BehindRelayError(failed[site]))
            else:
                share.done.callback(share.rows)

    def _failed(self, failure: Failure, joint: JointQuery) -> None:
        if failure.check(CancelledError):
            return
        error = failure.value
        if isinstance(error, NoHeaderError):
            # This is how it refuses a request.
            failure = Failure(RefusedError(_BAD_REQUEST, error.text))
        elif isinstance(error, BrokenConnectionError):
            self.on_lost()
        for share in joint.shares.values():
            if not share.done.called:
                share.done.errback(failure)
