"""Twisted's site and request with our limits, headers and log line.

Why Twisted's own is not enough: docs/spec/http.md, "Klein and Twisted".
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote_to_bytes

from attrs import define
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request as PlainRequest
from twisted.web.http import datetimeToString
from twisted.web.http_headers import Headers
from twisted.web.server import Request, Site

from monrest.base.clock import WallClock
from monrest.base.errors import BadRequest
from monrest.base.hidden import HIDDEN, SENSITIVE
from monrest.base.log import ACCESS
from monrest.base.meters import Sample, Spread, joined, observe, spread
from monrest.base.trace import parent_of, trace_id
from monrest.render.formats import RenderOptions
from monrest.web.channel import ApiChannel, RemoteEnd
from monrest.web.limits import SMALL_BODY, Intake, no_room

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress, IDelayedCall

    from monrest.base.names import Names
    from monrest.config import ServerConfig
    from monrest.web.app import FrontResource

log = Logger()

AccessLine: TypeAlias = Callable[[dict[str, Any], float, str], None]
"""Takes the fields of an access line, the time in seconds, and the logger's name."""

CLIENT_GONE = 499
"""The status in the access log when the client left before its answer was complete."""

_LONGEST_ID = 128
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LONGEST_QUERY = 1000
_LONGEST_AGENT = 200
_SECRET = re.compile(SENSITIVE.encode("ascii"), re.IGNORECASE)
_SUSPECT = re.compile(_SECRET.pattern + rb"|%2[de]|%[4-7]", re.IGNORECASE)
"""A query without a match has no secret parameter; ``%`` may be a character of its name."""
_CLOSE = [b"close"]

_LISTS = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"})


@define(eq=False)
class HeaderView(Mapping[str, str]):
    """The headers of a request by lower-case name, decoded when asked for.

    Bytes that are no UTF-8 are read as Latin-1. A header that is there twice is a BadRequest,
    since a proxy may have checked the other one; of lists the last header counts.
    """

    _headers: Headers

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return cast("str", value)

    def get(self, name: str, default: Any = None) -> Any:
        values = self._headers.getRawHeaders(name.encode("latin-1"))
        if values is None:
            return default
        if len(values) > 1 and name not in _LISTS:
            raise BadRequest("repeated header", f"{name.title()}: expected once")
        try:
            return values[-1].decode("utf-8")
        except UnicodeDecodeError:
            return values[-1].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1").lower() for name, _ in self._headers.getAllRawHeaders())

    def __len__(self) -> int:
        return sum(1 for _ in self._headers.getAllRawHeaders())


def shown_query(query: bytes) -> str:
    """Return a query string for the log: shortened, and without values of secret parameters.

    A name may be percent-encoded, so that it does not look like one.
    """
    if _SUSPECT.search(query):
        pairs = []
        for pair in query.split(b"&"):
            name, equals, value = pair.partition(b"=")
            secret = value and _SECRET.search(unquote_to_bytes(name))
            pairs.append(name + equals + HIDDEN.encode("ascii") if secret else pair)
        query = b"&".join(pairs)
    text = query.decode("utf-8", "backslashreplace")
    return text if len(text) <= _LONGEST_QUERY else f"{text[:_LONGEST_QUERY]}…"


