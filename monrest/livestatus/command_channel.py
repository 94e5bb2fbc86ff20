"""Sending commands to one core: over a connection of its own beside those of the pool.

One transmission at a time, in order; nothing is ever sent a second time. A caller that stops
waiting does not end a transmission, because a command that was cut may have been executed or not
(docs/spec/livestatus.md, "Commands on the wire").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IHandshakeListener,
    IProtocol,
    IReactorTime,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.base.concurrency import after
from monrest.base.connecting import CONNECT_TIMEOUT, in_seconds
from monrest.base.sockets import write_now
from monrest.base.values import always
from monrest.livestatus.connection import ConnectionFactory
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    LivestatusError,
    ProtocolError,
    QueryTimeoutError,
    StoppedError,
    WithdrawnError,
    connect_error,
    tls_error,
)
from monrest.livestatus.external import keeps_connection, pipelines, request
from monrest.livestatus.verdicts import Verdict, VerdictReader, reader_for

IDLE = 5.0
"""Seconds that the connection is kept without work; a reload of a core may wait for it."""
STOP_LIMIT = 10.0
"""Seconds that a stop waits for the transmission under way."""


@frozen
class TransmissionOutcome:
    """The outcome of the lines of one transmission.

    ``verdicts`` are those of the first lines, in order. ``written``: that many lines were given
    to the connection; those behind ``verdicts`` may have been executed or not, those behind
    ``written`` were not. ``error`` is None when there is a verdict for every line.
    """

    verdicts: tuple[Verdict, ...]
    written: int
    error: LivestatusError | None = None


@define(eq=False)
class _Transmission:
    lines: tuple[str, ...]
    kind: str
    allowed: Callable[[], bool]
    done: Deferred[TransmissionOutcome] = field(factory=Deferred)
    written: int = 0
    verdicts: list[Verdict] = field(factory=list)
    late: IDelayedCall | None = None

    def end_within(
        self, clock: IReactorTime, seconds: float, late: Callable[..., None], *what: object
    ) -> None:
        """Call ``late`` after ``seconds``, unless the time is over before that anyway."""
        if self.late is not None:
            if self.late.getTime() <= clock.seconds() + seconds:
                return
            self.late.cancel()
        self.late = clock.callLater(seconds, late, *what)

    def end(self, error: LivestatusError | None = None) -> None:
        if self.late is not None and self.late.active():
            self.late.cancel()
        self.done.callback(TransmissionOutcome(tuple(self.verdicts), self.written, error))


class CommandConnection(Protocol):
    """A connection from its attempt on; calls its channel when something happens.

    ``ready``: it can be written to. ``reader`` reads what the core answers, None while nothing is
    expected.
    """

    def __init__(self, channel: CommandChannel) -> None:
        self.channel = channel
        self.ready = False
        self.reader: VerdictReader | None = None
        self.attempt: Deferred[IProtocol] | None = None

    def connectionMade(self) -> None:
        self.ready = True
        self.channel.connected(self)

    def send(self, lines: bytes) -> None:
        """Send what was allowed a moment ago; no turn of the reactor may lie in between.

        A daemon that is stopped there would tell the core when others have done it already.
        """
        write_now(self.transport, lines)

    def end_request(self) -> None:
        """Close the sending side; what the core answers is still read."""
        cast("ITCPTransport", self.transport).loseWriteConnection()

    def dataReceived(self, data: bytes) -> None:
        self.channel.heard(self, data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.channel.lost(self, reason)

    def abort(self) -> None:
        """End it at once, or the attempt."""
        if self.transport is not None:
            cast("ITCPTransport", self.transport).abortConnection()
        elif self.attempt is not None:
            self.attempt.cancel()


@implementer(IHandshakeListener)
class TLSCommandConnection(CommandConnection):
    """A connection that can be used after its handshake."""

    def connectionMade(self) -> None:
        """Wait for the handshake."""

    def handshakeCompleted(self) -> None:
        super().connectionMade()


@define(eq=False)
class CommandChannel:
    """Sends commands to the core behind ``endpoint``, which is called for each connection.

    ``idle`` and ``connect_timeout`` are seconds.
    """

    clock: IReactorTime
    endpoint: Callable[[], IStreamClientEndpoint]
    tls: bool = False
    backend: str = ""
    """The site that an LMD is to give the commands to."""
    idle: float = IDLE
    connect_timeout: float = CONNECT_TIMEOUT
    _waiting: deque[_Transmission] = field(init=False, factory=deque)
    _current: _Transmission | None = field(init=False, default=None)
    _connection: CommandConnection | None = field(init=False, default=None)
    _dying: set[CommandConnection] = field(init=False, factory=set)
    _timer: IDelayedCall | None = field(init=False, default=None)
    """Rings when connecting takes too long, or when the connection was idle for long enough."""
    _stopped: Deferred[None] | None = field(init=False, default=None)

    @property
    def quiet(self) -> bool:
        """Whether nothing is left: no transmission, no connection."""
        return not (self._waiting or self._current or self._connection or self._dying)

    def transmit(
        self,
        lines: Sequence[str],
        kind: str,
        timeout: float,
        allowed: Callable[[], bool] = always,
    ) -> Deferred[TransmissionOutcome]:
        """Send ``lines`` to a core of this kind, after those that were given earlier.

        ``timeout`` seconds include waiting and connecting. Never fails; cancelling ends the wait
        alone. ``allowed`` is asked right before anything is written: if not, nothing more is.
        """
        transmission = _Transmission(tuple(lines), kind, allowed)
        if self._stopped is not None:
            transmission.end(StoppedError())
            return transmission.done
        transmission.end_within(
            self.clock, timeout, self._late, transmission, QueryTimeoutError(timeout)
        )
        self._waiting.append(transmission)
        self._next()
        return transmission.done

    def keep(self, idle: float) -> None:
        """Keep the connection without work for ``idle`` seconds from now on; 0 is not at all."""
        self.idle = idle
        if self._current is None and self._connection is not None:
            self._rest()

    def end(self, error: LivestatusError) -> None:
        """Give up what is under way and what waits, because the core does not listen."""
        waiting, self._waiting = self._waiting, deque()
        if self._current is not None:
            self._finish(error)
        for waiter in waiting:
            waiter.end(error)

    def stop(self) -> Deferred[None]:
        """Finish the transmission under way and close; fires when no connection is left.

        What has not begun fails without having been sent. After ``STOP_LIMIT`` seconds the
        transmission is cut.
        """
        if self._stopped is None:
            self._stopped = Deferred()
            waiting, self._waiting = self._waiting, deque()
            current = self._current
            if current is None:
                self._drop()
            elif not current.written:
                self._finish(StoppedError())
            else:
                current.end_within(self.clock, STOP_LIMIT, self._late, current, StoppedError())
            for waiter in waiting:
                waiter.end(StoppedError())
            self._check_stopped()
        return after(self._stopped)

    def _next(self) -> None:
        """Begin the transmission that waits longest, if none is under way."""
        if self._current is not None or not self._waiting:
            return
        self._ring(None)
        self._current = self._waiting.popleft()
        self._go_on()

    def _go_on(self) -> None:
        """Write what may be written of the transmission under way, connecting before if needed."""
        current, connection = self._current, self._connection
        assert current is not None
        if connection is None:
            self._connect()
        elif connection.ready and not current.allowed():
            self._finish(WithdrawnError())
        elif connection.ready:
            if connection.reader is None:
                connection.reader = reader_for(current.kind)
            end = len(current.lines) if pipelines(current.kind) else current.written + 1
            lines = current.lines[current.written : end]
            current.written = end
            text = b"".join(request(line, current.kind, self.backend) for line in lines)
            connection.send(text)
            if not keeps_connection(current.kind):
                connection.end_request()

    def _connect(self) -> None:
        connection = (TLSCommandConnection if self.tls else CommandConnection)(self)
        self._connection = connection
        self._ring(self.connect_timeout)
        connection.attempt = self.endpoint().connect(ConnectionFactory(lambda: connection))
        connection.attempt.addErrback(self._not_connected, connection)

    def _finish(self, error: LivestatusError | None = None) -> None:
        """End the transmission under way and turn to the next."""
        current, self._current = self._current, None
        assert current is not None
        if error is not None or self._stopped is not None or not keeps_connection(current.kind):
            self._drop()
        elif self._connection is not None:
            self._rest()
        current.end(error)
        self._next()
        self._check_stopped()

    def connected(self, connection: CommandConnection) -> None:
        """The connection can be used by the transmission that waits for it."""
        if connection is not self._connection:
            connection.abort()
            return
        self._ring(None)
        self._go_on()

    def heard(self, connection: CommandConnection, data: bytes) -> None:
        """Collect verdicts; unasked bytes end the connection before they are taken for some."""
        if connection is not self._connection:
            return
        current, reader = self._current, connection.reader
        if current is None or reader is None:
            self._drop()
            return
        count = len(reader.verdicts)
        error: LivestatusError | None = None
        try:
            reader.feed(data)
        except ProtocolError as broken:
            error = broken
        current.verdicts += reader.verdicts[count:]
        if len(current.verdicts) > current.written:
            del current.verdicts[current.written :]
            error = error or ProtocolError("more answers than commands")
        done = len(current.verdicts) == len(current.lines)
        if done or error is not None:
            if error is not None or reader.amid:
                self._drop()
            self._finish(None if done else error)
        elif len(current.verdicts) == current.written:
            if not keeps_connection(current.kind):
                self._drop()
            self._go_on()

    def lost(self, connection: CommandConnection, reason: Failure) -> None:
        """End the transmission under way, if it was this connection's."""
        self._dying.discard(connection)
        if connection is self._connection:
            self._connection = None
            self._ring(None)
            if self._current is not None:
                self._finish(_why_lost(connection, reason))
        self._check_stopped()

    def _not_connected(self, failure: Failure, connection: CommandConnection) -> None:
        self._dying.discard(connection)
        if connection is self._connection:
            self._connection = None
            self._ring(None)
            if self._current is not None:
                self._finish(connect_error(failure, self.connect_timeout))
        self._check_stopped()

    def _rest(self) -> None:
        assert self._connection is not None
        self._connection.reader = None
        if self.idle:
            self._ring(self.idle)
        else:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._ring(None)
        if connection is not None:
            self._dying.add(connection)
            connection.abort()

    def _ring(self, seconds: float | None) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None if seconds is None else self.clock.callLater(seconds, self._rang)

    def _rang(self) -> None:
        if self._current is None:
            self._drop()
        else:
            reason = f"timed out connecting after {in_seconds(self.connect_timeout)}"
            self._finish(ConnectError(reason, timed_out=True))

    def _late(self, transmission: _Transmission, error: LivestatusError) -> None:
        if transmission is self._current:
            self._finish(error)
        else:
            self._waiting.remove(transmission)
            transmission.end(error)

    def _check_stopped(self) -> None:
        if self._stopped is not None and not self._stopped.called and self.quiet:
            self._stopped.callback(None)


def _why_lost(connection: CommandConnection, reason: Failure) -> LivestatusError:
    tls = tls_error(reason)
    if not connection.ready:
        return tls or ConnectError("connection lost")
    if connection.reader is not None and connection.reader.amid:
        return BrokenConnectionError("connection lost in the middle of an answer")
    return tls or BrokenConnectionError("connection closed without an answer")
