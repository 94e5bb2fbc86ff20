"""Work for one transaction each: what the database is asked about broadcasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, delete, insert, select, update

from monrest.broadcasts.model import Broadcast
from monrest.store.tables import broadcasts

T = TypeVar("T")
Work = Callable[[Connection], T]

_MOST_OF_A_DAY = 10_000


def _broadcast(row: Row[Any]) -> Broadcast:
    return Broadcast(file=row.file, record=row.record, changed=row.changed, version=row.version)


def everything(connection: Connection) -> list[Broadcast]:
    """All broadcasts in the order of their files, by code point."""
    found = [_broadcast(row) for row in connection.execute(select(broadcasts))]
    return sorted(found, key=lambda one: one.file)


def one(file: str) -> Work[Broadcast | None]:
    """The broadcast with this file."""

    def work(connection: Connection) -> Broadcast | None:
        query = select(broadcasts).where(broadcasts.c.file == file)
        row = connection.execute(query).one_or_none()
        return None if row is None else _broadcast(row)

    return work


def add(file: str, record: Mapping[str, Any], now: float, *, exact: bool) -> Work[str | None]:
    """Store a new one; gives its file. If that is taken: None, or unless ``exact`` another."""

    def work(connection: Connection) -> str | None:
        query = select(broadcasts.c.file).where(broadcasts.c.file.startswith(file, autoescape=True))
        taken = set(connection.execute(query).scalars())
        name = file
        for number in range(1, _MOST_OF_A_DAY):
            if name not in taken:
                break
            if exact:
                return None
            name = f"{file}_{number}"
        else:
            return None
        connection.execute(
            insert(broadcasts).values(file=name, record=dict(record), changed=int(now), version=1)
        )
        return name

    return work


def replace(old: Broadcast, record: Mapping[str, Any], now: float) -> Work[bool]:
    """Store another record instead of ``old``; False when that is not the stored one any more."""
    query = (
        update(broadcasts)
        .where(broadcasts.c.file == old.file, broadcasts.c.version == old.version)
        .values(record=dict(record), changed=int(now), version=old.version + 1)
    )
    return lambda connection: connection.execute(query).rowcount == 1


def remove(file: str) -> Work[bool]:
    """Delete one; False when there is none."""
    query = delete(broadcasts).where(broadcasts.c.file == file)
    return lambda connection: connection.execute(query).rowcount == 1