class ApiRequest(Request):
    """One HTTP request, with the values of its access line.

    ``rest``: the path behind the API's root, set by the front resource; None outside of it.
    ``route``: the declared path of the endpoint, for metrics; empty for none.
    ``options``: how to render, as soon as it is known. ``expired``: the request took too
    long. ``user_name``: the user. ``key_id``: the beginning of the id of the API key.
    ``error``: the message of the error document, for the access log. ``held``: the bytes of memory
    that the body and its values take.
    """

    defaultContentType = None
    # The body is over the limit and is not kept.
    too_large = False
    # Why it is answered before its body is there.
    refusal: Failure | None = None
    query = b""
    rest: bytes | None = None
    route = ""
    error = ""
    options = RenderOptions()
    request_id = ""
    trace = ""
    peer = RemoteEnd()
    client_name = "-"
    user_name = "-"
    key_id = "-"
    body = BytesIO()
    rows = 0
    backend_seconds = 0.0
    failed_sites: tuple[str, ...] = ()
    expired = False
    began: float | None = None
    limit = 0
    held = 0
    _reserved = False
    _work: Deferred[Any] | None = None
    _late: IDelayedCall | None = None
    _answered = False

    @property
    def _site(self) -> ApiSite:
        return cast("ApiChannel", self.channel).site

    def head_received(self, command: bytes, path: bytes, version: bytes) -> None:
        """Read the first line; unlike Twisted, leave the query unparsed."""
        self.method, self.uri, self.clientproto = command, path, version
        self.path, _, self.query = path.partition(b"?")
        self.args = {}
        self.peer = cast("ApiChannel", self.channel).peer

    def gotLength(self, length: int | None) -> None:
        """Prepare for a body of ``length`` bytes (None: chunked), if any; always in memory."""
        self.limit = cast("ApiChannel", self.channel).site.limits.max_body
        if length is None or length > SMALL_BODY:
            self.limit = max(self.limit, SMALL_BODY)  # until its sender and its endpoint are known
        elif length > self.limit:
            self.too_large = True
        if length != 0:
            self.content = self.body = BytesIO()

    def reserve(self, length: int) -> bool:
        """Take room for a body of ``length`` bytes before it comes; False if there is none."""
        self._reserved = self._site.intake.take(length)
        if self._reserved:
            self.held = length
        return self._reserved

    def hold_values(self, size: int) -> None:
        """Take room for the values of the body, whose bytes are then released.

        Values that are larger than all of the room take all of it. Raises Unavailable.
        """
        size = min(size, self._site.intake.most - self.held)
        if not self._site.intake.take(size):
            raise no_room()
        self.held += size
        self.content = self.body = BytesIO()

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a part of the body, unless it grows over the limit or there is no room for it."""
        if self.too_large or self.refusal is not None:
            return
        if self.body.tell() + len(data) > self.limit:
            self.too_large = True
            self.drop_body()
        elif self._reserved or self._site.intake.take(len(data)):
            if not self._reserved:
                self.held += len(data)
            self.body.write(data)
        else:
            cast("ApiChannel", self.channel).answer_early(self, Failure(no_room()))

    def drop_body(self) -> None:
        """Release the body and the room that it takes."""
        if self.held:
            self._site.intake.give_back(self.held)
            self.held = 0
        if self.content is not None:
            self.content = self.body = BytesIO()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        self.head_received(command, path, version)
        self.process()

    def process(self) -> None:
        """Note where the request comes from and hand it over to the front resource."""
        site = self.site = cast("ApiChannel", self.channel).site
        self.began = site.timer()
        self.prepath, self.postpath = [], []
        self.client_name = self.peer.address or "unix"
        given = self.requestHeaders.getRawHeaders(b"X-Request-Id", (b"",))[-1]
        if 0 < len(given) <= _LONGEST_ID and all(32 < byte < 127 for byte in given):
            self.request_id = given.decode("ascii")
        else:
            self.request_id = site.id_prefix + format(next(site.ids), "08x")
        traced = self.requestHeaders.getRawHeaders(b"traceparent")
        if traced is not None:
            self.trace = parent_of(traced[-1])
        if site.draining:
            self.responseHeaders.setRawHeaders(b"Connection", _CLOSE)
        try:
            site.resource.render(self)
        except Exception:  # noqa: BLE001  the client gets an error document for all of them
            self.processingFailed(Failure())

    # No content type is guessed and nothing is encoded here.
    write = PlainRequest.write

    @property
    def left(self) -> bool:
        return self._disconnected

    def finish(self) -> None:
        """End the answer, unless the client has left."""
        self.drop_body()
        if not self._disconnected:
            PlainRequest.finish(self)

    def processingFailed(self, reason: Failure) -> Failure:
        """Answer an exception that no handler has caught."""
        cast("FrontResource", self._site.resource).fail(self, reason)
        if not self.finished:
            self.finish()
        return reason

    def getRequestHostname(self) -> bytes:
        """A constant for Klein's map of routes.

        The Host header has no meaning here, and a hostile one would make Klein answer in HTML.
        """
        return b"localhost"

    def isSecure(self) -> bool:
        """Whether the connection is encrypted."""
        return self.peer.secure

    def name_failed_sites(self, sites: Iterable[str]) -> None:
        self.failed_sites = tuple(sites)
        value = ",".join(self.failed_sites).encode("ascii", "replace")
        self.responseHeaders.setRawHeaders(self._site.failed_sites_header, [value])

    def expire_after(self, seconds: float, work: Deferred[Any]) -> None:
        """Cancel ``work`` when the client leaves, or after ``seconds`` without an answer."""
        self._work = work
        if not self._answered:
            self._late = self._site.reactor.callLater(seconds, self._expire)

    def _expire(self) -> None:
        self.expired = True
        cast("Deferred[Any]", self._work).cancel()

    def answered(self) -> None:
        """Stop the request time-out: from now on only the client's speed counts."""
        self._answered = True
        if self._late is not None and self._late.active():
            self._late.cancel()

    def connectionLost(self, reason: Failure) -> None:
        """Stop all work for the client, and note in the access log that it left."""
        self.answered()
        site = None if self.channel is None else self._site
        if site is not None:
            self.drop_body()
        super().connectionLost(reason)
        if self._work is not None:
            self._work.cancel()
        if site is not None and self.began is not None and not self.finished:
            site.access(self, CLIENT_GONE)


