"""Lists of log lines: how much is held, what happens to the cache meanwhile, sites that are slow."""

from datetime import UTC
from types import SimpleNamespace

import pytest
from twisted.internet.defer import Deferred

from monrest.base.errors import SitesTimedOut, Unavailable
from monrest.base.values import Identity, RestRequest, RowSource, SiteProblem
from monrest.config import LogcacheConfig
from monrest.logs import ask as loglines
from monrest.logs import compaction
from monrest.logs.ask import RowStore
from monrest.logs.cache import LogCache
from monrest.logs.endpoints import ENDPOINTS
from monrest.logs.reader import CachedSlices, reading
from monrest.query import lines
from monrest.query.bind import bind
from monrest.query.column_names import ColumnNames, View
from monrest.query.functions import Moment
from monrest.query.parse import parse_query
from monrest.query.plan import layout
from monrest.rows.columns import LOGS
from tests.fakes.clocks import Wall
from tests.fakes.context import make_context
from tests.logs.core import DAY, NOW, LoggingCore, done, lease_of, times

FEW = 20
ROOT = Identity(user="root", superuser=True)
(LIST,) = [one.handler for one in ENDPOINTS if one.path == "/logs"]


class Core(LoggingCore):
    """A site of a daemon."""

    local, hidden, section, address = True, False, "", ""
    config = SimpleNamespace(groups=())
    breaker = SimpleNamespace(error=None)

    def problem(self, error):
        return SiteProblem(self.id, self.name, error.reason, error.timed_out)


class Store(RowStore):
    """Notes how many rows stay in memory at most."""

    held = 0

    def keep(self, rows):
        run = super().keep(rows)
        Store.held = max(Store.held, self._rows)
        return run


@pytest.fixture
def core():
    """Five days of lines, a burst of them in the third."""
    core = Core()
    for at in range(NOW - 5 * DAY, NOW, 1800):
        core.write(
            at, f"SERVICE ALERT: web{at % 7};http;{'OK' if at % 3 else 'CRITICAL'};HARD;1;{at}"
        )
    for at in range(150):
        core.write(NOW - 2 * DAY - 3600 + at // 4, f"HOST ALERT: db;DOWN;HARD;1;{at}")
    core.rows.sort(key=lambda row: row["time"])
    for number, row in enumerate(core.rows):
        row["lineno"] = number + 1
    return core


@pytest.fixture
def world(clock, database, core, monkeypatch):
    """A daemon that holds few lines; its site and its cache."""
    Store.held = 0
    monkeypatch.setattr(loglines, "RowStore", Store)
    for module in (lines, loglines):
        monkeypatch.setattr(module, "FEW", FEW)
    monkeypatch.setattr(loglines, "_FEWEST", FEW)
    cache = LogCache(clock, Wall(clock), database, LogcacheConfig(first_import=6 * DAY), [core])
    return SimpleNamespace(
        core=core, cache=cache, clock=clock, context=make_context(clock, core, logcache=cache)
    )


def start(world, *pairs):
    request = RestRequest(
        method="GET", path="/logs", segments=("logs",), parameters=pairs, identity=ROOT
    )
    return Deferred.fromCoroutine(LIST(world.cache, world.context, request, ()))


def rows(answer):
    names = [one.name for one in answer.columns]
    return [dict(zip(names, row, strict=False)) for row in answer.rows]


MONTH = (("time[gte]", str(NOW - 30 * DAY)), ("time[lt]", str(NOW)))
SPAN = (("time[gte]", str(NOW - 5 * DAY)), ("time[lt]", str(NOW)))
STRAIGHT = ("logcache", "0")


@pytest.mark.parametrize("with_cache", [False, True])
@pytest.mark.parametrize("sort", ["", "-message", "host_name,-time"])
def test_a_long_log_is_never_whole_in_memory(world, with_cache, sort):
    if with_cache:
        done(world.cache.update(world.core, back=True))
        assert done(world.cache.record(world.core)).covered_from <= NOW - 5 * DAY
    world.core.longest, asked = 0, len(world.core.asked)
    more = [("sort", sort)] if sort else []
    answer = done(start(world, *SPAN, *more, *(() if with_cache else (STRAIGHT,))))
    assert world.core.longest <= FEW + 1
    assert len(world.core.asked) - asked < len(world.core.rows) * 4 // FEW
    assert Store.held <= FEW
    assert type(answer.rows) is RowSource
    wanted = [row["message"] for row in world.core.rows]
    if sort == "-message":
        wanted.sort(reverse=True)
    elif sort:
        ordered = sorted(world.core.rows, key=lambda row: (row["host_name"], -row["time"]))
        wanted = [row["message"] for row in ordered]
    assert [row["message"] for row in rows(answer)] == wanted


def test_counting_and_pages_hold_nothing(world):
    answer = done(start(world, *MONTH, STRAIGHT, ("columns", "type,count(*)")))
    assert rows(answer) == [
        {"type": "HOST ALERT", "count(*)": 150},
        {"type": "SERVICE ALERT", "count(*)": 240},
    ]
    page = (("limit", "7"), ("sort", "-message"), ("columns", "message"))
    answer = done(start(world, *MONTH, STRAIGHT, *page))
    newest = sorted((row["message"] for row in world.core.rows), reverse=True)
    assert [row["message"] for row in rows(answer)] == newest[:7]
    assert world.core.longest <= FEW + 1
    assert Store.held == 0


def test_a_second_is_never_too_much(world):
    for at in range(3 * FEW):
        world.core.write(NOW - 60, f"burst {at}")
    answer = done(start(world, *SPAN, STRAIGHT, ("columns", "message")))
    assert len(answer.rows) == len(world.core.rows)
    assert rows(answer)[-3 * FEW]["message"].endswith("burst 0")


@pytest.fixture
def between(world, monkeypatch):
    """A function that says what is to happen after the first slice out of the cache."""
    done(world.cache.update(world.core, back=True))
    original = CachedSlices.slices
    happening = []

    async def slices(part, most, room):
        async for some in original(part, most, room):
            yield some
            while happening:
                happening.pop()()

    monkeypatch.setattr(CachedSlices, "slices", slices)
    yield happening.append
    assert not happening


QUESTIONS = [
    SPAN,
    (*SPAN, ("sort", "-message"), ("columns", "time,message")),
    (*SPAN, ("columns", "type,count(*),max(time),avg(state)")),
    SPAN[:1],
]


@pytest.mark.parametrize("pairs", QUESTIONS)
def test_an_update_in_the_middle(world, between, pairs):
    world.core.write(NOW - 30, "SERVICE ALERT: new;http;OK;HARD;1;new")
    wanted = rows(done(start(world, *pairs, STRAIGHT)))
    between(lambda: done(world.cache.update(world.core, back=True)))
    assert rows(done(start(world, *pairs))) == wanted
    assert rows(done(start(world, *pairs))) == wanted


@pytest.mark.parametrize("pairs", QUESTIONS)
@pytest.mark.parametrize("what", ["removed", "compacted", "away"])
def test_the_cache_loses_lines_in_the_middle(world, database, between, monkeypatch, pairs, what):
    """The core is asked for the rest, and each line counts once."""
    wanted = rows(done(start(world, *pairs, STRAIGHT)))
    lease, midnight, now = lease_of(database, world.clock), NOW // DAY * DAY, world.clock.seconds()
    asked = len(world.core.asked)

    def away(work):
        raise Unavailable("away")

    def lose():
        if what == "away":
            monkeypatch.setattr(database, "run", away)
        elif what == "removed":
            done(database.change(compaction.remove(lease, now, midnight)))
        else:
            done(database.change(compaction.drop(lease, now, (), midnight)))

    between(lose)
    assert rows(done(start(world, *pairs))) == wanted
    first = min(
        int(one.value)
        for pushed in world.core.asked[asked:]
        for one in times(pushed.filter)
        if one.op == ">="
    )
    assert first < midnight


COUNTED = {
    (("columns", "type,count(*)"),): True,
    (("columns", "count(*)"),): True,
    (("columns", "peer_key,host_name,count(*),min(time),max(state)"), ("type", "x")): True,
    (("columns", "type,count(*)"), ("q", "state > 0 and class != 6")): True,
    # What the daemon has to evaluate is counted by it.
    (("columns", "upper(type),count(*)"),): False,
    (("columns", "type,count(*)"), ("q", "message > 'a'")): False,
    (("columns", "type,max(message)"),): False,
    (("columns", "type,sum(state)"),): False,
}


def test_what_the_database_counts():
    found = {}
    for pairs in COUNTED:
        moment = Moment(now=NOW, zone=UTC)
        bound = bind(parse_query((*SPAN, *pairs)), ColumnNames(LOGS), View(), moment)
        question = reading(bound, layout(bound, ()), None)
        found[pairs] = bool(question.plan.pushed.stats)
    assert found == COUNTED


@pytest.mark.parametrize("pairs", [(STRAIGHT,), (), (("columns", "type,count(*)"),)])
def test_a_log_that_takes_too_long(world, clock, pairs):
    slow = Core("b")
    slow.before = lambda pushed: Deferred()
    world.context = make_context(clock, world.core, slow, logcache=world.cache)
    waiting = start(world, *SPAN, *pairs)
    clock.advance(31.9)
    assert not waiting.called
    clock.advance(0.1)
    answer = done(waiting)
    assert len(answer.rows) > 0
    reason = "its log was not read in 32 s, background=1 gives it more time"
    assert answer.failed_sites == (SiteProblem("b", "B", reason, timed_out=True),)
    world.context = make_context(clock, slow, logcache=world.cache)
    waiting = start(world, *SPAN, *pairs)
    clock.advance(32)
    with pytest.raises(SitesTimedOut) as caught:
        done(waiting)
    assert f"b: {reason}" in caught.value.description
