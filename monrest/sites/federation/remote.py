"""HTTP with another instance: one request, on behalf of a user, with a time-out and a limit.

No redirect is followed, so that the key reaches no other host (docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore, succeed
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.error import ConnectError as NotConnected
from twisted.internet.interfaces import IConsumer, IStreamClientEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import (
    Agent,
    HTTPConnectionPool,
    RequestTransmissionFailed,
    ResponseDone,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

from monrest.base.connecting import CONNECT_TIMEOUT
from monrest.base.errors import Unavailable
from monrest.base.trace import handed_on
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    LivestatusError,
    ProtocolError,
    QueryTimeoutError,
    connect_error,
    first_line,
    tls_error,
)
from monrest.livestatus.endpoints import endpoint_for

if TYPE_CHECKING:
    from monrest.config.sections import SiteConfig

HEADER = "Federation"
"""The header (``X-Mon-Federation``) that names the instances which a request has visited."""

MOST_HOPS = 5
"""Instances that a request may visit on its way, the first one included."""

LARGEST_ANSWER = 256 << 20
"""Bytes of an answer that are read."""

Sink = Callable[[bytes], None]
"""Gets bytes of a body in their order; raises ProtocolError to read no more of it."""

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

_KEEP = 60.0
_GATEWAY_TIMEOUT = 504


class RefusedByRemoteError(LivestatusError):
    """The other side answered with an error; ``document`` is what it said."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        words = [document.get(name) for name in ("message", "description")]
        told = ": ".join(first_line(one) for one in words if isinstance(one, str) and one)
        super().__init__(f"{status}: {told}" if told else f"status {status}")
        self.status = status
        self.document = document
        self.timed_out = status == _GATEWAY_TIMEOUT


@frozen
class OnBehalfOf:
    """The user for whom something is asked, whose rights count on the other side.

    Without a ``user`` it is for this instance itself. ``visited`` are the instances that the
    request came through before this one.
    """

    user: str = ""
    visited: tuple[str, ...] = ()


ITSELF = OnBehalfOf()


@define(eq=False, kw_only=True)
class Remote:
    """The other side of one configured address; ``instance`` gives this one's id.

    At most ``config.connections`` requests run at the same time.
    """

    reactor: Any
    config: SiteConfig
    instance: Callable[[], str]
    largest: int = LARGEST_ANSWER
    root: str = field(init=False)
    _app: str = field(init=False)
    _reading: Agent = field(init=False)
    _changing: Agent = field(init=False)
    _kept: HTTPConnectionPool = field(init=False)
    _turns: DeferredSemaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        where = self.config.where()
        self.root, self._app = f"{where.url}/r/v1", where.app
        kept = HTTPConnectionPool(self.reactor)
        kept.maxPersistentPerHost = self.config.connections
        # What is sent again is decided here: Twisted would not look whether it did any harm.
        kept.retryAutomatically = False
        kept.cachedConnectionTimeout = _KEEP  # type: ignore[assignment]  # seconds, also a fraction
        # What changes something is never sent again by itself, so it gets no connection that
        # the other side may be about to close.
        fresh = HTTPConnectionPool(self.reactor, persistent=False)
        self._kept = kept
        factory = _Endpoints(self.reactor, self.config)
        self._reading = Agent.usingEndpointFactory(self.reactor, factory, kept)
        self._changing = Agent.usingEndpointFactory(self.reactor, factory, fresh)
        self._turns = DeferredSemaphore(self.config.connections)

    def call(
        self,
        method: str,
        path: str,
        timeout: float,
        whom: OnBehalfOf = ITSELF,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        reads: bool = True,
        urgent: bool = False,
        sink: Sink | None = None,
    ) -> Deferred[bytes]:
        """Give the body of the answer to a request below the API's root.

        ``path`` begins with a slash and is quoted already. ``timeout`` seconds include waiting
        for a connection. ``reads``: it may be sent on a kept connection. ``urgent``: a probe,
        which waits for no other request and is sent again when a kept connection has ended.
        ``sink`` gets the body of a success while it arrives, and nothing of it is given.
        A PartialBody is given when the other side names failed sites. Fails with ConnectError when
        nothing was sent, and with other LivestatusErrors.
        """

        def late(result: Any, seconds: float) -> Any:
            if isinstance(result, Failure):
                raise QueryTimeoutError(seconds)
            return result

        request = _Request(
            method=method.encode(),
            url=(self.root + path).encode(),
            headers=self._headers(whom, None if body is None else content_type),
            body=body,
            sink=sink,
        )
        work = self._call(request, len(whom.visited), reads=reads, urgent=urgent)
        return Deferred.fromCoroutine(work).addTimeout(timeout, self.reactor, late)

    async def _call(self, request: _Request, visited: int, *, reads: bool, urgent: bool) -> bytes:
        if visited >= MOST_HOPS:
            raise ProtocolError(f"more than {MOST_HOPS} instances one behind the other")
        agent = self._reading if reads else self._changing
        if urgent:
            try:
                return await self._sent(agent, request)
            except BrokenConnectionError as error:
                if not error.kept:
                    raise
                return await self._sent(self._changing, request)
        await self._turns.acquire()
        try:
            return await self._sent(agent, request)
        finally:
            self._turns.release()

    async def _sent(self, agent: Agent, request: _Request) -> bytes:
        answered = False
        try:
            response = await agent.request(
                request.method,
                request.url,
                request.headers,
                None if request.body is None else WholeBody(request.body),
            )
            answered = True
            good = 200 <= response.code < 300
            answer = await _body(response, self.largest, request.sink if good else None)
        except (CancelledError, DeferredTimeout, LivestatusError, Unavailable):
            raise
        except Exception as error:
            raise exchange_problem(Failure(error), kept=not answered) from error
        body = _accepted(response.code, answer)
        failed = response.headers.getRawHeaders(f"X-{self._app.title()}-Failed-Sites")
        return PartialBody(body) if failed else body

    def _headers(self, whom: OnBehalfOf, content_type: str | None) -> Headers:
        prefix = f"X-{self._app.title()}-"
        visited = ",".join((*whom.visited, self.instance()))
        headers = {
            "Accept": JSON,
            "User-Agent": "monrest",
            f"{prefix}Auth-Key": self.config.auth_key,
            f"{prefix}{HEADER}": visited,
        }
        if whom.user:
            headers[f"{prefix}Auth-User"] = whom.user
        if trace := handed_on():
            headers["traceparent"] = trace
        if content_type is not None:
            headers["Content-Type"] = content_type
        return Headers({name.encode(): [value.encode()] for name, value in headers.items()})

    def close(self) -> Deferred[object]:
        """Close the connections that are kept; the others close by themselves."""
        closed: Deferred[object] = self._kept.closeCachedConnections()
        return closed


