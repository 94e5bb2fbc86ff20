"""Calling another node over HTTP: one question, sealed both ways, short and with a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from attrs import define, field
from twisted.internet.defer import CancelledError
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.error import ConnectError, ConnectingCancelledError, ConnectionClosed
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.web.client import Agent, HTTPConnectionPool, ResponseFailed
from twisted.web.client import RequestTransmissionFailed as NotSent
from twisted.web.http_headers import Headers

from monrest.base.names import Names
from monrest.cluster import seal
from monrest.cluster.model import PeerError, Pong
from monrest.config.frontend import without_slash

if TYPE_CHECKING:
    from treq.client import HTTPClient

_CONNECT_SECONDS = 5
_LONGEST_ANSWER = 16384
_OK = 200


class ClosedError(PeerError):
    """The connection was closed before there was an answer."""


@define(eq=False, kw_only=True)
class Peers:
    """``key`` is the secret that all nodes share; a new configuration replaces it and ``names``."""

    reactor: Any
    names: Names
    key: bytes = field(default=b"", repr=False)
    _client: HTTPClient | None = field(default=None, init=False)
    _pool: HTTPConnectionPool = field(init=False)

    def configure(self, names: Names, key: bytes) -> None:
        self.names, self.key = names, key

    def __attrs_post_init__(self) -> None:
        self._pool = HTTPConnectionPool(self.reactor)
        # The same number must not be sent twice.
        self._pool.retryAutomatically = False

    def client(self) -> HTTPClient:
        """Made with the first call: a daemon without other nodes does not load treq."""
        if self._client is None:
            from treq.client import HTTPClient

            agent = Agent(self.reactor, connectTimeout=_CONNECT_SECONDS, pool=self._pool)
            self._client = HTTPClient(agent)
        return self._client

    async def ping(self, url: str) -> Pong:
        """Ask the node at the base URL ``url`` how it is; PeerError when it does not say."""
        try:
            return await self._ping(url)
        except ClosedError:
            # Mostly a connection that was kept too long; the next one is new.
            return await self._ping(url)

    async def _ping(self, url: str) -> Pong:
        number, plain = seal.new_number(), without_slash(url)
        header = self.names.header("Cluster-Auth")
        try:
            response = await self.client().get(
                f"{url.rstrip('/')}{self.names.root}/{self.names.app}/cluster/ping",
                params={"url": plain},
                headers=Headers({header: [seal.of_call(self.key, number, plain)]}),
                allow_redirects=False,
                unbuffered=True,
            )
            body = await _body(response)
        except CancelledError:
            raise
        except (PeerError, DeferredTimeout):
            raise
        except (ResponseFailed, NotSent) as error:
            if any(reason.check(CancelledError) for reason in error.reasons):
                raise CancelledError from error
            closed = any(reason.check(ConnectionClosed) for reason in error.reasons)
            raise (ClosedError if closed else PeerError)(_reason(error)) from error
        except Exception as error:
            raise PeerError(_reason(error)) from error
        if response.code != _OK:
            raise PeerError(_refusal(response.code, body))
        value = _object(body)
        if not seal.is_sealed(self.key, number, value):
            raise PeerError("wrong answer: not sealed with this node's secret key")
        return Pong.read(value)

    async def close(self) -> None:
        await self._pool.closeCachedConnections()


async def _body(response: Any) -> bytes:
    """PeerError for more than ``_LONGEST_ANSWER`` bytes."""
    body = bytearray()

    def collect(data: bytes) -> None:
        body.extend(data)
        if len(body) > _LONGEST_ANSWER:
            raise PeerError("wrong answer: too long")

    from treq import collect as read

    await read(response, collect)
    return bytes(body)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise PeerError("wrong answer: no JSON") from None
    if not isinstance(value, dict):
        raise PeerError("wrong answer: no JSON object")
    return value


def _refusal(code: int, body: bytes) -> str:
    try:
        message = _object(body).get("message")
    except PeerError:
        message = None
    return f"status {code}: {message[:200]}" if isinstance(message, str) else f"status {code}"


def _reason(error: Exception) -> str:
    if isinstance(error, (ResponseFailed, NotSent)) and error.reasons:
        inner = error.reasons[-1].value
        if isinstance(inner, Exception) and not isinstance(inner, ResponseFailed):
            return _reason(inner)
    if isinstance(error, (ConnectTimeout, ConnectingCancelledError)):
        return "no answer in time"
    if isinstance(error, ConnectionClosed):
        return "the connection was closed"
    if isinstance(error, ConnectError):
        return f"no connection: {error.args[0] if error.args else type(error).__name__}"
    return f"{type(error).__name__}: {error}"[:200]
