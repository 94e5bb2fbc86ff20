"""Writing an answer: status, headers, compression, here when it is small and from a file when not.

A body whose size is known carries ``Content-Length``, and an ``ETag`` where a client may keep it
(docs/spec/http.md, "Answers that are kept").
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.interfaces import IDelayedCall, IPullProducer, IPushProducer, IReactorTime
from twisted.internet.tcp import Connection
from twisted.logger import Logger
from twisted.web.http import Request
from zope.interface import implementer

from monrest.api.endpoint import FEW_VALUES
from monrest.base.answer_file import AnswerFile, AnswerFiles
from monrest.base.concurrency import Threads
from monrest.base.errors import BrokenRowsError, RestError
from monrest.base.values import (
    Document,
    Endless,
    OutputFormat,
    Page,
    Rows,
    RowSource,
    Stream,
    nothing,
)
from monrest.render.formats import KINDS, Rendered, RenderOptions, error_document, render
from monrest.render.json import AsciiWriter, ascii_only
from monrest.render.table import every_key
from monrest.render.xlsx import CONTENT_TYPE as EXCEL
from monrest.web.limits import Pace, pace_of_reader

if TYPE_CHECKING:
    from monrest.base.values import Answer
    from monrest.web.api_site import ApiRequest
    from monrest.web.channel import ApiChannel


log = Logger()


def cut_off(request: Request) -> None:
    log.info("a client that reads too slowly is cut off")
    cast("ApiChannel", request.channel).forceAbortClient()


@implementer(IPushProducer)
@define(eq=False)
class Flow:
    """Hands pieces to ``request``; a client that reads too slowly is cut off (see ``Pace``).

    ``close`` comes at the end, however it ends. There may be any time between two pieces.
    """

    clock: IReactorTime
    request: Request
    _waiting: Deferred[None] | None = field(default=None, init=False)
    _pace: Pace = field(init=False)
    _paused: bool = field(default=False, init=False)
    _open: bool = field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        self._pace = pace_of_reader(self.clock)
        self.request.registerProducer(self, True)

    async def write(self, data: bytes) -> None:
        """Hand over ``data``; done when the client has taken enough for more."""
        if data:
            self.request.write(data)
        if self._paused:
            self._waiting = Deferred()
            await self._waiting

    def pauseProducing(self) -> None:
        if not self._paused:
            self._paused = True
            taken = cast("ApiChannel", self.request.channel).taken
            self._pace.begin(taken, partial(cut_off, self.request))

    def resumeProducing(self) -> None:
        self._paused = False
        self._pace.end()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)

    def stopProducing(self) -> None:
        """The client has left: the writer is cancelled with the request."""
        self._pace.end()

    def close(self) -> None:
        self._pace.end()
        if self._open:
            self._open = False
            self.request.unregisterProducer()


PATIENCE = 300.0
"""Seconds for which a client may take nothing of what it was given."""


@implementer(IPushProducer)
@define(eq=False)
class ClientOutlet:
    """The client of ``request``. One that takes nothing for ``PATIENCE`` seconds is cut off.

    As long as the system takes all that is written, it goes straight to the socket: no buffer, and
    no turn of the reactor for each client. What the system does not take is left to the
    transport, and the client is paused until that is on its way.
    """

    clock: IReactorTime
    request: ApiRequest
    escape: Callable[[bytes], bytes] | None = None
    """Makes plain ASCII of what is written."""
    paused: bool = field(init=False, default=False)
    _transport: Any = field(init=False)
    _send: Callable[[bytes], int] | None = field(init=False, default=None)
    """Sends over a socket for which nothing waits."""
    _sent: int = field(init=False, default=0)
    """Bytes of which the request does not know."""
    _resume: Callable[[], None] = field(init=False, default=nothing)
    _late: IDelayedCall | None = field(init=False, default=None)
    _open: bool = field(init=False, default=True)

    def __attrs_post_init__(self) -> None:
        self.request.registerProducer(self, True)
        transport: Any = self.request.channel.transport
        straight = isinstance(transport, Connection) and not transport.TLS
        self._transport = transport if straight else None
        # The head of the answer waits.
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        """Make the transport resume this when nothing waits any more, even after few bytes."""
        transport = self._transport
        if transport is not None and not transport.producerPaused:
            transport.producerPaused = True
            transport.producer.pauseProducing()

    def write(self, data: bytes) -> None:
        if self.escape is not None:
            data = self.escape(data)
        send = self._send
        if send is None:
            if self._open:
                self.request.write(data)
            return
        framed = b"%x\r\n%b\r\n" % (len(data), data) if self.request.chunked else data
        self._sent += len(data)
        try:
            sent = send(framed)
        except OSError:
            # The reactor tries again, and closes what is broken.
            sent = 0
        if sent < len(framed):
            self._send = None
            self._transport.write(framed[sent:])
            self._tell_of_room()

    def on_room(self, resume: Callable[[], None]) -> None:
        self._resume = resume

    def pauseProducing(self) -> None:
        self.paused = True
        if self._late is None:
            self._late = self.clock.callLater(PATIENCE, self._cut_off)

    def resumeProducing(self) -> None:
        self.paused = False
        self._wait_no_more()
        if self._open:
            if self._transport is not None:
                self._send = self._transport.socket.send
            self._resume()

    def stopProducing(self) -> None:
        """Write nothing more: the client is gone. Its writer is cancelled with the request."""
        self._open, self._send = False, None
        self._wait_no_more()

    def close(self) -> None:
        self._wait_no_more()
        self._resume, self._send = nothing, None
        self.request.sentLength += self._sent
        if self._open:
            self._open = False
            self.request.unregisterProducer()

    def _wait_no_more(self) -> None:
        late, self._late = self._late, None
        if late is not None and late.active():
            late.cancel()

    def _cut_off(self) -> None:
        self._late = None
        log.info("a client that takes nothing of its stream is cut off")
        self.request.channel.forceAbortClient()


T = TypeVar("T")

_SMALL = 65536
_MOST_SLOW = 2
"""Threads that Excel files may keep busy for half a minute: the others are left for the rest."""
_PIECE = 262_144
_MADE_HERE = 524_288
"""Bytes of a body that is made on the reactor's thread, and waits in memory for its reader."""
_WORTH_COMPRESSING = 1024
_TEXT_TYPES = ("application/json", "application/x-ndjson", "text/")
_VARIES = [b"Accept, Accept-Encoding"]
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_TAG_DIGITS = 16
_ASKS_AGAIN = [b"private, no-cache"]
_OF_THE_BODY = (b"Content-Type", b"Content-Disposition")


