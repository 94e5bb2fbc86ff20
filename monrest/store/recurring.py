"""What recurs by a schedule: each row has the next time at which something is to be done.

``table`` has the columns ``number`` and ``next_at``, in Unix seconds, NULL where nothing comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

from sqlalchemy import Connection, Row, Table, select, update

from monrest.base.schedule import following
from monrest.store.database import Work


def is_due(table: Table, now: float) -> Work[bool]:
    """Whether the time of any row has come."""
    query = select(table.c.number).where(table.c.next_at <= int(now)).limit(1)
    return lambda connection: connection.execute(query).first() is not None


def plan_again(
    table: Table, crons: Callable[[Row[*tuple[Any, ...]]], Sequence[str]], now: float, zone: tzinfo
) -> Work[None]:
    """Work out anew when everything comes next that has not come: the clocks may be others.

    ``crons`` gives the expressions of a row.
    """
    query = select(table).where(table.c.next_at.is_(None) | (table.c.next_at > now))

    def work(connection: Connection) -> None:
        for row in connection.execute(query).all():
            next_at = following(crons(row), now, zone)
            if next_at != row.next_at:
                connection.execute(
                    update(table).where(table.c.number == row.number).values(next_at=next_at)
                )

    return work
