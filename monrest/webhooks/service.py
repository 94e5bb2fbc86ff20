"""Webhooks at work: one daemon of a database reads events for all of them and sends messages.

Rules: docs/spec/webhooks.md, "Delivery".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

import orjson
from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import ClockSteps, WallClock
from monrest.base.concurrency import Periodic, Threads, ended
from monrest.base.errors import Unavailable
from monrest.base.values import Identity
from monrest.config import WebhooksConfig
from monrest.events.followers import StreamEvent
from monrest.events.model import Event, rfc3339
from monrest.events.service import Events
from monrest.store.database import Database, Work
from monrest.store.duties import Duties, DutyLostError, Token
from monrest.webhooks import store as statements
from monrest.webhooks.alerting import AlertDelivering, AlertFollowing, CoreProblems
from monrest.webhooks.bodies import JSON, body_of
from monrest.webhooks.delivering import Delivering, post_signed
from monrest.webhooks.following import Following
from monrest.webhooks.model import Webhook
from monrest.webhooks.posting import PostResult, Sender
from monrest.webhooks.signature import message_id

DUTY = "webhooks"
_LOOK = 2.0
_PATIENCE = 4.0
"""Seconds for which a daemon that stops waits for the answers of receivers."""

AsOwner = Callable[[str, frozenset[str] | None], Awaitable[Identity]]
"""The identity of a webhook: its owner with at most these roles."""


@define(eq=False)
class _Working:
    """The two halves of a webhook at work."""

    following: Following
    delivering: Delivering

    def fits(self, hook: Webhook, token: Token) -> bool:
        """Whether they are those of this record and of this duty."""
        mine = self.following
        current = (mine.hook.token, mine.hook.version, mine.token)
        return current == (hook.token, hook.version, token)

    def stop(self) -> None:
        """Read no more, and begin with no more messages."""
        self.following.stop()
        self.delivering.stop()


@define(eq=False, kw_only=True)
class Webhooks(Service):
    """``source`` returns events, ``sender`` sends messages, ``owner`` says who an owner is."""

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    threads: Threads
    duties: Duties
    source: Events
    sender: Sender
    owner: AsOwner
    config: WebhooksConfig
    problems: CoreProblems
    _refused: dict[str, str] = field(init=False, factory=dict)
    """Why owners get no events, by the token of their webhook: numbers come again."""
    _working: dict[int, _Working] = field(init=False, factory=dict)
    _leaving: dict[int, Deferred[None]] = field(init=False, factory=dict)
    """Webhooks of which something is still on its way."""
    _steps: ClockSteps = field(init=False)
    _seen: int = field(init=False, default=0)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = ClockSteps(self.wall, self.clock)
        self._periodic = Periodic(self.clock, _LOOK, self.look, "looking after webhooks")

    async def look(self) -> None:
        """Begin with what is to be sent, and end what is not any more."""
        token = self.duties.held(DUTY)
        if token is None:
            self._stop_all()
            return
        try:
            # What waits for a date is tried at once where the clock was set.
            steps = self._steps.look()
            if steps != self._seen:
                await self.duties.change(token, statements.try_all_now)
                self._seen = steps
            hooks = await self.database.run(statements.several())
            for number in self._working.keys() - {hook.number for hook in hooks}:
                self._end(number)
            for hook in hooks:
                await self._look_at(hook, token)
        except (Unavailable, DutyLostError) as error:
            self.log.info("webhooks are not looked after now: {reason}", reason=str(error))

    async def _look_at(self, hook: Webhook, token: Token) -> None:
        working = self._working.get(hook.number)
        if not hook.works:
            self._end(hook.number)
            return
        reason = self._refused.pop(hook.token, None)
        if reason is not None:
            self._end(hook.number)
            await self.duties.change(token, self._pausing(hook, reason))
            return
        if working is not None and not working.fits(hook, token):
            self._end(hook.number)
            working = None
        if working is None:
            if hook.number in self._leaving:
                # What is on its way comes before what is next.
                return
            working = _Working(self._following(hook, token), self._delivering(hook, token))
            self._working[hook.number] = working
            working.following.start()
            return
        if working.delivering.done.called:
            working.delivering = self._delivering(hook, token)
        elif hook.waiting:
            working.delivering.wake()
        if working.following.over and hook.waiting <= self.config.waiting // 2:
            # From where events were stored last.
            working.following = self._following(hook, token)
            working.following.start()

    def _pausing(self, hook: Webhook, reason: str) -> Work[None]:
        self.log.warn(
            "webhook {number} of {owner} is paused: {reason}",
            number=hook.number,
            owner=hook.owner,
            reason=reason,
        )
        return statements.pause(hook.number, reason, self.wall.now())

    def _following(self, hook: Webhook, token: Token) -> Following:
        kind = AlertFollowing if hook.alerts else Following
        return kind(
            hook=hook,
            who=partial(self.owner, hook.owner, hook.roles()),
            token=token,
            source=self.source,
            duties=self.duties,
            threads=self.threads,
            clock=self.clock,
            wall=self.wall,
            most=self.config.waiting,
            stored=partial(self._stored, hook.number),
            refused=partial(self._refuse, hook.token),
        )

    def _delivering(self, hook: Webhook, token: Token) -> Delivering:
        kind: Callable[..., Delivering] = Delivering
        if hook.alerts:
            kind = partial(
                AlertDelivering,
                database=self.database,
                problems=self.problems,
                who=partial(self.owner, hook.owner, hook.roles()),
            )
        working = kind(
            number=hook.number,
            hook_token=hook.token,
            token=token,
            duties=self.duties,
            sender=self.sender,
            clock=self.clock,
            wall=self.wall,
        )
        working.start()
        return working

    def _refuse(self, token: str, reason: str) -> None:
        self._refused[token] = f"no events for the owner: {reason}"

    def _stored(self, number: int) -> None:
        working = self._working.get(number)
        if working is not None:
            working.delivering.wake()

    def _end(self, number: int) -> None:
        working = self._working.pop(number, None)
        if working is None:
            return
        working.stop()
        done = working.delivering.done
        if not done.called:
            self._leaving[number] = done
            done.addCallback(lambda _: self._leaving.pop(number, None) and None)

    def _stop_all(self) -> None:
        for number in list(self._working):
            self._end(number)

    async def test(self, hook: Webhook) -> PostResult:
        """Send something that is no event, once and at once."""
        now = self.wall.now()
        event = Event(
            type="test",
            time=now,
            name=f"test {now}",
            subject=f"webhooks/{hook.number}",
            data={"message": "a test of this webhook"},
        )
        if hook.alerts:
            alert = {
                "labels": {"alertname": "MonrestTest", "webhook": str(hook.number)},
                "annotations": {"summary": "a test of this webhook"},
                "startsAt": rfc3339(now),
                "endsAt": rfc3339(now + 1),
            }
            body = orjson.dumps([alert])
            message = message_id(hook.token, f"test {now}")
            return await post_signed(self.sender, hook, message, JSON, body, now)
        content = body_of(StreamEvent(event, event.data, ""), hook)
        message = message_id(hook.token, f"test {now}")
        return await post_signed(
            self.sender, hook, message, content.content_type, content.data, now
        )

    def configure(self, config: WebhooksConfig) -> None:
        self.config = config
        self.sender.configure(config)

    def startService(self) -> None:
        super().startService()
        self.duties.want(DUTY)
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when nothing is on its way any more; receivers get some seconds to answer."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._periodic.stopService()
        self._stop_all()
        await ended(self._leaving.values(), self.clock, _PATIENCE)
