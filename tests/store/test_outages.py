"""A database that is full, gone or restarted: 503, and used again when it is back."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from twisted.internet import reactor
from twisted.internet.defer import gatherResults
from twisted.logger import globalLogPublisher

from monrest.base.errors import Unavailable
from monrest.store.database import Database, StoreError
from tests.fakes.store import sqlite_url
from tests.store.rows import add, count, names

GONE = "no connection to the database"


@contextmanager
def logged():
    """The texts that are logged meanwhile."""
    lines = []

    def observe(event):
        if "log_format" in event and event.get("log_namespace", "").startswith("monrest"):
            lines.append(event["log_format"].format(**event))

    globalLogPublisher.addObserver(observe)
    try:
        yield lines
    finally:
        globalLogPublisher.removeObserver(observe)


async def refused(deferred):
    with pytest.raises(Unavailable) as caught:
        await deferred
    return caught.value


def test_a_file_that_may_not_grow(opened, tmp_path, children):
    child = children("fill", sqlite_url(tmp_path))
    said, done, counted, after = (child.line() for _ in range(4))
    assert said == "cannot store: the disk of the database is full"
    assert int(done) > 5
    assert counted == done  # nothing of the one that failed, and reading goes on
    assert int(after) == int(done) + 1


@pytest.fixture
def small_disk():
    """A file system of 4 MB; a skip where this user may mount none.

    Not in a folder of pytest's: a PostgreSQL that runs as another user has to get there, and the
    next pytest that starts closes the folders of all of them again.
    """
    folder = Path(tempfile.mkdtemp(prefix="monrest-disk-"))
    folder.chmod(0o755)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("this user may mount no file system")
    folder.chmod(0o755)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


async def fill(database, filler):
    """Store until nothing more fits; the names that were stored."""
    done = set()
    while True:
        name = f"n{len(done)}"
        try:
            await database.change(add(name, tz=filler))
        except Unavailable as error:
            if str(error) != "cannot store: the disk of the database is full":
                raise
            return done
        done.add(name)


async def test_a_full_disk(small_disk):
    database = Database(reactor, sqlite_url(small_disk))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 2_000_000)
    database.startService()
    with logged() as lines:
        done = await fill(database, "x" * 50_000)
        assert "full" in str(await refused(database.change(add("more", tz="x" * 50_000))))
        assert await database.run(names) == done
        ballast.unlink()
        await database.change(add("after"))
    assert await database.run(names) == {*done, "after"}
    await database.stopService()
    assert lines == [
        "cannot store: the disk of the database is full: database or disk is full",
        "the database can be used again",
    ]


async def test_a_full_disk_of_postgresql(own_server, small_disk, opened):
    space = small_disk / "space"
    space.mkdir()
    owner = own_server.folder.stat()
    os.chown(space, owner.st_uid, owner.st_gid)
    name = own_server.create()
    database = opened(own_server.url(name))
    own_server.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
    own_server.execute("ALTER TABLE users SET TABLESPACE small", name)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 2_000_000)
    filler = os.urandom(100_000).hex()  # does not get much smaller when compressed

    done = await fill(database, filler)

    assert done
    assert await database.run(names) == done
    ballast.unlink()
    await database.change(add("after"))
    assert await database.run(names) == {*done, "after"}
    await database.stopService()
    own_server.drop(name)
    own_server.execute("DROP TABLESPACE small")


async def test_a_server_that_stops_and_starts_again(opened, own_server):
    database = opened(own_server.url(own_server.create()))
    await database.change(add("n"))
    for number in range(2):
        own_server.stop()
        with logged() as lines:
            error = await refused(database.change(add("lost")))
            assert str(error) == f"cannot store: {GONE}"
            assert error.code == 503
            error = await refused(database.run(count))
            assert str(error) == f"cannot read what is stored: {GONE}"
            await refused(database.run(count))
        assert len(lines) == 2  # one for writing, one for reading; not one for each request
        own_server.start()
        with logged() as lines:
            await database.change(add(f"n{number}"))
            assert await database.run(count) == 2 + number
        assert lines == ["the database can be used again"] * 2
    assert await database.run(names) == {"n", "n0", "n1"}


async def test_connections_that_died_while_idle_are_not_noticed(opened, own_server):
    name = own_server.create()
    database = opened(own_server.url(name))
    await gatherResults([database.change(add(f"n{number}")) for number in range(20)])
    await gatherResults([database.run(count) for _ in range(20)])
    cut(own_server, name)
    await gatherResults([database.change(add(f"m{number}")) for number in range(20)])
    assert await gatherResults([database.run(count) for _ in range(20)]) == [40] * 20


def cut(server, name):
    """End every connection to the database ``name``."""
    server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )


async def test_a_connection_that_dies_before_the_commit_is_tried_again(opened, own_server):
    name = own_server.create()
    database = opened(own_server.url(name))
    runs = []

    def work(connection):
        runs.append(1)
        add("ann")(connection)
        if len(runs) == 1:
            cut(own_server, name)
        return count(connection)

    assert await database.change(work) == 1
    assert len(runs) == 2
    assert await database.run(count) == 1


async def test_a_connection_that_dies_in_the_commit_is_not_tried_again(opened, own_server):
    """It may have been made, so making it again could make it twice; the caller is told."""
    name = own_server.create()
    database = opened(own_server.url(name))
    runs = []

    def work(connection):
        runs.append(1)
        # Runs while the server commits, and ends its own connection there.
        connection.execute(
            text(
                "CREATE FUNCTION pg_temp.cut() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
            )
        )
        connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON users DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION pg_temp.cut()"
            )
        )
        add("ann")(connection)

    error = await refused(database.change(work))

    assert str(error) == f"cannot store: {GONE}; the change may have been made or not"
    assert len(runs) == 1


@pytest.mark.parametrize("state", ["53100", "53300", "57P03", "25006", "XX001", "57014"])
async def test_refusals_of_a_server(opened, postgres_url, state):
    """States that are hard to bring about; the errors are the driver's own."""
    database = opened(postgres_url)

    def work(connection):
        add("ann")(connection)
        connection.execute(text(f"DO $$ BEGIN RAISE 'secret' USING ERRCODE = '{state}'; END $$"))

    error = await refused(database.change(work))
    assert "secret" not in str(error)
    assert await database.run(count) == 0


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03"])
async def test_whoever_was_in_the_way_is_tried_again(opened, postgres_url, state):
    database = opened(postgres_url)
    runs = []

    def work(connection):
        runs.append(1)
        add("ann")(connection)
        if len(runs) < 4:
            connection.execute(text(f"DO $$ BEGIN RAISE 'x' USING ERRCODE = '{state}'; END $$"))

    await database.change(work)
    assert len(runs) == 4
    assert await database.run(count) == 1


