"""The request to a core for a question, and how its rows are read."""

from __future__ import annotations

from functools import lru_cache

from attrs import evolve

from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.framing import Transform
from monrest.livestatus.lql import build
from monrest.livestatus.pool import CoreRequest
from monrest.query.model import Pushed
from monrest.sites.federation.questions import question
from monrest.sites.lmd.joint_queries import lmd_question
from monrest.sites.normalise import RowTypes, normaliser, with_companions


def prepare(
    pushed: Pushed, capabilities: Capabilities, layout: RowTypes | None = None
) -> CoreRequest:
    """The request to a core with these capabilities; of rows of Stats only the numbers are checked.

    Raise BadRequest if a value cannot be sent.
    """
    if capabilities.kind == "rest":
        return question(pushed, capabilities, layout)
    if capabilities.kind == "lmd":
        return lmd_question(pushed, capabilities, layout)
    if layout is None or pushed.stats:
        groups = len(pushed.columns)
        numbers = _numbers_behind(groups) if pushed.stats else None
        width = groups + len(pushed.stats)
        return CoreRequest(build(pushed, capabilities), width, numbers, pushed.waits_long)
    columns = with_companions(pushed.table, pushed.columns, capabilities)
    whole = pushed if columns == pushed.columns else evolve(pushed, columns=columns)
    transform = normaliser(pushed.table, columns, capabilities, layout)
    return CoreRequest(build(whole, capabilities), len(columns), transform, pushed.waits_long)


@lru_cache(maxsize=64)
def _numbers_behind(groups: int) -> Transform:
    """Checks rows of Stats; null counts as 0.

    Kept, so that equal queries have the same check: by that they are seen to be equal.
    """

    def checked(rows: list[Row]) -> list[Row]:
        for row in rows:
            for at in range(groups, len(row)):
                value = row[at]
                if value is None:
                    row[at] = 0
                elif type(value) not in (int, float):
                    raise ProtocolError("a statistic is not a number")
        return rows

    return checked
