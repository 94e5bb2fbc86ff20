"""One transaction for each piece of work, which is there after a kill; a file that gives back its room."""

import random
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, gatherResults
from twisted.internet.threads import deferToThread

from monrest.accounts.model import Profile, Session
from monrest.base.errors import BadRequest, Unavailable
from monrest.store import engines
from monrest.store.database import Database, StoreError
from monrest.store.space import give_back, is_loose
from tests.fakes.store import sqlite_url
from tests.store.rows import add, add_everywhere, count, increment, names, names_everywhere

sessions, users = Session.table, Profile.table

PATIENCE = 30


async def test_values_come_back_as_they_went_in(database):
    row = {
        "name": "Jürgen 😀",
        "locked": True,
        "failed": 2**40,
        "last_failed": {"time": 1, "ip": "::1", "forwarded_for": None},
        "last_success": [],
        "tz": "",
        "created": 4_102_444_800,
    }
    await database.change(lambda connection: connection.execute(insert(users).values(row)).rowcount)

    found = await database.run(
        lambda connection: connection.execute(select(users)).mappings().one()
    )

    assert dict(found) == row


async def test_an_absent_document_is_null(database):
    await database.change(add("ann", last_failed=None))

    def absent(connection):
        return connection.execute(text("SELECT last_failed IS NULL FROM users")).scalar_one()

    assert await database.run(absent)


async def test_work_that_raises_undoes_everything(database):
    def work(connection):
        add_everywhere("ann")(connection)
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        await database.change(work)

    assert await database.run(names_everywhere) == [set(), set(), set()]


async def test_a_violated_constraint_is_the_callers_and_undoes_everything(database):
    await database.change(add("ann"))
    with pytest.raises(IntegrityError) as caught:
        await database.change(add_everywhere("ann"))
    assert caught.value.hide_parameters
    assert await database.run(names_everywhere) == [{"ann"}, set(), set()]


async def test_reading_cannot_change_anything(database, stray_failures):
    with pytest.raises(Unavailable):
        await database.run(add("ann"))
    assert await database.run(count) == 0


async def test_reading_sees_one_state(database):
    """Also when another transaction ends between two statements."""
    counted, changed = threading.Event(), threading.Event()

    def twice(connection):
        before = count(connection)
        counted.set()
        assert changed.wait(PATIENCE)
        return before, count(connection)

    reading = database.run(twice)
    assert await deferToThread(counted.wait, PATIENCE)
    await database.change(add("ann"))
    changed.set()

    assert await reading == (0, 0)
    assert await database.run(count) == 1


@pytest.mark.parametrize("value", ["lone \ud800 surrogate", "number"])
async def test_what_no_database_can_hold_is_a_bad_request(database, value):
    values = {"failed": 2**63} if value == "number" else {"tz": value}
    with pytest.raises(BadRequest, match="cannot store: expected text without NUL"):
        await database.change(add("ann", **values))
    assert await database.run(count) == 0


async def test_postgresql_holds_no_nul(opened, postgres_url):
    database = opened(postgres_url)
    with pytest.raises(BadRequest, match="expected text without NUL"):
        await database.change(add("a\0b"))


async def test_of_many_parallel_changes_none_is_lost(database):
    await gatherResults([database.change(add(f"n{number}")) for number in range(100)])
    assert await database.run(names) == {f"n{number}" for number in range(100)}


async def test_of_many_parallel_increments_of_one_row_none_is_lost(database):
    await database.change(add("ann"))
    await gatherResults([database.change(increment("ann")) for _ in range(100)])
    failed = await database.run(
        lambda connection: connection.execute(select(users.c.failed)).scalar()
    )
    assert failed == 100


async def test_of_increments_from_two_processes_none_is_lost(database, database_url, children):
    await database.change(add("ann"))
    both = [children("count", database_url, "ann", 60) for _ in range(2)]
    assert [child.line() for child in both] == ["ready"] * 2
    for child in both:
        child.go()
    assert [child.line() for child in both] == ["done"] * 2
    failed = await database.run(
        lambda connection: connection.execute(select(users.c.failed)).scalar()
    )
    assert failed == 120


