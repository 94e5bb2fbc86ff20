"""Hints after a refused request: the key that was used, and similar paths."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from monrest.client.exchange import ClientError, plain

if TYPE_CHECKING:
    from monrest.cli.client_settings import ClientSettings
    from monrest.cli.requester import Requester
    from monrest.client.http_connection import BlockingReply

_UNAUTHORIZED = (401, 403)
_NOT_FOUND = 404
_MOST_HINTS = 3
PREFIXES = frozenset({"csv", "human", "json", "ndjson", "text", "wrapped_json", "xls", "v1"})
SELECTIONS = frozenset({"site", "sites", "backend", "backends"})


def hints(
    client: Requester, source: str, reply: BlockingReply, body: bytes, *, api: bool
) -> Iterator[str]:
    """Lines for standard error; ``api``: the request went to the configured daemon."""
    if not api:
        if location := reply.headers.get("Location", ""):
            yield f"monrest r: {reply.status}, the answer is at {plain(location)}"
        return
    if reply.status in _UNAUTHORIZED:
        yield _who(client.settings)
    elif reply.status == _NOT_FOUND:
        if b"unknown" not in body:
            return
        near = nearest(source, _names(client))
        if near:
            yield f"monrest r: did you mean {' or '.join(near)}?"


def _who(settings: ClientSettings) -> str:
    address = settings.address
    if settings.key:
        user = f", user {settings.user}" if settings.user else ""
        return f"monrest: asked {address} with the key of {settings.key_source}{user}"
    hint = f"monrest: asked {address} without a key"
    if settings.unused_key:
        hint += (
            f"; the one in {settings.unused_key} is for another url, "
            f"and this url comes from {settings.url_source}"
        )
    if address.scheme == "unix":
        hint += "; over its Unix socket root and the daemon's own user need none"
    return f"{hint}; --key, MONREST_KEY or key in ~/.config/monrest/client.toml give one"


def _names(client: Requester) -> list[str]:
    """The paths that the daemon has; none when it does not tell."""
    try:
        reply = client.api("/index?columns=url", prefix="json")
        rows: Any = json.loads(reply.read()) if reply.good else []
        return sorted({row["url"] for row in rows})
    except (ClientError, ValueError, TypeError, KeyError):
        return []


def nearest(source: str, names: Sequence[str]) -> list[str]:
    """Up to three ``known`` paths that are most like ``source``; names in the path do not count."""
    from difflib import SequenceMatcher

    asked = _segments(source)
    if not asked:
        return []
    rated = []
    for path in names:
        segments = path.strip("/").split("/")
        if len(segments) != len(asked):
            continue
        # A variable in angle brackets is like anything.
        ratios = [
            1.0 if theirs.startswith("<") else SequenceMatcher(None, ours, theirs).ratio()
            for ours, theirs in zip(asked, segments, strict=True)
        ]
        if min(ratios) >= _LIKE:
            rated.append((-sum(ratios) / len(ratios), path))
    return [path for _, path in sorted(rated)[:_MOST_HINTS]]


_LIKE = 0.6


def _segments(source: str) -> list[str]:
    segments = [part for part in source.partition("?")[0].split("/") if part]
    while segments:
        if segments[0] in PREFIXES:
            segments = segments[1:]
        elif segments[0] in SELECTIONS and len(segments) > 2:
            segments = segments[2:]
        else:
            break
    return segments
