"""Addresses, requests, replies and errors, the same for every transport. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from zlib import MAX_WBITS, decompressobj
from zlib import error as CompressionError  # noqa: N812  a class by another module's rules

from monrest import __version__

if TYPE_CHECKING:
    from email.message import Message


class ClientError(Exception):
    """There is no result; ``str(self)`` is the reason."""


class UnreachableError(ClientError):
    """No answer came, or not all of it. The request may have been executed nevertheless."""


class ApiError(ClientError):
    """The daemon answered with an error.

    ``code`` is the status, ``message`` and ``description`` are those of the answer, ``document`` is
    all of it, which may have more (``problems`` of a list of commands, ``help`` of a refusal).
    """

    def __init__(self, code: int, document: Mapping[str, Any]) -> None:
        self.code = code
        self.document = document
        self.message = str(document.get("message") or "")
        self.description = str(document.get("description") or document.get("error") or "")
        text = ": ".join(part for part in (self.message, self.description) if part)
        super().__init__(plain(f"{code} {text}".rstrip()))

    def __reduce__(self) -> tuple[type[ApiError], tuple[int, Mapping[str, Any]]]:
        """Make it picklable: the text is no argument of the constructor."""
        return type(self), (self.code, self.document)


class InvalidRequestError(ApiError):
    """400: the request is wrong; the description names the parameter and what was expected."""


class NotAuthorizedError(ApiError):
    """401, 403: no valid credentials, or a missing permission."""


class NotThereError(ApiError):
    """404: no such path or record."""


class ConflictError(ApiError):
    """409: it was changed meanwhile, or it is not possible at present."""


class OverloadedError(ApiError):
    """429, 503: not now. ``retry_after`` are the seconds that the daemon asks to wait, or None."""

    retry_after: float | None = None


class SitesFailedError(ApiError):
    """502, 504: no selected site answered."""


class IncompleteError(ClientError):
    """Sites are missing in an answer, and the client accepts complete ones only."""

    def __init__(self, sites: list[str]) -> None:
        self.sites = sites
        super().__init__(f"no answer from {', '.join(sites)}")

    def __reduce__(self) -> tuple[type[IncompleteError], tuple[list[str]]]:
        """Make it picklable."""
        return type(self), (self.sites,)


_KINDS: Mapping[int, type[ApiError]] = {
    400: InvalidRequestError, 401: NotAuthorizedError, 403: NotAuthorizedError,
    404: NotThereError, 409: ConflictError, 429: OverloadedError, 502: SitesFailedError,
    503: OverloadedError, 504: SitesFailedError,
}  # fmt: skip


def problem_of(code: int, document: Mapping[str, Any]) -> ApiError:
    """The error of this status and document."""
    return _KINDS.get(code, ApiError)(code, document)


def failure_of(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """The error of an answer with this status and body."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"message": body[:200].decode("utf-8", "replace").strip()}
    error = problem_of(code, document)
    if isinstance(error, OverloadedError) and retry_after.isascii() and retry_after.isdigit():
        error.retry_after = float(retry_after)
    return error


def plain(text: str) -> str:
    """``text`` with ``?`` for control characters but line end and tab, for a terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


DEFAULT_URL = "unix:/run/monrest/monrest.sock"
"""The address of a daemon with the example configuration."""

ROOT = "/mon/r"
_FORMS = "unix:PATH, http://HOST:PORT or https://HOST:PORT, with or without a root such as /mon/r"
_LOOPBACK = frozenset({"localhost", "::1"})


class ServerAddress(NamedTuple):
    """``path`` is a Unix socket's; ``host`` and ``port`` (0: the scheme's own) those of http(s).

    ``root`` starts with a slash and ends without.
    """

    scheme: Literal["unix", "http", "https"]
    root: str = ROOT
    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def app(self) -> str:
        """The word of the front end's own paths and headers: ``mon`` of ``/mon/r``."""
        return self.root.split("/")[-2]

    @property
    def local(self) -> bool:
        """Whether the daemon is on this machine, where compression costs more than it saves."""
        return self.scheme == "unix" or self.host in _LOOPBACK or self.host.startswith("127.")

    @property
    def authority(self) -> str:
        """Host and port for the header ``Host``; for a Unix socket any host is right."""
        if self.scheme == "unix":
            return "localhost"
        return self._at(self.host if self.host.isascii() else self.host.encode("idna").decode())

    @property
    def origin(self) -> str:
        """Scheme, host and port, as in front of a path in a URL."""
        return f"{'https' if self.scheme == 'https' else 'http'}://{self.authority}"

    @property
    def connect_port(self) -> int:
        """The port, also where it is the scheme's own."""
        return self.port or (443 if self.scheme == "https" else 80)

    def _at(self, host: str) -> str:
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{self.port}" if self.port else host

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix:{self.path}" + (f":{self.root}" if self.root != ROOT else "")
        return f"{self.scheme}://{self._at(self.host)}{self.root}"


def parse_address(text: str) -> ServerAddress:
    """Read a URL; raise ValueError saying which forms there are."""
    scheme, _, rest = text.partition(":")
    if scheme == "unix" and rest.startswith("/") and rest.isprintable():
        path, colon, root = rest.partition(":/")
        return ServerAddress("unix", root=_root(text, f"/{root}" if colon else ""), path=path)
    if scheme in ("http", "https") and text.isprintable():
        try:
            parts = urlsplit(text)
            port = parts.port or 0
        except ValueError:
            raise _wrong(text) from None
        if parts.hostname and not (parts.query or parts.fragment or parts.username):
            return ServerAddress(
                "http" if scheme == "http" else "https",
                root=_root(text, parts.path),
                host=parts.hostname,
                port=port,
            )
    raise _wrong(text)