@frozen(eq=False, kw_only=True)
class _Request:
    """What is sent to the other side."""

    method: bytes
    url: bytes
    headers: Headers
    body: bytes | None
    sink: Sink | None


class PartialBody(bytes):
    """An answer in which something is missing, because sites of the other side have failed."""


@implementer(IBodyProducer)
@frozen(eq=False)
class WholeBody:
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


@implementer(IAgentEndpointFactory)
@frozen(eq=False)
class _Endpoints:
    """Connects to the configured address, whatever the URL says, with the site's TLS."""

    reactor: Any
    config: SiteConfig

    def endpointForURI(self, _uri: object) -> IStreamClientEndpoint:
        return endpoint_for(self.reactor, self.config)


class _Body(Protocol):
    """Collects a body up to a limit, or hands it on."""

    def __init__(self, largest: int, sink: Sink | None) -> None:
        self.largest = largest
        self.sink = sink
        self.size = 0
        self.parts = bytearray()
        self.done: Deferred[bytes] = Deferred(lambda _: self._cut())
        self.ended = False

    def _cut(self) -> None:
        self.ended = True
        if self.transport is not None:
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        if self.ended:
            return
        self.size += len(data)
        if self.size > self.largest:
            self.too_long()
        elif self.sink is None:
            self.parts += data
        else:
            try:
                self.sink(data)
            except (ProtocolError, Unavailable) as error:
                self._refuse(error)

    def too_long(self) -> None:
        if not self.ended:
            self._refuse(ProtocolError(f"an answer of more than {self.largest} bytes"))

    def _refuse(self, error: Exception) -> None:
        self._cut()
        self.done.errback(error)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.ended:
            return
        self.ended = True
        if reason.check(ResponseDone, PotentialDataLoss):
            self.done.callback(bytes(self.parts))
        else:
            self.done.errback(reason)


def _body(response: Any, largest: int, sink: Sink | None) -> Deferred[bytes]:
    body = _Body(largest, sink)
    response.deliverBody(body)
    if isinstance(response.length, int) and response.length > largest:
        body.too_long()
    return body.done


def _accepted(status: int, body: bytes) -> bytes:
    """Give the body of a success; raise what everything else means."""
    if 200 <= status < 300:
        return body
    if 300 <= status < 400:
        raise ProtocolError(f"status {status}: redirects are not followed")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = {}
    raise RefusedByRemoteError(status, document if isinstance(document, dict) else {})


def exchange_problem(failure: Failure, *, kept: bool) -> LivestatusError:
    """Say what a failure of Twisted's client means; ``kept``: nothing was answered."""
    value = failure.value
    if isinstance(value, LivestatusError):
        return value
    if isinstance(value, (ResponseFailed, ResponseNeverReceived, RequestTransmissionFailed)):
        for reason in value.reasons:
            if reason.check(CancelledError):
                raise CancelledError from value
            refused = tls_error(reason)
            if refused is not None:
                return refused
        text = "the connection was closed before the answer was complete"
        return BrokenConnectionError(text, kept=kept)
    if isinstance(value, (NotConnected, OSError)):
        return connect_error(failure, CONNECT_TIMEOUT)
    found = connect_error(failure, CONNECT_TIMEOUT)
    if found.reason != ConnectError("cannot connect").reason:
        return found
    return ProtocolError("not an answer of HTTP")
