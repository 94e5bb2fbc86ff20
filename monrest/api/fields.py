"""The fields of a record that a client sends, from a form or as JSON.

Rules: docs/spec/store.md, "Records".
"""

from __future__ import annotations

from datetime import tzinfo
from math import floor, isfinite
from typing import Any

from monrest.api import csrf
from monrest.base.errors import BadRequest
from monrest.base.values import RestRequest
from monrest.query.parse import RESERVED
from monrest.query.scan import printable
from monrest.query.times import parse_time

SITES = ("backend", "backends")

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, the last that calendars know."""


def fields_of(request: RestRequest) -> dict[str, Any]:
    """Fields by name; of a form each value is a text, or a list of texts where it came often.

    BadRequest for a body that is a list. What says how to answer is no field of a form.
    """
    if isinstance(request.document, list):
        raise BadRequest(
            "failed to parse json data argument", "request body: expected a JSON object {…}"
        )
    if request.document is not None:
        tokens = csrf.PARAMETERS if request.identity.session else ()
        return {name: value for name, value in request.document.items() if name not in tokens}
    found: dict[str, Any] = {}
    for name, value in request.parameters:
        if name in RESERVED:
            continue
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def selected_sites(request: RestRequest) -> tuple[str, ...]:
    """Give the sites that a request names beside its fields: in parameters or before the path."""
    named = [
        item.strip()
        for name, value in request.parameters
        if name in SITES
        for item in value.split(",")
        if item.strip()
    ]
    return tuple(named) or request.sites


def second_of(parameter: str, value: str, now: float, zone: tzinfo) -> int:
    """The second that a parameter means; BadRequest for what is no time."""
    moment = parse_time(value, now, zone)
    if moment is None or not isfinite(moment) or not 0 <= moment <= _LAST_SECOND:
        raise BadRequest(
            "error during request",
            f"{printable(parameter)}: cannot parse time '{printable(value)}', expected a unix "
            "time, a relative time such as -10m or now-1h, or a date",
        )
    return floor(moment)
