"""What may be stored as a record of JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from monrest.base.errors import BadRequest


def require_storable(record: Mapping[str, Any], longest: int) -> bytes:
    """Give a record as JSON; BadRequest for what none can hold, and for more than so many bytes."""
    try:
        raw = orjson.dumps(record)
    except orjson.JSONEncodeError:
        raise BadRequest("invalid record", "expected texts, and numbers of 64 bits") from None
    if len(raw) > longest:
        raise BadRequest("record is too long", f"expected at most {longest} bytes as JSON")
    return raw
