"""From what a core is asked to what is sent and how its rows are read, kept for the next time."""

from __future__ import annotations

from functools import lru_cache

from attrs import evolve, frozen

from monrest.livestatus.framing import Transform
from monrest.livestatus.lql import build
from monrest.query.model import Pushed
from monrest.sites.normalise import Layout, normaliser, with_companions
from monrest.values import Capabilities


@frozen
class Ask:
    """One request to one kind of core: its bytes and what its rows look like.

    ``width``: values per row as the core sends them. ``transform`` makes the wanted rows of them.
    ``log``: takes long and must not run beside another of its kind.
    """

    request: bytes
    width: int
    transform: Transform | None = None
    log: bool = False


@lru_cache(maxsize=512)
def prepare(pushed: Pushed, capabilities: Capabilities, layout: Layout | None = None) -> Ask:
    """How to ask a core with these capabilities; rows of Stats stay as the core sends them.

    Raise BadRequest if a value cannot be sent.
    """
    if layout is None or pushed.stats:
        width = len(pushed.columns) + len(pushed.stats)
        return Ask(build(pushed, capabilities), width, None, pushed.waits_long)
    columns = with_companions(pushed.table, pushed.columns, capabilities)
    asked = pushed if columns == pushed.columns else evolve(pushed, columns=columns)
    transform = normaliser(pushed.table, columns, capabilities, layout)
    return Ask(build(asked, capabilities), len(columns), transform, pushed.waits_long)
