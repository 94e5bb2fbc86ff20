"""Working beside the reactor: asking many at once, shields, periodic jobs, threads.

Everything that waits takes an ``IReactorTime``, so that tests turn the clock themselves. In
Twisted a ``CancelledError`` is an ordinary ``Exception``; nothing here swallows one.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.internet.interfaces import IReactorFromThreads, IReactorTime
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from monrest.base.errors import ClientLeftError, LostError, RestError

log = Logger()

A = TypeVar("A")
T = TypeVar("T")


@frozen
class Outcome(Generic[A, T]):
    """The result of one of several calls: ``value``, or the ``problem`` as an exception."""

    asked: A
    value: T | None = None
    problem: Exception | None = None


async def ask_all(
    items: Iterable[A],
    ask: Callable[[A], Coroutine[Deferred[Any], Any, T]],
    clock: IReactorTime,
    seconds: float,
) -> list[Outcome[A, T]]:
    """Ask all items at the same time, each for at most ``seconds``.

    One outcome per item in the order of the items; one that does not answer in time has Twisted's
    ``TimeoutError`` as its problem. Cancelling cancels every question that is still open.
    """

    async def outcome(item: A) -> Outcome[A, T]:
        try:
            answer = await Deferred.fromCoroutine(ask(item)).addTimeout(seconds, clock)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  the caller gets it, beside the others' answers
            return Outcome(item, problem=error)
        return Outcome(item, value=answer)

    return await together(outcome(item) for item in items)


async def together(works: Iterable[Coroutine[Deferred[Any], Any, T]]) -> list[T]:
    """Do all at the same time; the results in order. Cancelling cancels all.

    The first failure is raised when all have ended.
    """
    waiting = [Deferred.fromCoroutine(work) for work in works]
    results: list[T] = []
    for _, result in await DeferredList(waiting, consumeErrors=True):
        if isinstance(result, Failure):
            result.raiseException()
        results.append(result)
    return results


def shielded(work: Coroutine[Deferred[Any], Any, T]) -> Deferred[T]:
    """Run ``work`` to its end even if the returned Deferred is cancelled meanwhile.

    A failure that comes after the cancellation is logged, since no caller waits for it any more: in
    a line where it is one that may happen.
    """
    gone = False

    def leave(_: Deferred[T]) -> None:
        nonlocal gone
        gone = True

    waiter: Deferred[T] = Deferred(leave)

    def finished(result: T | Failure) -> None:
        if not gone:
            waiter.callback(result)
        elif isinstance(result, Failure) and result.check(RestError, LostError):
            log.warn("work outlived its client and failed: {reason}", reason=result.value)
        elif isinstance(result, Failure):
            log.failure("work outlived its client and failed", result)

    Deferred.fromCoroutine(work).addBoth(finished)
    return waiter


@define(eq=False)
class Shared(Generic[T]):
    """Work whose result several wait for; one that does not wait any more does not end it."""

    _waiting: list[Deferred[T]] = field(factory=list, init=False)
    _ended: bool = field(default=False, init=False)
    _result: T | Failure | None = field(default=None, init=False)

    def run(self, work: Coroutine[Deferred[Any], Any, T], ended: Callable[[], object]) -> None:
        """Start ``work``; ``ended`` is called at its end, before those that wait get the result."""

        def finished(result: T | Failure) -> None:
            ended()
            self._ended, self._result = True, result
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                waiter.callback(result)

        Deferred.fromCoroutine(work).addBoth(finished)

    def wait(self) -> Deferred[T]:
        """Return a Deferred of one's own for the result; it may be cancelled."""
        waiter: Deferred[T] = Deferred(self._waiting.remove)
        if self._ended:
            waiter.callback(self._result)  # type: ignore[arg-type]  # takes failures as well
        else:
            self._waiting.append(waiter)
        return waiter


def after(end: Deferred[None]) -> Deferred[None]:
    """Return a Deferred of one's own for an end that several wait for; it may be cancelled."""
    if end.called:
        return succeed(None)
    done: Deferred[None] = Deferred()
    end.addCallback(done.callback)
    return done


async def ended(working: Iterable[Deferred[None]], clock: IReactorTime, seconds: float) -> None:
    """Wait until all of ``working`` is over; after ``seconds`` what is left is cancelled.

    Each keeps its result and its own callbacks.
    """
    left = list(working)

    def cancel() -> None:
        for running in left:
            running.cancel()

    def end_of(work: Deferred[None]) -> Deferred[None]:
        end: Deferred[None] = Deferred()

        def pass_on(result: T) -> T:
            end.callback(None)
            return result

        work.addBoth(pass_on)
        return end

    late = clock.callLater(seconds, cancel)
    await DeferredList([end_of(running) for running in left])
    if late.active():
        late.cancel()


