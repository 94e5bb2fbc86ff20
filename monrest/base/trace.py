"""The trace that a request belongs to: the header ``traceparent`` (docs/spec/http.md, "Traces")."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

TRACE: ContextVar[str] = ContextVar("trace", default="")
"""The ``traceparent`` of the request that the present coroutine works for; empty for none."""

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def parent_of(value: bytes) -> str:
    """Return a header's value as it is handed on; empty where it is none (W3C Trace Context)."""
    match = _PARENT.match(value.decode("latin-1").strip())
    return "" if match is None else f"00{match[0][2:]}"


def trace_id(parent: str) -> str:
    """Return the id of the trace, which is the same in all programs that a request passes."""
    return parent[3:35]


def handed_on() -> str:
    """Return the header for what is asked elsewhere for this request; empty outside of traces."""
    parent = TRACE.get()
    return f"{parent[:36]}{secrets.token_hex(8)}{parent[52:]}" if parent else ""
