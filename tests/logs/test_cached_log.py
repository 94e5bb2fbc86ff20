"""Reports that lose the cache in the middle go on with the core, with every line once."""

import pytest
from twisted.internet.defer import Deferred, succeed

from monrest.base.errors import Unavailable
from monrest.logs import compaction
from monrest.logs.cache import CachedLog
from monrest.logs.model import DRIFT
from monrest.logs.reader import CacheReader
from monrest.logs.source import Wanted
from tests.fakes.clocks import Wall
from tests.fakes.store import BOTH
from tests.logs.core import DAY, NOW, LoggingCore, done, importer, lease_of

WANTED = Wanted(since=NOW - 6 * DAY, until=NOW)


class Core:
    """The log of a core by itself; ``times`` are what it was asked for."""

    def __init__(self, rows):
        self.lines = [(row["time"], row["message"]) for row in rows]
        self.times = []

    async def slices(self, site, wanted):
        self.times.append((wanted.since, wanted.until))
        yield [one for one in self.lines if wanted.since <= one[0] <= wanted.until]


class Failing:
    """A database that is away while ``away``; ``reads`` counts the attempts."""

    def __init__(self, database):
        self.database, self.away, self.reads = database, False, 0

    def run(self, work):
        self.reads += 1
        if self.away:
            raise Unavailable("away")
        return self.database.run(work)


@pytest.fixture
def site(database, clock):
    site = LoggingCore()
    site.verdict = lambda: succeed(None)
    for at in range(NOW - 5 * DAY, NOW, 7200):
        site.write(at, f"SERVICE ALERT: web;http;{'OK' if at % 3 else 'CRITICAL'};HARD;1;{at}")
    done(importer(site, database, clock).update())
    return site


@pytest.fixture
def failing(database):
    return Failing(database)


@pytest.fixture
def core(site):
    return Core(site.rows)


@pytest.fixture
def read(site, core, failing, clock):
    """A function that reads everything; what is done between two slices."""
    source = CachedLog(reader=CacheReader(failing, clock), wall=Wall(clock), core=core, most=10)

    def read(between=lambda count: None, wanted=WANTED):
        async def collected():
            found = []
            async for lines in source.slices(site, wanted):
                found += lines
                between(len(found))
            return found

        return done(Deferred.fromCoroutine(collected()))

    return read


@BOTH
def test_only_what_the_cache_lacks_is_asked_of_the_core(read, core, failing):
    """What is older than the cache, and what is newer."""
    first, before = NOW - 30 * DAY, core.lines[-1][0] - DRIFT
    assert read(wanted=Wanted(since=NOW - 40 * DAY, until=NOW)) == core.lines
    assert core.times == [(NOW - 40 * DAY, first - 1), (before, NOW)]
    core.times.clear()
    within = Wanted(since=first, until=before - 1, names=frozenset({"web"}))
    assert read(wanted=within) == [one for one in core.lines if one[0] < before]
    assert core.times == []


def test_the_database_goes_away_in_the_middle(read, core, failing, clock):
    def between(count):
        failing.away = count >= 20

    assert read(between) == core.lines
    assert core.times[0][0] < NOW - DAY
    # No report waits for it again, for a while.
    reads = failing.reads
    assert read() == core.lines
    assert failing.reads == reads
    failing.away = False
    clock.advance(60)
    assert read() == core.lines
    assert failing.reads > reads


def test_lines_are_removed_in_the_middle(read, core, database, clock):
    lease = lease_of(database, clock)

    def between(count):
        if count >= 20:
            done(database.change(compaction.remove(lease, clock.seconds(), NOW // DAY * DAY)))

    assert read(between) == core.lines
    assert len(core.times) == 1


@BOTH
def test_lines_are_compacted_in_the_middle(read, core, database, clock):
    lease = lease_of(database, clock)

    def between(count):
        if count >= 20:
            done(database.change(compaction.drop(lease, clock.seconds(), (), NOW // DAY * DAY)))

    # It did not begin with a day, and who knows what was the first line of an object.
    assert read(between) == core.lines
    assert core.times[0][0] < NOW - DAY
    # From now on it begins with whole days.
    core.times.clear()
    assert read() == core.lines
    first = core.times[0]
    assert (first[1] + 1) % DAY == 0
    core.times.clear()
    assert read(wanted=Wanted(since=WANTED.since, until=NOW, texts="all")) == core.lines
    assert core.times[0][1] + 1 == NOW // DAY * DAY


def test_reading_is_given_up(site, core, database, clock):
    """A report that is canceled leaves nothing behind that still reads."""
    held = []

    class Held:
        def run(self, work):
            held.append(Deferred())
            return held[-1] if len(held) > 2 else database.run(work)

    source = CachedLog(reader=CacheReader(Held(), clock), wall=Wall(clock), core=core, most=10)

    async def collected():
        async for _ in source.slices(site, WANTED):
            pass

    ended = []
    reading = Deferred.fromCoroutine(collected())
    reading.addErrback(ended.append)
    assert not ended
    reading.cancel()
    assert len(ended) == 1
    assert held[-1].called
