"""Reading answers: the fixed16 header, rows while they arrive, everything cores do wrong.

Pure functions over bytes. Rows are parsed in slices as the bytes come in, so that no single step
holds up the reactor. Rules: docs/spec/livestatus.md, "Answers".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Hashable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import orjson
from attrs import define, field

from monrest.base.errors import Unavailable
from monrest.base.spool import Chunk, Share, Spool, Spools
from monrest.base.values import Row
from monrest.livestatus.core_errors import (
    NoHeaderError,
    ProtocolError,
    RefusedError,
    first_line,
)

HEADER_SIZE = 16
SLICE = 64 * 1024
"""Rows are parsed whenever this many bytes are there."""
LARGEST_ANSWER = 1 << 30
"""Twice the largest answer of a Naemon (max_response_size); more is a lie."""
_LARGEST_ROW = 16 << 20
_MOST_VALUES = 500_000
_LARGEST_LENIENT = 256 * 1024
"""Bytes that expressions go through, and an eighth of those whose letters are mended."""
_TRIED = 1 << 20
"""Bytes that are parsed at most to find where a slice may end."""
_LONGEST_MESSAGE = 64 * 1024
_OK = 200
_TRIES = 8

_HEADER = re.compile(rb"([0-9]{3}) (?=[ 0-9]{11}\n)( *[0-9]+)\n")

Transform: TypeAlias = Callable[[list[Row]], list[Row]]
"""Turns rows as the core gives them into the rows that are wanted; called once per slice."""

SEPARATORS = ("\n", "\x01", "\x02", "\x03")
"""What is between rows, values, elements of lists and parts of elements in rows read as text."""

_DAMAGE = re.compile(rb"\\u0[7fF][c-fC-F]")


class Damaged(list[Row]):
    """Rows with letters that a Naemon writes instead of emoji."""


def parse_header(data: bytes) -> tuple[int, int]:
    """(status, length of the body) of the fixed16 header, the first 16 bytes of ``data``.

    Raise ProtocolError with the text up to the newline when it is none: errors met before the
    ResponseHeader line come as bare text.
    """
    match = _HEADER.match(data)
    if match is None:
        raise NoHeaderError(first_line(data.decode("utf-8", "replace")))
    length = int(match[2])
    if length > LARGEST_ANSWER:
        raise ProtocolError(f"an answer of {length} bytes is announced")
    return int(match[1]), length


# ---------------------------------------------------------------- JSON of cores

_STRANGE_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|(-?\b(?:nan|inf)\b)', re.DOTALL)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_NUMBER = 4000


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ProtocolError(f"a number of {len(digits)} digits")
    return int(digits)


_READER = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_int=_whole)


def _without_nan(match: re.Match[str]) -> str:
    return "null" if match[1] else match[0]


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


class _Incomplete(Exception):  # noqa: N818  not an error: the cut was in the wrong place
    """The text ends in the middle of a string or a list."""


def _lenient(body: bytes | bytearray | memoryview, reason: orjson.JSONDecodeError) -> Any:
    """Parse what orjson refuses: bytes that are not UTF-8, control characters, nan and inf.

    Broken bytes become U+FFFD, raw control characters are kept, nan and inf become null (they
    are no numbers). What is large is mended in its letters only, since this keeps the interpreter.
    Raise _Incomplete if more text might help, else ProtocolError.
    """
    try:
        text = str(body, "utf-8")
    except UnicodeDecodeError:
        if len(body) > 8 * _LARGEST_LENIENT:
            raise ProtocolError("a large row that is not UTF-8") from None
        text = str(body, "utf-8", "replace")
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            reason = error
    if len(body) > _LARGEST_LENIENT:
        if reason.pos >= len(text) - 3:
            raise _Incomplete
        raise ProtocolError(f"not valid JSON near byte {reason.pos}: {reason.msg}")
    text = _STRANGE_NUMBER.sub(_without_nan, text)
    try:
        value, end = _READER.raw_decode(text.lstrip())
        value = _without_surrogates(value)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()) - 1:
            raise _Incomplete from None
        raise ProtocolError(f"not valid JSON near byte {error.pos}") from None
    except RecursionError:
        raise ProtocolError("lists nested too deeply") from None
    if text.lstrip()[end:].strip():
        raise ProtocolError("not valid JSON: text behind the last row")
    return value


def _load(body: bytes | bytearray | memoryview) -> Any:
    if len(body) > _LARGEST_LENIENT:
        values = len(body) - len(bytes(body).translate(None, b",[{"))
        if values > _MOST_VALUES:
            raise ProtocolError(f"{values} values in a row, or in rows that nothing separates")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return _lenient(body, error)


def checked(rows: Any, width: int | None, transform: Transform | None) -> list[Row]:
    """Give the rows as they are wanted, if they are what was announced. Raise ProtocolError."""
    if type(rows) is not list:
        raise ProtocolError("the answer is not a list of rows")
    if rows:
        if set(map(type, rows)) != {list}:
            raise ProtocolError("a row is not a list")
        if width is not None and set(map(len, rows)) != {width}:
            wrong = next(len(row) for row in rows if len(row) != width)
            raise ProtocolError(f"{wrong} columns instead of {width}")
    return rows if transform is None else transform(rows)


def parse_rows(
    body: bytes | bytearray, width: int | None = None, transform: Transform | None = None
) -> list[Row]:
    """The rows of a whole body; each must have ``width`` columns.

    Raise ProtocolError if it is not JSON, not a list of lists or of another width.
    """
    try:
        rows = _load(body)
    except _Incomplete:
        raise ProtocolError("not valid JSON, it ends too early" if body else "no body") from None
    return checked(rows, width, transform)


def parse_object(body: bytes | bytearray) -> dict[str, Any]:
    """The object that a body is; ProtocolError if it is none."""
    try:
        value = _load(body)
    except _Incomplete:
        raise ProtocolError("not valid JSON, it ends too early") from None
    if type(value) is not dict:
        raise ProtocolError("the answer is not an object")
    return value


def looks_damaged(body: bytes | bytearray) -> bool:
    """Whether a body holds letters that may have been emoji."""
    return b"\\" in body and _DAMAGE.search(body) is not None


def parse_texts(body: bytes | bytearray, width: int | None = None) -> list[Row]:
    """The rows of a body in CSV with ``SEPARATORS``; every value is text. Raise ProtocolError."""
    row, value, *_ = SEPARATORS
    lines = str(body, "utf-8", "replace").split(row)
    if lines.pop():
        raise ProtocolError("the last row has no end")
    return checked([line.split(value) for line in lines], width, None)


@define(eq=False)
class PackedRows:
    """The rows of one large answer, kept as the core wrote them until somebody takes them.

    An answer is packed when ``share`` has no room for its rows. What was packed has been parsed
    once, so that taking it finds nothing wrong. ``count`` rows are packed, in ``size`` bytes; those
    at the end of the answer are not among them. ``dropped``: the disk did not take them, and memory
    must not.
    """

    share: Share
    spools: Spools
    count: int = field(default=0, init=False)
    size: int = field(default=0, init=False)
    dropped: bool = field(default=False, init=False)
    _length: int = field(default=0, init=False)
    _packs: bool = field(default=False, init=False)
    _unpack: Callable[[bytes], list[Row]] = field(default=parse_rows, init=False)
    _spool: Spool | None = field(default=None, init=False)
    _chunks: list[Chunk] = field(factory=list, init=False)

    @property
    def packs(self) -> bool:
        """Whether rows of this answer are packed."""
        return self._packs

    def begin(self, length: int, transform: Transform | None) -> None:
        """Begin with an answer of ``length`` bytes, which may be the second one."""
        self.forget()
        self._unpack = partial(parse_rows, transform=transform)
        self._length = length
        self._packs = not self.share.grow(length)

    def begin_packing(self, unpack: Callable[[bytes], list[Row]]) -> None:
        """Begin with an answer that is packed in any case; ``unpack`` makes rows of a piece."""
        self.forget()
        self._unpack = unpack
        self._length, self._packs = 0, True

    async def admit_again(self) -> None:
        """Have room for all rows, and for as much again."""
        if self._packs:
            await self.share.admit(2 * self._length)

    def pack(self, piece: bytes | memoryview, count: int) -> bool:
        """Keep a piece of ``count`` rows; False if they are to be kept as rows."""
        if self._packs and (self.dropped or self.spools.crowded):
            self.forget()
            self.dropped = True
        elif self._packs:
            if self._spool is None:
                self._spool = Spool(self.spools)
            self._chunks.append(self._spool.add(bytes(piece)))
            self.count += count
            self.size += len(piece)
        return self._packs

    def forget(self) -> None:
        """Let go of all that was packed."""
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()
        self._chunks.clear()
        self.count = self.size = 0
        self.dropped = False

    def batches(self) -> Iterator[list[Row]]:
        """Give the rows in their order; each batch is parsed when it is asked for."""
        for chunk in self._chunks:
            assert self._spool is not None
            yield self._unpack(self._spool.read(chunk))


@define(eq=False)
class Packing:
    """What one question holds of large answers: the packed rows of each site.

    Whoever fails has to let all of it go: nothing is held for an answer that will not be given,
    however long its error is kept. ``shared``: others have rows in the share as well.
    """

    share: Share
    spools: Spools
    shared: bool = field(default=False, kw_only=True)
    _sites: dict[Hashable, PackedRows] = field(factory=dict, init=False)

    def of(self, site: Hashable) -> PackedRows:
        """Give those of a site."""
        known = self._sites.get(site)
        if known is None:
            known = self._sites[site] = PackedRows(self.share, self.spools)
        return known

    def holds_something(self) -> bool:
        """Whether anything is packed or in the room, or was dropped."""
        for one in self._sites.values():
            if one.size or one.dropped:
                return True
        return self.share.size > 0

    @property
    def size(self) -> int:
        """Bytes of all that is packed."""
        return sum(one.size for one in self._sites.values())

    def check(self) -> None:
        """Raise Unavailable if something was dropped."""
        if any(one.dropped for one in self._sites.values()):
            for one in self._sites.values():
                one.forget()
            raise Unavailable(
                "no room for large answers", "the disk is full: ask for fewer rows", seconds=10
            )

    def opened(self, site: Hashable, rows: list[Row]) -> Generator[None, Any, list[Row]]:
        """All rows of a site, of which these were not packed; there must be room for them."""
        packed = self._sites.get(site)
        if packed is None or not packed.count:
            return rows
        whole: list[Row] = []
        for batch in packed.batches():
            whole += batch
            yield
        packed.forget()
        return whole + rows

    def rows(self, site: Hashable, rows: list[Row]) -> Iterator[Row]:
        """The same one after the other, of which only some are in memory at a time."""
        packed = self._sites.get(site)
        if packed is not None:
            yield from chain.from_iterable(packed.batches())
        yield from rows

    def let_go(self) -> None:
        """Hold nothing any more."""
        self.share.release()
        self.forget()

    def give_up(self) -> None:
        """Hold nothing of this question; rows of others keep their room in a common share."""
        self.forget()
        if not self.shared:
            self.share.release()

    def forget(self) -> None:
        """Hold nothing that is packed."""
        for one in self._sites.values():
            one.forget()


class RowParser:
    r"""Rows of one body, parsed in slices of about 64 KiB while the bytes arrive.

    A slice ends between two rows: at ``],\n[`` (Naemon) or ``], [`` (Icinga 2). Text that looks
    like this inside a string or a nested list does not parse as a slice, because a quote or a
    bracket is left open there; then an earlier cut is tried and after that twice as much text.
    Rows that ``packed`` takes are not among those that ``finish`` gives.
    """

    def __init__(
        self,
        width: int | None = None,
        transform: Transform | None = None,
        packed: PackedRows | None = None,
    ) -> None:
        self._width = width
        self._transform = transform
        self._packed = packed
        self._rows: list[Row] = []
        self._buffer = bytearray()
        self._threshold = SLICE
        self._damaged = False

    def expect(self, length: int) -> None:
        """Take note that the body has so many bytes."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body; raise ProtocolError as soon as it is broken."""
        for start in range(0, len(data), SLICE):
            self._buffer += data[start : start + SLICE] if len(data) > SLICE else data
            if len(self._buffer) >= self._threshold:
                self._cut()

    def finish(self) -> list[Row]:
        """All rows, after the last byte of the body."""
        self._look()
        rows = parse_rows(self._buffer, self._width, self._transform)
        self._buffer = bytearray()
        if self._rows:
            self._rows += rows
            rows = self._rows
        return Damaged(rows) if self._damaged else rows

    def _look(self) -> None:
        if not self._damaged:
            self._damaged = looks_damaged(self._buffer)

    def _cut(self) -> None:
        separator = b"],\n[" if b"],\n[" in self._buffer else b"], ["
        end = len(self._buffer)
        for _ in range(max(1, min(_TRIES, _TRIED // len(self._buffer)))):
            end = self._buffer.rfind(separator, 0, end)
            if end < 0:
                break
            if self._slice(end):
                self._threshold = SLICE
                return
        if len(self._buffer) > _LARGEST_ROW:
            raise ProtocolError("a row of more than 16 MiB")
        self._threshold = 2 * len(self._buffer)

    def _slice(self, end: int) -> bool:
        # The comma makes room for the bracket that closes the slice, the space behind it for the
        # one that opens the next: no byte of the body is copied.
        buffer = self._buffer
        buffer[end + 1] = ord("]")
        try:
            with memoryview(buffer) as view, view[: end + 2] as piece:
                rows = checked(_load(piece), self._width, None)
                packed = self._packed is not None and self._packed.pack(piece, len(rows))
        except _Incomplete:
            buffer[end + 1] = ord(",")
            return False
        self._look()
        if not packed:
            self._rows += rows if self._transform is None else self._transform(rows)
        buffer[end + 2] = ord("[")
        del buffer[: end + 2]
        return True


class TextParser(RowParser):
    """Rows of one body in CSV, parsed in slices as well."""

    def finish(self) -> list[Row]:
        """All rows, after the last byte of the body."""
        self._rows += parse_texts(self._buffer, self._width)
        return self._rows

    def _cut(self) -> None:
        end = self._buffer.rfind(SEPARATORS[0].encode()) + 1
        self._rows += parse_texts(self._buffer[:end], self._width)
        del self._buffer[:end]
        self._threshold = len(self._buffer) + SLICE


class AnswerReader:
    """One answer: header, then rows or a refusal; fed with bytes as they come.

    ``texts``: the rows come as CSV. ``parser`` reads them, if it is not the usual one. ``packed``
    may keep rows of a large answer, and gives them itself. ``started``: some byte was seen.
    ``surplus``: more bytes came than were announced, so that the connection cannot be used again.
    """

    __slots__ = (
        "_head",
        "_left",
        "_own",
        "_packed",
        "_parser",
        "_refused",
        "started",
        "surplus",
        "texts",
        "transform",
        "width",
    )

    def __init__(
        self,
        width: int | None = None,
        transform: Transform | None = None,
        texts: bool = False,
        parser: RowParser | None = None,
        packed: PackedRows | None = None,
    ) -> None:
        self._own = parser
        self._packed = packed
        self.width = width
        self.transform = transform
        self.texts = texts
        self.started = False
        self.surplus = False
        self._head = b""
        self._left = 0
        self._parser: RowParser | None = None
        self._refused = 0

    def feed(self, data: bytes) -> list[Row] | None:
        """All rows once the answer is complete, None before that.

        Raise RefusedError for a status other than 200 and ProtocolError for nonsense.
        """
        if self._parser is None and not self._refused:
            if self._head:
                data = self._head + data
            self.started = True
            if len(data) < HEADER_SIZE and b"\n" not in data:
                self._head = data
                return None
            status, length = parse_header(data)
            data = data[HEADER_SIZE:]
            self._left = length
            if status == _OK:
                if len(data) == length and not self.texts and self._own is None:
                    packed = self._packed
                    if packed is not None and (packed.size or packed.dropped):
                        packed.forget()
                    rows = parse_rows(data, self.width, self.transform)
                    return Damaged(rows) if looks_damaged(data) else rows
                self._parser = self._own or self._new_parser(length)
                self._parser.expect(length)
            else:
                self._refused = status
                self._head = b""
        if self._refused:
            self._refuse(data)
            return None
        return self._more(data)

    def lost(self) -> ProtocolError | RefusedError | None:
        """The better explanation, if there is one, when the connection ends before the answer."""
        if self._refused:
            return RefusedError(self._refused, self._head.decode("utf-8", "replace"))
        if self._head:
            return NoHeaderError(first_line(str(self._head, "utf-8", "replace")))
        return None

    def _new_parser(self, length: int) -> RowParser:
        if self.texts:
            return TextParser(self.width, self.transform)
        if self._packed is not None:
            self._packed.begin(length, self.transform)
        return RowParser(self.width, self.transform, self._packed)

    def _more(self, data: bytes) -> list[Row] | None:
        parser = self._parser
        assert parser is not None
        if len(data) > self._left:
            self.surplus = True
            data = data[: self._left]
        self._left -= len(data)
        parser.feed(data)
        return None if self._left else parser.finish()

    def _refuse(self, data: bytes) -> None:
        # Icinga 2 sends a stack trace of kilobytes behind the first line.
        self._head += data
        if len(self._head) < min(self._left, _LONGEST_MESSAGE) and b"\n" not in self._head:
            return
        raise RefusedError(self._refused, self._head[: self._left].decode("utf-8", "replace"))