SECRET = "s3cr%t"
WRITTEN = "s3cr%25t"


@pytest.fixture(scope="module")
def locked_server(own_server):
    """The server asks ``ann`` for a password."""
    rules = own_server.folder / "pg_hba.conf"
    before = rules.read_text()
    own_server.execute("CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'right'")
    rules.write_text("local all ann scram-sha-256\n" + before)
    own_server.stop()
    own_server.start()
    return own_server


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://ann:{WRITTEN}@127.0.0.1:1/db",
        f"postgresql+psycopg://ann@127.0.0.1:1/db?password={WRITTEN}",
        f"postgresql+psycopg://ann:{WRITTEN}@/db?host=/nonexistent&sslpassword={WRITTEN}",
        f"postgresql+psycopg://ann:{WRITTEN}@/db?host=/nonexistent&{SECRET[:4]}={WRITTEN}",
        f"postgresql+psycopg://ann:{WRITTEN}@127.0.0.1:99999/db",
        f"postgresql://ann:{WRITTEN}@127.0.0.1/db",
    ],
)
def test_no_error_at_the_start_has_a_password(url):
    database = Database(None, url)
    with pytest.raises(StoreError) as caught:
        database.startService()
    assert SECRET not in f"{caught.value}{database!r}"
    assert WRITTEN not in f"{caught.value}{database!r}"


def test_a_wrong_password_is_told_without_it(locked_server):
    url = locked_server.url("postgres", f"ann:{WRITTEN}")
    with pytest.raises(StoreError, match="password authentication failed") as caught:
        Database(None, url).startService()
    assert SECRET not in str(caught.value)
    assert "ann:***@" in str(caught.value)


async def test_no_word_about_an_outage_has_a_password_or_an_address(opened, locked_server):
    name = locked_server.create()
    database = opened(locked_server.url(name, "ann:right"))
    await database.change(add("x"))
    locked_server.execute(f"ALTER ROLE ann PASSWORD '{SECRET}'")
    cut(locked_server, name)
    with logged() as lines:
        error = await refused(database.change(add("y")))
        assert str(error) == f"cannot store: {GONE}"
        assert "right" not in "".join(lines)
        assert "password authentication failed" in "".join(lines)
    locked_server.execute("ALTER ROLE ann PASSWORD 'right'")
    await database.change(add("z"))
    assert await database.run(names) == {"x", "z"}


async def test_a_server_out_of_connections(opened, own_server):
    name = own_server.create()
    url = own_server.url(name)
    database = opened(url)
    await database.change(add("n"))
    own_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    cut(own_server, name)
    with pytest.raises(psycopg.OperationalError):
        own_server.execute("SELECT 1", name)
    assert str(await refused(database.change(add("m")))) == f"cannot store: {GONE}"
    own_server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    await database.change(add("o"))
    assert await database.run(names) == {"n", "o"}
