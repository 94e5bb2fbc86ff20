"""Writing an answer: status, headers, compression, and the choice between one write and many.

A body whose size is known carries ``Content-Length``, and an ``ETag`` where a client may keep it
(docs/spec/http.md, "Answers that are kept").
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from monrest.base.concurrency import Threads
from monrest.base.spool import Spool, Spools
from monrest.base.values import (
    Document,
    Endless,
    LateRows,
    OutputFormat,
    Page,
    Rows,
    Stream,
    nothing,
)
from monrest.render.formats import Rendered, RenderOptions, error_document, render
from monrest.render.json import AsciiWriter, ascii_only
from monrest.render.xlsx import CONTENT_TYPE as EXCEL
from monrest.web.outlet import ClientOutlet, SharedChunk
from monrest.web.producer import BodyProducer
from monrest.web.row_flow import Flow

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime

    from monrest.api.error_answers import Problem
    from monrest.base.values import Answer
    from monrest.web.api_site import ApiRequest

_SMALL = 65536
_WORTH_COMPRESSING = 1024
_GATHER_SECONDS = 0.005
_TEXT_TYPES = ("application/json", "application/x-ndjson", "text/")
_VARIES = [b"Accept, Accept-Encoding"]
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_TAG_DIGITS = 16
_ASKS_AGAIN = [b"private, no-cache"]
_OF_THE_BODY = (b"Content-Type", b"Content-Disposition")


def _weights(header: bytes) -> dict[bytes, float]:
    """How much each item of an Accept header is wanted, from 0 to 1."""
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


def names_tag(header: bytes, tag: bytes) -> bool:
    """Whether an If-None-Match value names ``tag``, which has its quotes; weak ones count."""
    found = {item.strip().removeprefix(b"W/") for item in header.split(b",")}
    return tag in found or b"*" in found


def gzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Compress at level 1, which takes a twentieth of the time that rendering took."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


@define(eq=False)
class Responder:
    """Sends answers and errors; ``spools`` keep what is made ahead of a client.

    ``threads`` read large bodies, ``sheets`` make Excel files: one at a time, because each holds up
    the reactor for as long as the interpreter lets it.

    ``ascii_json``: JSON has nothing beyond ASCII in it.
    """

    clock: IReactorTime
    threads: Threads
    sheets: Threads
    spools: Spools
    ascii_json: bool = False
    _chunk: SharedChunk = field(init=False, factory=SharedChunk)

    async def answer(self, request: ApiRequest, answer: Answer, options: RenderOptions) -> None:
        """Render and send ``answer``; whoever calls this ends the request."""
        if isinstance(answer, Stream):
            await self.stream(request, answer)
            return
        if isinstance(answer, Page):
            paging = self.page(request, answer)
            if paging is not None:
                await paging
            return
        if isinstance(answer, Endless):
            await self.endless(request, answer)
            return
        assert isinstance(answer, (Rows, Document))
        gone = answer.gone if isinstance(answer, Rows) else nothing
        try:
            if isinstance(answer, Document) and answer.status != 200:
                request.setResponseCode(answer.status)
            if answer.headers:
                _add_headers(request, answer.headers)
            if answer.failed_sites:
                request.name_failed_sites(problem.site for problem in answer.failed_sites)
            if isinstance(answer, Document) and answer.plain:
                options = RenderOptions(pretty=options.pretty)
            if options.slow:
                rendered = await self.sheets.stoppable(
                    lambda given_up: render(answer, options, given_up)
                )
            else:
                rendered = render(answer, options)
            if self.ascii_json and self._escapes(rendered.content_type):
                rendered = evolve(rendered, pieces=ascii_only(rendered.pieces))
            flows = isinstance(answer, Rows) and isinstance(answer.rows, LateRows)
            request.answered()
            # A header of its own (a cookie, a warning) is not said again by a 304 that lacks it.
            tagged = (
                request.method in (b"GET", b"HEAD")
                and request.code == 200
                and not answer.headers
                and not answer.failed_sites
            )
            sending = self.send(request, rendered, flows=flows, tagged=tagged)
            if sending is not None:
                await sending
        finally:
            # An error, as of a client that leaves, keeps the frames that know of the rows.
            if gone is not nothing:
                gone()

    async def stream(self, request: ApiRequest, answer: Stream) -> None:
        """Send what was rendered before, as fast as the client reads and no faster."""
        # Whatever goes wrong with the first piece can still be told.
        first = await anext(answer.pieces, b"")
        request.setResponseCode(answer.status)
        _add_headers(request, answer.headers)
        if answer.failed_sites:
            request.name_failed_sites(problem.site for problem in answer.failed_sites)
        rendered = Rendered(
            content_type=answer.content_type, disposition=answer.disposition, pieces=iter(())
        )
        headers = request.responseHeaders
        packer = None
        escape = AsciiWriter() if self._escapes(answer.content_type) else None
        if self._headers(request, rendered) and answer.size > _WORTH_COMPRESSING:
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

    def page(self, request: ApiRequest, page: Page) -> Deferred[None] | None:
        """Send a page, or say that the client has it already (None: all is written)."""
        request.answered()
        rendered = Rendered(content_type=page.content_type, disposition=None, pieces=iter(()))
        packed = self._headers(request, rendered)
        _add_headers(request, page.headers)
        tag = b'"%s%s"' % (page.tag.encode("ascii"), b"-gzip" if packed else b"")
        if self._is_kept(request, tag):
            return None
        if packed:
            request.responseHeaders.setRawHeaders(b"Content-Encoding", [b"gzip"])
        body = page.packed if packed else page.body
        if len(body) <= _SMALL or request.method == b"HEAD":
            self._whole(request, body)
            return None
        request.responseHeaders.setRawHeaders(b"Content-Length", [b"%d" % len(body)])
        pieces = (body[at : at + _SMALL] for at in range(0, len(body), _SMALL))
        return BodyProducer(self.clock, request, pieces, None).send()

    async def endless(self, request: ApiRequest, answer: Endless) -> None:
        """Write a body without an end until it is over or the client leaves."""
        _add_headers(request, answer.headers)
        headers = request.responseHeaders
        headers.setRawHeaders(b"Content-Type", [_encoded(answer.content_type)])
        headers.setRawHeaders(b"X-Accel-Buffering", [b"no"])
        request.answered()
        request.write(b"")
        if request.method == b"HEAD":
            return
        escape = AsciiWriter() if self.ascii_json else None
        outlet = ClientOutlet(self.clock, request, self._chunk, escape)
        try:
            await answer.run(outlet)
        finally:
            outlet.close()

    def problem(self, request: ApiRequest, problem: Problem, options: RenderOptions) -> None:
        """Send an error document in the asked format."""
        request.setResponseCode(problem.code)
        for stale in (b"Content-Encoding", b"Content-Disposition", b"Content-Length"):
            request.responseHeaders.removeHeader(stale)
        _add_headers(request, problem.headers)
        if problem.failed_sites:
            request.name_failed_sites(problem.failed_sites)
        rendered = error_document(
            problem.code, problem.message, problem.description, options, problem.extra
        )
        self._headers(request, rendered)
        escapes = self._escapes(rendered.content_type)
        pieces = ascii_only(rendered.pieces) if escapes else rendered.pieces
        self._whole(request, b"".join(pieces))

    def send(
        self, request: ApiRequest, rendered: Rendered, *, flows: bool, tagged: bool
    ) -> Deferred[None] | None:
        """Send a body: at once if it is small, else while it is made (None: all is written).

        What ``flows`` is made as it is read; of anything else the rest is made ahead for a client
        that takes its time. ``tagged``: the client may keep a small one, and ask whether it is
        still the same.
        """
        compress = self._headers(request, rendered)
        pieces, first, size = rendered.pieces, [], 0
        end = self.clock.seconds() + _GATHER_SECONDS
        for piece in pieces:
            first.append(piece)
            size += len(piece)
            if size > _SMALL or (len(first) > 1 and self.clock.seconds() > end):
                break
        else:
            body = b"".join(first)
            compress = compress and size > _WORTH_COMPRESSING
            if tagged:
                digest = sha256(body)
                digest.update(b"%d%s" % (compress, _encoded(rendered.content_type)))
                if self._is_kept(request, b'"%s"' % digest.hexdigest()[:_TAG_DIGITS].encode()):
                    return None
            if compress:
                request.responseHeaders.setRawHeaders(b"Content-Encoding", [b"gzip"])
                body = b"".join(gzipped(iter([body])))
            self._whole(request, body)
            return None
        if request.method == b"HEAD":
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
            return None
        whole = _joined(first, pieces)
        if compress:
            request.responseHeaders.setRawHeaders(b"Content-Encoding", [b"gzip"])
            whole = gzipped(whole)
        spool = None if flows else Spool(self.spools)
        return BodyProducer(self.clock, request, whole, spool).send()

    def _escapes(self, content_type: str) -> bool:
        """Whether a body of this type must be in ASCII."""
        return self.ascii_json and "json" in content_type.partition(";")[0]

    def _headers(self, request: ApiRequest, rendered: Rendered) -> bool:
        """Set what describes the body; whether it is to be compressed."""
        headers = request.responseHeaders
        headers.setRawHeaders(b"Content-Type", [_encoded(rendered.content_type)])
        if rendered.disposition is not None:
            headers.setRawHeaders(b"Content-Disposition", [_encoded(rendered.disposition)])
        varies = headers.getRawHeaders(b"Vary")
        if varies is None:
            headers.setRawHeaders(b"Vary", _VARIES)
        else:
            headers.setRawHeaders(b"Vary", _joined_names(*varies, *_VARIES))
        if not rendered.content_type.startswith(_TEXT_TYPES):
            return False
        wanted = request.requestHeaders.getRawHeaders(b"Accept-Encoding")
        return wanted is not None and accepts_gzip(b",".join(wanted))

    def _is_kept(self, request: ApiRequest, tag: bytes) -> bool:
        """Name the body, and whether the client has it already, which it is told then."""
        headers = request.responseHeaders
        headers.setRawHeaders(b"ETag", [tag])
        headers.setRawHeaders(b"Cache-Control", _ASKS_AGAIN)
        known = request.requestHeaders.getRawHeaders(b"If-None-Match")
        if known is None or not names_tag(b",".join(known), tag):
            return False
        self._unchanged(request)
        return True

    def _unchanged(self, request: ApiRequest) -> None:
        """Say that the client has the body already."""
        request.setResponseCode(304)
        for name in _OF_THE_BODY:
            request.responseHeaders.removeHeader(name)
        request.write(b"")

    def _whole(self, request: ApiRequest, body: bytes) -> None:
        request.responseHeaders.setRawHeaders(b"Content-Length", [b"%d" % len(body)])
        request.write(body)


def _add_headers(request: ApiRequest, headers: Iterable[tuple[str, str]]) -> None:
    for name, value in headers:
        request.responseHeaders.addRawHeader(name.encode("ascii"), value.encode("ascii"))


def _joined_names(*lists: bytes) -> list[bytes]:
    """One header with each name of several lists once."""
    names = (name.strip() for one in lists for name in one.split(b","))
    return [b", ".join(dict.fromkeys(names))]


def _joined(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    while first:
        yield first.pop(0)
    yield from rest


@lru_cache(maxsize=32)
def _encoded(value: str) -> bytes:
    return value.encode("ascii")