def _weights(header: bytes) -> dict[bytes, float]:
    """The quality of each item of an Accept header, from 0 to 1."""
    weights: dict[bytes, float] = {}
    for item in header.lower().split(b","):
        coding, _, parameter = item.partition(b";")
        name, _, weight = parameter.partition(b"=")
        try:
            value = float(weight) if name.strip() == b"q" else 1.0
        except ValueError:
            value = 0.0
        weights[coding.strip()] = value
    return weights


_ACCEPTED: tuple[tuple[bytes, OutputFormat], ...] = (
    (b"application/x-ndjson", "ndjson"),
    (b"text/csv", "csv"),
    (EXCEL.encode("ascii"), "xls"),
)


@lru_cache(maxsize=256)
def accepted_format(header: bytes) -> OutputFormat | None:
    """The format that an Accept value names with more weight than JSON, None for JSON."""
    weights = _weights(header)
    wanted, best = None, weights.get(b"application/json", 0.0)
    for kind, chosen in _ACCEPTED:
        if weights.get(kind, 0.0) > best:
            wanted, best = chosen, weights[kind]
    return wanted


@lru_cache(maxsize=256)
def accepts_gzip(header: bytes) -> bool:
    """Whether an Accept-Encoding value wants gzip: named, or by ``*``, with a weight above 0."""
    weights = _weights(header)
    for coding in (b"gzip", b"x-gzip", b"*"):
        if coding in weights:
            return weights[coding] > 0
    return False


def is_large(answer: Rows | Document) -> bool:
    """Whether an answer has so many rows that a thread works on them."""
    if isinstance(answer, Document):
        return False
    many = len(answer.rows) * len(answer.columns) > FEW_VALUES
    return many or isinstance(answer.rows, RowSource)


def gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Compress at level 1, which takes a twentieth of the time that rendering took."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


