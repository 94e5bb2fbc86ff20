"""Watching one site, and storing its events (docs/spec/events.md, "Watching a site").

A Naemon says when there are new lines, and is asked for them then. Other cores are asked every
second. Objects show what no line does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.concurrency import after, pause
from monrest.base.errors import Unavailable
from monrest.base.values import Row
from monrest.events import store
from monrest.events.line_events import CLASSES, LineEvents
from monrest.events.model import Event, Place, site_subject
from monrest.events.shown import (
    MARGIN,
    MOST_BEFORE,
    NAMES,
    ProblemState,
    ShownObjects,
    named,
    object_key,
    present_problems,
    started_again,
)
from monrest.livestatus.core_errors import LivestatusError, ProtocolError
from monrest.livestatus.pool import Pool
from monrest.logs.line import DAY, in_order
from monrest.logs.reader import lines_from
from monrest.logs.state_events import ObjectKey, TimedLine
from monrest.query.model import CoreFilter, Group, Pushed, Test
from monrest.sites.asking import prepare
from monrest.sites.federation.federated_site import openly
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site
from monrest.store.database import Work
from monrest.store.duties import DutyLostError

BACK = 3600
"""Seconds of the log that are read when a site is watched again."""

MOST_LINES_BACK = 20_000
"""Lines of these at most; where there are more, each client that misses them reads the log."""

_WAIT = 1.0
"""Seconds for which a core waits: a line that is written between two questions comes this late."""

_AT_ONCE, _SELDOM = 0.03, 0.25
"""Seconds between two questions while there are new lines: more and more in a burst, because each
question costs one for performance data too."""

_COMPARED = 60.0
"""Seconds after which states are compared with the events."""

_STARTED, _SOON = 30.0, 1.0
"""The same after the core was started, and after a line whose effect objects show."""

_MOST_STATES = 500
"""States without a line that become events at once."""

_AT_ONCE_STORED = 100
"""Events of one transaction: the texts of thousands are large."""

_POLL = 1.0
_AWAY = 0.3
"""Seconds after which a site that is down is looked at again."""

_LOOKED_FOR_LINES = 30.0
"""Seconds after which a log without lines is looked at again."""

_TEXTS = ("author", "comment")
_SAME = 60
"""Seconds within which a line of the log and an object are the same event."""

_TIMEOUT = 20.0
_BEHIND = 5
"""Seconds before the present in which lines may still turn up."""

_UNSURE = 60
"""The same of a core that does not report its time: its clock may be behind."""

_JUMP = 3
"""Seconds by which a clock goes back before it counts as set."""

_LAYOUT: RowTypes = (("time", "time"), ("message", "string"))
_FEW_OBJECTS = 40
_MOST_SECONDS = 10_000
_TEARS = frozenset({"naemon", "mk"})
"""Cores whose module may miss lines of the log that it reads."""

_REMOVES = frozenset({"DEL_HOST_COMMENT", "DEL_SVC_COMMENT"})
_EVENTFUL = Group("or", tuple(Test("class", "=", str(number)) for number in CLASSES))


_Brief: TypeAlias = tuple[float, tuple[str, str, str], int]
"""The time of an event, its action and object, and a hash of its texts."""


def _brief(event: Event) -> _Brief:
    texts = tuple(str(event.data.get(name, "")).strip() for name in _TEXTS)
    return event.time, (event.type, event.action, event.subject), hash(texts)


@define(eq=False)
class SiteWatch:
    """Stores the events of the site ``id``, each once and those of its log in their order.

    ``find`` returns the site as it is configured now, None when it is no more. ``change`` is a
    transaction of this process, which has the duty ``token``: it raises Unavailable, and
    DutyLostError. ``stored`` is called when there are new events.
    """

    log: ClassVar[Logger] = Logger()

    id: str
    find: Callable[[], Site | None]
    clock: IReactorTime
    wall: WallClock
    change: Callable[[Work[Any]], Awaitable[Any]]
    token: int
    stored: Callable[[], object]
    place: Place = field(init=False)
    """Behind the last line of the log that is stored."""
    _settled: int = field(init=False, default=0)
    """Before this second nothing more will turn up, as far as is known."""
    _reader: LineEvents = field(init=False)
    _counts: dict[int, int] = field(init=False, factory=dict)
    """The number of known events by second."""
    _counted: int = field(init=False, default=0)
    """Events of the seconds from then on are counted, as far as there are some."""
    _recent: deque[_Brief] = field(
        init=False, factory=lambda: deque[_Brief](maxlen=MOST_LINES_BACK)
    )
    """The last events of the log."""
    _began: float = field(init=False)
    """The date when the reactor's clock was 0."""
    _site: Site | None = field(init=False, default=None)
    _pool: Pool | None = field(init=False, default=None)
    _positioned: bool = field(init=False, default=False)
    _ready: Deferred[None] = field(init=False, factory=Deferred)
    _run: Deferred[None] | None = field(init=False, default=None)
    _objects: ShownObjects | None = field(init=False, default=None)
    _start: int = field(init=False, default=0)
    """When the core was started whose log was looked at."""
    _silent: bool = field(init=False, default=False)
    """Whether the log has no lines at all."""
    _looked: float = field(init=False, default=0.0)
    _next: float = field(init=False, default=0.0)
    """When states are compared next, """
    _then: float = field(init=False, default=_COMPARED)
    """and the seconds until that is done once more."""
    _doubtful: dict[ObjectKey, int] = field(init=False, factory=dict)
    """States without a line when they were compared last."""

    def __attrs_post_init__(self) -> None:
        self._reader = LineEvents(self.id)
        self._began = self.wall.now() - self.clock.seconds()
        self._counted = int(self.wall.now())
        self.place = Place(self._counted)

    def start(self) -> None:
        self._run = Deferred.fromCoroutine(self._loop())
        self._run.addErrback(self._over)

    def stop(self) -> Deferred[None]:
        """Ask the core no more; fires when no connection is left."""
        run, self._run = self._run, None
        if run is not None:
            run.cancel()
        self._let_go()
        pool, self._pool = self._pool, None
        return succeed(None) if pool is None else pool.stop()

    def _over(self, failure: Failure) -> None:
        self._let_go()
        if not failure.check(CancelledError, DutyLostError):
            self.log.failure("site {site} is watched no more", failure, site=self.id)

    def ready(self) -> Deferred[None]:
        """Fire when what happens from now on is stored, or the site cannot be asked."""
        return after(self._ready)

    def _let_go(self) -> None:
        """Fire what waits for ``ready``."""
        if not self._ready.called:
            self._ready.callback(None)

    async def _keep(self, events: Sequence[Event]) -> None:
        """Store events. While the database is away nothing is asked: the log has what happens."""
        for at in range(0, len(events), _AT_ONCE_STORED):
            while True:
                try:
                    some = events[at : at + _AT_ONCE_STORED]
                    await self.change(store.add(some, self.wall.now()))
                    break
                except Unavailable as error:
                    self.log.debug("events of {site} wait: {reason}", site=self.id, reason=error)
                    await pause(self.clock, _POLL)
            self.stored()

    def _take(self, events: Sequence[Event], *, back: bool) -> None:
        """Note which events of the log are stored."""
        for event in events:
            place = event.place
            assert place is not None
            self._counts[place.time] = place.number
            self.place = place if back else max(self.place, place)
        self._recent.extend(map(_brief, events))
        if len(self._counts) > _MOST_SECONDS:
            self._counts = {t: n for t, n in self._counts.items() if t > self.place.time - BACK}

    async def _loop(self) -> None:
        while True:
            site = self.find()
            if site is None:
                await pause(self.clock, _POLL)
                continue
            if site is not self._site:
                self._take_site(site)
            try:
                await site.verdict()
                await self._watched(site)
            except LivestatusError as error:
                self.log.debug("site {site}: {reason}", site=self.id, reason=error.reason)
                # What happens while it cannot be asked is stored as soon as it can.
                self._let_go()
                await pause(self.clock, _AWAY)
            except (CancelledError, DutyLostError):
                raise
            except Unavailable:
                await pause(self.clock, _POLL)
            except Exception:  # noqa: BLE001  one strange answer does not end a stream
                self.log.failure("watching the site {site} failed", site=self.id)
                await pause(self.clock, _POLL)

    def _take_site(self, site: Site) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
        self._site, self._objects = site, None

    async def _begin(self, site: Site) -> None:
        if _waits(site):
            await self._started(site, site.health.program.program_start)
        if not self._positioned:
            await self._position(site)
        if self._objects is None:
            await self._begin_to_compare(site)

    async def _watched(self, site: Site) -> None:
        """Ask again and again, until the site is another one or fails."""
        await self._begin(site)
        between, woken, noted = _AT_ONCE, True, False
        while self.find() is site:
            waits = _waits(site)
            now = self._now(site)
            problems, seen = await self._seen(site, now)
            low = max(self.place.time, self._settled)
            back = now < low - _JUMP
            low = min(low, now) if back else low
            if low + 2 < self._counted:
                await self._count(site, low)
            lines: list[TimedLine] = []
            if waits or not self._silent:
                lines = await self._lines(site, low if waits else low - 1)
            news = list(self._reader.events(lines, self._counts))
            if news:
                await self._add_perf_data(site, news)
                await self._keep(news)
                self._take(news, back=back)
                if waits and any(map(self._is_shown_soon, news)):
                    self._next, self._then = self.clock.seconds(), _SOON
            elif now - 2 * self._behind(site) > low:
                # Nothing for some time: the core need not look so far back.
                self._settled = now - self._behind(site)
            await self._keep([event for event in seen if not self._is_reported(event)])
            if problems is not None:
                await self._keep(await self._missed(site, problems, news))
            if not noted:
                noted = True
                await self.change(store.note_watched(self.id, self.token))
                self._let_go()
            if not waits:
                await pause(self.clock, _POLL)
            elif news or woken:
                # Then once more without waiting: what was written meanwhile wakes no watch.
                await pause(self.clock, between)
                between, woken = (min(2 * between, _SELDOM) if news else between), False
            else:
                woken = await self._woken(site)
                between = between if woken else _AT_ONCE

    async def _woken(self, site: Site) -> bool:
        """Wait until the core writes a line; False if it wrote none for a second.

        The table of the log is not asked, because the core would lock it while it waits.
        """
        began = self.clock.seconds()
        asked = Pushed(table="status", columns=("program_start",), news=_WAIT)
        ((start,),) = await self._rows(site, asked)
        if start != self._start:
            await self._started(site, start)
        return self.clock.seconds() < began + _WAIT

    async def _started(self, site: Site, start: int) -> None:
        """Let the core read the lines of all classes at once.

        When it is asked for further classes later, it misses what is written while it reads.
        """
        low = Test("time", ">=", str(self._now(site)))
        await self._rows(site, Pushed(table="log", columns=("time",), filter=low, limit=1))
        if self._start != start:
            self._start, self._next = start, self.clock.seconds() + _STARTED

    def _now(self, site: Site) -> int:
        """The second that the core has now, as far as is known."""
        health = site.health
        localtime = health.program.localtime
        if localtime is None or health.checked is None:
            # A clock that is set forward says nothing about the core; one that is set back may.
            return int(min(self.wall.now(), self._began + self.clock.seconds()))
        return int(localtime + self.clock.seconds() - health.checked)

    def _behind(self, site: Site) -> int:
        """Seconds before the present of the core in which lines may still turn up."""
        return _BEHIND if site.health.program.localtime is not None else _UNSURE

    async def _position(self, site: Site, *, anew: bool = False) -> None:
        """Continue behind the last stored line; begin anew if that is long ago, or ``anew``."""
        now = min(self._now(site), int(self.wall.now()))
        place = None if anew else await self.change(store.continued(self.id, now - BACK))
        if place is not None:
            lines = await self._lines(site, place.time, limit=MOST_LINES_BACK + 1)
            if len(lines) <= MOST_LINES_BACK:
                # The states before these lines are not known, only the present ones.
                numbers = {place.time: place.number}
                missed = list(LineEvents(self.id).events(lines, numbers))
                await self._keep(missed)
                self.place, self._counts = place, numbers
                self._take(missed, back=False)
            else:
                place = None
        if place is None:
            self.place = Place(now - self._behind(site))
            await self.change(store.begin(self.id, self.place.time))
        self._settled = self._counted = self.place.time
        self._positioned = True

    async def _count(self, site: Site, now: int) -> None:
        """Know what was there already in seconds that come once more, as the clock was set back."""
        before = Test("time", "<", str(self._counted))
        for event in LineEvents(self.id).events(await self._lines(site, now + 2, before)):
            assert event.place is not None
            self._counts[event.place.time] = event.place.number
        self._counted = now

    async def _lines(
        self,
        site: Site,
        low: int,
        *end: Test,
        limit: int | None = None,
    ) -> list[TimedLine]:
        """Lines from the second ``low`` on, in the order of the log."""
        core = site.capabilities
        assert core is not None
        pushed = Pushed(
            table="log",
            columns=("time", "message"),
            filter=Group("and", (*lines_from(low, core, *end), _EVENTFUL)),
            limit=limit,
            waits_long=limit is not None,
        )
        rows = await self._rows(site, pushed, _LAYOUT)
        if not all(type(row[0]) is int and type(row[1]) is str for row in rows):
            raise ProtocolError("a log line without time or text")
        lines = [(row[0], row[1]) for row in rows if row[0] >= low]
        return in_order(lines, newest_first=core.newest_first)

    async def _rows(self, site: Site, pushed: Pushed, layout: RowTypes | None = None) -> list[Row]:
        """Ask a Naemon over a connection of its own, any other site over its usual ones."""
        core = site.capabilities
        assert core is not None
        if core.kind != "naemon":
            return await openly(site).ask(pushed, layout)
        if self._pool is None:
            self._pool = site.new_pool(1)
        return await self._pool.query(prepare(pushed, core, layout), _TIMEOUT)

    async def _begin_to_compare(self, site: Site) -> None:
        """Know what objects show, and report what happened last before the comparison.

        Of a Naemon its log has that. The first alert of each object has an old state, because it
        is known which ones are not well.
        """
        ask, now = partial(self._rows, site), self._now(site)
        problems = await present_problems(ask)
        states = {key: problem.state for key, problem in problems.items()}
        self._reader.states, self._reader.complete = states, True
        self._reader.hard = {
            key: problem.state for key, problem in problems.items() if problem.hard
        }
        objects = ShownObjects(self.id, states)
        if _waits(site):
            await objects.look_at_ends(ask, now, problems)
            self._objects = objects
            return
        self._start = 0
        await self._look_for_lines(site, now)
        seen = await self._look(objects, site, now, now - BACK)
        lasting = [event for event in seen if event.time > now - BACK and event.type != "flapping"]
        late = sorted(lasting, key=attrgetter("time"))
        del late[:-MOST_BEFORE]
        if late and not self._silent:
            lines = await self._lines(site, int(late[0].time) - _SAME, limit=MOST_LINES_BACK + 1)
            self._recent.extend(map(_brief, LineEvents(self.id).events(lines)))
            if len(lines) > MOST_LINES_BACK:
                late = []
        self._objects = objects
        await self._keep([event for event in late if not self._is_reported(event)])

    async def _seen(
        self, site: Site, now: int
    ) -> tuple[Mapping[ObjectKey, ProblemState] | None, list[Event]]:
        """New events that objects show; also all problems when states are compared."""
        objects, core = self._objects, site.capabilities
        assert objects is not None
        assert core is not None
        waits, problems = _waits(site), None
        if not waits:
            if self._start != site.health.program.program_start:
                objects.forget_numbers()
                await self._look_for_lines(site, now)
            elif self._silent and self.clock.seconds() >= self._looked + _LOOKED_FOR_LINES:
                await self._look_for_lines(site, now)
        if core.kind in _TEARS and not self._silent and self.clock.seconds() >= self._next:
            self._next, self._then = self.clock.seconds() + self._then, _COMPARED
            problems = await present_problems(partial(self._rows, site))
        if not waits:
            low = min(now, self._settled or now) - MARGIN
            return problems, await self._look(objects, site, now, low)
        if problems is None:
            return None, []
        return problems, await objects.look_at_ends(partial(self._rows, site), now, problems)

    def _is_shown_soon(self, event: Event) -> bool:
        """Whether objects show soon that an acknowledgement or a comment has begun or is over."""
        assert self._objects is not None
        if event.type == "state":
            return self._objects.acknowledged((event.host, event.service))
        keeps_comment = event.type in ("acknowledgement", "comment")
        return keeps_comment or event.data.get("command_name") in _REMOVES

    async def _missed(
        self, site: Site, problems: Mapping[ObjectKey, ProblemState], news: Sequence[Event]
    ) -> list[Event]:
        """Hard states without a line; two looks have to show the same."""
        reader, objects = self._reader, self._objects
        assert objects is not None
        present = {key: problem.state for key, problem in problems.items() if problem.hard}
        # A line that was read after the objects knows better.
        younger = {(event.host, event.service) for event in news}
        missed = {
            key: present.get(key, 0)
            for key in present.keys() | reader.hard.keys()
            if present.get(key, 0) != reader.hard.get(key, 0) and key not in younger
        }
        again = missed.items() & self._doubtful.items()
        sure = dict(islice(again, _MOST_STATES))
        self._doubtful = {key: state for key, state in missed.items() if key not in sure}
        if self._doubtful:
            self._next = self.clock.seconds() + _SOON
        if not sure:
            return []
        events, gone = await objects.missed_states(partial(self._rows, site), sure)
        for key in gone:
            reader.note(key, 0, hard=True)
        for event in events:
            reader.note((event.host, event.service), event.data["state"], hard=True)
        return events

    async def _look(self, objects: ShownObjects, site: Site, now: int, low: int) -> list[Event]:
        ask = partial(self._rows, site)
        if self._silent:
            return await objects.look_at_all(ask, now, low)
        return await objects.look_at_comments(ask, now)

    async def _look_for_lines(self, site: Site, now: int) -> None:
        """See whether the log has lines, and whether the core was started again."""
        core, start = site.capabilities, site.health.program.program_start
        assert core is not None
        some = Group("and", lines_from(now - DAY, core))
        # An LMD is asked for its sites together, which have one limit; not so what waits for a log.
        pushed = Pushed(table="log", columns=("time",), filter=some, limit=1, waits_long=True)
        rows = await self._rows(site, pushed)
        if rows and self._silent:
            # Its events were those of objects.
            await self._position(site, anew=True)
        self._silent, self._looked = not rows, self.clock.seconds()
        if self._start != start:
            self._start, self._next = start, self.clock.seconds() + _STARTED
            if core.icinga2 and start > now - BACK:
                await self._keep([started_again(self.id, site_subject(self.id), start)])

    def _is_reported(self, seen: Event) -> bool:
        """Whether the log has the same event."""
        _, subject, texts = _brief(seen)
        for time, other, other_texts in reversed(self._recent):
            if time < seen.time - _SAME:
                return False
            same = other_texts == texts and time <= seen.time + _SAME
            if other == subject and (same or seen.action == "removed"):
                return True
        return False

    async def _add_perf_data(self, site: Site, events: list[Event]) -> None:
        """Add the performance data, which no line of the log has, to changes of states."""
        changed = {(event.host, event.service): event for event in events if event.type == "state"}
        since = str(int(min((event.time for event in events), default=0)) - 1)
        for table, names in NAMES.items():
            keys = [key for key in changed if bool(key[1]) == (len(names) > 1)]
            if not keys:
                continue
            which: CoreFilter = Test("last_check", ">=", since)
            if len(keys) <= _FEW_OBJECTS and all(_plain(name) for key in keys for name in key):
                which = named(keys, names)
            asked = Pushed(table=table, columns=(*names, "perf_data"), filter=which)
            try:
                rows = await self._rows(site, asked)
            except LivestatusError:
                continue  # the event is worth more than its figures
            for row in rows:
                event = changed.get(object_key(row, names))
                if event is not None:
                    event.data["perf_data"] = row[-1]


def _waits(site: Site) -> bool:
    """Whether the core waits for its own log."""
    return site.capabilities is not None and site.capabilities.kind == "naemon"


def _plain(name: str) -> bool:
    return name == name.strip() and name.isprintable()
