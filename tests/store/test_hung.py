"""A database that hangs, or a statement that does not end: given up, and its thread is free."""

import threading

import pytest
from sqlalchemy import text
from twisted.internet.defer import gatherResults
from twisted.internet.task import Clock
from twisted.internet.threads import deferToThread

from monrest.base.errors import Unavailable
from monrest.store import engines
from monrest.store.database import ANSWER, SUSPECT, Database, StoreError
from tests.fakes.store import sqlite_url
from tests.store.rows import add, count, names

PATIENCE = 30
LONG = 1000.0

LATE = "the database did not answer in time"


async def refused(deferred):
    with pytest.raises(Unavailable) as caught:
        await deferred
    return caught.value


async def turn(clock, deferred):
    """Turn the clock until a result is there; the reactor goes on meanwhile."""
    while not deferred.called:
        await deferToThread(threading.Event().wait, 0.002)
        clock.advance(0.005)


async def test_a_file_locked_by_another_process_for_too_long(opened, tmp_path):
    clock = Clock()
    database = opened(sqlite_url(tmp_path), clock=clock)
    blocker = engines.migrating(engines.parse(sqlite_url(tmp_path)))
    with blocker.begin() as connection:
        connection.execute(text("SELECT 1"))
        change = database.change(add("ann"))
        clock.advance(14.5)
        change.addErrback(lambda failure: failure)
        await turn(clock, change)
        error = await refused(change)
        assert str(error) == "cannot store: the database is too busy"
        assert await database.run(count) == 0
    await database.change(add("bob"))
    assert await database.run(names) == {"bob"}
    blocker.dispose()


async def test_a_server_that_hangs_is_given_up_and_its_threads_are_free(opened, own_server):
    clock = Clock()
    url = own_server.url(own_server.create()) + "&connect_timeout=2"
    database = opened(url, clock=clock)
    begun = threading.Semaphore(0)

    def work(connection):
        begun.release()
        return count(connection)

    def waiting_for_all(connection):
        connected.wait(PATIENCE)
        return count(connection)

    connected = threading.Barrier(4)
    await gatherResults([database.run(waiting_for_all) for _ in range(4)])
    own_server.freeze()
    try:
        hanging = [database.run(work) for _ in range(4)]
        for _ in hanging:
            assert await deferToThread(begun.acquire, True, PATIENCE)
        queued = database.run(work)
        clock.advance(LONG)
        for waiting in [*hanging, queued]:
            assert str(await refused(waiting)) == f"cannot read what is stored: {LATE}"
        await database.stopService()  # while it still hangs
    finally:
        own_server.thaw()
    database.startService()
    assert await database.run(count) == 0


async def test_a_server_that_hangs_is_noticed_while_long_statements_are_not(opened, own_server):
    """Who comes later is told at once, until it answers again."""
    clock = Clock()
    database = opened(own_server.url(own_server.create()), clock=clock)
    begun = threading.Event()

    def long(connection):
        begun.set()
        connection.execute(text("SELECT pg_sleep(0.5)"))
        return count(connection)

    reading = database.run(long)
    assert await deferToThread(begun.wait, PATIENCE)
    clock.advance(SUSPECT)
    # It is asked, and answers, before the long one has ended.
    assert await reading == 0
    begun.clear()
    own_server.freeze()
    try:
        reading = database.run(long)
        assert await deferToThread(begun.wait, PATIENCE)
        clock.advance(SUSPECT)
        clock.advance(ANSWER)
        clock.advance(0)
        assert str(await refused(reading)) == f"cannot read what is stored: {LATE}"
        assert str(await refused(database.run(count))) == f"cannot read what is stored: {LATE}"
        assert str(await refused(database.change(add("x")))) == f"cannot store: {LATE}"
        assert clock.seconds() == 2 * SUSPECT + ANSWER
    finally:
        own_server.thaw()
    while not database._hang_detector.answers:
        await deferToThread(threading.Event().wait, 0.01)
        clock.advance(0.05)
    await database.change(add("y"))
    assert await database.run(names) == {"y"}


