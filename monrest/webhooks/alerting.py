"""A webhook that sends problems to an Alertmanager (docs/spec/webhooks.md, "Alertmanager").

What is sent are states and not events: the present problems, every minute and whenever one begins
or ends. Nothing is stored, and nothing hangs on which events were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import orjson
from attrs import define, evolve, field, frozen

from monrest.api.endpoint import Context
from monrest.api.visibility import visible_sites
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Identity
from monrest.events.filter import EventFilter, of_event, on_host, on_service
from monrest.events.followers import Gap, StreamEvent, Who
from monrest.events.model import Cursor, Event, object_subject, rfc3339
from monrest.events.present_objects import PresentProblems, problems
from monrest.query.model import Condition, FilterTree, Group, leaves
from monrest.store.database import Database
from monrest.webhooks import store as statements
from monrest.webhooks.bodies import JSON, severity_of, text_of, title_of
from monrest.webhooks.delivering import ENDED, FIRST_PAUSE, Delivering
from monrest.webhooks.following import Following, filter_of
from monrest.webhooks.model import Webhook
from monrest.webhooks.posting import PostResult
from monrest.webhooks.signature import message_id
from monrest.webhooks.store import HookState

AHEAD = 240.0
"""Seconds for which an alert is firing without being sent again, so that none stays for ever."""


@frozen(kw_only=True)
class Alert:
    """An alert: ``body`` has its labels and annotations, ``ends`` is None while it is firing.

    ``subject`` is the object with the severity. ``sent``: the Alertmanager has accepted it.
    """

    subject: str
    site: str
    body: Mapping[str, Any]
    starts: float
    ends: float | None = None
    sent: bool = False


def alert_of(event: Event, groups: Sequence[str]) -> Alert:
    """Return the alert of a problem, firing since the event."""
    labels = {
        "alertname": event.service or "Host",
        "host": event.host,
        "service": event.service,
        "site": event.site,
        "severity": severity_of(event),
        # With commas around, so that one of them can be matched: groups=~".*,web,.*".
        "groups": f",{','.join(groups)}," if groups else "",
    }
    annotations = {"summary": title_of(event), "description": text_of(event)}
    subject = object_subject(event.host, event.service)
    return Alert(
        subject=f"{event.site}:{subject}#{labels['severity']}",
        site=event.site,
        body={
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": {name: value for name, value in annotations.items() if value},
        },
        starts=event.time,
    )


def after_look(
    problems: Mapping[str, Alert], former: Mapping[str, Alert], silent: frozenset[str], now: float
) -> dict[str, Alert]:
    """Return the alerts after a look at all present ``problems``; ``known`` are those before.

    Nothing is known of the objects of ``silent`` sites, whose alerts stay as they are.
    """
    alerts = dict(problems)
    for name, alert in former.items():
        problem = problems.get(name)
        if problem is None:
            over = alert.ends is None and alert.site not in silent
            alerts[name] = evolve(alert, ends=max(now, alert.starts), sent=False) if over else alert
        elif alert.ends is None:
            # The labels stay, since they are what the alert is known by.
            alerts[name] = evolve(alert, body={**problem.body, "labels": alert.body["labels"]})
    return alerts


def posted(alert: Alert, now: float) -> dict[str, Any]:
    """Return an alert as the Alertmanager takes it."""
    # The clock of a core may be ahead; what is over has an end that is not to come.
    ends = now + AHEAD if alert.ends is None else min(alert.ends, now)
    return {**alert.body, "startsAt": rfc3339(min(alert.starts, ends)), "endsAt": rfc3339(ends)}


_NEVER: FilterTree = Group("or", ())
_HOST_NAMES = frozenset({"host", "host_name"})
_SERVICE_NAMES = frozenset({"service", "service_description"})
_OF_SITE = frozenset({"peer_key", "peer_name", "peer_section"})
_HARD = Condition("state_type", "=", "1")


def require_objects(wanted: EventFilter) -> None:
    """Raise BadRequest for conditions that present objects cannot answer, or not for ever."""
    conditions: Iterator[Condition] = leaves([wanted.query.filter])
    for condition in conditions:
        if (
            of_event(condition.column)
            and condition.column not in _HOST_NAMES | _SERVICE_NAMES | _OF_SITE
        ):
            raise BadRequest(
                "invalid filter",
                f"filter: {condition.column}: expected conditions on hosts and services for the "
                "body alertmanager, because an alert must end for every state",
            )
    if "state" not in wanted.types:
        raise BadRequest("invalid filter", "filter: types: expected state among them")


def _of_host(condition: Condition) -> FilterTree:
    if condition.column in _HOST_NAMES:
        return evolve(condition, column="name")
    if condition.column in _SERVICE_NAMES:
        return _NEVER
    if condition.column in _OF_SITE:
        return condition
    return on_host(condition) or _NEVER


def _of_service(condition: Condition) -> FilterTree:
    if condition.column in _HOST_NAMES:
        return evolve(condition, column="host_name")
    if condition.column in _SERVICE_NAMES:
        return evolve(condition, column="description")
    return condition if condition.column in _OF_SITE else on_service(condition)


def _mapped(tree: FilterTree, each: Callable[[Condition], FilterTree]) -> FilterTree:
    if isinstance(tree, Group):
        return evolve(tree, items=tuple(_mapped(item, each) for item in tree.items))
    return each(tree)


@frozen(eq=False)
class CoreProblems:
    """Asks the cores; ``context`` returns what is in force."""

    context: Callable[[], Context]

    async def look(self, who: Identity, wanted: EventFilter) -> PresentProblems:
        """All problems that the owner sees."""
        context, tree = self.context(), wanted.query.filter
        sites = await visible_sites(who, context.sites, context.contacts)
        context = evolve(context, sites=sites)
        chosen = tuple(site.id for site in context.sites.select(wanted.backends))
        return await problems(
            *(context, who, chosen),
            of_hosts=(_HARD, _mapped(tree, _of_host)),
            of_services=(_HARD, _mapped(tree, _of_service)),
        )


EVERY = 60.0
"""Seconds after which everything that is firing is sent again."""

_APART = 2.0
"""Seconds between two looks at the problems, however many events there are."""

_AT_ONCE = 500
_MOST_TRIES = 1440
"""Tries a minute apart are a day."""


@define(eq=False, kw_only=True)
class AlertFollowing(Following):
    """Follows changes of states, after which problems are read again."""

    def wanted(self) -> EventFilter:
        return evolve(super().wanted(), types=frozenset({"state"}))

    def since(self) -> Cursor | None:
        """Earlier events are in the first state."""
        return None

    def take(self, events: Sequence[StreamEvent]) -> None:
        if events and not self.over:
            self.stored()

    def miss(self, gap: Gap) -> None:  # noqa: ARG002  an event is as good as any other
        self.stored()

    def beat(self, cursor: str) -> None:
        """There is no place to remember."""


@define(eq=False, kw_only=True)
class AlertDelivering(Delivering):
    """Sends what has begun or ended at once, and everything that is firing every minute."""

    database: Database
    problems: CoreProblems
    who: Who
    _alerts: dict[str, Alert] = field(init=False, factory=dict)
    """Firing alerts, and ended ones until the Alertmanager has accepted them."""
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
        """Send due alerts; return the seconds until the next round, None where it is over."""
        clock = self.clock.seconds()
        if clock < self._looked + _APART:
            return self._looked + _APART - clock
        hooks = await self.database.run(statements.several(self.number))
        hook = hooks[0] if hooks else None
        if hook is None or hook.token != self.hook_token or not hook.works:
            return None
        now = self.wall.now()
        if 0 < hook.rests - now <= EVERY:
            return hook.rests - now
        self._looked = clock
        present = await self.problems.look(await self.who(), filter_of(str(hook.record["filter"])))
        alerts = (alert_of(event, groups) for event, groups in present.problems)
        self._alerts = after_look(
            {alert.subject: alert for alert in alerts},
            self._alerts,
            present.silent,
            self.wall.now(),
        )
        everything = clock >= self._sent_all + EVERY
        chosen = [alert for alert in self._alerts.values() if everything or not alert.sent]
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
        body = orjson.dumps([posted(alert, now) for alert in alerts])
        message = message_id(hook.token, f"alerts {now} {body.decode()}")
        result = await self.post(hook, message, JSON, body)
        if result.taken:
            for alert in alerts:
                if alert.ends is None:
                    self._alerts[alert.subject] = evolve(alert, sent=True)
                else:
                    del self._alerts[alert.subject]
        now = self.wall.now()
        state = alert_state(hook, result, now)
        await self.duties.change(self.token, statements.note_alerts(hook, result, state, now))
        self.log_pause(hook, state)
        return state


def alert_state(hook: Webhook, result: PostResult, now: float) -> HookState:
    """Return the state of a webhook; an Alertmanager is tried again after a minute at most."""
    if result.taken:
        return HookState()
    if result.gone:
        return ENDED
    failures = hook.failures + 1
    if failures >= _MOST_TRIES:
        return HookState(paused=f"nothing was taken for a day: {result.error}")
    rest = max(FIRST_PAUSE, result.rest) if result.by_target else EVERY
    return HookState(failures=failures, rests=now + min(rest, EVERY))