def pause(clock: IReactorTime, seconds: float = 0.0) -> Deferred[None]:
    """Fire after ``seconds``; 0 gives the reactor one turn. Cancelling takes the call back."""
    done: Deferred[None] = Deferred(lambda _: call.cancel())
    call = clock.callLater(seconds, done.callback, None)
    return done


@define(eq=False)
class Periodic(Service):
    """Run ``job`` again and again, ``interval`` seconds after the end of the last run.

    The first run comes at once, or after ``interval`` if ``now`` is False. A failing run is
    logged and the next one comes all the same.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    interval: float
    job: Callable[[], Awaitable[object]]
    title: str
    now: bool = True
    _run: Deferred[None] | None = field(init=False, default=None)

    def startService(self) -> None:
        super().startService()
        self._run = Deferred.fromCoroutine(self._loop())

    def stopService(self) -> Deferred[None]:
        """Cancel the pause or the run of the job; fires when nothing of it is left."""
        super().stopService()
        run, self._run = self._run, None
        if run is None:
            return succeed(None)
        run.addErrback(_cancelled)
        run.cancel()
        return run

    async def _loop(self) -> None:
        if not self.now:
            await pause(self.clock, self.interval)
        while True:
            try:
                await self.job()
            except Exception as error:
                if isinstance(error, CancelledError) and not self.running:
                    raise
                self.log.failure("{title} failed", title=self.title)
            if not self.running:
                return  # the job was canceled, and ended as something else
            await pause(self.clock, self.interval)


def _cancelled(failure: Failure) -> None:
    failure.trap(CancelledError)


def _raise(error: Exception) -> NoReturn:
    raise error


class _Thread(threading.Thread):
    """A daemon thread: a call that hangs does not delay the exit of the process."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more, daemon=True)


@define(eq=False)
class Threads(Service):
    """A thread pool of one's own, so that no call waits behind name lookups or other rooms.

    Stopping waits for the running calls without holding up the reactor.
    """

    reactor: IReactorFromThreads
    size: int
    title: str
    _pool: ThreadPool | None = field(init=False, default=None)

    def startService(self) -> None:
        """Make the threads: here and not earlier, because they do not survive a fork."""
        super().startService()
        self._pool = ThreadPool(0, self.size, self.title)
        self._pool.threadFactory = _Thread
        self._pool.start()

    def run(self, function: Callable[[], T]) -> Deferred[T]:
        """The result of ``function`` called in a thread; cancelling ends the wait, not the thread.

        RuntimeError if the service is not running.
        """
        if self._pool is None:
            raise RuntimeError(f"threads of {self.title} are not running")

        # Twisted's pool would make a Failure of an error, in a cycle with the frame that made it.
        # So would the frames of an error that was expected: all that the function held would stay
        # until the next collection of everything.
        def outcome() -> Callable[[], T]:
            try:
                result = function()
            except Exception as error:  # noqa: BLE001  raised again where it is waited for
                if isinstance(error, RestError):
                    error.__context__ = error.__cause__ = error.__traceback__ = None
                return partial(_raise, error)
            return lambda: result

        return deferToThreadPool(self.reactor, self._pool, outcome).addCallback(
            lambda outcome: outcome()
        )

    async def stoppable(
        self,
        function: Callable[[Callable[[], bool]], T],
        ended: Callable[[], object] = lambda: None,
    ) -> T:
        """Run ``function`` in a thread; what it is given says whether the caller has left.

        ``ended`` is called when the thread has ended, also after the caller has left.
        """
        left = threading.Event()

        async def whole() -> T | None:
            try:
                return await self.run(lambda: function(left.is_set))
            except ClientLeftError:
                return None
            finally:
                ended()

        try:
            return cast("T", await shielded(whole()))
        finally:
            left.set()

    def stopService(self) -> Deferred[None]:
        """Fire when the last call has ended."""
        super().stopService()
        pool, self._pool = self._pool, None
        done: Deferred[None] = Deferred()
        if pool is None:
            return succeed(None)

        def wait() -> None:
            pool.stop()
            self.reactor.callFromThread(done.callback, None)

        threading.Thread(target=wait, name=f"{self.title} stopping", daemon=True).start()
        return done
