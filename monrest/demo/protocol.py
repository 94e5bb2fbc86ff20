"""One client connection: lines to requests, answers in order."""

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

from monrest.demo.core import Core
from monrest.demo.execute import Steps, execute
from monrest.demo.filters import CoreDiedError, RequestError
from monrest.demo.request import Framing, Request, read_request
from monrest.demo.tables import Table
from monrest.demo.waiting import Waiting, must_wait

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
    tables: Mapping[str, Table]
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
        self._steps: Steps | None = None
        self._framing = Framing()
        self._next: IDelayedCall | None = None
        self._timeout: IDelayedCall | None = None
        self._waiting: Waiting | None = None
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
        """Nobody reads any more."""

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
        """Say nothing more: this is how the end of the process looks."""
        self._closed = True
        self.close()

    # ------------------------------------------------------------------ requests

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
                    self._request()
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
            self._request()
            if not self._busy():
                self._end()
        else:
            self._end()

    def _request(self) -> None:
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
        self._factory.core.counters["requests"] += 1
        self._expect(None)
        framing = self._framing = Framing()
        try:
            request = read_request(
                self._lines, self._factory.tables, framing, self._factory.core.wall.now()
            )
            wait = must_wait(request)
        except RequestError as error:
            self._answer(error.code, f"{error.text}\n".encode("utf-8", "surrogateescape"))
            return
        except CoreDiedError as death:
            self.abort()
            self._factory.die(death.line)
            return
        if wait:
            core = self._factory.core
            self._waiting = Waiting(core, self._clock, request, lambda: self._resume(request))
            self._waiting.start()
        else:
            self._begin(request)

    def _begin(self, request: Request) -> None:
        self._steps = execute(self._factory.core, request)
        self._work()

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
                    self._next = self._clock.callLater(0, self._resume)
                    return

    def _resume(self, request: Request | None = None) -> None:
        """Go on with the answer, or begin it after having waited."""
        self._waiting = None
        if request is None:
            self._work()
        else:
            self._begin(request)
        if self._next is None:
            self._advance()

    # ------------------------------------------------------------------ answers

    def _answer(self, code: int, body: bytes) -> None:
        if self._framing.fixed16:
            self._send(b"%03d %11d\n" % (code, len(body)))
        self._send(body)
        if not self._framing.keep_alive:
            self._end()

    def _refuse(self, code: int, text: str) -> None:
        """An answer without a header, whatever was asked for, and the end."""
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
