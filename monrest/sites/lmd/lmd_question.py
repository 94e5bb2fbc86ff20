"""A question for a core as a request to an LMD for any number of its sites.

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
from monrest.query.model import CoreFilter, Group, Pushed, columns_of
from monrest.sites.normalise import RowTypes, normaliser, with_companions

KEY = "peer_key"
MOST_LINES = 1000
"""Conditions of one request."""


def lmd_question(
    pushed: Pushed, capabilities: Capabilities, layout: RowTypes | None
) -> CoreRequest:
    """How to ask; raise BadRequest if a value cannot be sent."""
    if layout is not None and not pushed.stats:
        companions = with_companions(pushed.table, pushed.columns, capabilities)
        pushed = evolve(pushed, columns=companions)
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
    first, *further = (build(part, capabilities) for part in _parts(asked))
    return CoreRequest(
        *(first, width, transform, pushed.waits_long), key_at=groups, further=tuple(further)
    )


def _parts(asked: Pushed) -> list[Pushed]:
    """The same question in parts that are short enough: each has some of the alternatives.

    What counts or cuts off cannot be put together again, and is left as it is.
    """
    lines = _count(asked.filter)
    if lines <= MOST_LINES or asked.stats or asked.limit is not None or asked.filter is None:
        return [asked]
    whole = asked.filter
    conditions = whole.items if isinstance(whole, Group) and whole.connector == "and" else (whole,)
    longest = max(conditions, key=_count)
    if not isinstance(longest, Group):
        return [asked]
    others = tuple(condition for condition in conditions if condition is not longest)
    room = MOST_LINES - (lines - _count(longest))
    portions: list[list[CoreFilter]] = [[]]
    for item in longest.items:
        if portions[-1] and sum(map(_count, portions[-1])) + _count(item) > room:
            portions.append([])
        portions[-1].append(item)
    return [
        evolve(asked, filter=Group("and", (*others, Group("or", tuple(portion)))))
        for portion in portions
    ]


def _count(tree: CoreFilter | None) -> int:
    return sum(1 for _ in columns_of(tree))


@frozen
class Numbers:
    """Makes numbers of what is one in rows of Stats: values of groups come as texts.

    The ``groups`` stand first; ``among`` them those at these places are numbers.
    """

    groups: int
    among: tuple[int, ...]

    def __call__(self, rows: list[Row]) -> list[Row]:
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
