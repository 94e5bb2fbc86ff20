"""JSON (query-engine.md, section 14.1): keys sorted by code point, raw UTF-8, compact or indented.

Numbers that JSON does not have (nan, infinities) become null. What orjson refuses (integers
beyond 64 bits, text that is no valid Unicode, nesting beyond its limit) is rewritten first, so
that no value of a core can make an answer fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson

from monrest.render.slices import PIECE, batches, gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from monrest.values import Document, Expand, Row, Rows

DEEPEST = 200
"""Containers nested deeper than this are shown as null; orjson itself ends at 254."""

SMALL = 2000
"""Values of at most this many nodes and kilobytes of text are written in one go."""


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


def indented(piece: bytes, level: int) -> bytes:
    """``piece`` with ``level`` further steps of indentation after each newline.

    Newlines inside of texts are escaped in JSON, so that every newline is one between values.
    """
    return piece.replace(b"\n", b"\n" + b"  " * level) if level else piece


def permutation(indexes: Sequence[int]) -> Callable[[Row], Sequence[Any]]:
    """Make a function that picks the values at ``indexes`` of a row, in that order."""
    if list(indexes) == list(range(len(indexes))):
        return _same
    if len(indexes) == 1:
        only = indexes[0]
        return lambda row: (row[only],)
    return itemgetter(*indexes)


def _same(row: Row) -> Row:
    return row


def row_encoder(
    names: Sequence[str], expand: Expand | None, *, pretty: bool
) -> Callable[[list[Row]], bytes]:
    """Make a function that writes rows as JSON objects with commas between, without brackets.

    ``names`` are the keys in the order of the values in a row. Values of a row behind them are
    seen only by ``expand``, whose keys never override ``names``.
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    keys = [names[index] for index in order]
    pick = permutation(order)
    # Cut off the brackets of the list, with the newlines beside them when indented.
    start, end = (2, -2) if pretty else (1, -1)

    if expand is None:
        # Dictionaries are filled anew for every batch: making 20,000 of 120 keys costs more
        # than writing them as JSON.
        reused: list[dict[str, Any]] = []

        def encode(batch: list[Row]) -> bytes:
            while len(reused) < len(batch):
                reused.append(dict.fromkeys(keys))
            for target, row in zip(reused, batch, strict=False):
                target.update(zip(keys, pick(row), strict=False))
            return dumps(reused[: len(batch)], pretty=pretty)[start:end]

        return encode

    def encode_expanded(batch: list[Row]) -> bytes:
        objects = []
        for row in batch:
            values = dict(expand(row))
            values.update(zip(keys, pick(row), strict=False))
            objects.append(values)
        return dumps(objects, pretty=pretty)[start:end]

    return encode_expanded


def rows_value(answer: Rows, *, pretty: bool, level: int = 0) -> Iterator[bytes]:
    """Write the rows as a JSON list of objects, without a newline at the end, letting rows go.

    ``level`` is the depth at which the list stands, for indentation.
    """
    names = [column.name for column in answer.columns]
    encode = row_encoder(names, answer.expand, pretty=pretty)
    opening, between, closing = (b"[\n", b",\n", b"\n]") if pretty else (b"[", b",", b"]")
    lead = opening
    for piece in batches(answer.rows, encode):
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


def rows_json(answer: Rows, *, pretty: bool) -> Iterator[bytes]:
    """Write a list answer as a JSON text with a newline at the end."""

    def fragments() -> Iterator[bytes]:
        yield from rows_value(answer, pretty=pretty)
        yield b"\n"

    return gathered(fragments())


def document_json(answer: Document, *, pretty: bool) -> Iterator[bytes]:
    """Write a single value as a JSON text with a newline at the end."""

    def fragments() -> Iterator[bytes]:
        yield from document_value(answer.value, pretty=pretty)
        yield b"\n"

    return gathered(fragments())
