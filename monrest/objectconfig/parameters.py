"""What the parameters of a request on the object configuration mean: attributes, filters, options.

Parameters that would be without effect are refused, since a filter that is not understood would
widen what a change or a removal is for (docs/spec/objectconfig.md, "What a change is for").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from monrest.api.csrf import PARAMETERS as TOKENS
from monrest.api.fields import Flag, collected
from monrest.base.errors import BadRequest
from monrest.base.values import Parameters, RestRequest
from monrest.query.parse import RESERVED, parse_parameter, parse_query
from monrest.query.q import EVERYTHING, parse_q
from monrest.query.scan import printable

REFRESH = Flag(
    "refreshdata",
    "1: drop your own changes in files that were changed on disk as well",
)

EVERY = Flag("all", "1: without any filter all objects are meant, however many there are")

OF_REQUEST = frozenset(
    {*TOKENS, "backend", "backends", "background", "headers", "logcache", "pretty", REFRESH.name}
)
"""Parameters for the form of an answer, in the query string or in a body; never attributes."""

_OF_LISTS = frozenset({"columns", "limit", "offset", "q", "sort"})


def without(parameters: Parameters, *names: str) -> Parameters:
    """Take options out of the parameters of a list, so that they are no filters."""
    return tuple(pair for pair in parameters if pair[0] not in names)


def no_conditions(request: RestRequest, *options: str) -> None:
    """Raise BadRequest for filters of what is done to whole sites.

    ``columns`` is welcome, and so are these ``options``.
    """
    if isinstance(request.document, list):
        raise BadRequest("bad request", "request body: expected none")
    for name, _ in request.parameters:
        if name not in OF_REQUEST and name not in ("columns", *options):
            raise BadRequest("unknown parameter", f"{printable(name)}: expected no filters here")
    parse_query(without(request.parameters, *OF_REQUEST, *options))


def attributes(request: RestRequest, *, query: bool = False) -> dict[str, Any]:
    """The attributes of a body as they were sent, JSON values as such; ``query``: also there.

    Raise BadRequest for a list and for parameters of lists.
    """
    given: dict[str, Any] = collected(request.query) if query else {}
    if isinstance(request.document, dict):
        given |= request.document
    elif request.document is not None:
        raise BadRequest(
            "failed to parse json data argument", "request body: expected a JSON object {…}"
        )
    given |= collected(request.form)
    for name in given:
        if name in _OF_LISTS:
            raise BadRequest(
                "bad request", f"{name}: expected attributes in the body, filters in the query"
            )
    return {name: value for name, value in given.items() if name not in OF_REQUEST}


def no_filters(request: RestRequest) -> None:
    """Raise BadRequest for parameters in the query string of a change of one object."""
    for name, _ in request.query:
        if name not in OF_REQUEST:
            raise BadRequest(
                "bad request",
                f"{printable(name)}: expected no filters, because the path names the object, and "
                "attributes in the body",
            )


def no_body(request: RestRequest) -> None:
    """Raise BadRequest for a body with attributes of objects."""
    if attributes(request) or _unread(request):
        raise BadRequest("bad request", "request body: expected none")


def change_filters(request: RestRequest) -> Parameters:
    """The filters of a change: the query string, and the keys of the body with a colon."""
    _whole(request)
    given = request.document if isinstance(request.document, dict) else {}
    pairs = [(name, _text(name, value)) for name, value in given.items() if name.startswith(":")]
    pairs += [(name, value) for name, value in request.form if name.startswith(":")]
    return _filters((*request.query, *pairs))


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, (str, int)):
        raise BadRequest("bad request", f"{printable(name)}: expected a text, for it is a filter")
    return str(value)


def removal_filters(request: RestRequest) -> Parameters:
    """The filters of a removal, from the query string or from a body.

    A body that is no filter is refused, since it may have been meant as one.
    """
    _whole(request)
    pairs = (*request.query, *request.form)
    if request.document is not None:
        given = attributes(request)
        if not request.document or any(value in (None, []) for value in given.values()):
            raise BadRequest("bad request", "request body: expected filters with values")
        pairs = (*pairs, *(pair for pair in request.parameters if pair[0] in given))
    elif _unread(request):
        raise BadRequest("bad request", "request body: expected filters as a form or JSON object")
    return _filters(dict.fromkeys(pairs))


def _whole(request: RestRequest) -> None:
    """Raise BadRequest for a path with nothing after its last slash: an id was meant."""
    if request.slashed:
        raise BadRequest("bad request", f"{request.path}/: expected an id after the slash, or none")


def _unread(request: RestRequest) -> bool:
    """Whether a body came that was not read, because of its content type."""
    headers = request.caller.headers
    length = headers.get("content-length", "0").strip()
    came = length not in ("", "0") or "transfer-encoding" in headers
    return came and not request.form and request.document is None


def _filters(pairs: Iterable[tuple[str, str]]) -> Parameters:
    """Those that are filters; BadRequest for what would not narrow the list."""
    kept = tuple(pair for pair in pairs if pair[0] not in OF_REQUEST and pair[0] != EVERY.name)
    for name, value in kept:
        if name == "q":
            if parse_q(value) == EVERYTHING:
                raise BadRequest("bad request", "q: expected a condition")
        elif name in RESERVED:
            raise BadRequest("bad request", f"{name}: expected filters only, this is none")
        elif (condition := parse_parameter(name, value)) is None:
            raise BadRequest("bad request", "query: expected a name in front of every =")
        elif condition.op in ("~", "~~") and not condition.value.strip():
            raise BadRequest("bad request", f"{printable(name)}: expected a pattern, not nothing")
    return kept
