"""A request and what its answer says, as values: the same for every way to send it. Pure."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

from monrest import __version__
from monrest.client.client_problems import plain
from monrest.client.server_address import ServerAddress

AGENT = f"monrest/{__version__}"
SAFE = frozenset({"GET", "HEAD"})
"""Methods of requests that may be sent again."""

_KEPT = "/?=&:@!$'()*,;~[]%|"
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class ReplyHeaders(Protocol):
    """The headers of an answer; names in any case."""

    def get(self, name: str, otherwise: str, /) -> str:
        """The value of a header."""


class Prepared(NamedTuple):
    """A request as it goes out: ``target`` is path and query, ``headers`` are complete."""

    method: str
    target: str
    body: bytes | None
    headers: Mapping[str, str]


class ClientCredentials(NamedTuple):
    """An API key, and the user for whom a superuser key acts."""

    key: str = ""
    user: str = ""


def prepared(
    address: ServerAddress,
    credentials: ClientCredentials,
    path: str,
    *,
    method: str = "GET",
    query: str = "",
    body: bytes | None = None,
    prefix: str = "",
    sites: tuple[str, ...] = (),
    strict: bool = False,
) -> Prepared:
    """A request for a path of the API as it was typed, with ``query`` added to its own.

    ``prefix`` is an output format; ``sites`` are those that are asked, none: all. ``strict``: a
    name in ``columns`` or ``sort`` that no row has is an error, unless the query says otherwise.
    """
    target = address.root + api_path(path, prefix, sites)
    if query:
        target += f"{'&' if '?' in target else '?'}{query}"
    if strict and method in SAFE:
        names = {one.partition("=")[0] for one in target.partition("?")[2].split("&")}
        if names & {"columns", "sort"} and "strict" not in names:
            target += "&strict=1"
    headers = {}
    if credentials.key:
        headers[f"X-{address.app.capitalize()}-Auth-Key"] = credentials.key
    if credentials.user:
        headers[f"X-{address.app.capitalize()}-Auth-User"] = credentials.user
    return Prepared(method, target, body, common(address, body, headers))


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


def warnings_of(headers: ReplyHeaders, app: str) -> list[str]:
    """What the daemon, whose application is called ``app``, warns of."""
    sent = headers.get(f"X-{app}-Warnings", "")
    return [plain(unquote(one)) for one in sent.split("; ") if one]


def failed_sites_of(headers: ReplyHeaders, app: str) -> list[str]:
    """The ids of the sites that are missing in the answer of a daemon called ``app``."""
    sent = headers.get(f"X-{app}-Failed-Sites", "")
    return [plain(one.strip()) for one in sent.split(",") if one.strip()]


async def lines_of(piece: Callable[[], Awaitable[bytes]]) -> AsyncIterator[bytes]:
    """The lines of a body without their ends; ``piece`` gives its next bytes, none at its end."""
    rest = b""
    while data := await piece():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest
