"""Transactions on the nodes and on their restart; each returns work for ``Database``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update

from monrest.cluster.model import OPEN, SKIPPED, WAITING, Member, RestartStep
from monrest.store.database import transaction

nodes, restarts = Member.table, RestartStep.table


def state(connection: Connection) -> tuple[dict[int, Member], list[RestartStep]]:
    """All nodes by id, and the steps of the last restart."""
    members = {row.id: Member.of(row) for row in connection.execute(select(nodes))}
    rows = connection.execute(select(restarts).order_by(restarts.c.position))
    return members, [RestartStep.of(row) for row in rows]


@transaction
def enter(connection: Connection, own: Member) -> None:
    """Enter a node, or what is new of it; its url and its maintenance stay."""
    values = own.values()
    known = {name: values[name] for name in ("run", "host", "pid", "version")}
    done = connection.execute(update(nodes).where(nodes.c.id == own.id).values(known))
    if done.rowcount == 0:
        connection.execute(insert(nodes).values(values))


@transaction
def reached_at(connection: Connection, own: Member, url: str) -> None:
    """Note where a node is reached; a node that was there before is gone."""
    connection.execute(delete(nodes).where(nodes.c.url == url, nodes.c.id != own.id))
    connection.execute(update(nodes).where(nodes.c.id == own.id).values(url=url))


@transaction
def maintain(connection: Connection, number: int, since: int) -> bool:
    """Note since when a node is in maintenance, 0 for none; False when there is no such node.

    One that is in maintenance already keeps its time.
    """
    maintenance = select(nodes.c.maintenance).where(nodes.c.id == number)
    before = connection.execute(maintenance).scalar_one_or_none()
    if before is None:
        return False
    if not (before and since):
        changed = update(nodes).where(nodes.c.id == number).values(maintenance=since)
        connection.execute(changed)
    return True


@transaction
def begin(connection: Connection, steps: Sequence[RestartStep]) -> bool:
    """Note a restart of all nodes; False during another one."""
    query = select(restarts.c.position).where(restarts.c.state.in_(OPEN)).limit(1)
    if connection.execute(query).first() is not None:
        return False
    connection.execute(delete(restarts))
    connection.execute(insert(restarts), [step.values() for step in steps])
    return True


@transaction
def advance(connection: Connection, step: RestartStep, to: str, message: str, now: float) -> bool:
    """Bring a step from the state in which it was seen to another; False if it is not there."""
    done = connection.execute(
        update(restarts)
        .where(
            restarts.c.position == step.position,
            restarts.c.node == step.node,
            restarts.c.run == step.run,
            restarts.c.state == step.state,
        )
        .values(state=to, message=message, changed=int(now))
    )
    return done.rowcount == 1


@transaction
def give_up(connection: Connection, message: str, now: float) -> None:
    """Leave out all nodes whose turn has not come."""
    connection.execute(
        update(restarts)
        .where(restarts.c.state == WAITING)
        .values(state=SKIPPED, message=message, changed=int(now))
    )
