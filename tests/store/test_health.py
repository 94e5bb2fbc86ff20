"""Whether the database can be used, and a start before it can."""

import os
import sqlite3

import pytest
from twisted.internet import reactor
from twisted.internet.task import Clock

from monrest.store.database import Database, StoreError
from monrest.store.database_health import DatabaseHealth
from tests.fakes.store import InlineThreads, sqlite_url
from tests.store.test_outages import logged

CANNOT = "the database cannot be used, the log says why"


async def trouble(health):
    await health.look()
    return health.trouble


async def test_a_file_that_is_overwritten(opened, tmp_path):
    health = DatabaseHealth(opened(sqlite_url(tmp_path)), reactor)
    file = tmp_path / "monrest.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert await trouble(health) == ""
    good = file.read_bytes()
    for at in (0, 4096):  # the first page, and all but the first page
        with file.open("r+b") as broken:
            broken.seek(at)
            broken.write(os.urandom(len(good) - at if at else 4096))
        assert await trouble(health) == CANNOT
        with file.open("r+b") as mended:
            mended.write(good)
        assert await trouble(health) == ""


async def test_a_file_that_is_taken_away(opened, tmp_path):
    health = DatabaseHealth(opened(sqlite_url(tmp_path)), reactor)
    file, elsewhere = tmp_path / "monrest.sqlite", tmp_path / "elsewhere"
    file.rename(elsewhere)
    assert await trouble(health) == CANNOT
    elsewhere.rename(file)
    assert await trouble(health) == ""


async def test_a_server_that_is_stopped_and_one_that_hangs(opened, own_server):
    health = DatabaseHealth(opened(own_server.url(own_server.create())), reactor)
    assert await trouble(health) == ""
    own_server.stop("immediate")
    assert await trouble(health) == "no connection to the database"
    own_server.start()
    assert await trouble(health) == ""
    own_server.freeze()
    assert await trouble(health) == "the database did not answer in time"
    own_server.thaw()
    while health.trouble:  # connections that were given up are replaced
        await health.look()


def test_it_is_looked_at_every_two_seconds(tmp_path):
    clock = Clock()
    database = Database(None, sqlite_url(tmp_path), clock, threads=InlineThreads)
    database.startService()
    health = DatabaseHealth(database, clock)
    health.startService()
    assert health.trouble == ""
    database.stopService()
    clock.advance(1.9)
    assert health.trouble == ""
    clock.advance(0.1)
    assert health.trouble == "the service does not run"
    database.startService()
    clock.advance(2)
    assert health.trouble == ""
    health.stopService()
    database.stopService()
    assert not clock.getDelayedCalls()


def starting(url, clock, sleep):
    return Database(None, url, clock, threads=InlineThreads, patience=60.0, sleep=sleep)


def test_a_start_waits_for_a_server_that_comes_later(own_server):
    url = own_server.url(own_server.create())
    clock, naps = Clock(), []

    def sleep(seconds):
        naps.append(seconds)
        clock.advance(seconds)
        if len(naps) == 20:
            own_server.start()

    own_server.stop()
    database = starting(url, clock, sleep)
    with logged() as lines:
        database.startService()
    assert len(naps) == 20
    waits = [line for line in lines if "waiting for the database" in line]
    assert [line.rpartition("; ")[2] for line in waits] == [
        "waiting for the database, 60 s at most",
        "waiting for the database, 45 s at most",
    ]
    assert lines[-1] == "the database is there"
    database.stopService()


def test_a_start_does_not_wait_for_ever(own_server):
    url = own_server.url(own_server.create())
    clock = Clock()
    own_server.stop()
    try:
        database = starting(url, clock, clock.advance)
        with pytest.raises(StoreError, match="failed"):
            database.startService()
        assert clock.seconds() == 60
    finally:
        own_server.start()


@pytest.mark.parametrize("wrong", ["database", "user"])
def test_a_server_that_refuses_is_not_waited_for(own_server, wrong):
    url = own_server.url(**{wrong: "nobody_made_this"})
    with pytest.raises(StoreError, match="does not exist"):
        starting(url, Clock(), None).startService()


def test_a_file_that_cannot_be_used_is_not_waited_for(tmp_path):
    (tmp_path / "monrest.sqlite").write_bytes(os.urandom(10_000))
    with pytest.raises(StoreError, match="not a database"):
        starting(sqlite_url(tmp_path), Clock(), None).startService()
