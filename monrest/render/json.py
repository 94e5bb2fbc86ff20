"""JSON (docs/spec/render.md, "JSON"): keys sorted by code point, raw UTF-8, compact or indented.

Numbers that JSON does not have (nan, infinities) become null. What orjson refuses (integers
beyond 64 bits, text that is no valid Unicode, nesting beyond its limit) is rewritten first, so
that no value of a core can make an answer fail.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeAlias

import orjson
from attrs import define, field

from monrest.base.values import Document, Expansion, KeysAndValues, Row, Rows
from monrest.render.pieces import PIECE, batches, gathered

DEEPEST = 200
"""Containers nested deeper than this are shown as null; orjson itself ends at 254."""

SMALL = 2000
"""Values of at most this many nodes and kilobytes of text are written in one go."""

_NO_FURTHER: Mapping[str, Any] = MappingProxyType({})


def well_formed(text: str) -> str:
    """``text`` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def digits(number: int) -> str:
    """Decimal form of ``number``; empty for one of thousands of digits, which Python refuses."""
    try:
        return str(number)
    except ValueError:
        return ""


def _representable(value: Any, depth: int = 0) -> Any:
    """``value`` in terms that orjson accepts; see the module's text."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, int):
        if -(2**63) <= value < 2**64:
            return value
        written = digits(value)
        return orjson.Fragment(written.encode()) if written else None
    if depth >= DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {
            well_formed(str(key)): _representable(item, depth + 1) for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_representable(item, depth + 1) for item in value]
    return well_formed(str(value))


def dumps(value: Any, *, pretty: bool = False) -> bytes:
    """``value`` as JSON without a newline at the end; never fails on data of a core."""
    option = orjson.OPT_SORT_KEYS | (orjson.OPT_INDENT_2 if pretty else 0)
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError:
        return orjson.dumps(_representable(value), option=option)


def ascii_only(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """JSON in ``pieces`` with every character beyond ASCII as an escape sequence."""
    return map(AsciiWriter(), pieces)


class AsciiWriter:
    """Escapes what is beyond ASCII in the pieces of one JSON text, which may cut characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def __call__(self, piece: bytes) -> bytes:
        """Return the next piece; the rest of a character that it cuts comes with the next one."""
        return self._decoder.decode(piece).encode("ascii", _ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


_ESCAPED = "monrest.json"
codecs.register_error(_ESCAPED, _escaped)


def indented(piece: bytes, level: int) -> bytes:
    """``piece`` with ``level`` further steps of indentation after each newline.

    Newlines inside of texts are escaped in JSON, so that every newline is one between values.
    """
    return piece.replace(b"\n", b"\n" + b"  " * level) if level else piece


SHORT: Mapping[int, Callable[..., list[dict[str, Any]]]] = {
    1: lambda rows, a: [{a: s} for (s,) in rows],
    2: lambda rows, a, b: [{a: s, b: t} for s, t in rows],
    3: lambda rows, a, b, c: [{a: s, b: t, c: u} for s, t, u in rows],
    4: lambda rows, a, b, c, d: [{a: s, b: t, c: u, d: v} for s, t, u, v in rows],
    5: lambda rows, a, b, c, d, e: [{a: s, b: t, c: u, d: v, e: w} for s, t, u, v, w in rows],
    6: lambda rows, a, b, c, d, e, f: [
        {a: s, b: t, c: u, d: v, e: w, f: x} for s, t, u, v, w, x in rows
    ],
    7: lambda rows, a, b, c, d, e, f, g: [
        {a: s, b: t, c: u, d: v, e: w, f: x, g: y} for s, t, u, v, w, x, y in rows
    ],
    8: lambda rows, a, b, c, d, e, f, g, h: [
        {a: s, b: t, c: u, d: v, e: w, f: x, g: y, h: z} for s, t, u, v, w, x, y, z in rows
    ],
}
"""How rows of so many values become dictionaries with these names.

A display takes a third of the time of ``dict(zip(names, row))`` for three values, half for eight
and as long for fifteen.
"""


_Keys: TypeAlias = tuple[tuple[str, ...], ...]


@lru_cache(maxsize=64)
def _blanks_of(names: tuple[str, ...]) -> dict[_Keys, tuple[dict[str, Any], tuple[str, ...]]]:
    """Objects of rows with these columns whose keys are in order, by the further keys of a row.

    To put 120 keys of each row in order again would be a fifth of writing it; to do it once for
    each answer, more than a third of writing an answer of one row.
    """
    del names
    return {}


_MOST_BLANKS = 64


@define(eq=False)
class RowWriter:
    """Writes the rows of ``answer`` as JSON objects."""

    answer: Rows
    pretty: bool = False
    _names: tuple[str, ...] = field(init=False)
    _blanks: dict[_Keys, tuple[dict[str, Any], tuple[str, ...]]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._names = tuple([column.name for column in self.answer.columns])
        self._blanks = _blanks_of(self._names)

    def _blank(self, further: _Keys) -> tuple[dict[str, Any], tuple[str, ...]]:
        """An object to be copied, and its keys: first the further ones, then the columns."""
        blank = self._blanks.get(further)
        if blank is None:
            keys = (*chain.from_iterable(further), *self._names)
            blank = dict.fromkeys(sorted(set(keys))), keys
            if len(self._blanks) < _MOST_BLANKS:
                self._blanks[further] = blank
        return blank

    def objects(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Make an object of each row; what ``expand`` returns never overrides a column."""
        expand, names = self.answer.expand, self._names
        if isinstance(expand, Expansion):
            return self._expanded(expand.sources, rows)
        if expand is None and len(names) in SHORT and set(map(len, rows)) == {len(names)}:
            return SHORT[len(names)](rows, *names)
        objects = []
        for row in rows:
            further = expand(row) if expand is not None else _NO_FURTHER
            blank, keys = self._blank((tuple(further),))
            value = blank.copy()
            value.update(zip(keys, chain(further.values(), row), strict=False))
            objects.append(value)
        return objects

    def _expanded(
        self, sources: Sequence[tuple[int, Callable[[Any], KeysAndValues]]], rows: list[Row]
    ) -> list[dict[str, Any]]:
        """Make an object of each row, whose further keys are in groups that many rows have."""
        objects = []
        for row in rows:
            further: list[tuple[str, ...]] = []
            values: list[Any] = []
            for at, made_of in sources:
                if row[at]:
                    keys, cells = made_of(row[at])
                    further.append(keys)
                    values += cells
            blank, names = self._blank(tuple(further))
            value = blank.copy()
            value.update(zip(names, values + row, strict=False))
            objects.append(value)
        return objects

    def inner(self, batch: list[Row]) -> memoryview:
        """Write one batch with commas between its rows, without brackets."""
        # Cut off the brackets of the list, with the newlines beside them when indented.
        start, end = (2, -2) if self.pretty else (1, -1)
        return memoryview(dumps(self.objects(batch), pretty=self.pretty))[start:end]

    def lines(self, batch: list[Row]) -> bytes:
        return b"".join([dumps(row) + b"\n" for row in self.objects(batch)])


def rows_value(answer: Rows, *, pretty: bool, level: int = 0) -> Iterator[bytes]:
    """Write the rows as a JSON list of objects, without a newline at the end, letting rows go.

    ``level`` is the depth at which the list stands, for indentation.
    """
    opening, between, closing = (b"[\n", b",\n", b"\n]") if pretty else (b"[", b",", b"]")
    lead = opening
    for piece in batches(answer.rows, RowWriter(answer, pretty).inner):
        yield indented(lead + piece, level)
        lead = between
    yield b"[]" if lead is opening else indented(closing, level)


def _is_small(value: Any) -> bool:
    """Whether ``value`` has at most ``SMALL`` nodes and bytes in proportion; looks no further."""
    waiting: list[Any] = [value]
    nodes = 0
    text = 0
    while waiting:
        item = waiting.pop()
        nodes += 1
        if isinstance(item, str):
            text += len(item)
        elif isinstance(item, Mapping):
            if len(item) > SMALL:
                return False
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            if len(item) > SMALL:
                return False
            waiting.extend(item)
        if nodes + len(waiting) > SMALL or text > PIECE:
            return False
    return True


def document_value(value: Any, *, pretty: bool, level: int = 0) -> Iterator[bytes]:
    """Write a single value as JSON in fragments, without a newline at the end.

    What is large is written part by part, what is small in one go.
    """
    container = isinstance(value, (Mapping, list, tuple))
    if not container or level >= DEEPEST or _is_small(value):
        yield indented(dumps(value, pretty=pretty), level)
        return
    step = b"\n" + b"  " * (level + 1) if pretty else b""
    colon = b": " if pretty else b":"
    if isinstance(value, Mapping):
        lead = b"{" + step
        for key in sorted(value):
            yield lead + dumps(key) + colon
            yield from document_value(value[key], pretty=pretty, level=level + 1)
            lead = b"," + step
        yield indented(b"\n}" if pretty else b"}", level)
    else:
        lead = b"[" + step
        for item in value:
            yield lead
            yield from document_value(item, pretty=pretty, level=level + 1)
            lead = b"," + step
        yield indented(b"\n]" if pretty else b"]", level)


def answer_value(answer: Rows | Document, *, pretty: bool, level: int = 0) -> Iterator[bytes]:
    """Write the rows or the value of an answer, without a newline at the end."""
    if isinstance(answer, Document):
        return document_value(answer.value, pretty=pretty, level=level)
    return rows_value(answer, pretty=pretty, level=level)


def json(answer: Rows | Document, *, pretty: bool) -> Iterator[bytes]:
    """Write the answer as a JSON text with a newline at the end."""
    return gathered(chain(answer_value(answer, pretty=pretty), (b"\n",)))


def ndjson(answer: Rows | Document) -> Iterator[bytes]:
    """Write each row of a list on a line of its own; any other value is one line."""
    if isinstance(answer, Document):
        rows = answer.value if isinstance(answer.value, list) else [answer.value]
        lines = (chain(document_value(row, pretty=False), (b"\n",)) for row in rows)
        return gathered(chain.from_iterable(lines))
    return gathered(batches(answer.rows, RowWriter(answer).lines))
