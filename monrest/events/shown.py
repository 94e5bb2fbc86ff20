"""Events that objects show and their log does not (docs/spec/events.md, "Comparing objects").

Objects are read again and again, and each difference is an event. Its name is made from data of
the core, so that all processes give it the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen

from monrest.base.values import Row
from monrest.events.model import Event, object_subject
from monrest.logs.state_events import ObjectKey
from monrest.query.model import CoreFilter, Group, Pushed, Stat, Test
from monrest.sites.normalise import RowTypes, as_int, as_text

AskRows: TypeAlias = Callable[[Pushed, RowTypes | None], Awaitable[list[Row]]]

MARGIN = 15
"""Seconds of changes that are asked for again, since a core may show them late."""

MOST_BEFORE = 2_000
"""Events of the time before the first comparison."""

NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"hosts": ("name",), "services": ("host_name", "description")}
)
"""The columns that name an object, by its table."""

_STATE: RowTypes = (
    ("state", "int"),
    ("state_type", "int"),
    ("current_attempt", "int"),
    ("plugin_output", "string"),
    ("perf_data", "string"),
    ("last_state_change", "time"),
    ("last_hard_state_change", "time"),
    ("has_been_checked", "int"),
    ("acknowledged", "int"),
    ("is_flapping", "int"),
    ("scheduled_downtime_depth", "int"),
    ("comments", "list"),
)
_COMMENT: RowTypes = (
    ("host_name", "string"),
    ("service_description", "string"),
    ("entry_time", "time"),
    ("entry_type", "int"),
    ("author", "string"),
    ("comment", "string"),
    ("id", "int"),
)
_DOWNTIME: RowTypes = (
    ("host_name", "string"),
    ("service_description", "string"),
    ("entry_time", "time"),
    ("start_time", "time"),
    ("end_time", "time"),
    ("author", "string"),
    ("comment", "string"),
)
_PROBLEM: RowTypes = (("state", "int"), ("state_type", "int"), ("acknowledged", "int"))
_BY_USER, _OF_ACKNOWLEDGEMENT = 1, 4
_ACTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "acknowledgement": ("added", "removed"),
        "comment": ("added", "removed"),
        "downtime": ("started", "stopped"),
        "flapping": ("started", "stopped"),
    }
)


@frozen(kw_only=True)
class Fact:
    """A state of an object that lasts for some time; equal facts have the same ``key``.

    ``since`` is when it began, ``until`` when it ends by itself, 0 where that is not known.
    """

    type: str
    object: ObjectKey
    since: int = 0
    until: int = 0
    author: str = ""
    text: str = ""
    key: tuple[Any, ...]


@frozen
class ProblemState:
    """The state of an object with a problem."""

    state: int
    hard: bool
    acknowledged: bool


async def present_problems(ask: AskRows) -> dict[ObjectKey, ProblemState]:
    states: dict[ObjectKey, ProblemState] = {}
    for table, names in NAMES.items():
        layout: RowTypes = (*((name, "string") for name in names), *_PROBLEM)
        columns = tuple(name for name, _ in layout)
        bad = Test("state", "!=", "0")
        for row in await ask(Pushed(table=table, columns=columns, filter=bad), layout):
            state, hard, acknowledged = map(as_int, row[len(names) :])
            states[object_key(row, names)] = ProblemState(
                int(state), bool(hard), bool(acknowledged)
            )
    return states


def object_key(row: Row, names: Sequence[str]) -> ObjectKey:
    """The object whose ``names`` a row begins with."""
    return as_text(row[0]), as_text(row[1]) if len(names) > 1 else ""


def named(keys: Iterable[ObjectKey], names: Sequence[str]) -> CoreFilter:
    """The condition that an object is one of these."""
    each = [
        Group("and", tuple(Test(name, "=", value) for name, value in zip(names, key, strict=False)))
        for key in keys
    ]
    return Group("or", tuple(each))


def started_again(site: str, subject: str, start: int) -> Event:
    """The event of a core whose log does not say that it has read its objects."""
    data = {"action": "reloaded", "site": site, "time": start}
    name = _name(site, "config", start)
    return Event(time=start, type="config", subject=subject, data=data, site=site, name=name)


@define(eq=False)
class ShownObjects:
    """Compares the objects of ``site`` with what they were before.

    ``states`` are those of objects that are not well, as far as is known.
    """

    site: str
    states: dict[ObjectKey, int] = field(factory=dict)
    _facts: dict[tuple[Any, ...], Fact] = field(init=False, factory=dict)
    _comments: dict[tuple[Any, ...], Fact] = field(init=False, factory=dict)
    _mark: tuple[int, ...] | None = field(init=False, default=None)
    _stamps: dict[ObjectKey, tuple[int, ...]] | None = field(init=False, default=None)

    def forget_numbers(self) -> None:
        """Read the comments again: a core that was started again counts them anew."""
        self._mark = None

    async def look_at_comments(self, ask: AskRows, now: int) -> list[Event]:
        """Comments and acknowledgements that came or went; one small question if none did."""
        await self._ask_for_comments(ask)
        return self._compare(self._comments.values(), now)

    async def look_at_ends(
        self, ask: AskRows, now: int, problems: Mapping[ObjectKey, ProblemState]
    ) -> list[Event]:
        """Comments and acknowledgements that went, where the log shows which ones come.

        The comment of an acknowledgement may stay behind, or go before.
        """
        await self._ask_for_comments(ask)
        texts = {
            comment.object: comment
            for comment in self._comments.values()
            if comment.type != "comment"
        }
        facts = [comment for comment in self._comments.values() if comment.type == "comment"]
        for key, problem in problems.items():
            if problem.acknowledged:
                plain = Fact(type="acknowledgement", object=key, key=())
                facts.append(evolve(texts.get(key, plain), key=(plain.type, key)))
        return [event for event in self._compare(facts, now) if event.action == "removed"]

    def acknowledged(self, key: ObjectKey) -> bool:
        """Whether the object was acknowledged when it was looked at by ``look_at_ends``."""
        return ("acknowledgement", key) in self._facts

    async def missed_states(
        self, ask: AskRows, states: Mapping[ObjectKey, int]
    ) -> tuple[list[Event], set[ObjectKey]]:
        """The events of these objects as far as they still have these states, and who is gone.

        A problem counts when it is a hard one.
        """
        missed: list[Event] = []
        gone = set(states)
        for table, names in NAMES.items():
            keys = [key for key in states if bool(key[1]) == (len(names) > 1)]
            if not keys:
                continue
            layout: RowTypes = (*((name, "string") for name in names), *_STATE)
            columns = tuple(name for name, _ in layout)
            asked = Pushed(table=table, columns=columns, filter=named(keys, names))
            for row in await ask(asked, layout):
                key, values = object_key(row, names), row[len(names) :]
                gone.discard(key)
                state, hard, _, _, _, changed, hardened, checked = map(as_int, values[:8])
                if checked and state == states.get(key) and (hard or not state):
                    stamp = (int(changed), int(hardened), int(state), int(hard))
                    old = self.states.get(key, 0)
                    missed.append(self._state_event(key, values, stamp, old))
        return missed, gone

    async def _ask_for_comments(self, ask: AskRows) -> None:
        stats = (Stat("count", filter=Test("id", ">", "0")), Stat("sum", "id"))
        rows = await ask(Pushed(table="comments", stats=stats), None)
        await self._read_comments(ask, tuple(int(as_int(number)) for row in rows for number in row))

    async def _read_comments(self, ask: AskRows, mark: tuple[int, ...]) -> None:
        if mark == self._mark:
            return
        facts: dict[tuple[Any, ...], Fact] = {}
        times = Counter[tuple[Any, ...]]()
        pushed = Pushed(table="comments", columns=tuple(name for name, _ in _COMMENT))
        rows = await ask(pushed, _COMMENT)
        for host, service, entered, kind, author, text, _ in sorted(
            rows, key=lambda row: as_int(row[-1])
        ):
            type_ = {_BY_USER: "comment", _OF_ACKNOWLEDGEMENT: "acknowledgement"}.get(kind)
            if type_ is None:
                continue
            fact = Fact(
                type=type_,
                object=(as_text(host), as_text(service)),
                since=int(as_int(entered)),
                author=as_text(author),
                text=as_text(text),
                key=(),
            )
            same = (fact.type, fact.object, fact.since, fact.author, fact.text)
            times[same] += 1
            key = (*same, times[same])
            facts[key] = evolve(fact, key=key)
        self._comments, self._mark = facts, mark

    async def look_at_all(self, ask: AskRows, now: int, low: int) -> list[Event]:
        """All facts that objects show; ``low``: the second from which states may have changed."""
        stamps: dict[ObjectKey, tuple[int, ...]] = {}
        events: list[Event] = []
        facts: list[Fact] = []
        count = total = 0
        for table, names in NAMES.items():
            pushed = Pushed(
                table=table,
                columns=(*names, *(name for name, _ in _STATE)),
                filter=_interesting(low),
            )
            layout: RowTypes = (*((name, "string") for name in names), *_STATE)
            for row in await ask(pushed, layout):
                key = object_key(row, names)
                state = row[len(names) :]
                numbers = [int(as_int(number)) for number in state.pop() or ()]
                count, total = count + len(numbers), total + sum(numbers)
                stamp, event = self._state(key, state, low)
                if stamp is not None:
                    stamps[key] = stamp
                if event is not None:
                    events.append(event)
                facts += _flags(key, state)
        await self._read_comments(ask, (count, total))
        facts = await self._with_texts(ask, facts)
        facts += [comment for comment in self._comments.values() if comment.type == "comment"]
        self._stamps = stamps
        return [*events, *self._compare(facts, now)]

    def _state(
        self, key: ObjectKey, values: Row, low: int
    ) -> tuple[tuple[int, ...] | None, Event | None]:
        """The stamp of a state among those of its object, and the event if it is a new one."""
        state, hard, _, _, _, changed, hardened, checked = map(as_int, values[:8])
        when = int(max(changed, hardened))
        if not checked or when < low:
            return None, None
        stamp = (int(changed), int(hardened), int(state), int(hard))
        if self._stamps is not None and self._stamps.get(key) == stamp:
            return stamp, None
        old = None if self._stamps is None else self.states.get(key, 0)
        if state:
            self.states[key] = int(state)
        else:
            self.states.pop(key, None)
        return stamp, self._state_event(key, values, stamp, old)

    def _state_event(
        self, key: ObjectKey, values: Row, stamp: tuple[int, ...], old: int | None
    ) -> Event:
        changed, hardened, state, hard = stamp
        data: dict[str, Any] = {
            "class": 1,
            "type": "SERVICE ALERT" if key[1] else "HOST ALERT",
            "state": state,
            "old_state": old,
            "state_type": "HARD" if hard else "SOFT",
            "attempt": int(as_int(values[2])),
            "plugin_output": as_text(values[3]),
            "perf_data": as_text(values[4]),
        }
        return self._seen("state", key, max(changed, hardened), data, stamp)

    async def _with_texts(self, ask: AskRows, facts: list[Fact]) -> list[Fact]:
        """The facts with author and text, those that are new from comments and downtimes."""
        new = {fact.key for fact in facts if fact.key not in self._facts}
        texts: dict[tuple[Any, ...], Fact] = {}
        for comment in self._comments.values():
            if comment.type == "acknowledgement":
                texts[comment.type, comment.object] = comment
        if any(type_ == "downtime" for type_, _ in new):
            pushed = Pushed(table="downtimes", columns=tuple(name for name, _ in _DOWNTIME))
            for host, service, entered, start, end, author, text in await ask(pushed, _DOWNTIME):
                key = ("downtime", (as_text(host), as_text(service)))
                since, former = int(max(as_int(entered), as_int(start))), texts.get(key)
                if former is None or former.since < since:
                    texts[key] = Fact(
                        type="downtime",
                        object=key[1],
                        since=since,
                        until=int(as_int(end)),
                        author=as_text(author),
                        text=as_text(text),
                        key=key,
                    )
        return [
            self._facts.get(fact.key) or evolve(texts.get(fact.key, fact), key=fact.key)
            for fact in facts
        ]

    def _compare(self, facts: Iterable[Fact], now: int) -> list[Event]:
        """The events of facts that began or ended."""
        before, self._facts = self._facts, {fact.key: fact for fact in facts}
        begun = [fact for key, fact in self._facts.items() if key not in before]
        over = [fact for key, fact in before.items() if key not in self._facts]
        acknowledged = {
            fact.object for fact in self._facts.values() if fact.type == "acknowledgement"
        }
        events = [self._fact(fact, _ACTIONS[fact.type][0], fact.since) for fact in begun]
        for ended in over:
            if ended.type == "acknowledgement" and ended.object in acknowledged:
                continue
            action = _ACTIONS[ended.type][1]
            if ended.type == "downtime" and now < ended.until:
                action = "canceled"
            events.append(self._fact(ended, action, now))
        return events

    def _fact(self, fact: Fact, action: str, time: int) -> Event:
        data = {"action": action}
        if fact.type != "flapping":
            data |= {"author": fact.author, "comment": fact.text}
        return self._seen(fact.type, fact.object, time, data, (*fact.key, fact.since))

    def _seen(
        self, type_: str, key: ObjectKey, time: int, data: Mapping[str, Any], what: object
    ) -> Event:
        host, service = key
        names = {"host_name": host, "service_description": service}
        return Event(
            time=time,
            type=type_,
            subject=object_subject(host, service),
            data={**{name: value for name, value in names.items() if value}, **data, "time": time},
            site=self.site,
            name=_name(self.site, type_, key, data.get("action"), what),
        )


def _name(*parts: object) -> str:
    return sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:40]


def _flags(key: ObjectKey, values: Row) -> list[Fact]:
    since = int(as_int(values[5]))
    flags = zip(("acknowledgement", "flapping", "downtime"), values[8:11], strict=True)
    return [
        Fact(type=type_, object=key, since=since, key=(type_, key)) for type_, on in flags if on
    ]


def _interesting(low: int) -> CoreFilter:
    """Objects that have changed, and those of which something holds."""
    tests = (
        Test("last_state_change", ">=", str(low)),
        Test("last_hard_state_change", ">=", str(low)),
        Test("acknowledged", "=", "1"),
        Test("is_flapping", "=", "1"),
        Test("scheduled_downtime_depth", ">", "0"),
        Test("comments", "!=", ""),
    )
    return Group("or", tests)
