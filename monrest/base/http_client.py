"""HTTP with another program, over the endpoint that the caller gives: limits, and reasons in words.

No redirect is followed, no proxy of the environment is used, nothing is sent a second time, and a
request that may change something gets a connection of its own: a kept one may just be closing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.error import ConnectionClosed
from twisted.internet.interfaces import (
    IConsumer,
    IDelayedCall,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, HTTPConnectionPool, ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

from monrest.base.connecting import (
    CONNECT_TIMEOUT,
    ExchangeError,
    NotConnectedError,
    in_seconds,
    not_connected,
    tls_reason,
)

T = TypeVar("T")

LARGEST_HEAD = 65_536
"""Bytes of the head of an answer, with what is sent in front of it (``100 Continue``)."""

_IDLE = 60.0
_LINGER = 1.0
"""Seconds that the other side has to let a connection end."""
_MOST_WAITING = 1 << 20
"""Bytes of a body that wait for a slow reader before the connection is paused."""


class LateError(ExchangeError):
    """There was no answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"timed out after {in_seconds(seconds)}")
        self.seconds = seconds


class BrokenOffError(ExchangeError):
    """The connection ended before the answer was complete; ``answered``: its head was there.

    ``reused``: the connection was a kept one, which the other side may have closed meanwhile.
    """

    def __init__(self, *, answered: bool, reused: bool = False) -> None:
        super().__init__("the connection was closed before the answer was complete")
        self.answered, self.reused = answered, reused


class BadAnswerError(ExchangeError):
    """The answer is no HTTP, or longer than the limit."""


def in_time(
    work: Coroutine[Deferred[Any], Any, T], seconds: float, clock: IReactorTime
) -> Deferred[T]:
    """The result of ``work``, which is cancelled after ``seconds``; LateError then."""
    return Deferred.fromCoroutine(work).addTimeout(seconds, clock, _late)


def _late(result: Any, seconds: float) -> Any:
    if isinstance(result, Failure):
        raise LateError(seconds)
    return result


@define(eq=False, kw_only=True)
class HttpClient:
    """Sends requests to where ``endpoint`` connects for a URL, not to the address in the URL.

    ``keep``: idle connections at most. ``largest``: bytes of a body, None for no limit.
    ``connect_seconds``: the time-out of the endpoint, for the words.
    """

    reactor: Any
    endpoint: Callable[[URI], IStreamClientEndpoint]
    keep: int = 0
    largest: int | None = None
    connect_seconds: float = CONNECT_TIMEOUT
    _kept: HTTPConnectionPool = field(init=False)
    _fresh: HTTPConnectionPool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._kept = _Connections(self.reactor, persistent=self.keep > 0)
        self._kept.maxPersistentPerHost = self.keep
        self._kept.cachedConnectionTimeout = _IDLE  # type: ignore[assignment]  # also a fraction
        # What is sent again is decided by the caller, who knows whether it does harm.
        self._kept.retryAutomatically = False
        self._fresh = _Connections(self.reactor, persistent=False)

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        kept: bool = False,
    ) -> HttpAnswer:
        """Send a request and return the beginning of its answer; raises ExchangeError.

        ``kept``: it may go over a connection that was used before. When it is cancelled, its
        connection is closed.
        """
        request = _Request(self)
        sent = Headers(
            {
                name.encode(): [value.encode("utf-8", "surrogateescape")]
                for name, value in headers.items()
            }
        )
        pool = self._kept if kept else self._fresh
        agent = Agent.usingEndpointFactory(self.reactor, request, pool)
        producer = None if body is None else _WholeBody(body)
        asked = agent.request(method.encode("ascii"), url.encode("ascii"), sent, producer)
        try:
            response = await _until_left(asked)
        except (CancelledError, ExchangeError):
            raise
        except Exception as error:
            connection = request.connection
            if connection is None:
                raise not_connected(error, self.connect_seconds) from error
            if connection.head > LARGEST_HEAD:
                raise _too_long(LARGEST_HEAD) from error
            raise _meaning(error, answered=False, reused=request.reused) from error
        assert request.connection is not None
        request.connection.counts = False
        return HttpAnswer(self, response)

    def close(self) -> Deferred[object]:
        """Close the idle connections; the others close by themselves."""
        closed: Deferred[object] = self._kept.closeCachedConnections()
        return closed


