"""PostgreSQL has lines by time: a stretch for each month, made when it is needed."""

import pytest
from sqlalchemy import text

from monrest.logs.cache_records import SPAN
from tests.fakes.store import inline_database
from tests.logs.core import DAY, NOW, LoggingCore, done, importer, stored

AGES = (95, 65, 64, 1)
PARTS = """SELECT inhrelid::regclass::text FROM pg_inherits
    WHERE inhparent = 'logcache_lines'::regclass"""


@pytest.fixture
def database(clock, postgres_url):
    database = inline_database(clock, postgres_url)
    yield database
    database.stopService()


@pytest.fixture
def core(database, clock):
    """A core whose log has lines of several months, all of them in the cache."""
    core = LoggingCore()
    for age in AGES:
        core.write(NOW - age * DAY, "SERVICE ALERT: web;http;CRITICAL;HARD;3;it is down")
    done(importer(core, database, clock, first=100 * DAY).update())
    return core


def asked(database, statement, **values):
    return done(
        database.run(lambda connection: connection.execute(text(statement), values).scalars().all())
    )


def names(ages):
    return {f"logcache_lines_{(NOW - age * DAY) // SPAN}" for age in ages}


def test_each_month_that_has_lines_has_its_own(core, database):
    assert set(asked(database, PARTS)) == names(AGES)
    assert stored(database) == core.told(since=NOW - 100 * DAY)


def test_a_month_is_read_without_the_others(core, database):
    plan = asked(
        database,
        "EXPLAIN SELECT * FROM logcache_lines WHERE time >= :since AND time < :until",
        since=NOW - 65 * DAY - 10,
        until=NOW - 65 * DAY + 10,
    )
    read = {name for name in names(AGES) for line in plan if f"{name} " in line}
    assert read == names([65])
