"""Calling another node over HTTP: one question, sealed both ways, short and with a limit."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson
from attrs import define, field
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.web.client import URI

from monrest.base.connecting import CONNECT_TIMEOUT, ExchangeError, client_tls
from monrest.base.http_client import BadAnswerError, BrokenOffError, HttpClient
from monrest.base.names import Names
from monrest.cluster import seal
from monrest.cluster.model import PeerError, Pong
from monrest.config.sections import without_slash

_LONGEST_ANSWER = 16384
_OK = 200


@define(eq=False, kw_only=True)
class Peers:
    """``key`` is the secret that all nodes share; a new configuration replaces it and ``names``."""

    reactor: Any
    names: Names
    key: bytes = field(default=b"", repr=False)
    _client: HttpClient = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._client = HttpClient(
            reactor=self.reactor, endpoint=self._endpoint, keep=2, largest=_LONGEST_ANSWER
        )

    def configure(self, names: Names, key: bytes) -> None:
        self.names, self.key = names, key

    async def ping(self, url: str) -> Pong:
        """Ask the node at the base URL ``url`` how it is; PeerError when it does not say."""
        try:
            try:
                return await self._ping(url)
            except BrokenOffError:
                # Mostly a connection that was kept too long. The same number is not sent twice.
                return await self._ping(url)
        except BadAnswerError as error:
            raise PeerError(f"wrong answer: {error.reason}") from error
        except ExchangeError as error:
            text = error.reason if error.connected else f"no connection: {error.reason}"
            raise PeerError(text) from error

    async def _ping(self, url: str) -> Pong:
        number, plain = seal.new_number(), without_slash(url)
        answer = await self._client.ask(
            "GET",
            f"{url.rstrip('/')}{self.names.root}/{self.names.app}/cluster/ping"
            f"?url={quote(plain, safe='')}",
            {self.names.header("Cluster-Auth"): seal.of_call(self.key, number, plain)},
            kept=True,
        )
        body = await answer.read()
        if answer.status != _OK:
            raise PeerError(_refusal(answer.status, body))
        value = _object(body)
        if not seal.is_sealed(self.key, number, value):
            raise PeerError("wrong answer: not sealed with this node's secret key")
        return Pong.read(value)

    def _endpoint(self, uri: URI) -> IStreamClientEndpoint:
        host = uri.host.decode("ascii")
        endpoint = HostnameEndpoint(self.reactor, host, uri.port, timeout=CONNECT_TIMEOUT)
        return wrapClientTLS(client_tls(host), endpoint) if uri.scheme == b"https" else endpoint

    async def close(self) -> None:
        await self._client.close()


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
