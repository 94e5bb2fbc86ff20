"""A webhook that tells an Alertmanager what is wrong (docs/spec/webhooks.md, "Alertmanager").

What is told are states and not events: alerts are kept in the database and told again every minute,
so that neither side has to remember anything for longer than a few minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from attrs import define, evolve, field
from twisted.internet.interfaces import IDelayedCall

from monrest.base.errors import Unavailable
from monrest.events.filter import EventFilter
from monrest.events.group import ToldEvent
from monrest.events.model import read_cursor
from monrest.store.database import Database
from monrest.webhooks import store as statements
from monrest.webhooks.alerts import (
    after_event,
    after_look,
    alert_of,
    is_alert,
    object_of_alert,
    posted,
    subject_of,
)
from monrest.webhooks.bodies import JSON, state_of
from monrest.webhooks.delivering import ENDED, FIRST_PAUSE, Delivering
from monrest.webhooks.following import Following
from monrest.webhooks.model import Webhook
from monrest.webhooks.posting import PostResult
from monrest.webhooks.present import ProblemSource
from monrest.webhooks.signature import message_id
from monrest.webhooks.store import HookState, StoredAlert

EVERY = 60.0
"""Seconds after which everything that is firing is told again."""

_LOOK_AGAIN, _LOOK_SOON = 600.0, 60.0
_AT_ONCE = 500
_MOST_TRIES = 1440
"""Tries a minute apart are a day."""


@define(eq=False, kw_only=True)
class AlertFollowing(Following):
    """Keeps alerts up with what happens, and now and then with what the cores say.

    It begins with all present problems, so nothing hangs on how far events were read before.
    """

    database: Database
    problems: ProblemSource
    _next_look: IDelayedCall | None = field(init=False, default=None)

    async def begin(self) -> None:
        """Look at everything, then be told what changes."""
        position = str(int(self.wall.now()))
        silent = await self._look(self.wanted(), position)
        if not self.over:
            await self.follow(read_cursor(position, "position"))
        if not self.over:
            seconds = _LOOK_SOON if silent else _LOOK_AGAIN
            self._next_look = self.clock.callLater(seconds, self.stop)

    def wanted(self) -> EventFilter:
        """Give what is followed: states, with which alerts begin and end."""
        return evolve(super().wanted(), types=frozenset({"state"}))

    async def _look(self, wanted: EventFilter, position: str) -> frozenset[str]:
        """Store what is wrong now, and what is not any more; give the sites that said nothing."""
        present = await self.problems.look(await self.who(), wanted)
        number = self.hook.number
        known = await self.database.run(statements.read_alerts(number))
        made = (alert_of(event, groups) for event, groups in present.problems)
        changed = after_look(
            {one.subject: one for one in made}, known, present.silent, self.wall.now()
        )
        work = statements.keep_alerts(self.hook, changed, position)
        if not await self.duties.change(self.token, work):
            self._leave()
        self.stored()
        return present.silent

    async def keep(self, events: Sequence[ToldEvent]) -> int:
        """Store the alerts that these events change."""
        found = [told.event for told in events if is_alert(told.event)]
        names = {(one.site, one.host, one.service) for one in found if state_of(one)}
        groups = await self.problems.groups(await self.who(), names) if names else {}
        known: dict[str, dict[str, StoredAlert]] = {}
        for one in await self.database.run(statements.read_alerts(self.hook.number)):
            known.setdefault(object_of_alert(one), {})[one.subject] = one
        changed: dict[str, StoredAlert] = {}
        for event in found:
            mine = known.setdefault(subject_of(event.site, event.host, event.service), {})
            own_groups = groups.get((event.site, event.host, event.service), ())
            for one in after_event(event, own_groups, mine):
                mine[one.subject] = changed[one.subject] = one
        hook, position = self.hook, events[-1].cursor
        work = statements.keep_alerts(hook, changed.values(), position)
        return len(events) if await self.duties.change(self.token, work) else 0

    def _leave(self) -> None:
        super()._leave()
        if self._next_look is not None and self._next_look.active():
            self._next_look.cancel()


@define(eq=False, kw_only=True)
class AlertDelivering(Delivering):
    """Tells what has changed at once, and everything that is firing every minute."""

    database: Database
    _told_all: float | None = field(init=False, default=None)

    async def work(self) -> None:
        """Tell until it is over."""
        while not self.over:
            self._woken = False
            try:
                wait = await self._round()
            except Unavailable:
                wait = EVERY
            if wait is None:
                return
            await self.sleep(wait)

    async def _round(self) -> float | None:
        """Tell what is due; give the seconds until the next round, None where it is over."""
        found = await self.database.run(statements.STORED.read(self.number))
        hook = found[0] if found else None
        if hook is None or hook.token != self.hook_token or not hook.works:
            return None
        now = self.wall.now()
        if 0 < hook.rests - now <= EVERY:
            return hook.rests - now
        alerts = await self.database.run(statements.read_alerts(self.number))
        passed = None if self._told_all is None else self.clock.seconds() - self._told_all
        everything = passed is None or passed >= EVERY
        chosen = alerts if everything else [one for one in alerts if not one.told]
        for at in range(0, len(chosen), _AT_ONCE):
            if self.over:
                return None
            state = await self._tell(hook, chosen[at : at + _AT_ONCE])
            if state.paused is not None:
                return None
            if state.failures:
                return state.rests - self.wall.now()
        if everything:
            self._told_all, passed = self.clock.seconds(), 0.0
        return EVERY - (passed or 0.0)

    async def _tell(self, hook: Webhook, alerts: Sequence[StoredAlert]) -> HookState:
        now = self.wall.now()
        body = orjson.dumps([posted(one, now) for one in alerts])
        message = message_id(hook.token, f"alerts {now} {body.decode()}")
        result = await self.post(hook, message, JSON, body)
        now = self.wall.now()
        state = alert_state(hook, result, now)
        work = statements.told_alerts(hook, alerts, result, state, now)
        await self.duties.change(self.token, work)
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
