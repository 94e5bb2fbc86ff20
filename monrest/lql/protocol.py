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
from twisted.protocols.policies import TimeoutMixin
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.base.clock import WallClock
from monrest.lql.answer import AnswerSteps, answer
from monrest.lql.filters import CoreDiedError, RequestError
from monrest.lql.request import Request
from monrest.lql.tables import Table

_LONGEST_LINE = 65536
_IDLE_SECONDS = 300
_REQUEST_SECONDS = 10
_BUDGET = 0.005
"""Seconds of work on an answer before others get their turn."""

log = Logger()


@define(eq=False, repr=False)
class LivestatusFactory(Factory):
    """Makes connections. ``run_command`` executes a line and answers an error text or None.

    ``die`` is called with what a real core would not have survived. ``counters`` are made to count
    connections and requests. Requests that wait do so until ``happened`` is called.
    """

    noisy = False

    tables: Mapping[str, Table]
    clock: IReactorTime
    wall: WallClock
    run_command: Callable[[str], str | None]
    die: Callable[[str], None]
    counters: dict[str, int] = field(factory=lambda: {"connections": 0, "requests": 0})
    open_connections: set[LivestatusProtocol] = field(factory=set)

    def buildProtocol(self, _addr: object) -> LivestatusProtocol:
        return LivestatusProtocol(self)

    def happened(self, trigger: str) -> None:
        """Wake the requests that wait for a trigger: check, state, log, downtime, comment ..."""
        for connection in self.open_connections:
            connection.wake(trigger)


@implementer(IHalfCloseableProtocol)
class LivestatusProtocol(Protocol, TimeoutMixin):
    """Reads requests line by line. One is answered at a time; what follows it waits."""

    def __init__(self, factory: LivestatusFactory) -> None:
        self._factory = factory
        self._clock = factory.clock
        self._buffer = b""
        self._lines: deque[str] = deque()
        self._ended = False
        self._request: Request | None = None
        self._waits = False
        self._steps: AnswerSteps | None = None
        self._next: IDelayedCall | None = None
        """More work on the answer, or the end of waiting."""
        self._closed = False

    def connectionMade(self) -> None:
        self._factory.open_connections.add(self)
        self._factory.counters["connections"] += 1
        self.setTimeout(_IDLE_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; they wait while a request is being answered."""
        self._buffer += data
        self._advance()

    def readConnectionLost(self) -> None:
        """The client sends no more; complete requests are still answered."""
        self._ended = True
        self._advance()

    def writeConnectionLost(self) -> None:
        """The client reads no more; requests that are complete still have their effect."""

    def connectionLost(self, _reason: Failure = connectionDone) -> None:
        self._factory.open_connections.discard(self)
        self._closed = True
        self._steps = None
        self._waits = False
        self.setTimeout(None)
        if self._next is not None and self._next.active():
            self._next.cancel()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()

    def callLater(self, period: float, func: Callable[[], None]) -> IDelayedCall:
        return self._clock.callLater(period, func)

    def timeoutConnection(self) -> None:
        if self._lines or self._buffer:
            self._refuse(451, "Timeout while reading the request")
        else:
            self._end()

    def _busy(self) -> bool:
        return self._closed or self._waits or self._steps is not None

    def _advance(self) -> None:
        """Take lines until a request is complete, and answer it; on with the next."""
        while not self._busy():
            line, newline, rest = self._buffer.partition(b"\n")
            if len(line) > _LONGEST_LINE:
                self._refuse(451, "Request line too long")
            elif newline:
                self._buffer = rest
                text = line.decode("utf-8", "surrogateescape").rstrip(" \t")
                if text:
                    self._lines.append(text)
                else:
                    self._begin()
            elif not self._ended:
                self.setTimeout(_REQUEST_SECONDS if self._lines or line else _IDLE_SECONDS)
                return
            elif line:
                self._refuse(451, "Client connection terminated while request still incomplete")
            else:
                self._begin()
                if not self._busy():
                    self._end()

    def _begin(self) -> None:
        """Begin with the request in the lines; without any the connection ends."""
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
        factory, now = self._factory, self._factory.wall.now()
        factory.counters["requests"] += 1
        self.setTimeout(None)
        request = self._request = Request(factory.tables, now)
        request.started = self._clock.seconds()
        try:
            request.read(self._lines)
            self._waits = request.waits()
        except RequestError as error:
            self._answer(error.code, f"{error.text}\n".encode("utf-8", "surrogateescape"))
        except CoreDiedError as death:
            # Nothing more is sent: this is how the end of the process looks.
            self._closed = True
            self.close()
            factory.die(death.line)
        else:
            if not self._waits:
                self._start()
            elif request.wait_timeout:
                self._later(request.wait_timeout / 1000, self._awake)

    def wake(self, trigger: str) -> None:
        """End waiting when it is for what has happened."""
        if self._waits and self._request is not None and self._request.has_waited(trigger):
            # Not at once: the change that ends it is still being made.
            self._later(0, self._awake)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        if self._next is not None and self._next.active():
            self._next.cancel()
        self._next = self._clock.callLater(seconds, call)

    def _awake(self) -> None:
        self._waits = False
        self._start()
        self._advance()

    def _start(self) -> None:
        assert self._request is not None
        self._steps = answer(self._request, self._clock.seconds)
        self._work()

    def _work(self) -> None:
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
                    self._later(0, self._go_on)
                    return

    def _go_on(self) -> None:
        self._work()
        self._advance()

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
        self.setTimeout(None)
        self.close()
