"""The connections to one core: kept, limited, replaced when they die.

One request at a time per connection; a query that finds no idle connection opens one as long as
the limit allows; a connection is closed after 60 s without work and after every status other than
200. At most one log query runs at a time, because those share a lock in the core. A request that
the core cannot have read is sent again here; docs/spec/sites.md says what becomes of the others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IProtocol, IReactorTime, IStreamClientEndpoint
from twisted.python.failure import Failure

from monrest.base.concurrency import after
from monrest.base.connecting import CONNECT_TIMEOUT, in_seconds
from monrest.base.meters import BOUNDS, Sample, Spread, spread
from monrest.base.shared_timer import FOREVER, SharedTimer
from monrest.base.sockets import credentials
from monrest.base.values import Row
from monrest.livestatus.connection import Connection, ConnectionFactory, TLSConnection
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    LivestatusError,
    QueryTimeoutError,
    StoppedError,
    connect_error,
    tls_error,
)
from monrest.livestatus.framing import AnswerReader, RowParser, Transform
from monrest.livestatus.inbox import StoredRows


@frozen
class CoreRequest:
    """One request to one kind of core: its bytes and what its rows look like.

    For a core behind another instance these are the path and query below its site.

    ``width``: values per row as the core sends them. ``transform`` makes the wanted rows of them,
    a batch at a time. ``log``: takes long and must not run beside another of its kind. ``stored``:
    where a large answer is kept, None: its rows are given however many they are. ``urgent``: goes
    first and may exceed the limit of connections by one, so that a busy site can still be probed.
    ``parser``: what reads the body, made anew for each time that it is asked. ``key_at``: which
    value of a row, as it is sent, is the id of its site; None where all rows are of one site.
    ``further``: requests whose rows belong to the same answer, which one request would be too long
    for. ``among``: the sites over whose rows a limit counts, where it does so over several.
    """

    request: bytes
    width: int | None = None
    transform: Transform | None = None
    log: bool = False
    stored: StoredRows | None = None
    urgent: bool = False
    parser: Callable[[], RowParser] | None = None
    key_at: int | None = None
    further: tuple[bytes, ...] = ()
    among: str = ""

    def with_rows_in(self, stored: StoredRows | None, among: str = "") -> CoreRequest:
        """The same request, whose large answer is kept there, and limited ``among`` these sites."""
        return CoreRequest(
            *(self.request, self.width, self.transform, self.log, stored, self.urgent),
            *(self.parser, self.key_at, self.further, among),
        )

    def reader(self) -> AnswerReader:
        parser = self.parser or partial(RowParser, self.width, self.transform)
        return AnswerReader(parser, self.stored)


@define(eq=False)
class Exchange:
    """One request: waiting for a connection, or running on ``connection``.

    It has ``timeout`` seconds, ``until`` a time of the pool's clock. ``retried``: it was lost on a
    kept connection and now needs a new one.
    """

    asked: CoreRequest
    timeout: float
    until: float
    done: Deferred[list[Row]] = field(init=False)
    connection: Connection | None = None
    retried: bool = False

    def fail(self, error: Exception) -> None:
        """Fail, unless it is over already.

        Several fail in one go when a connection cannot be made, and the caller of the first one
        may cancel the others.
        """
        if not self.done.called:
            self.done.errback(error)


@define(eq=False)
class Opening:
    """A connection being made since ``since``.

    ``connection`` exists while TLS is still shaking hands; ``ended``: the outcome does not matter
    any more.
    """

    since: float
    attempt: Deferred[IProtocol] | None = None
    connection: Connection | None = None
    ended: bool = False


def why_lost(reader: AnswerReader, reason: Failure, *, kept: bool) -> LivestatusError:
    """Why a query failed whose connection went away while it was running.

    ``kept``: the connection had served other queries before.
    """
    if reader.started:
        text = "connection lost in the middle of an answer"
        return reader.lost() or BrokenConnectionError(text, begun=True)
    tls = tls_error(reason)
    if tls is not None:
        return tls
    if reason.check(ConnectionDone):
        # This is how Icinga 2 says "bad query".
        return BrokenConnectionError("connection closed without an answer", kept=kept)
    return BrokenConnectionError("connection lost", kept=kept)


@define(eq=False)
class Pool:
    """At most ``limit`` connections to the core behind ``endpoint``, made when needed.

    ``endpoint`` is called for each connection. ``idle`` and ``connect_timeout`` are seconds.
    ``local``: it is a Unix socket. ``on_lost`` is called when the core closes an idle connection,
    ``on_heard`` when anything comes from it.
    """

    clock: IReactorTime
    endpoint: Callable[[], IStreamClientEndpoint]
    limit: int = 4
    idle: float = 60.0
    connect_timeout: float = CONNECT_TIMEOUT
    tls: bool = False
    local: bool = False
    on_lost: Callable[[], None] | None = None
    on_heard: Callable[[], None] | None = None
    process: int = field(init=False, default=0)
    """The process that gave the last answer over a Unix socket, 0 where that is not known."""
    taken: Spread = field(init=False, factory=spread)
    """The durations of answered queries, with waiting for a connection."""
    _waiting: deque[Exchange] = field(init=False, factory=deque)
    _fresh: deque[Exchange] = field(init=False, factory=deque)
    """Queries to be repeated, each on a new connection."""
    _logs: deque[Exchange] = field(init=False, factory=deque)
    """Log queries behind the one that is under way."""
    _log: Exchange | None = field(init=False, default=None)
    _idle: list[Connection] = field(init=False, factory=list)
    _busy: set[Connection] = field(init=False, factory=set)
    _dying: set[Connection] = field(init=False, factory=set)
    _opening: list[Opening] = field(init=False, factory=list)
    _alarm: SharedTimer = field(init=False)
    _stopped: Deferred[None] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._alarm = SharedTimer(self.clock, self._tick)

    @property
    def size(self) -> int:
        """Connections that are open or being opened."""
        return len(self._idle) + len(self._busy) + len(self._opening)

    @property
    def quiet(self) -> bool:
        """Whether nothing is left: no connection, no query."""
        return not (self.size or self._dying or self._waiting or self._fresh or self._logs)

    def measured(self, site: str) -> Iterator[Sample]:
        yield "site_query_duration_seconds", (site,), list(self.taken)
        yield "site_connections", (site, "busy"), len(self._busy)
        yield "site_connections", (site, "idle"), len(self._idle)
        waiting = len(self._waiting) + len(self._fresh) + len(self._logs)
        yield "site_queries_waiting", (site,), waiting

    def query(self, asked: CoreRequest, timeout: float) -> Deferred[list[Row]]:
        """Send a request and return its rows; ``timeout`` seconds include waiting and connecting.

        Fails with LivestatusError. Cancelling closes the connection at work on it.
        """
        exchange = Exchange(asked, timeout, self.clock.seconds() + timeout)
        done: Deferred[list[Row]] = Deferred(partial(self._cancelled, exchange))
        exchange.done = done
        if self._stopped is not None:
            done.errback(StoppedError())
            return done
        if exchange.until < self._alarm.at:
            self._alarm.set(exchange.until)
        if asked.log and self._log is not None:
            self._logs.append(exchange)
            return done
        if asked.log:
            self._log = exchange
        if self._idle and (asked.urgent or not self._waiting):
            self._run(exchange, self._idle.pop())
            return done
        if asked.urgent:
            self._waiting.appendleft(exchange)
        else:
            self._waiting.append(exchange)
        self._assign()
        return done

    def keep(self, idle: float) -> None:
        """Keep connections without work for ``idle`` seconds from now on; 0 is not at all."""
        self.idle = idle
        if not idle:
            for connection in list(self._idle):
                self._drop(connection)
        self._rewatch()

    def retire(self) -> None:
        """Let running and later queries finish, but keep no connection any more."""
        self.on_lost = None
        self.keep(0.0)

    def stop(self) -> Deferred[None]:
        """Fail all queries and close everything; fires when no connection is left."""
        if self._stopped is None:
            self._stopped = Deferred()
            self.on_lost = None
            failed = [*self._waiting, *self._fresh, *self._logs]
            failed += [connection.exchange for connection in self._busy]
            for queue in (self._waiting, self._fresh, self._logs):
                queue.clear()
            for opening in list(self._opening):
                self._give_up(opening)
            for connection in [*self._idle, *self._busy]:
                self._drop(connection)
            self._rewatch()
            for exchange in failed:
                exchange.fail(StoppedError())
            self._check_stopped()
        return after(self._stopped)

    def _run(self, exchange: Exchange, connection: Connection) -> None:
        exchange.connection = connection
        connection.exchange = exchange
        self._busy.add(connection)
        connection.send(exchange.asked.request, exchange.asked.reader())

    def _assign(self) -> None:
        """Give idle connections to waiting queries, and open new ones for the rest."""
        while self._waiting and self._idle:
            self._run(self._waiting.popleft(), self._idle.pop())
        while len(self._opening) < len(self._waiting) + len(self._fresh):
            if not self._room() and self._fresh and self._idle:
                self._drop(self._idle[0])
            if not self._room() or not self._open():
                break

    def _room(self) -> bool:
        urgent = bool(self._waiting) and self._waiting[0].asked.urgent
        return self.size < self.limit + urgent

    def _open(self) -> bool:
        """Make a connection; False if that failed at once."""
        now = self.clock.seconds()
        opening = Opening(now)
        self._opening.append(opening)

        def make() -> Connection:
            opening.connection = TLSConnection(self) if self.tls else Connection(self)
            return opening.connection

        self._alarm.by(now + self.connect_timeout)
        opening.attempt = self.endpoint().connect(ConnectionFactory(make))
        opening.attempt.addErrback(self._not_connected, opening)
        return not opening.ended or opening.connection is not None

    def _end(self, opening: Opening) -> None:
        opening.ended = True
        self._opening.remove(opening)

    def _opened_by(self, connection: Connection) -> Opening | None:
        return next(
            (opening for opening in self._opening if opening.connection is connection), None
        )

    def _give_up(self, opening: Opening) -> None:
        """End an attempt that no query waits for any more."""
        self._end(opening)
        if opening.connection is not None:
            self._dying.add(opening.connection)
            opening.connection.abort()
        elif opening.attempt is not None:
            opening.attempt.cancel()

    def _not_connected(self, failure: Failure, opening: Opening) -> None:
        if not opening.ended:
            self._end(opening)
            self._connect_failed(connect_error(failure, self.connect_timeout))
            self._check_stopped()

    def _connect_failed(self, error: ConnectError) -> None:
        """Fail the queries that wait, unless connections are left that they can wait for."""
        failed = [*self._fresh]
        self._fresh.clear()
        if self._busy or self._opening:
            failed += [waiter for waiter in self._waiting if waiter.asked.urgent]
        else:
            failed += [*self._waiting, *self._logs]
        for exchange in failed:
            self._abandon(exchange)
        for exchange in failed:
            exchange.fail(error)
        self._rewatch()

    def connection_made(self, connection: Connection) -> None:
        """A new connection goes to a query that is repeated, or to the one that waits longest."""
        opening = self._opened_by(connection)
        if opening is None:
            connection.abort()
            return
        self._end(opening)
        peer = credentials(connection.transport) if self.local else None
        connection.process = peer.process if peer else 0
        if self._fresh:
            self._run(self._fresh.popleft(), connection)
        else:
            self._rest(connection)

    def connection_heard(self) -> None:
        """The core lives."""
        if self.on_heard is not None:
            self.on_heard()

    def connection_answered(self, connection: Connection, rows: list[Row]) -> None:
        """Keep the connection for the next query, then hand out the rows."""
        exchange = self._release(connection)
        seconds = self.clock.seconds() - exchange.until + exchange.timeout
        self.taken[bisect_left(BOUNDS, seconds)] += 1
        self.taken[-1] += seconds
        self.process = connection.process
        if connection.surplus:
            self._drop(connection)
            self._assign()
        else:
            self._rest(connection)
        exchange.done.callback(rows)

    def connection_failed(self, connection: Connection, error: Exception) -> None:
        """Close the connection: a Naemon may have kept lines of a refused request."""
        exchange = self._release(connection)
        self._drop(connection)
        self._assign()
        exchange.fail(error)

    def connection_spoiled(self, connection: Connection) -> None:
        """Close it before the unasked bytes are taken for an answer."""
        if connection in self._idle:
            self._drop(connection)

    def connection_lost(self, connection: Connection, reason: Failure) -> None:
        """End what used it; repeat a query that was lost on a kept connection."""
        self._dying.discard(connection)
        opening = self._opened_by(connection)
        if opening is not None:
            self._end(opening)
            self._connect_failed(tls_error(reason) or ConnectError("connection lost"))
        elif connection in self._busy:
            self._lost_busy(connection, reason)
        elif connection in self._idle:
            self._idle.remove(connection)
            if self.on_lost is not None:
                self.on_lost()
        if self.quiet:
            self._alarm.set(FOREVER)
            self._check_stopped()

    def _lost_busy(self, connection: Connection, reason: Failure) -> None:
        reader = connection.reader
        assert reader is not None
        exchange: Exchange = connection.exchange
        kept = connection.served > 0
        # The system resets a Unix socket whose other end was closed before all was read from it.
        unread = connection.unsent or (self.local and reason.check(ConnectionLost) is not None)
        # A probe asks for nothing that could harm a core.
        harmless = unread or exchange.asked.urgent
        if not reader.started and kept and harmless and not exchange.retried:
            self._busy.discard(connection)
            exchange.retried = True
            exchange.connection = None
            self._fresh.append(exchange)
            self._assign()
            return
        self._release(connection)
        self._assign()
        if unread and not reader.started:
            exchange.fail(ConnectError("connection lost before the query was read", momentary=True))
        else:
            exchange.fail(why_lost(reader, reason, kept=kept))

    def _release(self, connection: Connection) -> Exchange:
        exchange: Exchange = connection.exchange
        connection.exchange = None
        self._busy.discard(connection)
        if exchange is self._log:
            self._next_log()
        return exchange

    def _next_log(self) -> None:
        self._log = self._logs.popleft() if self._logs else None
        if self._log is not None:
            self._waiting.append(self._log)

    def _rest(self, connection: Connection) -> None:
        connection.idle_since = now = self.clock.seconds()
        self._idle.append(connection)
        if self._waiting:
            self._assign()
        if connection.exchange is not None:
            return
        if not self.idle or self.size > self.limit:
            self._drop(connection)
        else:
            if now + self.idle < self._alarm.at:
                self._alarm.set(now + self.idle)

    def _drop(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)
        self._busy.discard(connection)
        self._dying.add(connection)
        connection.abort()

    def _cancelled(self, exchange: Exchange, _: Deferred[list[Row]]) -> None:
        self._abandon(exchange)
        self._assign()
        # A connection that no query waits for any more is not worth making.
        while len(self._opening) > len(self._waiting) + len(self._fresh):
            self._give_up(self._opening[-1])
        self._rewatch()

    def _abandon(self, exchange: Exchange) -> None:
        """Take a query out of the pool; one that runs takes its connection with it."""
        connection = exchange.connection
        if connection is not None and connection.exchange is exchange:
            self._release(connection)
            self._drop(connection)
            return
        for queue in (self._waiting, self._fresh, self._logs):
            if exchange in queue:
                queue.remove(exchange)
        if exchange is self._log:
            self._next_log()

    def _check_stopped(self) -> None:
        if self._stopped is not None and not self._stopped.called and self.quiet:
            self._stopped.callback(None)

    def _queries(self) -> list[Exchange]:
        running = [connection.exchange for connection in self._busy]
        return [*self._waiting, *self._fresh, *self._logs, *running]

    def _rewatch(self) -> None:
        self._alarm.set(
            min(
                [
                    *(query.until for query in self._queries()),
                    *(opening.since + self.connect_timeout for opening in self._opening),
                    *(connection.idle_since + self.idle for connection in self._idle),
                ],
                default=FOREVER,
            )
        )

    def _tick(self) -> None:
        now = self.clock.seconds()
        for connection in [
            connection for connection in self._idle if connection.idle_since + self.idle <= now
        ]:
            self._drop(connection)
        for opening in [
            opening for opening in self._opening if opening.since + self.connect_timeout <= now
        ]:
            self._give_up(opening)
            reason = f"timed out connecting after {in_seconds(self.connect_timeout)}"
            self._connect_failed(ConnectError(reason, timed_out=True))
        late = [query for query in self._queries() if query.until <= now]
        for exchange in late:
            self._abandon(exchange)
        for exchange in late:
            exchange.fail(QueryTimeoutError(exchange.timeout))
        self._assign()
        self._rewatch()
