"""Queries that wait for one core: their time, repetition, and end when the core hangs.

Queries that are equal and under way at the same moment are sent once. docs/spec/sites.md has the
rules. A query that is answered in time costs no timed call of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.shared_timer import FOREVER, SharedTimer
from monrest.base.values import Row
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    LivestatusError,
    LostCoreError,
    QueryTimeoutError,
    StoppedError,
)
from monrest.livestatus.framing import Transform
from monrest.livestatus.pool import CoreRequest
from monrest.sites.capabilities import Program
from monrest.sites.health import GRACE, SLOW, SUSPICIOUS, Breaker

T = TypeVar("T")

MOST_ROWS = 1000
"""Rows of an answer that is copied; requests that wait for a larger one ask by themselves."""
MOST_LARGE = 200

Send: TypeAlias = Callable[[], Deferred[list[Row]]]
_Key: TypeAlias = tuple[bytes, Transform | None, str]

_GONE = "the core went away while it was asked"
_RESTARTED = "the core was restarted while it was asked"


@define(eq=False)
class Wait:
    """Something that waits for the core; at ``due`` the core has to show that it lives."""

    due: float


@define(eq=False, kw_only=True)
class QueryInFlight(Wait):
    """A query on its way since ``sent``, to a core that was ``program`` then.

    ``send`` gets the seconds that are left. All of it may take ``timeout`` seconds, until
    ``until``. ``has_deadline``: that is the client's deadline, and a core that needs more time is
    none the worse for that. ``once``: it changes something. ``repeated``: the core may have read
    it before. ``missed``: when no connection could be made for it for the first time. ``ended``:
    the error with which it is ended from here.
    """

    send: Callable[[float], Deferred[Any]]
    timeout: float
    until: float
    sent: float
    program: Program
    once: bool = False
    has_deadline: bool = False
    repeated: bool = False
    missed: float | None = None
    ended: LivestatusError | None = None
    done: Deferred[Any] = field(init=False)

    def may_be_sent_again(self, error: LivestatusError) -> bool:
        """Whether it was certainly not read, or whether it may turn out that it did no harm."""
        if isinstance(error, ConnectError):
            return error.momentary
        if self.once or self.repeated or not isinstance(error, BrokenConnectionError):
            return False
        return error.begun or error.kept or self.program.process != 0


@define(eq=False)
class InFlight:
    """The queries of one site that are on their way; ``breaker`` is notified how they end.

    ``on_slow`` is called again and again while a request waits for long.
    """

    clock: IReactorTime
    breaker: Breaker
    on_slow: Callable[[], None]
    _open: dict[Wait, None] = field(init=False, factory=dict)
    _alarm: SharedTimer = field(init=False)
    _last: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._alarm = SharedTimer(self.clock, self._look)

    def run(
        self,
        send: Callable[[float], Deferred[T]],
        timeout: float,
        *,
        once: bool = False,
        has_deadline: bool = False,
    ) -> Deferred[T]:
        """Send a query; fires with what comes back, fails with LivestatusError.

        It is sent again by the rules of docs/spec/sites.md, within ``timeout`` seconds in all.
        ``once``: never when the core may have read it, because it changes something. See
        ``QueryInFlight`` for ``has_deadline``.
        """
        now = self.clock.seconds()
        query = QueryInFlight(
            due=now + min(SLOW, max(SUSPICIOUS, timeout / 2)),
            send=send,
            timeout=timeout,
            until=now + timeout,
            sent=now,
            program=self.breaker.health.program,
            once=once,
            has_deadline=has_deadline,
        )
        self._open[query] = None
        if query.due < self._alarm.at:
            self._alarm.set(query.due)
        query.done = send(timeout).addCallbacks(
            self._answered, self._failed, callbackArgs=(query,), errbackArgs=(query,)
        )
        done: Deferred[T] = query.done
        return done

    def wait(self) -> Wait:
        """Something else waits for the core from now on, until ``over``."""
        waiting = Wait(self.clock.seconds() + SLOW)
        self._open[waiting] = None
        self._alarm.by(waiting.due)
        return waiting

    def over(self, waiting: Wait) -> None:
        self._open.pop(waiting, None)
        if self._last and not self._open:
            self._alarm.set(FOREVER)

    def end(self, error: LivestatusError) -> None:
        """Fail all queries with ``error``."""
        for query in tuple(self._open):
            if isinstance(query, QueryInFlight) and query.ended is None:
                query.ended = error
                query.done.cancel()

    def finish(self) -> None:
        """Leave no timed call behind what is in flight now."""
        self._last = True
        if not self._open:
            self._alarm.set(FOREVER)

    def _answered(self, answer: T, query: QueryInFlight) -> T:
        del self._open[query]
        if self._last and not self._open:
            self._alarm.set(FOREVER)
        return answer

    def _failed(self, failure: Failure, query: QueryInFlight) -> Failure | Deferred[Any]:
        self.over(query)
        error = failure.value
        if isinstance(error, CancelledError) and query.ended is not None:
            return Failure(query.ended)
        if not isinstance(error, LivestatusError):
            return failure
        self._report(query, error)
        if not query.may_be_sent_again(error):
            return failure
        self._open[query] = None
        return Deferred.fromCoroutine(self._again(query, error))

    def _report(self, query: QueryInFlight, error: LivestatusError) -> None:
        if not (query.has_deadline and isinstance(error, QueryTimeoutError)):
            self.breaker.failed(error, query.sent)

    async def _again(self, query: QueryInFlight, error: LivestatusError) -> Any:
        try:
            while True:
                await self._ready(query, error)
                query.sent, query.program = self.clock.seconds(), self.breaker.health.program
                query.due = query.sent + SLOW
                try:
                    return await query.send(query.until - query.sent)
                except LivestatusError as failed:
                    self._report(query, failed)
                    if not query.may_be_sent_again(failed):
                        raise
                    error = failed
        except CancelledError:
            if query.ended is None:
                raise
            raise query.ended from None
        except QueryTimeoutError:
            raise QueryTimeoutError(query.timeout) from None
        finally:
            self.over(query)

    async def _ready(self, query: QueryInFlight, error: LivestatusError) -> None:
        """Wait until the query may be sent again after ``error``; raise if it may not."""
        if isinstance(error, BrokenConnectionError):
            query.repeated = True
            if not error.begun:
                await self._survived(query, error)
        else:
            now = self.clock.seconds()
            query.missed = query.missed or now
            if now - query.missed >= GRACE:
                raise error
        await self._back(query, error)

    async def _back(self, query: QueryInFlight, error: LivestatusError) -> None:
        """Wait for the core; raise ``error`` when the time is over before."""
        left = query.until - self.clock.seconds()
        try:
            await self.breaker.verdict().addTimeout(max(0.0, left), self.clock)
        except (TooLate, StoppedError):
            raise error from None
        if self.clock.seconds() >= query.until:
            raise error

    async def _survived(self, query: QueryInFlight, error: BrokenConnectionError) -> None:
        """Raise LostCoreError unless the core has certainly survived the query.

        Raise ``error`` if it has, and closed a new connection on purpose.
        """
        before, now = query.program, await self.breaker.program_now()
        if now is None and before.process and self.breaker.missed is not None:
            # In a reload the socket is away and the process lives on.
            await self._back(query, LostCoreError(_GONE))
            now = self.breaker.health.program
        if now is None:
            raise LostCoreError(_GONE)
        if now.same_run(before):
            if not error.kept:
                raise error
        elif not now.same_process(before):
            raise LostCoreError(_RESTARTED)

    def _look(self) -> None:
        now = self.clock.seconds()
        slow = [query for query in self._open if query.due <= now]
        for query in slow:
            query.due = now + SLOW
        if self._open:
            self._alarm.by(min(query.due for query in self._open))
        if slow:
            self.on_slow()


@define(eq=False)
class SharedQueries:
    """The queries of one site that several requests may wait for.

    Fifty people with the same dashboard send the same. What is equal to the byte holds the same
    user and the same filters, so that no user sees what they may not.
    """

    _open: dict[_Key, list[Deferred[list[Row] | None]]] = field(factory=dict, init=False)
    """The queries that are under way, with the requests that wait for their answers; None means
    that a request has to ask by itself."""
    _large: set[_Key] = field(factory=set, init=False)
    """Queries that had a large answer before: each request sends its own."""

    def ask(self, ask: CoreRequest, send: Send) -> Deferred[list[Row]]:
        """The rows of ``send``, or those of an equal query that is running."""
        key = (ask.request, ask.transform, ask.among)
        waiting = self._open.get(key)
        if waiting is not None:
            answer: Deferred[list[Row] | None] = Deferred()
            waiting.append(answer)
            return answer.addCallback(lambda rows: self.ask(ask, send) if rows is None else rows)
        if key in self._large:
            return send()
        waiting = self._open[key] = []
        return send().addBoth(self._ended, ask, key, waiting)

    def forget(self) -> None:
        """Later requests do not wait for earlier queries: a command has changed something."""
        self._open = {}

    def _ended(
        self,
        result: list[Row] | Failure,
        ask: CoreRequest,
        key: _Key,
        waiting: list[Deferred[list[Row] | None]],
    ) -> list[Row] | Failure:
        if self._open.get(key) is waiting:
            del self._open[key]
        large = not isinstance(result, Failure) and (
            len(result) > MOST_ROWS or (ask.stored is not None and ask.stored.size > 0)
        )
        if large and waiting:
            if len(self._large) >= MOST_LARGE:
                self._large.clear()
            self._large.add(key)
        for answer in [answer for answer in waiting if not answer.called]:
            if isinstance(result, Failure) and not result.check(CancelledError):
                answer.errback(Failure(result.value))
            elif isinstance(result, Failure) or large:
                answer.callback(None)
            else:
                # The first request may change its rows.
                answer.callback(type(result)(map(list, result)))
        return result
