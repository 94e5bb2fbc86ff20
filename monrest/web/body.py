"""Parameters from a request body: form, multipart or relaxed JSON.

Pure, and linear in the size of the body; what is longer than a few kilobytes is read in a thread.
What would be large when it is read is refused before it is split, decoded or parsed.

Rules: docs/spec/http.md, "Parameters".
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson
from attrs import frozen
from multipart import MultipartError, MultipartParser, parse_options_header

from monrest.base.errors import BadRequest
from monrest.base.values import Parameters
from monrest.query.target import MOST_PARAMETERS, check_values, parameters

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

_MOST_PARTS = 10_000
MOST_RELAXED = 262_144
"""Bytes of JSON that is read again without its comments and last commas, in expressions."""
_BLANK = b" \t\r\n"
# Strings are matched first so that a comment sign or a comma inside one is left alone; a string
# without an end takes everything, which keeps the search linear.
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|#[^\n]*", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*+[}}\]])", re.DOTALL)


@frozen
class Body:
    """The contents of a body. ``document`` is the JSON value, None for forms and empty bodies.

    ``structured`` names the first member of an object that is no plain value or list of such and
    therefore in no parameter; it is empty for a document that is a list.
    """

    parameters: Parameters = ()
    document: dict[str, Any] | list[Any] | None = None
    structured: str | None = None


EMPTY = Body()


def reads_body(method: str, content_type: str) -> bool:
    """Whether a body of this type counts: with GET, HEAD and DELETE only a form or JSON."""
    if method not in ("GET", "HEAD", "DELETE", "OPTIONS"):
        return True
    return content_type.partition(";")[0].strip().lower() in (JSON, FORM, MULTIPART)


def read_body(raw: bytes, content_type: str) -> Body:
    """Read a body; without a content type it is taken for a form.

    Raises BadRequest for broken JSON, JSON that is neither object nor list, objects with more
    than 20,000 values, JSON under another content type, content types that hold no parameters, and
    for more separators of values than ``check_values`` lets pass.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if not raw.strip(_BLANK):
        return EMPTY
    check_values(raw, "request body")
    if kind == JSON:
        return _json(raw)
    bare = raw.strip(_BLANK)
    if (bare[:1], bare[-1:]) in ((b"{", b"}"), (b"[", b"]")):
        raise BadRequest(
            "got json request data but content type is not application/json",
            "Content-Type: expected application/json",
        )
    if kind == MULTIPART:
        return Body(_multipart(raw, content_type))
    if kind in ("", FORM):
        return Body(parameters(raw.strip(b"\r\n"), "form body"))
    raise BadRequest(
        "unsupported content type",
        f"Content-Type: expected {JSON}, {FORM} or {MULTIPART}",
    )


def merged(query: Parameters, body: Body) -> Parameters:
    """Join both: a form adds to the query string, a JSON value replaces its values."""
    if not isinstance(body.document, dict):
        return query + body.parameters
    replaced = {name for name, _ in body.parameters}
    return tuple(pair for pair in query if pair[0] not in replaced) + body.parameters


def _json(raw: bytes) -> Body:
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        document = _relaxed(raw, str(error))
    if isinstance(document, list):
        return Body((), document, "")
    if not isinstance(document, dict):
        raise BadRequest(
            "failed to parse json data argument",
            "request body: expected a JSON object {…} or a list […]",
        )
    if len(document) > MOST_PARAMETERS:
        raise _too_many()
    plain = {name: value for name, value in document.items() if _is_plain(value)}
    structured = next((name for name in document if name not in plain), None)
    texts = ((name, text) for name, value in plain.items() for text in _texts(value))
    pairs = list(islice(texts, MOST_PARAMETERS + 1))
    if len(pairs) > MOST_PARAMETERS:
        raise _too_many()
    return Body(tuple(pairs), document, structured)


def _too_many() -> BadRequest:
    return BadRequest(
        "too many parameters", f"request body: expected at most {MOST_PARAMETERS} values"
    )


def _relaxed(raw: bytes, reason: str) -> Any:
    """Read JSON with ``#`` comments and commas after the last item; ``reason``: it has some."""
    try:
        if len(raw) > MOST_RELAXED:
            raise BadRequest(
                "failed to parse json data argument",
                f"request body: {reason}; comments and commas after the last item may be in "
                f"bodies of up to {MOST_RELAXED} bytes",
            )
        text = _COMMENT.sub(r"\1", raw.decode("utf-8"))
        return orjson.loads(_LAST_COMMA.sub(r"\1", text))
    except UnicodeDecodeError:
        reason = "expected UTF-8 text"
    except orjson.JSONDecodeError as error:
        reason = str(error)
    raise BadRequest("failed to parse json data argument", f"request body: {reason}") from None


def _is_plain(value: Any) -> bool:
    items = value if isinstance(value, list) else (value,)
    return not any(isinstance(item, (dict, list)) for item in items)


def _texts(value: Any) -> Iterator[str]:
    """Return the parameter values that a plain JSON value stands for; none for null."""
    for item in value if isinstance(value, list) else (value,):
        if isinstance(item, str):
            yield item
        elif isinstance(item, bool):
            yield "1" if item else "0"
        elif item is not None:
            yield orjson.dumps(item).decode()


def _multipart(raw: bytes, content_type: str) -> Parameters:
    boundary = parse_options_header(content_type)[1].get("boundary", "")
    if not boundary:
        raise BadRequest("invalid multipart body", "Content-Type: expected a boundary")
    pairs = []
    try:
        parser = MultipartParser(
            io.BytesIO(raw),
            boundary,
            part_limit=_MOST_PARTS,
            memory_limit=len(raw) + 1,
            spool_limit=len(raw) + 1,
        )
        for part in parser:
            pairs.append((part.name, part.raw.decode("utf-8")))
    except UnicodeDecodeError:
        raise BadRequest("invalid UTF-8", f"parameter {part.name}: expected UTF-8 text") from None
    except MultipartError as error:
        error.__traceback__ = None  # its frames hold the body and the parser, which holds it
        raise BadRequest("invalid multipart body", f"request body: {error}") from None
    return tuple(pairs)
