"""The file of an embedded database gives back what was deleted."""

import sqlite3

from twisted.internet import reactor

from monrest.store.database import Database
from monrest.store.space import give_back, is_loose

MEGABYTE = 1 << 20


def filled(connection):
    connection.exec_driver_sql("CREATE TABLE bulk (data BLOB)")
    for _ in range(60):
        connection.exec_driver_sql("INSERT INTO bulk VALUES (zeroblob(1048576))")


def emptied(connection):
    connection.exec_driver_sql("DROP TABLE bulk")


async def shrunk(database):
    await database.change(filled)
    await database.change(emptied)
    assert await database.run(is_loose)
    turns = 1
    while await database.change(give_back):
        turns += 1
    return turns


def size(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


async def test_a_new_file(tmp_path):
    path = tmp_path / "new.sqlite"
    database = Database(reactor, f"sqlite:///{path}")
    database.startService()
    try:
        # 8 MB at a time; 16 MB stay for what comes next.
        assert await shrunk(database) >= 5
    finally:
        await database.stopService()
    assert size(path) < 20 * MEGABYTE


async def test_a_file_of_an_older_version_is_rewritten_once(tmp_path):
    path = tmp_path / "old.sqlite"
    database = Database(reactor, f"sqlite:///{path}")
    database.startService()
    await database.stopService()
    old = sqlite3.connect(path)
    old.executescript("PRAGMA auto_vacuum = NONE; VACUUM;")
    assert old.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    old.close()
    database.startService()
    try:
        await shrunk(database)
    finally:
        await database.stopService()
    assert size(path) < 20 * MEGABYTE