class ApiSite(Site):
    """Serves ``resource``; both it and ``limits`` are swapped on reload.

    ``wall`` shows the date of answers, ``timer`` measures durations. ``channels`` are the open
    connections; ``count_connections`` is called with their number whenever it changes.
    """

    noisy = False
    access_line: AccessLine | None = None
    """The receiver of access lines; without one they are events of the log."""

    def __init__(
        self,
        resource: FrontResource,
        limits: ServerConfig,
        names: Names,
        reactor: IReactorTime,
        wall: WallClock,
        timer: Callable[[], float] = time.monotonic,
        count_connections: Callable[[int], object] = lambda _: None,
    ) -> None:
        super().__init__(resource, reactor=reactor, parsePOSTFormSubmission=False)
        self.wall = wall
        self.timer = timer
        self._count_connections = count_connections
        self._answered: dict[tuple[str, str, int], Spread] = {}
        """Durations by method, path of the endpoint and status."""
        self._sent = 0
        self.channels: set[ApiChannel] = set()
        self.intake = Intake(limits.memory.bodies)
        self.draining = False
        self._drained: Deferred[None] | None = None
        self._common: tuple[int, bytes] = (-1, b"")
        self.ids = itertools.count(1)
        # No other start of this or another daemon makes the same ids.
        self.id_prefix = secrets.token_hex(6)
        self.serve(resource, limits, names)

    def serve(self, resource: FrontResource, limits: ServerConfig, names: Names) -> None:
        """Serve this from the next request on; requests in flight keep what they have."""
        self.resource = resource
        self.limits = limits
        self.intake.most = limits.memory.bodies
        self.failed_sites_header = names.header("Failed-Sites").encode("ascii")

    def buildProtocol(self, addr: IAddress | None) -> Any:
        del addr
        channel: Any = ApiChannel()
        channel.factory = channel.site = self
        channel.requestFactory = ApiRequest
        channel.callLater = self.reactor.callLater
        channel.timeOut = self.timeOut
        return channel

    def startFactory(self) -> None:
        """Open no log file: the access log goes to the daemon's observer."""

    def stopFactory(self) -> None:
        """There is no log file to close."""

    def acceptableProtocols(self) -> list[bytes]:
        """Offer HTTP/1.1 only, which is what the channel class speaks."""
        return [b"http/1.1"]

    def common_headers(self) -> bytes:
        """Return the headers that every answer has, made once a second."""
        now = int(self.wall.now())
        if self._common[0] != now:
            date = datetimeToString(now)
            self._common = (now, b"Server: monrest\r\nDate: %b\r\n" % date)
        return self._common[1]

    def log(self, request: Any) -> None:
        """Write the access line of a finished request; called by Twisted."""
        self.access(request, request.code)

    def access(self, request: ApiRequest, status: int) -> None:
        """Write one access line; times in milliseconds."""
        now = self.timer()
        seconds = now - (request.began or now)
        method = request.method.decode("latin-1")
        key = (method if method in _METHODS else "other", request.route or "other", status)
        observe(self._answered.setdefault(key, spread()), seconds)
        self._sent += request.sentLength
        agent = request.requestHeaders.getRawHeaders(b"User-Agent")
        fields = {
            "method": method,
            "path": request.path.decode("latin-1"),
            "query": shown_query(request.query) if request.query else "-",
            "status": status,
            "bytes": request.sentLength,
            "ms": round(seconds * 1000, 2),
            "backend_ms": round(request.backend_seconds * 1000, 2),
            "rows": request.rows,
            "user": request.user_name,
            "failed_sites": list(request.failed_sites),
            "request_id": request.request_id,
            "client": request.client_name,
            "key": request.key_id,
            "agent": agent[-1][:_LONGEST_AGENT].decode("latin-1") if agent else "-",
        }
        if request.trace:
            fields["trace"] = trace_id(request.trace)
        if request.error:
            fields["error"] = request.error
        if self.access_line is not None:
            # Straight to the log's file: the event system costs more than the line.
            self.access_line(fields, self.wall.now(), log.namespace)
        else:
            log.info("request", **{ACCESS: fields})

    def measured(self) -> Iterator[Sample]:
        totals: list[Sample] = []
        for (method, route, status), durations in self._answered.items():
            labels = (method, route)
            totals.append(("http_request_duration_seconds", labels, durations.copy()))
            totals.append(("http_requests_total", (*labels, str(status)), sum(durations[:-1])))
        # The durations of an endpoint with all its statuses.
        yield from joined(totals)
        yield "http_response_bytes_total", (), self._sent
        yield "http_connections", (), len(self.channels)
        yield "http_body_bytes", (), self.intake.held

    def admit(self, request: ApiRequest) -> Deferred[int]:
        """Return the bytes that the body of ``request`` may have, known by its head."""
        work = Deferred.fromCoroutine(self.resource.admit(request))
        return work.addTimeout(self.limits.request_timeout, self.reactor)

    def refused(self, channel: ApiChannel, status: int, size: int) -> None:
        """Write the access line of bytes that never became a request."""
        client = channel.peer.address or "unix"
        fields = {"method": "-", "path": "-", "status": status, "bytes": size, "client": client}
        log.info("request refused", **{ACCESS: fields})

    def opened(self, channel: ApiChannel) -> None:
        self.channels.add(channel)
        self._count_connections(len(self.channels))

    def closed(self, channel: ApiChannel) -> None:
        self.channels.discard(channel)
        self._count_connections(len(self.channels))
        if self._drained is not None and not self.channels:
            drained, self._drained = self._drained, None
            drained.callback(None)

    def announce_end(self) -> None:
        """Ask clients to leave with their next answer; new ones are still served."""
        self.draining = True

    def drain(self, seconds: float) -> Deferred[None]:
        """Let running requests finish for up to ``seconds``, then cut off the others.

        Idle connections are closed at once. Fires when no connection is open any more.
        """
        self.draining = True
        for channel in tuple(self.channels):
            channel.finish_up()
        if not self.channels:
            return succeed(None)
        self._drained = Deferred()

        def cut_off() -> None:
            log.warn("{count} connections cut off while stopping", count=len(self.channels))
            for channel in tuple(self.channels):
                channel.cut_off()

        limit = self.reactor.callLater(seconds, cut_off)

        def done(_: None) -> None:
            if limit.active():
                limit.cancel()

        return self._drained.addCallback(done)
