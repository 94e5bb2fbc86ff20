"""Transactions about nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from sqlalchemy import Connection, Update, delete, insert, select, update

from monrest.nodecontrol.model import Log, Node
from monrest.store.database import insert_if_absent, transaction

nodes, logs = Node.table, Log.table


@frozen
class StoredNodes:
    """Nodes by site, and the logs of each by name, without what is in them."""

    nodes: Mapping[str, Node]
    logs: Mapping[str, Mapping[str, Log]]


def read(connection: Connection) -> StoredNodes:
    by_site = {row.site: Node.of(row) for row in connection.execute(select(nodes))}
    of: dict[str, dict[str, Log]] = {}
    query = select(logs.c.site, logs.c.name, logs.c.failed, logs.c.at).order_by(logs.c.name)
    for row in connection.execute(query):
        of.setdefault(row.site, {})[row.name] = Log.of(row)
    return StoredNodes(by_site, of)


@transaction
def one_log(connection: Connection, site: str, name: str) -> Log | None:
    """Read the last log of a name with what is in it."""
    query = select(logs).where(logs.c.site == site, logs.c.name == name)
    row = connection.execute(query).one_or_none()
    return None if row is None else Log.of(row)


def _make(connection: Connection, site: str) -> None:
    """Make the row of a node unless there is one, also when another daemon does the same."""
    connection.execute(insert_if_absent(connection, nodes, Node(site=site).values()))


def _of(site: str) -> Update:
    return update(nodes).where(nodes.c.site == site)


@transaction
def begin_gathering(
    connection: Connection, site: str, now: float, until: float, *, alone: bool = True
) -> bool:
    """Note that facts are being gathered; ``alone``: False when they are already."""
    query = _of(site).values(gathering_until=int(until))
    if alone:
        query = query.where(nodes.c.gathering_until <= int(now))
    _make(connection, site)
    return connection.execute(query).rowcount == 1


@transaction
def end_gathering(
    connection: Connection,
    site: str,
    now: float,
    data: Mapping[str, Any] | None,
    problem: str,
    *,
    facts: bool,
) -> None:
    """Store what was gathered: everything where it is ``facts``, else beside what is known.

    None: nothing could be.
    """
    values: dict[str, Any] = {"gathering_until": 0}
    if data is not None:
        row = (
            {}
            if facts
            else connection.execute(
                select(nodes.c.data).where(nodes.c.site == site)
            ).scalar_one_or_none()
            or {}
        )
        values |= {"data": {**row, **data}, "gathered": int(now)}
        if facts:
            values["facts_gathered"] = int(now)
    if problem:
        values |= {"last_error": problem, "last_error_at": int(now)}
    connection.execute(_of(site).values(values))


@transaction
def claim(connection: Connection, site: str, operation: str, now: float) -> bool:
    """Note that an operation begins; False when another one is going on."""
    query = _of(site).where(nodes.c.operation == "")
    _make(connection, site)
    values = {"operation": operation, "job": None, "claimed": int(now)}
    return connection.execute(query.values(values)).rowcount == 1


@transaction
def assign(connection: Connection, site: str, job: int, claimed: int) -> bool:
    """Note which job does what was claimed at that time; False when it is not claimed any more."""
    query = _of(site).where(
        nodes.c.operation != "", nodes.c.job.is_(None), nodes.c.claimed == claimed
    )
    values = query.values({"job": job, "last_job": job})
    return connection.execute(values).rowcount == 1


@transaction
def step(connection: Connection, site: str, job: int, operation: str) -> bool:
    """Note what a job is doing now; False when others gave it up."""
    query = _of(site).where(nodes.c.job == job).values(operation=operation)
    return connection.execute(query).rowcount == 1


@transaction
def note(connection: Connection, log: Log) -> None:
    """Store what an operation has written, instead of what it wrote the last time."""
    connection.execute(delete(logs).where(logs.c.site == log.site, logs.c.name == log.name))
    connection.execute(insert(logs).values(log.values()))


@transaction
def release(
    connection: Connection,
    site: str,
    job: int | None,
    now: float,
    problem: str = "",
    *,
    claimed: int = 0,
) -> bool:
    """Note that the operation of ``job`` has ended; False if it had.

    None: that what was ``claimed`` then has not begun.
    """
    same = nodes.c.job == job
    if job is None:
        same = nodes.c.job.is_(None) & (nodes.c.claimed == claimed)
    values: dict[str, Any] = {"operation": "", "job": None}
    if problem:
        values |= {"last_error": problem, "last_error_at": int(now)}
    query = _of(site).where(nodes.c.operation != "", same).values(values)
    return connection.execute(query).rowcount == 1