class HttpAnswer(Protocol):
    """An answer whose body is still on its way: it is read to its end, or closed."""

    transport: Any

    def __init__(self, client: HttpClient, response: Any) -> None:
        self.status: int = response.code
        self.headers: Headers = response.headers
        self._client = client
        self._size = self._waiting = 0
        self._pieces: deque[bytes] = deque()
        self._whole: bytearray | None = None
        self._wanted: Deferred[None] | None = None
        self._over = False
        self._problem: ExchangeError | None = None
        response.deliverBody(self)
        if isinstance(response.length, int):
            self._bound(response.length)

    async def read(self) -> bytes:
        """The whole body, or what is left of it; raises ExchangeError."""
        self._whole = bytearray().join(self._pieces)
        self._pieces.clear()
        self.transport.resumeProducing()
        while not self._over:
            await self._more(None)
        if self._problem is not None:
            raise self._problem
        return bytes(self._whole)

    async def piece(self, silence: float | None = None) -> bytes:
        """The next bytes of the body, none at its end; raises ExchangeError.

        ``silence``: the seconds that they may take. Cancelling closes the connection.
        """
        while not self._pieces:
            if self._problem is not None:
                raise self._problem
            if self._over:
                return b""
            await self._more(silence)
        piece = self._pieces.popleft()
        before, self._waiting = self._waiting, self._waiting - len(piece)
        if before > _MOST_WAITING >= self._waiting and not self._over:
            self.transport.resumeProducing()
        return piece

    async def _more(self, silence: float | None) -> None:
        wanted = self._wanted = Deferred()
        if silence is not None:
            wanted.addTimeout(silence, self._client.reactor, _late)
        try:
            await wanted
        except (CancelledError, LateError):
            self.close()
            raise

    def close(self) -> None:
        """Read no further, and close the connection; nothing to do at the end."""
        if not self._over:
            self._over = True
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        self._size += len(data)
        self._bound(self._size)
        if self._over:
            return
        if self._whole is not None:
            # Not in ``read``, which would hold a piece while this grows: all of it would be copied.
            self._whole += data
            return
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_WAITING:
            self.transport.pauseProducing()
        self._wake()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._over:
            return
        self._over = True
        if not reason.check(ResponseDone, PotentialDataLoss):
            self._problem = _meaning(reason.value, answered=True)
        self._wake()

    def _bound(self, size: int) -> None:
        most = self._client.largest
        if most is not None and size > most and not self._over:
            self._problem = _too_long(most)
            self.close()
            self._wake()

    def _wake(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            wanted.callback(None)


def _until_left(asked: Deferred[T]) -> Deferred[T]:
    """As ``asked``, which makes various errors of being cancelled."""
    left = False

    def leave(_: Deferred[T]) -> None:
        nonlocal left
        left = True
        asked.cancel()

    waiting: Deferred[T] = Deferred(leave)
    asked.addBoth(lambda result: None if left else waiting.callback(result))
    return waiting


def _too_long(most: int) -> BadAnswerError:
    return BadAnswerError(f"an answer of more than {most} bytes")


def _meaning(error: BaseException | None, *, answered: bool, reused: bool = False) -> ExchangeError:
    """The error for a failure of Twisted's client on a connection."""
    reasons: list[Failure] = getattr(error, "reasons", [])
    for reason in reasons:
        if refused := tls_reason(reason.value):
            return NotConnectedError(refused, connected=True)
    if not reasons or any(reason.check(ConnectionClosed) for reason in reasons):
        return BrokenOffError(answered=answered, reused=reused)
    return BadAnswerError("not an answer of HTTP")


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
class _Request:
    """One request as Twisted's agent sees it: where it goes, and the connection that it got."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self.connection: _Connection | None = None
        self.reused = True

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        self._uri = uri
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        self.reused = False
        factory = _Watched(protocolFactory, self._client.reactor)
        connecting: Deferred[Any] = self._client.endpoint(self._uri).connect(factory)
        return connecting.addCallback(lambda connection: connection.wrappedProtocol)


class _Connections(HTTPConnectionPool):
    def getConnection(self, key: Any, endpoint: Any) -> Deferred[Any]:
        def begin(protocol: Any) -> Any:
            endpoint.connection = protocol.transport
            endpoint.connection.counts, endpoint.connection.head = True, 0
            return protocol

        return super().getConnection(key, endpoint).addCallback(begin)


class _Connection(ProtocolWrapper):
    """Ends when a head, which Twisted does not bound, gets too long, and soon after it is asked to.

    ``head``: bytes of it that came, while it ``counts`` them.
    """

    counts = False
    head = 0
    _ending: IDelayedCall | None = None

    def dataReceived(self, data: bytes) -> None:
        if self.counts:
            if self.head > LARGEST_HEAD:
                self.abortConnection()
                return
            # The piece that reaches the limit is read: it may be the first of a body.
            self.head += len(data)
        super().dataReceived(data)

    def loseConnection(self) -> None:
        """End politely; where the other side does not let it end, anyhow."""
        super().loseConnection()
        if self._ending is None:
            self._ending = self.factory.reactor.callLater(_LINGER, self.abortConnection)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._ending is not None and self._ending.active():
            self._ending.cancel()
        super().connectionLost(reason)


class _Watched(WrappingFactory):
    protocol = _Connection
    noisy = False

    def __init__(self, wrapped: Any, reactor: Any) -> None:
        super().__init__(wrapped)
        self.reactor = reactor


@implementer(IBodyProducer)
@frozen(eq=False)
class _WholeBody:
    """A body that is in memory, written in one go."""

    body: bytes

    @property
    def length(self) -> int:
        return len(self.body)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self.body)
        return succeed(None)

    def stopProducing(self) -> None:
        """Nothing is left to be stopped."""

    pauseProducing = resumeProducing = stopProducing
