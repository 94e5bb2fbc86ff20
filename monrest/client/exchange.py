"""A request and what its answer says: the same for every way to send it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, unquote
from zlib import MAX_WBITS, decompressobj
from zlib import error as CompressionError  # noqa: N812  a class by another module's rules

from monrest import __version__
from monrest.client.client_problems import UnreachableError, plain
from monrest.client.server_address import ServerAddress

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
    """A request of the API; ``path`` is as it was typed, ``query`` is added to its own.

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
        says otherwise.
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
    """``headers`` with those that every request has; they win over them."""
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
    """A document as it is sent; None for none."""
    if document is None:
        return None
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class ReplyHeaders(Protocol):
    """The headers of an answer; names in any case."""

    def get(self, name: str, otherwise: str, /) -> str:
        """The value of a header."""


class Reply:
    """An answer whose body is still on its way; it is read once, by one of the three methods.

    ``piece`` gives the next bytes of the body as they were sent, none at its end, or raises
    UnreachableError; ``leave`` ends the exchange, wherever it is.
    """

    def __init__(
        self,
        where: str,
        status: int,
        headers: ReplyHeaders,
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
        """Read no further, wherever it is."""
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
        """What the daemon, whose application is called ``app``, warns of."""
        sent = self.headers.get(f"X-{app}-Warnings", "")
        return [plain(unquote(part)) for part in sent.split("; ") if part]

    def failed_sites(self, app: str) -> list[str]:
        """The ids of the sites that are missing in the answer of a daemon called ``app``."""
        sent = self.headers.get(f"X-{app}-Failed-Sites", "")
        return [plain(part.strip()) for part in sent.split(",") if part.strip()]
