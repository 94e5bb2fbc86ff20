"""The requests of the command line: each has a connection of its own and is sent once."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from monrest.cli.client_settings import ClientSettings
from monrest.cli.options import DEFAULT_URL
from monrest.client.client_problems import ClientError, UnreachableError
from monrest.client.exchange import ClientCredentials, Prepared, common, encoded, prepared
from monrest.client.http_transport import NoConnectionError, Reply, Transport
from monrest.client.server_address import ServerAddress

_REFUSED = (FileNotFoundError, ConnectionRefusedError, PermissionError)


class Requester:
    """Sends requests as ``settings`` say; ``keep`` idle connections for those that follow."""

    def __init__(self, settings: ClientSettings, keep: int = 0) -> None:
        self.settings = settings
        self._credentials = ClientCredentials(settings.key, settings.user)
        self._transport = Transport(
            timeout=settings.timeout, insecure=settings.insecure, keep=keep, say=settings.say
        )

    def api(
        self,
        path: str,
        *,
        method: str = "GET",
        query: str = "",
        body: bytes | None = None,
        prefix: str = "",
        strict: bool = False,
    ) -> Reply:
        """Ask the API for ``path`` as it was typed, with ``query`` added to its own.

        ``prefix`` is an output format. ``strict``: see ``prepared``. The key and the user go with
        it. Raises UnreachableError.
        """
        address, sites = self.settings.address, self.settings.sites
        request = prepared(
            address, self._credentials, path,
            method=method, query=query, body=body, prefix=prefix, sites=sites,
            strict=strict,
        )  # fmt: skip
        try:
            return self._transport.send(address, request)
        except NoConnectionError as failed:
            raise UnreachableError(self._explained(failed)) from None

    def url(self, url: str, method: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
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
        request = Prepared(method, target, body, common(address, body, headers))
        return self._transport.send(address, request, f"{address.scheme}://{address.host}")

    def _explained(self, failed: NoConnectionError) -> str:
        """What was tried, what happened, and what else could be."""
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
