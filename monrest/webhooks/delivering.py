"""Sending what waits for one webhook, in the order of each object, until it is taken.

A message is taken from the database right before it is sent, and what became of it is noted right
after; a process that is killed between the two sends it again, with the same id.

Rules: docs/spec/webhooks.md, "Delivery".
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import ClassVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.concurrency import pause
from monrest.base.errors import Unavailable
from monrest.store.duties import Duties, DutyLostError, Token
from monrest.webhooks import store as statements
from monrest.webhooks.model import Delivery, Webhook
from monrest.webhooks.posting import PostResult, Sender
from monrest.webhooks.signature import headers_of
from monrest.webhooks.store import Attempt, HookState, NextDeliveries

AT_ONCE = 8
"""Messages of a webhook that are on their way at the same time."""

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 3600.0
MOST_TRIES = 33
"""Tries with growing pauses are a day then: 5, 10, 20 … seconds and in the end an hour."""

ENDED = HookState(paused="the receiver answered 410, which ends the subscription", ended=True)

_LONGEST_SLEEP = 60.0
_AWAY = 5.0
_TOGETHER = 0.02
"""Seconds within which answers are noted together."""


def pause_after(tries: int, spread: Callable[[], float] = random.random) -> float:
    """The seconds before the next try, a little different each time."""
    seconds = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 20), LONGEST_PAUSE)
    return seconds * (0.9 + 0.2 * spread())


@frozen(kw_only=True)
class PostedDelivery:
    """A message that was sent once, and the webhook as it was when that began.

    ``by_target``: it says that the receiver takes nothing now. ``alone``: nothing else says so,
    and so the receiver may well take other messages.
    """

    delivery: Delivery
    hook: Webhook
    result: PostResult
    by_target: bool = False
    alone: bool = False


def judged(
    hook: Webhook, posted: Sequence[PostedDelivery], now: float
) -> tuple[list[Attempt], HookState]:
    """The results of messages that were sent, and the new state of their webhook."""
    tried, given_up = [], ""
    state = HookState(failures=hook.failures, rests=hook.rests)
    for posted_delivery in posted:
        result, delivery = posted_delivery.result, posted_delivery.delivery
        tries = delivery.attempts + 1
        wait: float | None = None
        if posted_delivery.by_target and not posted_delivery.alone:
            wait = 0.0
        elif not result.taken and tries < MOST_TRIES:
            wait = pause_after(tries)
        elif not result.taken and (hook.delivered is None or hook.delivered < delivery.made):
            given_up = result.error
            wait = 0.0 if result.by_target else None
        tried.append(Attempt(seq=delivery.seq, result=result, pause=wait))
        state = state_after(state, posted_delivery, now)
    if given_up and state.paused is None:
        state = HookState(paused=f"what is sent was refused for a day: {given_up}")
    return tried, state


def state_after(state: HookState, delivery: PostedDelivery, now: float) -> HookState:
    """The state of a webhook after one more result."""
    result = delivery.result
    if result.gone or state.ended:
        return ENDED
    if not result.by_target:
        # Who asked meanwhile to be left alone is.
        return HookState(rests=0.0 if state.rests <= delivery.hook.rests else state.rests)
    if not delivery.by_target or state.paused is not None:
        return state
    # What was on its way together fails once.
    again = state.failures == delivery.hook.failures
    failures = state.failures + 1 if again else max(state.failures, 1)
    if failures >= MOST_TRIES:
        return HookState(paused=f"nothing was taken for a day: {result.error}")
    rests = state.rests
    if not delivery.alone:
        rests = max(rests, now + max(pause_after(failures), result.rest))
    return HookState(failures=failures, rests=rests)


@define(eq=False, kw_only=True)
class Delivering:
    """Sends the messages of one webhook, whose own token is ``hook_token``, while the duty is held.

    It is ``over`` when it was stopped or nothing is to be sent any more, and ``done`` when nothing
    is on its way any more either.
    """

    log: ClassVar[Logger] = Logger()

    number: int
    hook_token: str
    token: Token
    duties: Duties
    sender: Sender
    clock: IReactorTime
    wall: WallClock
    over: bool = field(init=False, default=False)
    done: Deferred[None] = field(init=False)
    _sleeping: Deferred[None] | None = field(init=False, default=None)
    _woken: bool = field(init=False, default=False)
    _sending: dict[str, Deferred[None]] = field(init=False, factory=dict)
    """Messages that are being sent, by object."""
    _posted: list[PostedDelivery] = field(init=False, factory=list)
    """Results that are not stored yet."""
    _noting: IDelayedCall | None = field(init=False, default=None)
    _answers: int = field(init=False, default=0)
    _failing: set[str] = field(init=False, factory=set)
    """Objects whose messages got no answer since there was one."""

    def start(self) -> None:
        self.done = Deferred.fromCoroutine(self._run())
        self.done.addErrback(self._broken)

    def wake(self) -> None:
        self._woken = True
        noting, self._noting = self._noting, None
        if noting is not None and noting.active():
            noting.cancel()
        if self._sleeping is not None:
            self._sleeping.cancel()

    def stop(self) -> None:
        """Begin with no more messages; those on their way are waited for by ``done``."""
        self.over = True
        self.wake()

    async def _run(self) -> None:
        try:
            await self.work()
        finally:
            self.over = True

    async def work(self) -> None:
        try:
            while True:
                self._woken = False
                due = await self._advance()
                wait: float | None = _AWAY
                if due is not None and due.hook is None:
                    self.over = True
                elif due is not None and due.hook is not None:
                    for message in due.messages:
                        self._begin(due.hook, message)
                    wait = due.wait
                if self.over and not self._sending and not self._posted:
                    return
                await self.sleep(wait)
        finally:
            for sending in list(self._sending.values()):
                sending.cancel()
            self.wake()

    async def _advance(self) -> NextDeliveries | None:
        """Note what was sent and take what is next; None while that cannot be stored."""
        posted, self._posted = self._posted, []
        now = self.wall.now()
        work = statements.advance(
            self.number,
            self.hook_token,
            (lambda hook: judged(hook, posted, now)) if posted else None,
            now,
            0 if self.over else AT_ONCE - len(self._sending),
            list(self._sending),
        )
        try:
            due = await self.duties.change(self.token, work)
        except Unavailable as error:
            self.log.info("webhook {number}: {reason}", number=self.number, reason=str(error))
            self._posted = posted + self._posted
            return None
        if posted and due.state is not None:
            self.log_pause(posted[0].hook, due.state)
        return due

    async def sleep(self, seconds: float | None) -> None:
        """Wait for so long, at most a minute, or until ``wake``."""
        if self._woken:
            return
        most = _LONGEST_SLEEP if seconds is None else min(max(seconds, 0.01), _LONGEST_SLEEP)
        self._sleeping = pause(self.clock, most)
        try:
            await self._sleeping
        except CancelledError:
            if not self._woken:
                raise
        finally:
            self._sleeping = None

    def _begin(self, hook: Webhook, delivery: Delivery) -> None:
        """Send one message; the others do not wait for it."""
        sending = Deferred.fromCoroutine(self._send(hook, delivery, self._answers))
        if not sending.called:
            self._sending[delivery.subject] = sending

    async def _send(self, hook: Webhook, delivery: Delivery, answers: int) -> None:
        try:
            result = await self.post(hook, delivery.message, delivery.content_type, delivery.body)
        except CancelledError:
            return
        except Exception:  # noqa: BLE001  one message must not hold up the others
            self.log.failure("a message of webhook {number} was not sent", number=self.number)
            result = PostResult(error="cannot be sent")
        finally:
            self._sending.pop(delivery.subject, None)
        by_target = alone = False
        if not result.by_target:
            self._answers += 1
            self._failing.clear()
        elif result.rest or self._answers == answers:
            # What was answered meanwhile says that it is the message.
            self._failing.add(delivery.subject)
            by_target, alone = True, not result.rest and len(self._failing) == 1
        self._posted.append(
            PostedDelivery(
                delivery=delivery, hook=hook, result=result, by_target=by_target, alone=alone
            )
        )
        if not self._sending or len(self._posted) >= AT_ONCE // 2:
            self.wake()
        elif self._noting is None:
            # A transaction for each one would cost more than sending them.
            self._noting = self.clock.callLater(_TOGETHER, self.wake)

    async def post(self, hook: Webhook, message: str, kind: str, body: bytes) -> PostResult:
        return await post_signed(self.sender, hook, message, kind, body, self.wall.now())

    def log_pause(self, hook: Webhook, state: HookState) -> None:
        if state.paused is not None:
            self.log.warn(
                "webhook {number} of {owner} is paused: {reason}",
                number=hook.number,
                owner=hook.owner,
                reason=state.paused,
            )

    def _broken(self, failure: Failure) -> None:
        if not failure.check(CancelledError, DutyLostError):
            self.log.failure("webhook {number} is not served", failure, number=self.number)


async def post_signed(
    sender: Sender, hook: Webhook, message: str, kind: str, body: bytes, now: float
) -> PostResult:
    """Send a body with the headers of its webhook and its signature."""
    headers = {
        "Content-Type": kind,
        **hook.record["headers"],
        **headers_of(hook.keys(now), message, now, body),
    }
    return await sender.post(hook.place, headers, body)