@implementer(IPullProducer)
@define(eq=False)
class BodyProducer:
    """Sends what ``read`` returns of a place and a size as fast as the client takes it.

    ``done`` fires at its end.
    """

    read: Callable[[int, int], bytes]
    request: ApiRequest
    done: Deferred[None] = field(init=False, factory=Deferred)
    _at: int = field(init=False, default=0)

    def resumeProducing(self) -> None:
        if self.done.called:
            return
        try:
            piece = self.read(self._at, _PIECE)
        except OSError:
            self.done.errback()
            return
        self._at += len(piece)
        if piece:
            self.request.write(piece)
        else:
            self.done.callback(None)

    def stopProducing(self) -> None:
        """The client has left: the request is cancelled, and with it ``done``."""


@define(eq=False)
class Responder:
    """Sends answers and errors; what is large is made in one of ``threads``, in ``files``.

    ``ascii_json``: JSON has nothing beyond ASCII in it.
    """

    clock: IReactorTime
    threads: Threads
    files: AnswerFiles
    ascii_json: bool = False
    _slow: DeferredSemaphore = field(init=False, factory=lambda: DeferredSemaphore(_MOST_SLOW))

    async def answer(self, request: ApiRequest, answer: Answer, options: RenderOptions) -> None:
        """Render and send ``answer``; the caller ends the request."""
        if isinstance(answer, Stream):
            await self.stream(request, answer)
        elif isinstance(answer, Page):
            await self.page(request, answer)
        elif isinstance(answer, Endless):
            await self.endless(request, answer)
        else:
            assert isinstance(answer, (Rows, Document))
            await self.rendered(request, answer, options)

    async def rendered(
        self, request: ApiRequest, answer: Rows | Document, options: RenderOptions
    ) -> None:
        """Send rows or a value in the format that the client wants."""
        if isinstance(answer, Document) and answer.status != 200:
            request.setResponseCode(answer.status)
        if answer.headers:
            _add_headers(request, answer.headers)
        if isinstance(answer, Document) and answer.plain:
            options = RenderOptions(pretty=options.pretty)
        compress = self._headers(request, *KINDS[options.format])
        body, answer = await self._make_body(answer, options, compress=compress)
        if answer.failed_sites:
            request.name_failed_sites(problem.site for problem in answer.failed_sites)
        request.answered()
        if isinstance(body, AnswerFile):
            await self._send_file(request, body, compress=compress)
            return
        compress = compress and len(body) > _WORTH_COMPRESSING
        # A client may ask whether a small body is still the same. A header of its own (a cookie, a
        # warning) would be missing in the 304.
        if (
            len(body) <= _SMALL
            and request.method in (b"GET", b"HEAD")
            and request.code == 200
            and not answer.headers
            and not answer.failed_sites
        ):
            digest = sha256(body)
            (kind,) = request.responseHeaders.getRawHeaders(b"Content-Type", ())
            digest.update(b"%d%s" % (compress, kind))
            if self._is_kept(request, b'"%s"' % digest.hexdigest()[:_TAG_DIGITS].encode()):
                return
        if compress:
            request.responseHeaders.setRawHeaders(b"Content-Encoding", [b"gzip"])
            body = b"".join(gzipped([body]))
        await self._send_bytes(request, body)

    async def keys_of(self, answer: Answer) -> Answer:
        """One row with all keys of an answer, in the place of its rows."""
        if not isinstance(answer, (Rows, Document)):
            return answer
        try:
            if not is_large(answer):
                return every_key(answer)
            keys, answer = await self._in_thread(answer, every_key)
        finally:
            _let_go(answer)
        return evolve(keys, failed_sites=answer.failed_sites)

    async def _in_thread(
        self,
        answer: Rows | Document,
        work: Callable[[Rows | Document, Callable[[], bool]], T],
    ) -> tuple[T, Rows | Document]:
        """The result of ``work`` for an answer, and the answer: sites may turn out to be broken."""
        while True:
            try:
                return await self.threads.stoppable(partial(work, answer)), answer
            except BrokenRowsError as broken:
                assert isinstance(answer, Rows)
                assert answer.without is not None
                answer = answer.without(broken)

    async def _make_body(
        self, answer: Rows | Document, options: RenderOptions, *, compress: bool
    ) -> tuple[bytes | AnswerFile, Rows | Document]:
        """The whole body and of which answer it is; a large one in a file, compressed if wanted.

        A small one is made here; of one that turns out to be large the rest is made in a thread.
        """
        first: list[bytes] = []
        begun = self._pieces(render(answer, options))

        def in_file(answer: Rows | Document, left: Callable[[], bool]) -> AnswerFile:
            pieces = chain(first, begun) if first else self._pieces(render(answer, options, left))
            return self.files.made_of(gzipped(pieces) if compress else pieces, left)

        try:
            if not options.slow and not is_large(answer):
                size = 0
                for piece in begun:
                    first.append(piece)
                    size += len(piece)
                    if size > _MADE_HERE:
                        break
                else:
                    return b"".join(first), answer
            if options.slow:
                await self._slow.acquire()
            try:
                file, answer = await self._in_thread(answer, in_file)
            finally:
                if options.slow:
                    self._slow.release()
        finally:
            _let_go(answer)
        if file.size > _SMALL or compress:
            return file, answer
        body = file.read(0, file.size)
        file.close()
        return body, answer

    def _pieces(self, rendered: Rendered) -> Iterator[bytes]:
        escapes = self._escapes(rendered.content_type)
        return ascii_only(rendered.pieces) if escapes else rendered.pieces

    async def _send_file(self, request: ApiRequest, body: AnswerFile, *, compress: bool) -> None:
        if compress:
            request.responseHeaders.setRawHeaders(b"Content-Encoding", [b"gzip"])
        request.responseHeaders.setRawHeaders(b"Content-Length", [b"%d" % body.size])
        try:
            if request.method == b"HEAD":
                request.write(b"")
            else:
                await self._send(request, body.read)
        finally:
            # Giving a large file back to the system takes milliseconds.
            if self.threads.running:
                self.threads.run(body.close)
            else:
                body.close()

    async def _send_bytes(self, request: ApiRequest, body: bytes) -> None:
        request.responseHeaders.setRawHeaders(b"Content-Length", [b"%d" % len(body)])
        if len(body) <= _SMALL or request.method == b"HEAD":
            request.write(body)
        else:
            await self._send(request, lambda at, size: body[at : at + size])

    async def _send(self, request: ApiRequest, read: Callable[[int, int], bytes]) -> None:
        """Send the pieces of ``read``; a client that reads too slowly is cut off (see ``Pace``)."""
        pace = pace_of_reader(self.clock)
        channel = cast("ApiChannel", request.channel)
        pace.begin(channel.taken, partial(cut_off, request))
        try:
            producer = BodyProducer(read, request)
            request.registerProducer(producer, False)
            await producer.done
        finally:
            pace.end()
            if not request.left:
                request.unregisterProducer()

    async def stream(self, request: ApiRequest, answer: Stream) -> None:
        """Send what was rendered before, as fast as the client reads and no faster."""
        # What goes wrong with the first piece can still be answered as an error.
        first = await anext(answer.pieces, b"")
        request.setResponseCode(answer.status)
        _add_headers(request, answer.headers)
        if answer.failed_sites:
            request.name_failed_sites(problem.site for problem in answer.failed_sites)
        headers = request.responseHeaders
        packer = None
        escape = AsciiWriter() if self._escapes(answer.content_type) else None
        compress = self._headers(request, answer.content_type, answer.disposition)
        if compress and answer.size > _WORTH_COMPRESSING:
            headers.setRawHeaders(b"Content-Encoding", [b"gzip"])
            packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
        elif escape is None:
            headers.setRawHeaders(b"Content-Length", [b"%d" % answer.size])
        request.answered()
        if request.method == b"HEAD":
            request.write(b"")
            return

        def encoded(piece: bytes) -> bytes:
            piece = escape(piece) if escape else piece
            return packer.compress(piece) if packer else piece

        flow = Flow(self.clock, request)
        try:
            await flow.write(encoded(first))
            async for piece in answer.pieces:
                await flow.write(encoded(piece))
            if packer:
                await flow.write(packer.flush())
        finally:
            flow.close()

    async def page(self, request: ApiRequest, page: Page) -> None:
        request.answered()
        packed = self._headers(request, page.content_type)
        _add_headers(request, page.headers)
        tag = b'"%s%s"' % (page.tag.encode("ascii"), b"-gzip" if packed else b"")
        if self._is_kept(request, tag):
            return
        if packed:
            request.responseHeaders.setRawHeaders(b"Content-Encoding", [b"gzip"])
        await self._send_bytes(request, page.packed if packed else page.body)

    async def endless(self, request: ApiRequest, answer: Endless) -> None:
        """Write a body without an end until it is over or the client leaves."""
        _add_headers(request, answer.headers)
        headers = request.responseHeaders
        headers.setRawHeaders(b"Content-Type", [answer.content_type.encode("ascii")])
        headers.setRawHeaders(b"X-Accel-Buffering", [b"no"])
        request.answered()
        request.write(b"")
        if request.method == b"HEAD":
            return
        escape = AsciiWriter() if self.ascii_json else None
        outlet = ClientOutlet(self.clock, request, escape)
        try:
            await answer.run(outlet)
        finally:
            outlet.close()

    def error_body(self, error: RestError, options: RenderOptions) -> tuple[str, bytes]:
        """The content type and the bytes of an error document, in the asked format if it can be."""
        content = (error.code, error.message, error.description)
        try:
            rendered = error_document(*content, options, error.extra)
            return rendered.content_type, b"".join(self._pieces(rendered))
        except RestError:
            rendered = error_document(*content, RenderOptions(), error.extra)
            return rendered.content_type, b"".join(self._pieces(rendered))

    def error(
        self, request: ApiRequest, error: RestError, rendered: tuple[str, bytes] | None = None
    ) -> None:
        """Send an error document, ``rendered`` by ``error_body`` or here."""
        content_type, body = rendered or self.error_body(error, request.options)
        request.setResponseCode(error.code)
        for stale in (b"Content-Encoding", b"Content-Disposition", b"Content-Length"):
            request.responseHeaders.removeHeader(stale)
        _add_headers(request, error.headers)
        if error.problems:
            request.name_failed_sites(problem.site for problem in error.problems)
        self._headers(request, content_type)
        request.responseHeaders.setRawHeaders(b"Content-Length", [b"%d" % len(body)])
        request.write(body)

    def _escapes(self, content_type: str) -> bool:
        """Whether a body of this type must be in ASCII."""
        return self.ascii_json and "json" in content_type.partition(";")[0]

    def _headers(
        self, request: ApiRequest, content_type: str, disposition: str | None = None
    ) -> bool:
        """Set what describes the body; whether it is to be compressed."""
        headers = request.responseHeaders
        headers.setRawHeaders(b"Content-Type", [content_type.encode("ascii")])
        if disposition is not None:
            headers.setRawHeaders(b"Content-Disposition", [disposition.encode("ascii")])
        varies = headers.getRawHeaders(b"Vary")
        if varies is None:
            headers.setRawHeaders(b"Vary", _VARIES)
        else:
            names = (name.strip() for vary in (*varies, *_VARIES) for name in vary.split(b","))
            headers.setRawHeaders(b"Vary", [b", ".join(dict.fromkeys(names))])
        if not content_type.startswith(_TEXT_TYPES):
            return False
        wanted = request.requestHeaders.getRawHeaders(b"Accept-Encoding")
        return wanted is not None and accepts_gzip(b",".join(wanted))

    def _is_kept(self, request: ApiRequest, tag: bytes) -> bool:
        """Name the body by ``tag``, in quotes, and send a 304 if the client has it already."""
        headers = request.responseHeaders
        headers.setRawHeaders(b"ETag", [tag])
        headers.setRawHeaders(b"Cache-Control", _ASKS_AGAIN)
        sent = request.requestHeaders.getRawHeaders(b"If-None-Match")
        if sent is None:
            return False
        # Weak tags count as well.
        tags = {item.strip().removeprefix(b"W/") for item in b",".join(sent).split(b",")}
        if tag not in tags and b"*" not in tags:
            return False
        request.setResponseCode(304)
        for name in _OF_THE_BODY:
            headers.removeHeader(name)
        request.write(b"")
        return True


def _let_go(answer: Rows | Document) -> None:
    """Release the rows: an error keeps the frames that refer to them."""
    if isinstance(answer, Rows):
        answer.gone()


def _add_headers(request: ApiRequest, headers: Iterable[tuple[str, str]]) -> None:
    for name, value in headers:
        request.responseHeaders.addRawHeader(name.encode("ascii"), value.encode("ascii"))
