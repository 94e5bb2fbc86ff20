"""What is asked of a core, as a question to an LMD for any number of its sites.

The request is one for all of them: rows carry the id of their site, order and limit count over all
sites as they would over the rows put one behind the other (docs/spec/lmd.md, "Requests").
"""

from __future__ import annotations

from attrs import evolve, frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.framing import Transform
from monrest.livestatus.lql import build
from monrest.livestatus.pool import CoreRequest
from monrest.query.model import Pushed
from monrest.sites.normalise import RowTypes, normaliser

KEY = "peer_key"


def lmd_question(
    pushed: Pushed, capabilities: Capabilities, layout: RowTypes | None
) -> CoreRequest:
    """How to ask; raise BadRequest if a value cannot be sent."""
    groups = len(pushed.columns)
    asked = evolve(pushed, columns=(*pushed.columns, KEY))
    if pushed.sort and pushed.table != "log":
        keys = pushed.sort
        sort = (*keys[: pushed.own_keys], (KEY, False), *keys[pushed.own_keys :])
        asked = evolve(asked, sort=sort)
    width = groups + len(pushed.stats)
    if pushed.stats:
        types = capabilities.tables.get(pushed.table, {})
        numbers = tuple(at for at, name in enumerate(pushed.columns) if types[name] != "string")
        transform: Transform | None = Numbers(groups, numbers)
    else:
        transform = (
            None if layout is None
            else normaliser(pushed.table, pushed.columns, capabilities, layout)
        )  # fmt: skip
    return CoreRequest(
        build(asked, capabilities), width, transform, log=pushed.waits_long, key_at=groups
    )


@frozen
class Numbers:
    """Makes numbers of what is one in rows of Stats: values of groups come as texts.

    The ``groups`` stand first; ``among`` them those at these places are numbers.
    """

    groups: int
    among: tuple[int, ...]

    def __call__(self, rows: list[Row]) -> list[Row]:
        """See ``framing.Transform``."""
        for row in rows:
            for at in self.among:
                row[at] = _number(row[at])
            for at in range(self.groups, len(row)):
                row[at] = _number(row[at])
        return rows


def _number(value: object) -> int | float:
    if value is None:
        return 0
    try:
        number = float(value) if isinstance(value, (str, int, float)) else None
    except ValueError:
        number = None
    if number is None:
        raise ProtocolError("a statistic is not a number")
    return int(number) if number.is_integer() else number
