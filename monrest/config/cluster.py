"""What ``[cluster]`` may be: base URLs that differ, on one database, and times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from monrest.config.sections import Config

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_URL = re.compile(rf"https?://{_HOST}(?::(?P<port>[0-9]{{1,5}}))?(?:/[A-Za-z0-9._~/-]*)?\Z")
_HIGHEST_PORT = 65535
_LONGEST_PAUSE = 3600.0


def problems_of(config: Config) -> Iterator[str]:
    """Every problem as ``key.path: what was expected``."""
    given = config.cluster
    seen: dict[str, int] = {}
    for index, url in enumerate(given.nodes):
        found = _URL.match(url)
        if found is None or not 0 < int(found["port"] or 1) <= _HIGHEST_PORT:
            yield f"cluster.nodes[{index}]: expected http(s)://HOST:PORT, got {url!r}"
            continue
        plain = without_slash(url)
        if plain in seen:
            yield f"cluster.nodes[{index}]: the same as cluster.nodes[{seen[plain]}]: {url!r}"
        seen.setdefault(plain, index)
    if given.several and config.database.url.startswith("sqlite:"):
        yield "cluster.nodes: several nodes need one PostgreSQL in database.url"
    for key, least in (("heartbeat_interval", 1.0), ("restart_notice", 0.0)):
        value = getattr(given, key)
        if not (math.isfinite(value) and least <= value <= _LONGEST_PAUSE):
            yield f"cluster.{key}: expected {least:g} to {_LONGEST_PAUSE:g} seconds, got {value}"


def without_slash(url: str) -> str:
    """Spell a base URL in the one way in which it is compared."""
    return url.rstrip("/").lower()
