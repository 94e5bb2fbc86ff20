"""What a report needs of the lines in the cache: slices of them, and what they tell of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from monrest.logs import cache_records as records
from monrest.logs.cache_records import LogTransaction
from monrest.logs.cached_piece import CachedPiece
from monrest.logs.line import service_of
from monrest.logs.source import FEW_HOSTS, Wanted
from monrest.logs.sql import fetched
from monrest.logs.state_events import ObjectKey, TimedLine
from monrest.store.tables import logcache_lines as lines

_PROGRAM = 2
_STATES = frozenset({1, 6})
_HOST_TYPES = ("HOST ALERT", "INITIAL HOST STATE", "CURRENT HOST STATE")
_SERVICE_STATES = ("SERVICE ALERT", "INITIAL SERVICE STATE", "CURRENT SERVICE STATE")
_SERVICE_TYPES = (*_SERVICE_STATES, "SERVICE DOWNTIME ALERT")
_HOST_DOWNTIME = "HOST DOWNTIME ALERT"
_TRANSITION = "TIMEPERIOD TRANSITION: "


@frozen
class Slice:
    """Lines in the order of the log, and the second that comes after them."""

    lines: Sequence[TimedLine]
    after: int


def slice_of(
    site: str, piece: CachedPiece, wanted: Wanted, low: int, most: int, *, named: bool
) -> LogTransaction[Slice | None]:
    """The next lines of a piece, from ``low`` on; None when the cache has them no more.

    There are ``most`` of them at most, unless a single second has more. ``named``: the core tells
    which host a line is about.
    """

    def work(connection: Connection) -> Slice | None:
        known = records.of_site(connection, site)
        if known is None or not piece.still(known, low):
            return None
        chosen = _chosen(connection, known.id, wanted, named=named)
        found = fetched(
            connection,
            chosen.where(lines.c.time >= low, lines.c.time < piece.end)
            .order_by(lines.c.time)
            .limit(most),
        )
        if len(found) < most:
            return Slice(_in_order(found), piece.end)
        last = max(found)[0]
        if last == low:
            found = fetched(connection, chosen.where(lines.c.time == low))
            return Slice(_in_order(found), low + 1)
        # There may be more of the last second.
        return Slice(_in_order([one for one in found if one[0] < last]), last)

    return work


def objects_of(
    site: str, piece: CachedPiece, wanted: Wanted
) -> LogTransaction[list[ObjectKey] | None]:
    """The hosts and services of which a piece tells states; None when it is there no more."""

    def work(connection: Connection) -> list[ObjectKey] | None:
        known = records.of_site(connection, site)
        if known is None or not piece.still(known, piece.start):
            return None
        hosts = _HOST_TYPES if wanted.hosts else ()
        types = (*hosts, *(_SERVICE_STATES if wanted.services else ()))
        found = (
            select(lines.c.host_name, lines.c.service_description, func.min(lines.c.message))
            .where(
                lines.c.site == known.id,
                lines.c.time >= piece.start,
                lines.c.time < piece.end,
                lines.c["class"].in_(_STATES),
                lines.c.type.in_(types),
            )
            .group_by(lines.c.host_name, lines.c.service_description)
        )
        return [
            (host, service_of(message, host, service))
            for host, service, message in connection.execute(found)
        ]

    return work


def _in_order(found: list[Any]) -> list[TimedLine]:
    found.sort()  # by time and number, of which no two lines have the same
    return [(time, message) for time, _, message in found]


def _chosen(connection: Connection, site: int, wanted: Wanted, *, named: bool) -> Select[Any]:
    found = select(lines.c.time, lines.c.number, lines.c.message).where(lines.c.site == site)
    if wanted.transitions:
        return found.where(lines.c["class"] == 6, lines.c.message.contains(_TRANSITION))
    types = [_HOST_DOWNTIME]
    if wanted.hosts:
        types += _HOST_TYPES
    if wanted.services:
        types += _SERVICE_TYPES
    states: ColumnElement[bool] = and_(lines.c["class"].in_(_STATES), lines.c.type.in_(types))
    if wanted.names is not None and len(wanted.names) <= FEW_HOSTS:
        names = sorted(wanted.names)
        position = func.strpos if connection.dialect.name == "postgresql" else func.instr
        states = and_(
            states,
            lines.c.host_name.in_(names)
            if named
            else or_(*(position(lines.c.message, f": {name};") > 0 for name in names)),
        )
    return found.where(or_(states, lines.c["class"] == _PROGRAM) if wanted.program else states)
