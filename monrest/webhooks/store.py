"""The SQL of webhooks; every function is work for one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import cattrs
from attrs import evolve, frozen
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from monrest.api.records import RecordLimits, StoredRecords
from monrest.config import WebhooksConfig
from monrest.store.database import transaction
from monrest.store.space import require_space
from monrest.webhooks.model import Delivery, Webhook, WebhookSecret
from monrest.webhooks.posting import PostResult

WAITING, SENT, FAILED = "waiting", "sent", "failed"

KEPT = 200
"""Messages of a webhook that are done and still shown."""


webhooks, deliveries = Webhook.table, Delivery.table

LIMITS = RecordLimits(
    word="webhooks",
    document=webhooks.c.record,
    owner=webhooks.c.record["owner"].as_string(),
    owned=WebhooksConfig().per_user,
    count=1_000,
    setting="webhooks.per_user",
)
STORED = StoredRecords(Webhook, LIMITS)


@transaction
def several(connection: Connection, number: int | None = None) -> list[Webhook]:
    """All webhooks, or the one with this number, with how many of their messages wait."""
    query = (
        select(deliveries.c.webhook, func.count().label("waiting"))
        .where(deliveries.c.phase == WAITING)
        .group_by(deliveries.c.webhook)
    )
    waiting = {row.webhook: row.waiting for row in connection.execute(query)}
    hooks = STORED.read(connection, number)
    return [evolve(hook, waiting=waiting.get(hook.number, 0)) for hook in hooks]


@transaction
def add(
    connection: Connection, first: int, owner: str, values: Mapping[str, Any], mine: int
) -> int:
    """Store a new one; Conflict where there are ``mine`` of the owner, or too many in all."""
    stored = {"last_seq": 0, "failures": 0, "rests": 0.0, **values}
    return STORED.add_number(connection, first, stored, owner, evolve(LIMITS, owned=mine))


@transaction
def remove(connection: Connection, hook: Webhook) -> bool:
    return STORED.remove(connection, hook.number, hook.version)


@transaction
def replace(
    connection: Connection,
    hook: Webhook,
    record: Mapping[str, Any],
    limit: Sequence[str] | None,
    now: float,
) -> bool:
    """Store another record; pauses and failures are reset.

    A webhook that was switched off continues with events from ``now`` on.
    """
    values: dict[str, Any] = {"record": record, "limit": limit, **_UNHINDERED}
    if not hook.record["enabled"]:
        values["position"] = str(int(now))
    owner = str(record["owner"])
    done = STORED.replace(connection, hook.number, hook.version, values, owner)
    if done and (not record["enabled"] or record["body"] != hook.record["body"]):
        _forget(connection, hook.number)
    elif done:
        connection.execute(_at_once(hook.number))
    return done


_UNHINDERED: Mapping[str, Any] = {"paused": None, "paused_at": None, "failures": 0, "rests": 0.0}


def _forget(connection: Connection, number: int) -> None:
    """Delete the waiting messages of a webhook."""
    connection.execute(
        delete(deliveries).where(deliveries.c.webhook == number, deliveries.c.phase == WAITING)
    )


def _at_once(number: int) -> Any:
    this = and_(deliveries.c.webhook == number, deliveries.c.phase == WAITING)
    return update(deliveries).where(this).values(again=0.0, attempts=0)


@transaction
def resume(connection: Connection, number: int) -> None:
    """Resume a paused webhook: waiting messages are tried at once."""
    connection.execute(update(webhooks).where(webhooks.c.number == number).values(**_UNHINDERED))
    connection.execute(_at_once(number))


@transaction
def keep_secrets(connection: Connection, hook: Webhook, secrets: Sequence[WebhookSecret]) -> bool:
    """Store other secrets; False when the record was changed meanwhile."""
    values = {"secrets": cattrs.unstructure(secrets)}
    return STORED.replace(connection, hook.number, hook.version, values)


@transaction
def list_deliveries(connection: Connection, number: int) -> list[Delivery]:
    """The messages of a webhook, the newest first."""
    query = (
        select(deliveries)
        .where(deliveries.c.webhook == number)
        .order_by(deliveries.c.seq.desc())
        .limit(2 * KEPT)
    )
    return [Delivery.of(row) for row in connection.execute(query)]


@transaction
def repeat(connection: Connection, number: int, seq: int) -> bool:
    """Queue a message that is done again, with the same id; False when there is none."""
    query = (
        update(deliveries)
        .where(deliveries.c.webhook == number, deliveries.c.seq == seq)
        .values(phase=WAITING, attempts=0, again=0.0, error=None, ended=None)
    )
    return connection.execute(query).rowcount == 1


@frozen(kw_only=True)
class QueuedEvent:
    """The message of one event, or why it cannot be sent; ``cursor`` is behind the event."""

    message: str
    event: str
    type: str
    subject: str
    content_type: str
    body: bytes
    cursor: str
    error: str | None = None


def _same_webhook(hook: Webhook) -> ColumnElement[bool]:
    """The row, if it is still this webhook: numbers are used again, and records change."""
    return and_(
        webhooks.c.number == hook.number,
        webhooks.c.token == hook.token,
        webhooks.c.version == hook.version,
    )


@transaction
def queue(
    connection: Connection, hook: Webhook, events: Sequence[QueuedEvent], now: float, most: int
) -> int:
    """Store messages and the cursor behind them; return the number of events.

    0 if the record has changed meanwhile. At most ``most`` messages wait then. An event that was
    queued before is not queued again.
    """
    this, number = _same_webhook(hook), hook.number
    last = connection.execute(
        select(webhooks.c.last_seq).where(this).with_for_update()
    ).scalar_one_or_none()
    if last is None:
        return 0
    mine = deliveries.c.webhook == number
    waiting = select(func.count()).where(mine, deliveries.c.phase == WAITING)
    fitting = events[: max(0, most - connection.execute(waiting).scalar_one())]
    if not fitting:
        return 0
    require_space(connection)
    ids = [event.event for event in fitting]
    seen = set(
        connection.execute(
            select(deliveries.c.event).where(mine, deliveries.c.event.in_(ids))
        ).scalars()
    )
    rows: list[dict[str, Any]] = []
    for event in fitting:
        if event.event in seen:
            continue
        last += 1
        delivery = Delivery(
            webhook=number,
            seq=last,
            message=event.message,
            event=event.event,
            type=event.type,
            subject=event.subject,
            made=now,
            content_type=event.content_type,
            body=event.body,
            phase=WAITING if event.error is None else FAILED,
            error=event.error,
            ended=None if event.error is None else now,
        )
        rows.append(delivery.values())
    if rows:
        connection.execute(insert(deliveries), rows)
    position = fitting[-1].cursor
    connection.execute(update(webhooks).where(this).values(position=position, last_seq=last))
    return len(fitting)


@transaction
def note_position(connection: Connection, hook: Webhook, position: str) -> None:
    """Store the cursor where no event was to be sent."""
    connection.execute(update(webhooks).where(_same_webhook(hook)).values(position=position))


def _first_of_each(number: int) -> Select[tuple[int]]:
    """The numbers of the messages that are the next of their object."""
    return (
        select(func.min(deliveries.c.seq))
        .where(deliveries.c.webhook == number, deliveries.c.phase == WAITING)
        .group_by(deliveries.c.subject)
    )


@frozen(kw_only=True)
class Attempt:
    """The result of one attempt: ``pause`` are the seconds until the next, None for no other."""

    seq: int
    result: PostResult
    pause: float | None = None


@frozen(kw_only=True)
class HookState:
    """``failures`` in a row; nothing is sent until ``rests``.

    ``paused`` is the reason why nothing more is sent; ``ended``: nothing will ever be sent again.
    """

    failures: int = 0
    rests: float = 0.0
    paused: str | None = None
    ended: bool = False


Judge: TypeAlias = Callable[[Webhook], tuple[list[Attempt], HookState]]
"""The attempts that are stored, and the new state of the webhook."""


@frozen(kw_only=True)
class NextDeliveries:
    """The webhook and its messages that are to be sent now; ``wait`` seconds until there are more.

    ``hook`` is None where nothing is sent any more, ``wait`` where none waits. ``state`` is what
    was stored.
    """

    hook: Webhook | None = None
    messages: tuple[Delivery, ...] = ()
    wait: float | None = None
    state: HookState | None = None


@transaction
def advance(
    connection: Connection,
    number: int,
    token: str,
    judge: Judge | None,
    now: float,
    most: int,
    busy: Sequence[str],
) -> NextDeliveries:
    """Store the results of attempts, and take the next ``most`` messages, one for each object.

    Messages of the objects ``busy`` are on their way.
    """
    this = select(webhooks).where(webhooks.c.number == number, webhooks.c.token == token)
    row = connection.execute(this).one_or_none()
    state = None
    if row is not None and judge is not None:
        tried, state = judge(Webhook.of(row))
        _note(connection, number, tried, state, now)
        row = connection.execute(this).one()
    hook = None if row is None else Webhook.of(row)
    if hook is None or not hook.works:
        return NextDeliveries(state=state)
    due, wait = _take(connection, hook, now, most, busy)
    return NextDeliveries(hook=hook, messages=due, wait=wait, state=state)


def _take(
    connection: Connection, hook: Webhook, now: float, most: int, busy: Sequence[str]
) -> tuple[tuple[Delivery, ...], float | None]:
    """Take messages; also return the seconds until the next is due."""
    # A receiver that failed is tried with one message.
    count = min(most, 0 if busy else 1) if hook.rests else most
    if count <= 0:
        return (), None
    heads = deliveries.c.seq.in_(_first_of_each(hook.number))
    free = and_(deliveries.c.webhook == hook.number, heads, deliveries.c.subject.not_in(busy))
    if hook.rests > now:
        any_left = connection.execute(select(deliveries.c.seq).where(free).limit(1)).first()
        return (), hook.rests - now if any_left else None
    query = select(deliveries).where(free).order_by(deliveries.c.again, deliveries.c.seq)
    rows = [Delivery.of(row) for row in connection.execute(query.limit(count))]
    due = tuple(row for row in rows if row.again <= now)
    if due:
        taking = and_(
            deliveries.c.webhook == hook.number,
            deliveries.c.seq.in_([delivery.seq for delivery in due]),
        )
        connection.execute(
            update(deliveries).where(taking).values(attempts=deliveries.c.attempts + 1)
        )
    return due, rows[len(due)].again - now if len(due) < len(rows) else None


def _note(
    connection: Connection,
    number: int,
    tried: Sequence[Attempt],
    state: HookState,
    now: float,
) -> None:
    values: dict[str, Any] = {"failures": state.failures, "rests": state.rests}
    for attempt in tried:
        result = attempt.result
        this = and_(deliveries.c.webhook == number, deliveries.c.seq == attempt.seq)
        changes: dict[str, Any] = {"status": result.status, "error": result.error or None}
        if result.taken:
            changes |= {"phase": SENT, "ended": now}
            values["delivered"] = now
        elif attempt.pause is None:
            changes |= {"phase": FAILED, "ended": now}
        else:
            changes["again"] = now + attempt.pause
        if result.error:
            values |= {"error": result.error, "error_at": now}
        connection.execute(update(deliveries).where(this).values(**changes))
    set_state(connection, number, values, state, now)
    over = and_(deliveries.c.webhook == number, deliveries.c.phase != WAITING)
    oldest = (
        select(deliveries.c.seq).where(over).order_by(deliveries.c.seq.desc()).limit(1).offset(KEPT)
    )
    connection.execute(delete(deliveries).where(over, deliveries.c.seq <= oldest.scalar_subquery()))


def set_state(
    connection: Connection, number: int, values: dict[str, Any], state: HookState, now: float
) -> None:
    """Store the state of a webhook; one that has ended is switched off."""
    if state.paused is not None:
        values |= {"paused": state.paused, "paused_at": now}
    if state.ended:
        query = select(webhooks.c.record, webhooks.c.version).where(webhooks.c.number == number)
        row = connection.execute(query).one_or_none()
        if row is not None:
            values |= {"record": {**row.record, "enabled": 0}, "version": row.version + 1}
        _forget(connection, number)
    connection.execute(update(webhooks).where(webhooks.c.number == number).values(**values))


@transaction
def pause(connection: Connection, number: int, reason: str, now: float) -> None:
    """Stop a webhook until it is resumed."""
    values = {"error": reason, "error_at": now}
    set_state(connection, number, values, HookState(paused=reason), now)


def try_all_now(connection: Connection) -> None:
    """Try all messages at once, because the clock was set."""
    connection.execute(update(webhooks).values(rests=0.0))
    connection.execute(update(deliveries).where(deliveries.c.phase == WAITING).values(again=0.0))


@transaction
def note_alerts(
    connection: Connection, hook: Webhook, result: PostResult, state: HookState, now: float
) -> None:
    values: dict[str, Any] = {"failures": state.failures, "rests": state.rests}
    values |= {"delivered": now} if result.taken else {"error": result.error, "error_at": now}
    same = select(webhooks.c.number).where(
        webhooks.c.number == hook.number, webhooks.c.token == hook.token
    )
    if connection.execute(same).first() is not None:
        set_state(connection, hook.number, values, state, now)
