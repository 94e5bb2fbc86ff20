"""Reading answers: the fixed16 header, rows while they arrive, everything cores do wrong.

Pure functions over bytes. Rows are parsed in batches, so that no single call keeps the interpreter.
Rules: docs/spec/livestatus.md, "Answers".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson
from attrs import define, field

from monrest.base.values import Row
from monrest.livestatus.core_errors import (
    NoHeaderError,
    ProtocolError,
    RefusedError,
    first_line,
)
from monrest.livestatus.inbox import BATCH, StoredRows
from monrest.query.target import count_values

HEADER_SIZE = 16
LARGEST_ANSWER = 1 << 30
"""Twice the largest answer of a Naemon (max_response_size); more is a lie."""
_LARGEST_ROW = 16 << 20
_MOST_VALUES = 500_000
_LARGEST_LENIENT = 256 * 1024
"""Bytes that expressions go through, and an eighth of those whose letters are mended."""
_TRIED = 1 << 20
"""Bytes that are parsed at most to find where a batch may end."""
_LONGEST_MESSAGE = 64 * 1024
_OK = 200
_TRIES = 8

_HEADER = re.compile(rb"([0-9]{3}) (?=[ 0-9]{11}\n)( *[0-9]+)\n")

Transform: TypeAlias = Callable[[list[Row]], list[Row]]
"""Turns rows of the core into the rows that are wanted; called once per batch."""


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


_STRANGE_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|(-?\b(?:nan|inf)\b)', re.DOTALL)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_NUMBER = 4000


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ProtocolError(f"a number of {len(digits)} digits")
    return int(digits)


_READER = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_int=_whole)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
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
    text = _STRANGE_NUMBER.sub(lambda match: "null" if match[1] else match[0], text)
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
        values = count_values(bytes(body))
        if values > _MOST_VALUES:
            raise ProtocolError(f"{values} values in a row, or in rows that nothing separates")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return _lenient(body, error)


def checked(rows: Any, width: int | None, transform: Transform | None) -> list[Row]:
    """Return the rows as they are wanted, if they are what was announced. Raise ProtocolError."""
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


@define(eq=False)
class RowParser:
    r"""Rows of one body, parsed in batches of about 64 KiB while the bytes arrive.

    A batch ends between two rows: at ``],\n[`` (Naemon) or ``], [`` (Icinga 2). Text that looks
    like this inside a string or a nested list does not parse as a batch, because a quote or a
    bracket is left open there; then an earlier cut is tried and after that twice as much text.
    """

    _width: int | None = None
    _transform: Transform | None = None
    _rows: list[Row] = field(factory=list, init=False)
    _buffer: bytearray = field(factory=bytearray, init=False)
    _threshold: int = field(factory=lambda: BATCH, init=False)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body; raise ProtocolError as soon as it is broken."""
        for start in range(0, len(data), BATCH):
            self._buffer += data[start : start + BATCH] if len(data) > BATCH else data
            if len(self._buffer) >= self._threshold:
                self._cut()

    def taken(self) -> list[Row]:
        """The rows that are whole, each once."""
        rows, self._rows = self._rows, []
        return rows

    def finish(self) -> list[Row]:
        """The rows that were not taken, after the last byte of the body."""
        rows = parse_rows(self._buffer, self._width, self._transform)
        self._buffer = bytearray()
        return self.taken() + rows if self._rows else rows

    def _cut(self) -> None:
        separator = b"],\n[" if b"],\n[" in self._buffer else b"], ["
        end = len(self._buffer)
        for _ in range(max(1, min(_TRIES, _TRIED // len(self._buffer)))):
            end = self._buffer.rfind(separator, 0, end)
            if end < 0:
                break
            if self._parse(end):
                self._threshold = BATCH
                return
        if len(self._buffer) > _LARGEST_ROW:
            raise ProtocolError("a row of more than 16 MiB")
        self._threshold = 2 * len(self._buffer)

    def _parse(self, end: int) -> bool:
        """Parse a batch that ends there; False if that is the wrong place."""
        # The comma makes room for the bracket that closes the batch, the space behind it for the
        # one that opens the next: no byte of the body is copied.
        buffer = self._buffer
        buffer[end + 1] = ord("]")
        try:
            with memoryview(buffer) as view, view[: end + 2] as piece:
                rows = _load(piece)
        except _Incomplete:
            buffer[end + 1] = ord(",")
            return False
        self._rows += checked(rows, self._width, self._transform)
        buffer[end + 2] = ord("[")
        del buffer[: end + 2]
        return True


@define(eq=False)
class AnswerReader:
    """One answer: header, then rows or a refusal; fed with bytes as they come.

    ``make_parser`` makes what reads its rows. ``stored`` takes a large one as it comes, and has its
    rows. ``started``: some byte was seen. ``surplus``: more bytes came than were announced, so
    that the connection cannot be used again.
    """

    _make_parser: Callable[[], RowParser] = RowParser
    _stored: StoredRows | None = None
    started: bool = field(default=False, init=False)
    surplus: bool = field(default=False, init=False)
    _head: bytes = field(default=b"", init=False)
    _left: int = field(default=0, init=False)
    _parser: RowParser | None = field(default=None, init=False)
    _stores: bool = field(default=False, init=False)
    _refused: int = field(default=0, init=False)

    def feed(self, data: bytes) -> list[Row] | None:
        """The rows that are not stored once the answer is complete, None before that.

        Raise RefusedError for a status other than 200, ProtocolError for nonsense and Unavailable
        when the disk is full.
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
            self._head = b""
            if status == _OK:
                self._parser = self._make_parser()
                stored = self._stored
                self._stores = stored is not None and stored.begin(length, self._make_parser)
            else:
                self._refused = status
        if self._refused:
            # Icinga 2 sends a stack trace of kilobytes behind the first line.
            self._head += data
            if len(self._head) < min(self._left, _LONGEST_MESSAGE) and b"\n" not in self._head:
                return None
            raise RefusedError(self._refused, self._head[: self._left].decode("utf-8", "replace"))
        parser = self._parser
        assert parser is not None
        if len(data) > self._left:
            self.surplus = True
            data = data[: self._left]
        self._left -= len(data)
        if self._stores:
            assert self._stored is not None
            self._stored.add(data)
            return None if self._left else []
        parser.feed(data)
        return None if self._left else parser.finish()

    def lost(self) -> ProtocolError | RefusedError | None:
        """The better explanation, if there is one, when the connection ends before the answer."""
        if self._refused:
            return RefusedError(self._refused, self._head.decode("utf-8", "replace"))
        if self._head:
            return NoHeaderError(first_line(str(self._head, "utf-8", "replace")))
        return None
