"""A time is imported once more: what is missing comes back, and by force what is wrong goes."""

import pytest
from sqlalchemy import and_, delete, update

from monrest.logs import cache_records as records
from monrest.logs import importer as importing
from monrest.logs.importer import Again
from monrest.logs.line import floor
from monrest.logs.model import CachedSite
from monrest.store.tables import logcache_lines
from tests.fakes.store import BOTH
from tests.logs.core import DAY, NOW, LoggingCore, done, importer, stored

ALERT = "SERVICE ALERT: web;http;CRITICAL;HARD;3;down"
FIRST = floor(NOW - 5 * DAY)


@pytest.fixture
def core():
    core = LoggingCore()
    for moment in range(FIRST, NOW, 6000):
        core.write(moment, f"{ALERT} {moment}")
        core.write(moment, "EXTERNAL COMMAND: x")
    return core


@pytest.fixture
def update_(core, database, clock):
    """A function that updates, as the daemon does regularly or ``again``."""
    one = importer(core, database, clock, first=5 * DAY)
    return lambda again=None: done(one.update(again=again))


def record(database):
    return done(database.run(records.record("a")))


SPAN = {"start": FIRST + DAY + 5000, "end": FIRST + 3 * DAY + 5000}


def spoilt(database, core):
    """A cache that lacks some lines and has others that the core does not."""

    def work(connection):
        site = connection.execute(CachedSite.table.select()).one().id
        # The last minutes are asked for with every update.
        mine = and_(logcache_lines.c.site == site, logcache_lines.c.time < NOW - 3600)
        connection.execute(delete(logcache_lines).where(mine, logcache_lines.c.time % 7 == 0))
        connection.execute(
            update(logcache_lines)
            .where(mine, logcache_lines.c.time % 5 == 0)
            .values(message="nobody wrote this")
        )

    done(database.change(work))


@BOTH
@pytest.mark.parametrize("many", [7, 20_000])
def test_replaced(core, database, clock, update_, monkeypatch, many):
    monkeypatch.setattr(importing, "MANY", many)
    monkeypatch.setattr(importing, "AT_ONCE", 5)
    update_()
    whole = stored(database)
    spoilt(database, core)
    before = stored(database)
    written = update_(Again(**SPAN, exactly=True))

    def within(lines):
        return [one for one in lines if SPAN["start"] <= one[0] < SPAN["end"]]

    def outside(lines):
        return [one for one in lines if not SPAN["start"] <= one[0] < SPAN["end"]]

    after = stored(database)
    assert within(after) == within(whole)
    assert outside(after) == outside(before)
    invented = len([one for one in within(before) if one[13] == "nobody wrote this"])
    assert written.removed == invented > 0
    assert len(after) == len(before) + written.added - written.removed
    assert record(database).items == len(whole) + written.added - written.removed
    assert update_(Again(**SPAN, exactly=True)) == records.LinesWritten()


def test_merged(core, database, clock, update_):
    update_()
    whole = stored(database)
    spoilt(database, core)
    written = update_(Again(**SPAN))
    assert written.removed == 0
    within = [one for one in whole if SPAN["start"] <= one[0] < SPAN["end"]]
    assert set(within) <= set(stored(database))


def test_nothing_is_removed_by_a_core_that_gives_less_than_it_counts(
    core, database, clock, update_
):
    update_()
    whole = stored(database)
    lost = range(FIRST + 2 * DAY, FIRST + 3 * DAY)
    core.unread = lambda row: row["time"] in lost
    assert update_(Again(**SPAN, exactly=True)) == records.LinesWritten()
    assert stored(database) == whole


def test_further_back_than_the_first_import(core, database, clock):
    one = importer(core, database, clock, first=DAY)
    done(one.update())
    assert record(database).covered_from == NOW - DAY
    done(one.update(again=Again(start=NOW - 4 * DAY, end=NOW - 3 * DAY)))
    assert record(database).covered_from == record(database).wanted_from == NOW - 4 * DAY
    assert stored(database) == core.told(since=NOW - 4 * DAY)


@BOTH
def test_compacted_days_stay_compacted(core, database, clock):
    for moment in range(FIRST, FIRST + DAY, 600):
        core.write(moment, "HOST ALERT: web;DOWN;HARD;1;x")
    one = importer(core, database, clock, first=5 * DAY, compact=2 * DAY)
    done(one.update())
    before = stored(database)
    assert len(before) < len(core.told(since=NOW - 5 * DAY))
    done(one.update(again=Again(start=NOW - 5 * DAY, end=NOW, exactly=True)))
    assert stored(database) == before
    assert record(database).items == len(before)
