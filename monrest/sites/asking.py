"""From what a core is asked to what is sent and how its rows are read."""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.errors import ProtocolError
from monrest.livestatus.framing import PackedRows, Transform
from monrest.livestatus.lql import build
from monrest.livestatus.recall import Recall
from monrest.query.model import Pushed
from monrest.sites.federation.questions import question
from monrest.sites.normalise import RowTypes, normaliser, with_companions


@frozen
class CoreRequest:
    """One request to one kind of core: its bytes and what its rows look like.

    For a core behind another instance these are the path and query below its site.

    ``width``: values per row as the core sends them. ``transform`` makes the wanted rows of them.
    ``log``: takes long and must not run beside another of its kind. ``recall``: what was answered
    before, for rows that are kept. ``packed``: where rows of a large answer may be kept.
    """

    request: bytes
    width: int
    transform: Transform | None = None
    log: bool = False
    recall: Recall | None = None
    packed: PackedRows | None = None


def prepare(
    pushed: Pushed, capabilities: Capabilities, layout: RowTypes | None = None
) -> CoreRequest:
    """How to ask a core with these capabilities; of rows of Stats only the numbers are checked.

    Raise BadRequest if a value cannot be sent.
    """
    if capabilities.kind == "rest":
        asked = question(pushed, capabilities, layout)
        return CoreRequest(asked.request, asked.width, asked.reading, pushed.waits_long)
    if layout is None or pushed.stats:
        groups = len(pushed.columns)
        numbers = partial(_with_numbers, groups) if pushed.stats else None
        width = groups + len(pushed.stats)
        return CoreRequest(build(pushed, capabilities), width, numbers, pushed.waits_long)
    columns = with_companions(pushed.table, pushed.columns, capabilities)
    whole = pushed if columns == pushed.columns else evolve(pushed, columns=columns)
    transform = normaliser(pushed.table, columns, capabilities, layout)
    return CoreRequest(build(whole, capabilities), len(columns), transform, pushed.waits_long)


def _with_numbers(groups: int, rows: list[Row]) -> list[Row]:
    """Rows of Stats, checked before anybody adds them up; nothing counts as 0."""
    for row in rows:
        for at in range(groups, len(row)):
            value = row[at]
            if value is None:
                row[at] = 0
            elif type(value) not in (int, float):
                raise ProtocolError("a statistic is not a number")
    return rows