async def test_reading_goes_on_beside_a_change(database):
    begun, read = threading.Event(), threading.Event()

    def slow(connection):
        add("ann")(connection)
        begun.set()
        assert read.wait(PATIENCE)

    change = database.change(slow)
    assert await deferToThread(begun.wait, PATIENCE)
    assert await database.run(count) == 0
    read.set()
    await change
    assert await database.run(count) == 1


async def test_cancelling_ends_the_wait_and_not_the_change(database):
    begun, left = threading.Event(), threading.Event()

    def work(connection):
        add("ann")(connection)
        begun.set()
        assert left.wait(PATIENCE)

    change = database.change(work)
    assert await deferToThread(begun.wait, PATIENCE)
    change.cancel()
    with pytest.raises(CancelledError):
        await change
    left.set()
    await database.stopService()  # waits for it
    database.startService()
    assert await database.run(names) == {"ann"}


async def test_a_change_that_waits_for_its_turn_is_made_although_it_was_cancelled(database):
    changes = [database.change(add(f"n{number}")) for number in range(40)]
    for change in changes:
        change.cancel()
        with pytest.raises(CancelledError):
            await change
    await database.stopService()
    database.startService()
    assert await database.run(count) == 40


async def test_cancelling_ends_the_wait_of_a_reader(database):
    begun, left = threading.Event(), threading.Event()

    def work(connection):
        begun.set()
        assert left.wait(PATIENCE)

    reading = database.run(work)
    assert await deferToThread(begun.wait, PATIENCE)
    reading.cancel()
    with pytest.raises(CancelledError):
        await reading
    left.set()


async def test_stopping_waits_for_changes_and_takes_no_more(database):
    changes = [database.change(add(f"n{number}")) for number in range(20)]
    stopped = database.stopService()
    with pytest.raises(Unavailable, match="cannot store: the service does not run"):
        await database.change(add("late"))
    with pytest.raises(Unavailable, match="cannot read what is stored: the service does not run"):
        await database.run(count)
    await stopped
    assert all(change.called for change in changes)
    database.startService()
    assert await database.run(count) == 20


async def test_before_the_start_nothing_is_answered(database_url):
    with pytest.raises(Unavailable):
        await Database(reactor, database_url).run(count)


async def test_stopping_what_never_started_is_no_error(database_url):
    await Database(reactor, database_url).stopService()


async def test_others_can_read_neither_the_file_nor_its_log(opened, tmp_path):
    file = tmp_path / "monrest.sqlite"
    file.touch(mode=0o644)
    await opened(sqlite_url(tmp_path)).change(add("ann"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(
        ["monrest.sqlite", "monrest.sqlite-wal", "monrest.sqlite-shm"], 0o600
    )


async def test_a_log_that_others_could_read_is_closed_to_them(opened, tmp_path, children):
    url = sqlite_url(tmp_path)
    child = children("write", url, "a")
    child.line()
    child.kill()
    child.rest()
    for path in tmp_path.iterdir():
        path.chmod(0o666)
    opened(url)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


async def test_its_directory_is_made_for_its_owner_only(opened, tmp_path):
    await opened(sqlite_url(tmp_path / "var")).change(add("ann"))
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("written", "name"),
    [("plain.sqlite", "plain.sqlite"), ("a b ü '\"&=+%25%3F.sqlite", "a b ü '\"&=+%?.sqlite")],
)
async def test_any_path_will_do(opened, tmp_path, written, name):
    await opened(f"sqlite:///{tmp_path}/{written}").change(add("ann"))
    assert (tmp_path / name).stat().st_size > 0


async def test_stopping_leaves_one_file(opened, tmp_path):
    database = opened(sqlite_url(tmp_path))
    await database.change(add("ann"))
    await database.stopService()
    assert [path.name for path in tmp_path.iterdir()] == ["monrest.sqlite"]


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda folder: (folder / "monrest.sqlite").mkdir(), "Is a directory"),
        (lambda folder: folder.rmdir() or folder.write_text(""), "Not a directory"),
        (lambda folder: (folder / "monrest.sqlite").write_text("x" * 5000), "not a database"),
        (lambda folder: folder.rename(folder.with_name("a")) and None, None),
    ],
)
def test_a_file_that_is_none_ends_the_start(tmp_path, prepare, reason):
    folder = tmp_path / "var"
    folder.mkdir()
    prepare(folder)
    database = Database(None, sqlite_url(folder if reason else folder / "b"))
    with pytest.raises(StoreError, match=reason or "No such file or directory") as caught:
        database.startService()
    assert str(caught.value).startswith("database.url: ")


async def test_a_file_that_was_taken_away_takes_no_changes_until_it_is_back(opened, tmp_path):
    """Otherwise they would go into a file that nobody finds again."""
    database = opened(sqlite_url(tmp_path))
    await database.change(add("ann"))
    saved = [path.rename(path.with_name(f"saved-{path.name}")) for path in tmp_path.iterdir()]
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot store: the database cannot be used"):
            await database.change(add("bob"))
        with pytest.raises(Unavailable):
            await database.run(count)
    assert not Path(tmp_path / "monrest.sqlite").exists()
    for path in saved:
        path.rename(path.with_name(path.name.removeprefix("saved-")))
    await database.change(add("cid"))
    assert await database.run(names) == {"ann", "cid"}


async def test_changes_are_synced_to_the_disk(opened, tmp_path):
    database = opened(sqlite_url(tmp_path))

    def settings(connection):
        return [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous")
        ]

    full = 2
    assert await database.change(settings) == ["wal", full]


async def test_a_session_is_found_by_an_index(database):
    """With thousands of sessions a request must not read them all."""

    def plan(connection):
        if connection.dialect.name == "sqlite":
            explain = "EXPLAIN QUERY PLAN "
        else:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
            explain = "EXPLAIN "
        query = select(sessions.c.address).where(sessions.c.hashed_id == "x")
        compiled = query.compile(connection, compile_kwargs={"literal_binds": True})
        return str(connection.execute(text(f"{explain}{compiled}")).all())

    assert "ndex" in (await database.run(plan)).replace("INDEX", "index")


async def test_what_was_acknowledged_survives_kills(opened, database_url, children):
    acknowledged = set()
    chance = random.Random(7)
    for run in range(4):
        child = children("write", database_url, f"run{run}")
        for _ in range(chance.randrange(1, 120)):
            acknowledged.add(child.line())
        child.kill()
        acknowledged.update(child.rest())

    users, sessions, keys = await opened(database_url).run(names_everywhere)

    assert acknowledged <= users
    assert users == sessions == keys


async def test_two_processes_and_a_kill_of_one_harm_nobody(opened, database_url, children):
    victim, other = (children("write", database_url, name) for name in ("victim", "other"))
    acknowledged = {process.line() for process in (victim, other) for _ in range(20)}
    victim.kill()
    acknowledged.update(victim.rest())
    acknowledged.update(other.line() for _ in range(20))
    other.kill()
    acknowledged.update(other.rest())

    users, sessions, keys = await opened(database_url).run(names_everywhere)

    assert acknowledged <= users
    assert users == sessions == keys


async def test_a_server_that_crashes_keeps_what_was_acknowledged(opened, own_server):
    database = opened(own_server.url(own_server.create()))
    for number in range(20):
        await database.change(add(f"n{number}"))
    own_server.stop("immediate")
    own_server.start()
    assert await database.run(names) == {f"n{number}" for number in range(20)}


@pytest.mark.parametrize("role", ["writing", "migrating"])
def test_no_engine_gives_up_durability_on_postgresql(postgres_url, role):
    url = engines.parse(postgres_url)
    engine = engines.writing(url, 1, 1) if role == "writing" else engines.migrating(url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    engine.dispose()


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


async def test_a_new_file_gives_back_what_was_deleted(opened, tmp_path):
    database = opened(sqlite_url(tmp_path))
    # 8 MB at a time; 16 MB stay for what comes next.
    assert await shrunk(database) >= 5
    await database.stopService()
    assert size(tmp_path / "monrest.sqlite") < 20 * MEGABYTE


async def test_a_file_of_an_older_version_is_rewritten_once(opened, tmp_path):
    path = tmp_path / "monrest.sqlite"
    database = opened(sqlite_url(tmp_path))
    await database.stopService()
    old = sqlite3.connect(path)
    old.executescript("PRAGMA auto_vacuum = NONE; VACUUM;")
    assert old.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    old.close()
    database.startService()
    await shrunk(database)
    await database.stopService()
    assert size(path) < 20 * MEGABYTE
