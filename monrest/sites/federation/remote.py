"""HTTP with another instance: one request, on behalf of a user, with a time-out and a limit.

No redirect is followed, so that the key reaches no other host (docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson
from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.python.failure import Failure

from monrest.base.connecting import CONNECT_TIMEOUT, ExchangeError, NotConnectedError
from monrest.base.http_client import BrokenOffError, HttpClient, LateError, in_time
from monrest.base.trace import handed_on
from monrest.base.values import nothing
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    LivestatusError,
    ProtocolError,
    QueryTimeoutError,
    connect_error,
    first_line,
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

_GATEWAY_TIMEOUT = 504


class RefusedByRemoteError(LivestatusError):
    """The other side answered with an error; ``document`` is its body."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        words = [document.get(name) for name in ("message", "description")]
        text = ": ".join(first_line(word) for word in words if isinstance(word, str) and word)
        super().__init__(f"{status}: {text}" if text else f"status {status}")
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
    """The other side of one configured address; ``instance`` returns this one's id.

    At most ``config.connections`` requests run at the same time. ``on_heard`` is called when the
    other side answers, even if its cores do not.
    """

    reactor: Any
    config: SiteConfig
    instance: Callable[[], str]
    largest: int = LARGEST_ANSWER
    on_heard: Callable[[], object] = nothing
    root: str = field(init=False)
    _app: str = field(init=False)
    _client: HttpClient = field(init=False)
    _turns: DeferredSemaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        where = self.config.where()
        self.root, self._app = f"{where.url}/r/v1", where.app
        self._client = HttpClient(
            reactor=self.reactor,
            # With the TLS of the site, also where the URL says http.
            endpoint=lambda _: endpoint_for(self.reactor, self.config),
            keep=self.config.connections,
            largest=self.largest,
        )
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
        """Return the body of the answer to a request below the API's root.

        ``path`` begins with a slash and is quoted already. ``timeout`` seconds include waiting
        for a connection. ``reads``: it may be sent on a kept connection. ``urgent``: a probe,
        which waits for no other request and is sent again when a kept connection has ended.
        ``sink`` gets the body of a success while it arrives, and nothing of it is given.
        A PartialBody is given when the other side names failed sites. Fails with ConnectError when
        nothing was sent, and with other LivestatusErrors.
        """
        headers = self._headers(whom, None if body is None else content_type)

        async def sent(kept: bool) -> bytes:
            answer = await self._client.ask(method, self.root + path, headers, body, kept=kept)
            self.on_heard()
            good = 200 <= answer.status < 300
            try:
                if sink is not None and good:
                    while piece := await answer.piece():
                        sink(piece)
                text = await answer.read()
            finally:
                answer.close()
            text = _accepted(answer.status, text)
            failed = answer.headers.getRawHeaders(f"X-{self._app.title()}-Failed-Sites")
            return PartialBody(text) if failed else text

        async def asked() -> bytes:
            if len(whom.visited) >= MOST_HOPS:
                raise ProtocolError(f"more than {MOST_HOPS} instances one behind the other")
            if urgent:
                try:
                    return await sent(reads)
                except BrokenOffError as error:
                    if error.answered:
                        raise
                    return await sent(False)
            await self._turns.acquire()
            try:
                return await sent(reads)
            finally:
                self._turns.release()

        return in_time(asked(), timeout, self.reactor).addErrback(_failed)

    def _headers(self, whom: OnBehalfOf, content_type: str | None) -> dict[str, str]:
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
        return headers

    def close(self) -> Deferred[object]:
        """Close the connections that are kept; the others close by themselves."""
        return self._client.close()


class PartialBody(bytes):
    """An answer in which something is missing, because sites of the other side have failed."""


def _accepted(status: int, body: bytes) -> bytes:
    """Return the body of a success; raise what everything else means."""
    if 200 <= status < 300:
        return body
    if 300 <= status < 400:
        raise ProtocolError(f"status {status}: redirects are not followed")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = {}
    raise RefusedByRemoteError(status, document if isinstance(document, dict) else {})


def _failed(failure: Failure) -> Failure:
    """Return what went wrong with an exchange as a LivestatusError."""
    error = failure.value
    if isinstance(error, NotConnectedError):
        raise connect_error(failure, CONNECT_TIMEOUT)
    if isinstance(error, LateError):
        raise QueryTimeoutError(error.seconds)
    if isinstance(error, BrokenOffError):
        raise BrokenConnectionError(error.reason, kept=not error.answered)
    if isinstance(error, ExchangeError):
        raise ProtocolError(error.reason)
    return failure