def _root(text: str, path: str) -> str:
    path = path.rstrip("/")
    if not path:
        return ROOT
    segments = path.split("/")
    if len(segments) < 3 or segments[-1] != "r" or not segments[-2]:
        raise _wrong(text)
    return path


def _wrong(text: str) -> ValueError:
    return ValueError(f"expected {_FORMS}, got {text!r}")


AGENT = f"monrest/{__version__}"
SAFE = frozenset({"GET", "HEAD"})
"""Methods of requests that may be sent again."""

_KEPT = "/?=&:@!$'()*,;~[]%|"
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_GZIP = 16 + MAX_WBITS


class HttpRequest(NamedTuple):
    """A request as it goes out: ``target`` is path and query, ``headers`` are complete."""

    method: str
    target: str
    body: bytes | None
    headers: Mapping[str, str]


class ClientCredentials(NamedTuple):
    """An API key, and the user for whom a superuser key acts."""

    key: str = ""
    user: str = ""


class ApiRequest(NamedTuple):
    """A request of the API; ``path`` is as the user typed it, ``query`` is added to its own.

    ``prefix`` is an output format; ``sites`` are those that are asked, none: all.
    """

    path: str
    method: str = "GET"
    query: str = ""
    body: bytes | None = None
    prefix: str = ""
    sites: tuple[str, ...] = ()

    def prepared(
        self, address: ServerAddress, credentials: ClientCredentials, *, strict: bool = False
    ) -> HttpRequest:
        """The request as it goes out.

        ``strict``: a name in ``columns`` or ``sort`` that no row has is an error, unless the query
        has its own ``strict``.
        """
        target = address.root + api_path(self.path, self.prefix, self.sites)
        if self.query:
            target += f"{'&' if '?' in target else '?'}{self.query}"
        if strict and self.method in SAFE:
            names = {part.partition("=")[0] for part in target.partition("?")[2].split("&")}
            if names & {"columns", "sort"} and "strict" not in names:
                target += "&strict=1"
        headers = {}
        if credentials.key:
            headers[f"X-{address.app.capitalize()}-Auth-Key"] = credentials.key
        if credentials.user:
            headers[f"X-{address.app.capitalize()}-Auth-User"] = credentials.user
        return HttpRequest(self.method, target, self.body, common(address, self.body, headers))


def common(
    address: ServerAddress, body: bytes | None, headers: Mapping[str, str]
) -> dict[str, str]:
    """The headers of every request, with ``headers`` added or replaced."""
    sent = {"User-Agent": AGENT, "Accept-Encoding": "identity" if address.local else "gzip"}
    if body is not None:
        sent["Content-Type"] = "application/json"
    return {**sent, **headers}


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


def segment(name: str) -> str:
    """The name of an object as one segment of a path."""
    return quote(name, safe="", errors="surrogateescape")


def query_of(parameters: Mapping[str, Any]) -> str:
    """Parameters as a query string; lists repeat their name, None is left out."""

    def text(item: Any) -> str:
        if isinstance(item, (dict, list)):
            return json.dumps(item, separators=(",", ":"))
        return str(int(item) if isinstance(item, bool) else item)

    return "&".join(
        f"{segment(name)}={segment(text(item))}"
        for name, value in parameters.items()
        for item in (value if isinstance(value, (list, tuple)) else [value])
        if item is not None
    )


def json_body(document: Any) -> bytes | None:
    """A document as JSON; None for none."""
    if document is None:
        return None
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class Reply:
    """An answer whose body is still on its way; it is read once, by one of the three methods.

    ``piece`` returns the next bytes of the body as they were sent, none at its end, or raises
    UnreachableError; ``leave`` ends the exchange at any time.
    """

    def __init__(
        self,
        where: str,
        status: int,
        headers: Message,
        piece: Callable[[], Awaitable[bytes]],
        leave: Callable[[], Awaitable[None]],
    ) -> None:
        self.status, self.headers = status, headers
        self._where, self._piece, self._leave = where, piece, leave
        self._left = False

    @property
    def good(self) -> bool:
        """Whether the status is 2xx."""
        return self.status // 100 == 2

    async def leave(self) -> None:
        """End the exchange without reading the rest."""
        if not self._left:
            self._left = True
            await self._leave()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body in pieces, decompressed, each as soon as it is there."""
        packed = self.headers.get("Content-Encoding", "").lower() == "gzip"
        unpack = decompressobj(_GZIP) if packed else None
        begun = False
        try:
            while piece := await self._piece():
                begun = True
                if unpacked := unpack.decompress(piece) if unpack else piece:
                    yield unpacked
        except CompressionError as error:
            raise UnreachableError(f"{self._where}: the answer broke off: {error}") from None
        finally:
            await self.leave()
        # The answer to HEAD has no body.
        if begun and unpack and not unpack.eof:
            raise UnreachableError(f"{self._where}: the connection was cut in the middle")

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.pieces()])

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of the body without their ends, each as soon as it is there."""
        rest = b""
        pieces = self.pieces()
        try:
            async for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield line
        finally:
            await pieces.aclose()
        if rest:
            yield rest

    def warnings(self, app: str) -> list[str]:
        """The warnings of a daemon whose application is called ``app``."""
        sent = self.headers.get(f"X-{app}-Warnings", "")
        return [plain(unquote(part)) for part in sent.split("; ") if part]

    def failed_sites(self, app: str) -> list[str]:
        """The ids of the sites that are missing in the answer of a daemon called ``app``."""
        sent = self.headers.get(f"X-{app}-Failed-Sites", "")
        return [plain(part.strip()) for part in sent.split(",") if part.strip()]
