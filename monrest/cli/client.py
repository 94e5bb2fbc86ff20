"""One HTTP request to the daemon, or to any other server, over TCP, TLS or a Unix socket.

Every request has a connection of its own: there are few of them, and none is ever sent twice.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPMessage,
    HTTPResponse,
    HTTPSConnection,
)
from time import monotonic
from urllib.parse import quote, unquote, urlsplit
from zlib import MAX_WBITS, decompressobj
from zlib import error as CompressionError  # noqa: N812  a class by another module's rules

from monrest import __version__
from monrest.cli.client_errors import ClientError, plain
from monrest.cli.client_settings import ClientSettings
from monrest.cli.options import DEFAULT_URL
from monrest.cli.server import ServerAddress

_CHUNK = 65536
_GZIP = 16 + MAX_WBITS
_KEPT = "/?=&:@!$'()*,;~[]%|"
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_REFUSED = (FileNotFoundError, ConnectionRefusedError, PermissionError)


class UnreachableError(ClientError):
    """Nothing came back, or not all of it."""


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Open the socket instead of a TCP connection."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Reply:
    """An answer whose body is still on its way; read it once, with ``chunks`` or ``read``."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse, where: str) -> None:
        self.status = response.status
        self.headers: HTTPMessage = response.headers
        self._connection = connection
        self._response = response
        self._where = where

    @property
    def good(self) -> bool:
        """Whether the status is 2xx."""
        return self.status // 100 == 2

    def chunks(self) -> Iterator[bytes]:
        """The body in pieces, decompressed; the connection is closed afterwards.

        Raises UnreachableError when the connection breaks before the end.
        """
        packed = self.headers.get("Content-Encoding", "").lower() == "gzip"
        unpack = decompressobj(_GZIP) if packed else None
        try:
            while chunk := self._response.read(_CHUNK):
                yield unpack.decompress(chunk) if unpack else chunk
            # http.client takes a short body for a whole one.
            if self._response.length or (unpack and not unpack.eof):
                raise UnreachableError(f"{self._where}: the connection was cut in the middle")
        except (OSError, HTTPException, CompressionError) as error:
            raise UnreachableError(f"{self._where}: the answer broke off: {_told(error)}") from None
        finally:
            self._connection.close()

    def warnings(self, app: str) -> list[str]:
        """What the daemon, whose application is called ``app``, warns of."""
        told = self.headers.get(f"X-{app}-Warnings", "")
        return [plain(unquote(one)) for one in told.split("; ") if one]

    def failed_sites(self, app: str) -> list[str]:
        """The ids of the sites that are missing in the answer of a daemon called ``app``."""
        told = self.headers.get(f"X-{app}-Failed-Sites", "")
        return [plain(one.strip()) for one in told.split(",") if one.strip()]

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks())


class Client:
    """Sends requests as ``settings`` say."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings

    def api(
        self,
        path: str,
        *,
        method: str = "GET",
        query: str = "",
        body: bytes | None = None,
        prefix: str = "",
    ) -> Reply:
        """Ask the API for ``path`` as it was typed, with ``query`` added to its own.

        ``prefix`` is an output format. The key and the user go with it. Raises UnreachableError.
        """
        address = self.settings.address
        target = address.root + api_path(path, prefix, self.settings.sites)
        if query:
            target += f"{'&' if '?' in target else '?'}{query}"
        headers = {}
        if self.settings.key:
            headers[f"X-{address.app.capitalize()}-Auth-Key"] = self.settings.key
        if self.settings.user:
            headers[f"X-{address.app.capitalize()}-Auth-User"] = self.settings.user
        return self._send(address, target, method, body, headers)

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
        return self._send(address, target, method, body, headers)

    def _send(
        self,
        address: ServerAddress,
        target: str,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> Reply:
        settings = self.settings
        sent = {"User-Agent": f"monrest/{__version__}", "Accept-Encoding": "identity"}
        if not address.local:
            sent["Accept-Encoding"] = "gzip"
        if body is not None:
            sent["Content-Type"] = "application/json"
        where = (
            str(address) if address is settings.address else f"{address.scheme}://{address.host}"
        )
        settings.say(f"> {method} {target} to {where}")
        started = monotonic()
        try:
            connection = self._connection(address)
            connection.request(method, target, body, _as_bytes({**sent, **headers}))
            response = connection.getresponse()
        except (OSError, HTTPException, ValueError) as error:
            raise UnreachableError(self._explained(error, where, address)) from None
        took = (monotonic() - started) * 1000
        settings.say(f"< {response.status} {response.reason} after {took:.0f} ms")
        return Reply(connection, response, where)

    def _connection(self, address: ServerAddress) -> HTTPConnection:
        timeout = self.settings.timeout
        if address.scheme == "unix":
            return _UnixConnection(address.path, timeout)
        if address.scheme == "http":
            return HTTPConnection(address.host, address.port or None, timeout=timeout)
        context = ssl.create_default_context()
        if self.settings.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return HTTPSConnection(address.host, address.port or None, timeout=timeout, context=context)

    def _explained(self, error: Exception, where: str, address: ServerAddress) -> str:
        """What was tried, what happened, and what else could be."""
        lines = [f"cannot reach {where}: {_told(error)}"]
        if address is not self.settings.address:
            return lines[0]
        lines[0] += f" (the URL comes from {self.settings.url_source})"
        if isinstance(error, ssl.SSLCertVerificationError):
            lines.append("SSL_CERT_FILE names further authorities, -k does not verify")
        elif isinstance(error, (*_REFUSED, socket.gaierror)):
            lines.append(
                "is the daemon running, and does it listen there (server.listen)? "
                "--url, MONREST_URL or url in ~/.config/monrest/client.toml choose another address"
            )
        if str(address) == DEFAULT_URL and isinstance(error, _REFUSED):
            lines.append("over TCP it is --url http://127.0.0.1:8080 with --key")
        return "\n".join(lines)


def api_path(path: str, prefix: str = "", sites: tuple[str, ...] = ()) -> str:
    """Put format and sites in front of a path of the API, and encode what a URL cannot hold."""
    path, mark, query = path.partition("?")
    path = path.strip("/")
    version = ""
    if path == "v1" or path.startswith("v1/"):
        version, path = "/v1", path[3:]
    head = f"/{prefix}" if prefix else ""
    if sites:
        names = (quote(site, safe="", errors="surrogateescape") for site in sites)
        head += f"/sites/{','.join(names)}"
    # A prefix alone would be taken for the path.
    path = encoded(path) or ("index" if head else "")
    return f"{version}{head}/{path}" + (f"?{encoded(query)}" if mark else "")


def encoded(text: str, kept: str = "") -> str:
    """Percent-encode what a URL cannot hold, and ``+`` unless ``kept``; what is encoded stays."""
    return quote(_BROKEN_PERCENT.sub("%25", text), safe=_KEPT + kept, errors="surrogateescape")


def _as_bytes(headers: Mapping[str, str]) -> dict[str, bytes]:
    return {name: value.encode("utf-8", "surrogateescape") for name, value in headers.items()}


def _told(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__