async def test_a_stop_with_a_server_that_hangs_does_not_take_the_usual_time(opened, own_server):
    """What is under way ends early, what comes after it gets no time at all."""
    clock = Clock()
    database = opened(own_server.url(own_server.create()), clock=clock)
    begun = threading.Semaphore(0)

    def work(connection):
        begun.release()
        return count(connection)

    await database.run(count)
    await database.change(count)
    own_server.freeze()
    try:
        waiting = [database.run(work), database.change(work)]
        for _ in waiting:
            assert await deferToThread(begun.acquire, True, PATIENCE)
        clock.advance(1)
        database.hurry(4.0)
        clock.advance(3.9)
        assert not any(one.called for one in waiting)
        late = database.change(add("late"))
        queued = [database.run(count) for _ in range(8)]
        clock.advance(0.2)
        for one, message in zip(
            waiting, ("cannot read what is stored", "cannot store"), strict=True
        ):
            assert str(await refused(one)) == f"{message}: {LATE}"
        assert str(await refused(late)) == f"cannot store: {LATE}"
        for one in [*queued, database.run(count)]:
            assert str(await refused(one)) == f"cannot read what is stored: {LATE}"
        assert clock.seconds() < 6
        await turn(clock, database.stopService())
    finally:
        own_server.thaw()
    database.startService()
    assert await database.run(names) == set()


async def test_a_hurry_does_not_hurt_a_server_that_answers(database):
    database.clock = clock = Clock()
    database.hurry(4.0)
    for number in range(5):
        await database.change(add(f"n{number}"))
        clock.advance(3.0)
    assert await database.run(count) == 5


async def test_a_thread_that_still_connects_does_not_hold_up_the_stop(opened, own_server):
    clock = Clock()
    url = own_server.url(own_server.create()) + "&connect_timeout=1000"
    database = opened(url, clock=clock)
    own_server.freeze()
    try:
        waiting = database.run(count)
        database.hurry(4.0)
        clock.advance(4.0)
        assert str(await refused(waiting)) == f"cannot read what is stored: {LATE}"
        await turn(clock, database.stopService())
    finally:
        own_server.thaw()


async def test_a_change_given_up_before_its_commit_is_not_made(database):
    """Whoever was told that it was not stored can rely on it."""
    begun, late = threading.Event(), threading.Event()
    database.clock = clock = Clock()

    def work(connection):
        add("ann")(connection)
        begun.set()
        assert late.wait(PATIENCE)

    change = database.change(work)
    assert await deferToThread(begun.wait, PATIENCE)
    clock.advance(LONG)
    assert str(await refused(change)) == f"cannot store: {LATE}"
    late.set()
    await database.change(add("bob"))
    assert await database.run(names) == {"bob"}


ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    "postgresql": "SELECT pg_sleep(1000000)",
}


async def test_a_long_statement_is_interrupted(database):
    begun = threading.Event()
    database.clock = clock = Clock()

    def work(connection):
        connection.execute(text("SELECT 1"))
        begun.set()
        connection.execute(text(ENDLESS[connection.dialect.name]))

    reading = database.run(work)
    assert await deferToThread(begun.wait, PATIENCE)
    clock.advance(LONG)
    assert str(await refused(reading)) == f"cannot read what is stored: {LATE}"
    await database.stopService()  # ends only when the thread is free
    database.startService()


async def test_a_statement_begun_after_it_was_given_up_ends_as_well(opened, tmp_path):
    """An interruption that comes between two statements must not be lost."""
    begun, late = threading.Event(), threading.Event()
    database = opened(sqlite_url(tmp_path), clock=Clock())

    def work(connection):
        begun.set()
        assert late.wait(PATIENCE)
        connection.execute(text(ENDLESS["sqlite"]))

    reading = database.run(work)
    assert await deferToThread(begun.wait, PATIENCE)
    database.clock.advance(LONG)
    assert str(await refused(reading)) == f"cannot read what is stored: {LATE}"
    late.set()
    await database.stopService()  # ends only when the thread is free
    database.startService()


async def test_a_statement_has_a_limit_on_the_server(opened, postgres_url):
    database = opened(postgres_url, timeout=0.1)
    error = await refused(
        database.run(lambda connection: connection.execute(text("SELECT pg_sleep(60)")))
    )
    assert str(error) == f"cannot read what is stored: {LATE}"


def test_a_start_does_not_wait_for_a_server_that_hangs(own_server):
    url = own_server.url(own_server.create()) + "&connect_timeout=2"
    own_server.freeze()
    try:
        with pytest.raises(StoreError, match="timeout"):
            Database(None, url).startService()
    finally:
        own_server.thaw()
