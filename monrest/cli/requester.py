"""The requests of the command line: each has a connection of its own and is sent once."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from monrest.cli.client_settings import ClientSettings, settings
from monrest.cli.command_line import Pairs
from monrest.cli.hints import hints
from monrest.cli.options import BACKEND, CONNECTION, DEFAULT_URL
from monrest.client.exchange import (
    ApiRequest,
    ClientCredentials,
    ClientError,
    HttpRequest,
    ServerAddress,
    UnreachableError,
    common,
    encoded,
    failure_of,
)
from monrest.client.http_connection import (
    BlockingReply,
    BlockingTransport,
    ConnectionOptions,
    NoConnectionError,
)

_REFUSED = (FileNotFoundError, ConnectionRefusedError, PermissionError)


class Requester:
    """Sends requests as ``settings`` say; ``keep`` idle connections for those that follow."""

    def __init__(self, settings: ClientSettings, keep: int = 0) -> None:
        self.settings = settings
        self._credentials = ClientCredentials(settings.key, settings.user)
        self._options = ConnectionOptions(settings.timeout, settings.insecure, keep=keep)
        self._transport = BlockingTransport(settings.address, self._options, log=settings.say)

    def api(
        self,
        path: str,
        *,
        method: str = "GET",
        query: str = "",
        body: bytes | None = None,
        prefix: str = "",
        strict: bool = False,
    ) -> BlockingReply:
        """Send an ``ApiRequest`` of these values, with the key and the user.

        ``strict`` as in ``prepared``. Raises UnreachableError.
        """
        request = ApiRequest(path, method, query, body, prefix, self.settings.sites)
        try:
            return self._transport.ask(
                request.prepared(self.settings.address, self._credentials, strict=strict)
            )
        except NoConnectionError as failed:
            raise UnreachableError(self._explained(failed)) from None

    def url(
        self, url: str, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> BlockingReply:
        """Ask any server, with these headers and without our key."""
        try:
            parts = urlsplit(url)
            port = parts.port or 0
        except ValueError as error:
            raise ClientError(f"{url}: {error}") from None
        if not parts.hostname:
            raise ClientError(f"{url}: expected a host name")
        secure = parts.scheme.lower() == "https"
        address = ServerAddress("https" if secure else "http", host=parts.hostname, port=port)
        target = encoded(parts.path or "/", "+")
        if parts.query:
            target += f"?{encoded(parts.query, '+')}"
        request = HttpRequest(method, target, body, common(address, body, headers))
        where = f"{address.scheme}://{address.host}"
        transport = BlockingTransport(
            address, self._options._replace(keep=0), where=where, log=self.settings.say
        )
        return transport.ask(request)

    @classmethod
    def of_options(cls, given: Pairs, *, backends: bool = False) -> Requester:
        """A requester with the options of the connection in ``given``.

        With ``backends`` also its sites.
        """
        keys = {option.key for option in (*CONNECTION.options, *([BACKEND] if backends else []))}
        return cls(settings([pair for pair in given if pair[0] in keys]))

    def body_of(self, path: str, reply: BlockingReply) -> bytes:
        """The body of a success; ClientError with the daemon's words, and hints, otherwise."""
        body = reply.read()
        if reply.good:
            return body
        for line in hints(self, path, reply, body, api=True):
            self.settings.hint(line)
        raise failure_of(reply.status, body)

    def _explained(self, failed: NoConnectionError) -> str:
        """The failed request with its reason, and a hint."""
        settings, error = self.settings, failed.error
        lines = [f"{failed} (the URL comes from {settings.url_source})"]
        if isinstance(error, ssl.SSLCertVerificationError):
            lines.append("SSL_CERT_FILE names further authorities, -k does not verify")
        elif isinstance(error, (*_REFUSED, socket.gaierror)):
            lines.append(
                "is the daemon running, and does it listen there (server.listen)? "
                "--url, MONREST_URL or url in ~/.config/monrest/client.toml choose another address"
            )
        if str(settings.address) == DEFAULT_URL and isinstance(error, _REFUSED):
            lines.append("over TCP it is --url http://127.0.0.1:8080 with --key")
        return "\n".join(lines)
