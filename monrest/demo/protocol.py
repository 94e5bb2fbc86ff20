"""One client connection: lines to requests, answers in order, waiting for what is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from attrs import define, field
from twisted.internet.interfaces import (
    IDelayedCall,
    IHalfCloseableProtocol,
    IReactorTime,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.demo.answer import AnswerSteps, answer
from monrest.demo.core import Core
from monrest.demo.core_tables import CoreTable
from monrest.demo.request import CoreDiedError, Request, RequestError, every

_LONGEST_LINE = 65536
_IDLE_SECONDS = 300
_REQUEST_SECONDS = 10
_BUDGET = 0.005
"""Seconds of work on an answer before others get their turn."""

log = Logger()


@define(eq=False, repr=False)
class LivestatusFactory(Factory):
    """Makes connections. ``run_command`` executes a line and answers an error text or None.

    ``die`` is called with what a real core would not have survived.
    """

    noisy = False

    core: Core
    tables: Mapping[str, CoreTable]
    clock: IReactorTime
    run_command: Callable[[str], str | None]
    die: Callable[[str], None]
    open_connections: set[LivestatusProtocol] = field(factory=set)

    def buildProtocol(self, _addr: object) -> LivestatusProtocol:
        """A new connection."""
        return LivestatusProtocol(self)


@implementer(IHalfCloseableProtocol)
class LivestatusProtocol(Protocol):
    """Reads requests line by line. One is answered at a time; what follows it waits."""

    def __init__(self, factory: LivestatusFactory) -> None:
        self._factory = factory
        self._clock = factory.clock
        self._buffer = b""
        self._lines: deque[str] = deque()
        self._ended = False
        self._steps: AnswerSteps | None = None
        self._request: Request | None = None
        self._next: IDelayedCall | None = None
        self._timeout: IDelayedCall | None = None
        self._waiting: _Waiting | None = None
        self._closed = False

    def connectionMade(self) -> None:
        """Count the connection and wait for a request."""
        self._factory.open_connections.add(self)
        self._factory.core.counters["connections"] += 1
        self._expect(_IDLE_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; they wait while a request is being answered."""
        self._buffer += data
        if not self._busy():
            self._advance()

    def readConnectionLost(self) -> None:
        """Nothing more comes; what is complete is still answered."""
        self._ended = True
        if not self._busy():
            self._advance()

    def writeConnectionLost(self) -> None:
        """The client reads no more; requests that are complete still have their effect."""

    def connectionLost(self, _reason: Failure = connectionDone) -> None:
        """Stop everything that was going on for the client."""
        self._factory.open_connections.discard(self)
        self._closed = True
        self._steps = None
        if self._waiting is not None:
            self._waiting.stop()
        for call in (self._next, self._timeout):
            if call is not None and call.active():
                call.cancel()

    def close(self) -> None:
        """End the connection now."""
        if self.transport is not None:
            self.transport.loseConnection()

    def abort(self) -> None:
        """Send nothing more: this is how the end of the process looks."""
        self._closed = True
        self.close()

    def _busy(self) -> bool:
        return self._closed or self._steps is not None or self._waiting is not None

    def _advance(self) -> None:
        """Take lines until a request is complete, and answer it; on with the next."""
        while not self._busy():
            line, found, rest = self._buffer.partition(b"\n")
            if len(line) > _LONGEST_LINE:
                self._refuse(451, "Request line too long")
            elif found:
                self._buffer = rest
                text = line.decode("utf-8", "surrogateescape").rstrip(" \t")
                if text:
                    self._lines.append(text)
                else:
                    self._begin()
            elif self._ended:
                self._finish_input(line)
                return
            else:
                self._expect(_REQUEST_SECONDS if self._lines or line else _IDLE_SECONDS)
                return

    def _finish_input(self, rest: bytes) -> None:
        if rest:
            self._refuse(451, "Client connection terminated while request still incomplete")
        elif self._lines:
            self._begin()
            if not self._busy():
                self._end()
        else:
            self._end()

    def _begin(self) -> None:
        """Begin with the request in the lines."""
        if not self._lines:
            self._end()
            return
        first = self._lines[0].rstrip()
        if first == "GET" or first.startswith("GET "):
            self._get()
        elif first.startswith("COMMAND "):
            self._lines.popleft()
            problem = self._factory.run_command(first[8:])
            if problem is not None:
                self._send(f"400: {problem}\n".encode("utf-8", "surrogateescape"))
        else:
            self._refuse(452, "Invalid request method")

    def _get(self) -> None:
        core = self._factory.core
        core.counters["requests"] += 1
        self._expect(None)
        now, started = core.wall.now(), self._clock.seconds()
        request = self._request = Request(self._factory.tables, now, started)
        try:
            request.read(self._lines)
            waits = _must_wait(request)
        except RequestError as error:
            self._answer(error.code, f"{error.text}\n".encode("utf-8", "surrogateescape"))
        except CoreDiedError as death:
            self.abort()
            self._factory.die(death.line)
        else:
            if waits:
                self._waiting = _Waiting(core, self._clock, request, self._waited)
                self._waiting.start()
            else:
                self._steps = answer(core, request)
                self._work()

    def _waited(self) -> None:
        """Begin the answer after having waited."""
        self._waiting = None
        assert self._request is not None
        self._steps = answer(self._factory.core, self._request)
        self._go_on()

    def _go_on(self) -> None:
        """Work on the answer, and take the next request when it is done."""
        self._work()
        if self._next is None:
            self._advance()

    def _work(self) -> None:
        """Work on the answer for a while."""
        self._next = None
        started = self._clock.seconds()
        while self._steps is not None:
            try:
                next(self._steps)
            except StopIteration as stop:
                self._steps = None
                self._answer(200, stop.value)
            except RequestError as error:
                self._steps = None
                self._answer(error.code, f"{error.text}\n".encode())
            else:
                if self._clock.seconds() - started > _BUDGET:
                    self._next = self._clock.callLater(0, self._go_on)
                    return

    def _answer(self, code: int, body: bytes) -> None:
        assert self._request is not None
        if self._request.fixed16:
            self._send(b"%03d %11d\n" % (code, len(body)))
        self._send(body)
        if not self._request.keep_alive:
            self._end()

    def _refuse(self, code: int, text: str) -> None:
        """An answer without a header, also where one was asked for, and the end."""
        log.debug("refused with {code}: {text}", code=code, text=text)
        self._send(f"{text}\n".encode())
        self._end()

    def _send(self, data: bytes) -> None:
        if self.transport is not None and not self._closed:
            self.transport.write(data)

    def _end(self) -> None:
        self._closed = True
        self._expect(None)
        self.close()

    def _expect(self, seconds: float | None) -> None:
        """Restart the clock after which a silent client is given up; None stops it."""
        if self._timeout is not None and self._timeout.active():
            if seconds is not None:
                self._timeout.reset(seconds)
                return
            self._timeout.cancel()
        self._timeout = None
        if seconds is not None and not self._closed:
            self._timeout = self._clock.callLater(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._lines or self._buffer:
            self._refuse(451, "Timeout while reading the request")
        else:
            self._end()


def _must_wait(request: Request) -> bool:
    """Whether a request has to wait for what is not so yet. Raises RequestError 400."""
    if not request.wait_conditions and not request.wait_trigger:
        return False
    if not request.wait_conditions:
        return True
    subject = _subject(request)
    if subject is None:
        raise RequestError(400, "WaitCondition needs a WaitObject")
    return not every(request.wait_conditions).holds(subject)


def _subject(request: Request) -> object:
    find = request.table.wait_object
    if request.wait_object is None and find is not None:
        return find("")
    return request.wait_object


@define(eq=False)
class _Waiting:
    """One waiting request. ``done`` is called once: when it happened, or at the time-out."""

    core: Core
    clock: IReactorTime
    request: Request
    done: Callable[[], None]
    _timeout: IDelayedCall | None = None

    def start(self) -> None:
        """Listen to the core and start the time-out."""
        self.core.waiting.append(self._wake)
        if self.request.wait_timeout:
            self._timeout = self.clock.callLater(self.request.wait_timeout / 1000, self._go)

    def stop(self) -> None:
        """Wait no longer and do nothing."""
        if self._wake in self.core.waiting:
            self.core.waiting.remove(self._wake)
        if self._timeout is not None and self._timeout.active():
            self._timeout.cancel()

    def _wake(self, happened: str) -> None:
        request = self.request
        if request.wait_trigger not in ("", "all", happened):
            return
        if not request.wait_conditions or every(request.wait_conditions).holds(_subject(request)):
            # Not at once: the change that wakes us is still being made.
            self.clock.callLater(0, self._go)

    def _go(self) -> None:
        if self._wake in self.core.waiting:
            self.stop()
            self.done()
