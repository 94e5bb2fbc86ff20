"""A webhook that tells an Alertmanager what is wrong (docs/spec/webhooks.md, "Alertmanager").

What is sent are states and not events: the present problems, every minute and whenever one begins
or ends. Nothing is stored, and nothing hangs on which events were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import orjson
from attrs import define, evolve, field

from monrest.base.errors import RestError
from monrest.events.filter import EventFilter
from monrest.events.group import Gap, ToldEvent
from monrest.events.service import Who
from monrest.store.database import Database
from monrest.webhooks import store as statements
from monrest.webhooks.alerts import Alert, after_look, alert_of, posted
from monrest.webhooks.bodies import JSON
from monrest.webhooks.delivering import ENDED, FIRST_PAUSE, Delivering
from monrest.webhooks.following import Following, filter_of
from monrest.webhooks.model import Webhook
from monrest.webhooks.posting import PostResult
from monrest.webhooks.present import ProblemSource
from monrest.webhooks.signature import message_id
from monrest.webhooks.store import HookState

EVERY = 60.0
"""Seconds after which everything that is firing is sent again."""

_APART = 2.0
"""Seconds between two looks at the problems, however many events there are."""

_AT_ONCE = 500
_MOST_TRIES = 1440
"""Tries a minute apart are a day."""


@define(eq=False, kw_only=True)
class AlertFollowing(Following):
    """Hears that states have changed, which is the time for another look."""

    async def begin(self) -> None:
        """See ``Following``: what was before shows in the first look."""
        await self.follow(None)

    def wanted(self) -> EventFilter:
        """Give what is followed: states, with which alerts begin and end."""
        return evolve(super().wanted(), types=frozenset({"state"}))

    def take(self, told: Sequence[ToldEvent]) -> None:
        if told and not self.over:
            self.stored()

    def miss(self, gap: Gap) -> None:  # noqa: ARG002  see ``Following``
        self.stored()

    def beat(self, cursor: str) -> None:
        """See ``Following``: there is no place to remember."""


@define(eq=False, kw_only=True)
class AlertDelivering(Delivering):
    """Sends what has begun or ended at once, and everything that is firing every minute."""

    database: Database
    problems: ProblemSource
    who: Who
    _alerts: dict[str, Alert] = field(init=False, factory=dict)
    """What is firing, and what is over until the Alertmanager knows that."""
    _sent_all: float = field(init=False, default=-inf)
    _looked: float = field(init=False, default=-inf)

    async def work(self) -> None:
        """Send until it is over."""
        while not self.over:
            self._woken = False
            try:
                wait = await self._round()
            except RestError as error:
                self.log.info("webhook {number}: {reason}", number=self.number, reason=str(error))
                wait = EVERY
            if wait is None:
                return
            await self.sleep(wait)

    async def _round(self) -> float | None:
        """Send what is due; give the seconds until the next round, None where it is over."""
        clock = self.clock.seconds()
        if clock < self._looked + _APART:
            return self._looked + _APART - clock
        found = await self.database.run(statements.STORED.read(self.number))
        hook = found[0] if found else None
        if hook is None or hook.token != self.hook_token or not hook.works:
            return None
        now = self.wall.now()
        if 0 < hook.rests - now <= EVERY:
            return hook.rests - now
        self._looked = clock
        present = await self.problems.look(await self.who(), filter_of(str(hook.record["filter"])))
        made = (alert_of(event, groups) for event, groups in present.problems)
        self._alerts = after_look(
            {one.subject: one for one in made}, self._alerts, present.silent, self.wall.now()
        )
        everything = clock >= self._sent_all + EVERY
        chosen = [one for one in self._alerts.values() if everything or not one.sent]
        for at in range(0, len(chosen), _AT_ONCE):
            if self.over:
                return None
            state = await self._send_alerts(hook, chosen[at : at + _AT_ONCE])
            if state.paused is not None:
                return None
            if state.failures:
                return state.rests - self.wall.now()
        if everything:
            self._sent_all = clock
        return self._sent_all + EVERY - self.clock.seconds()

    async def _send_alerts(self, hook: Webhook, alerts: Sequence[Alert]) -> HookState:
        now = self.wall.now()
        body = orjson.dumps([posted(one, now) for one in alerts])
        message = message_id(hook.token, f"alerts {now} {body.decode()}")
        result = await self.post(hook, message, JSON, body)
        if result.taken:
            for one in alerts:
                if one.ends is None:
                    self._alerts[one.subject] = evolve(one, sent=True)
                else:
                    del self._alerts[one.subject]
        now = self.wall.now()
        state = alert_state(hook, result, now)
        await self.duties.change(self.token, statements.note_alerts(hook, result, state, now))
        self.tell(hook, state)
        return state


def alert_state(hook: Webhook, result: PostResult, now: float) -> HookState:
    """Say how a webhook is doing; an Alertmanager is never left alone for longer than a minute."""
    if result.taken:
        return HookState()
    if result.gone:
        return ENDED
    failures = hook.failures + 1
    if failures >= _MOST_TRIES:
        return HookState(paused=f"nothing was taken for a day: {result.error}")
    rest = max(FIRST_PAUSE, result.rest) if result.by_target else EVERY
    return HookState(failures=failures, rests=now + min(rest, EVERY))
