"""The path and the query string of a request, and the size of its body (docs/spec/http.md).

Pure functions over text. A path keeps its percent-encoding here, because a segment may hold an
encoded slash; the router decodes each segment after splitting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, unquote_to_bytes

from attrs import field, frozen

from monrest.base.errors import BadRequest
from monrest.base.values import OutputFormat, Parameters

FORMATS: dict[str, OutputFormat] = {
    "csv": "csv",
    "human": "text",
    "json": "json",
    "ndjson": "ndjson",
    "text": "text",
    "wrapped_json": "wrapped_json",
    "xls": "xls",
}
"""Every spelling of an output format, as path prefix and as header value."""

_SITE_PREFIXES = frozenset({"site", "sites", "backend", "backends"})
MOST_PARAMETERS = 20_000
"""Pairs of a query string or a body."""
_MOST_UNCLOSED = 100
_CACHED_LENGTH = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PIECE = 65_536


@frozen
class PathTarget:
    """The parts of a path: the rest after all prefixes, a format and a site selection.

    ``slashed``: it ended with a slash, after which a name may be missing.
    """

    path: str
    segments: tuple[str, ...]
    format: OutputFormat | None = None
    sites: tuple[str, ...] = ()
    slashed: bool = field(default=False, eq=False)


def target(path: str) -> PathTarget:
    """Read a path from which the API's root is gone: ``/v1/csv/sites/a,b/hosts/``.

    Raises BadRequest for percent-encoded bytes that are no UTF-8 and for control characters.
    """
    return _cached_target(path) if len(path) <= _CACHED_LENGTH else _target(path)


def _target(path: str) -> PathTarget:
    path = path.lstrip("/")
    head, _, rest = path.partition("/")
    if head == "v1":
        path = rest.lstrip("/")
    slashed = path.endswith("/")
    path = path.rstrip("/")
    try:
        text = unquote(path, errors="strict") if "%" in path else path
    except UnicodeDecodeError:
        raise BadRequest("invalid path", "path: expected percent-encoded UTF-8") from None
    if _CONTROL.search(text):
        raise BadRequest("invalid path", "path: expected no control characters")
    chosen: OutputFormat | None = None
    sites: list[str] = []
    while True:
        head, slash, rest = path.partition("/")
        if not slash:
            break
        if head in FORMATS:
            chosen, path = FORMATS[head], rest
            continue
        if head in _SITE_PREFIXES:
            names, slash, rest = rest.partition("/")
            if names and slash:
                sites += (name.strip() for name in unquote(names).split(","))
                path = rest
                continue
        break
    return PathTarget(
        "/" + path,
        tuple(path.split("/")) if path else (),
        chosen,
        tuple(name for name in sites if name),
        slashed,
    )


# Dashboards send the same paths and query strings again; to read both takes 12 microseconds.
_cached_target = lru_cache(maxsize=2048)(_target)


def parameters(query: bytes, source: str = "query string") -> Parameters:
    """Read pairs joined by ``&`` from a query string or a form body.

    A ``+`` is a space, an item without ``=`` has an empty value, and empty items vanish. A ``q``
    between two wrappers of three equal characters may hold ``&`` and ``=``; it keeps its
    wrapper. Raises BadRequest for bytes that are no UTF-8 (naming the parameter) and for more
    than 20,000 pairs.
    """
    if not query:
        return ()
    return _cached(query, source) if len(query) <= _CACHED_LENGTH else _parameters(query, source)


def _parameters(query: bytes, source: str) -> Parameters:
    if query.count(b"&") - query.endswith(b"&") >= MOST_PARAMETERS:
        raise BadRequest(
            "too many parameters", f"{source}: expected at most {MOST_PARAMETERS} parameters"
        )
    pairs: list[tuple[str, str]] = []
    for name, value in _items(query):
        decoded = _decoded(name, f"{source}: the name {name[:80].decode('utf-8', 'replace')!a}")
        pairs.append((decoded, _decoded(value, f"parameter {decoded[:80]}")))
    return tuple(pairs)


_cached = lru_cache(maxsize=2048)(_parameters)


def _items(query: bytes) -> Iterator[tuple[bytes, bytes]]:
    start, unclosed = 0, 0
    while start < len(query):
        end = -1
        if query.startswith(b"q=", start) and unclosed < _MOST_UNCLOSED:
            first = query[start + 2 : start + 14].decode("utf-8", "ignore")[:3]
            if len(first) == 3 and first == first[0] * 3 and first[0] != "&":
                wrapper = first.encode()
                close = query.find(wrapper, start + 2 + len(wrapper))
                unclosed += close < 0
                end = query.find(b"&", close + len(wrapper)) if close >= 0 else -1
                if close >= 0 and end < 0:
                    end = len(query)
        if end < 0:
            end = query.find(b"&", start)
            end = len(query) if end < 0 else end
        if end > start:
            name, _, value = query[start:end].partition(b"=")
            yield name, value
        start = end + 1


def _decoded(data: bytes, what: str) -> str:
    if b"+" in data:
        data = data.replace(b"+", b" ")
    if b"%" in data:
        data = b"".join(_unquoted(data))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("invalid UTF-8", f"{what}: expected percent-encoded UTF-8") from None


def _unquoted(data: bytes) -> Iterator[bytes]:
    """Decode in pieces, since unquoting makes two objects of each ``%``."""
    start = 0
    while start < len(data):
        end = start + _PIECE
        split = data.rfind(b"%", end - 2, end)
        if split >= 0:  # the digits of this one are in the next piece
            end = split
        yield unquote_to_bytes(data[start:end])
        start = end


# A byte of ``[],[],…`` becomes thirty in memory, and a parser in C keeps the interpreter until it
# is through. So the separators of the values of a body are counted before it is read: the count
# copies the text once and makes no objects.

MOST_VALUES = 100_000
"""Values of one body, of JSON in a field, and of what separates values within texts."""

_SEPARATORS = b",[{"
_ONE_VALUE = 200
"""Bytes of a value in memory, at most: a new name in an object with its number."""
_ONE_LETTER = 4
"""Bytes of a letter of a text with any emoji."""


def count_values(raw: bytes) -> int:
    """Count the values that JSON may hold; commas and brackets in texts count as well."""
    return len(raw) - len(raw.translate(None, _SEPARATORS))


def check_values(raw: bytes, what: str) -> None:
    """Raise BadRequest for a text, called ``what``, that may hold too many values of JSON."""
    if count_values(raw) > MOST_VALUES:
        raise BadRequest(
            "too many values",
            f"{what}: expected at most {MOST_VALUES:,} commas and opening brackets together",
        )


def parsed_size(raw: bytes) -> int:
    """Return the bytes that the values of a text take in memory, at most, if it is not refused."""
    plain = raw.isascii() and b"\\u" not in raw and b"%" not in raw
    values = min(count_values(raw) + raw.count(b"&"), MOST_VALUES)
    return (1 if plain else _ONE_LETTER) * len(raw) + _ONE_VALUE * values
