"""A process killed anywhere in the import leaves neither gaps nor doubles to the next one."""

import sys
from pathlib import Path
from random import Random

from sqlalchemy import delete, update

from monrest.logs import cache_records as records
from monrest.logs.model import CachedSite
from monrest.store.tables import logcache_lines
from tests import forks
from tests.logs.child import filled
from tests.logs.core import done, importer, stored

LINES = 600
CHILD = Path(__file__).with_name("child.py")


def start(url, seed, *more):
    return forks.start([sys.executable, CHILD, url, LINES, seed, *more], program=forks.SCRIPT)


def expire(connection):
    """As if the dead one's lease had not been renewed for long."""
    connection.execute(update(CachedSite.table).values(owner=""))


def test_killed_at_random_points(database_url, clock, database):
    seed = 1
    random, core = Random(seed), filled(LINES, seed)
    whole = core.told()
    progress = []
    for _ in range(3):
        child = start(database_url, seed)
        # In the middle of the transactions that follow some slice, wherever they are by then.
        for _ in range(random.randint(1, 6)):
            child.stdout.readline()
        child.end()
        done(database.change(expire))
        found = stored(database)
        assert len(set(found)) == len(found)
        assert set(found) <= set(whole)
        known = done(database.run(records.record("a")))
        if known is not None and known.covered_from is not None:
            # All that is said to be covered is there.
            covered = [
                one for one in whole if known.covered_from <= one[0] < known.covered_until - 300
            ]
            assert set(covered) <= set(found)
            assert known.items == len(found)
        progress.append(len(found))
    assert progress == sorted(progress)
    child = start(database_url, seed)
    assert child.stdout.read().split()[-1] == "done"
    child.end()
    assert stored(database) == whole


def spoil(connection):
    """Lines go, and others come that the core does not have."""
    connection.execute(delete(logcache_lines).where(logcache_lines.c.time % 7 == 0))
    odd = logcache_lines.c.time % 5 == 0
    connection.execute(update(logcache_lines).where(odd).values(message="nobody wrote this"))


def test_killed_while_lines_are_replaced(database_url, clock, database):
    """No line that the core has is lost at any moment, and none is there twice."""
    random, core = Random(3), filled(LINES, 3)
    done(importer(core, database, clock).update())
    whole = core.told()
    done(database.change(spoil))
    # What was deleted was not counted.
    odd = len(whole) - len(stored(database))
    right = [one for one in stored(database) if one in set(whole)]
    for _ in range(3):
        child = start(database_url, 3, "again")
        for _ in range(random.randint(3, 10)):
            child.stdout.readline()
        child.end()
        done(database.change(expire))
        found = stored(database)
        assert len(set(found)) == len(found)
        assert set(right) <= set(found)
        right = [one for one in found if one in set(whole)]
    child = start(database_url, 3, "again")
    assert child.stdout.read().split()[-1] == "done"
    child.end()
    assert stored(database) == whole
    assert done(database.run(records.record("a"))).items == len(whole) + odd
