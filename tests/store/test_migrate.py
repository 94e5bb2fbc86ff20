"""The migrations bring databases of 0.1 and 0.2 to the declared tables, and refuse what they do not know."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from monrest.store import engines, migrate
from monrest.store.database import Database, StoreError
from monrest.store.tables import all_tables
from tests.fakes.store import sqlite_url

ROOT = Path(__file__).resolve().parents[2]
DATABASES = Path(__file__).with_name("databases")


@pytest.fixture
def database_url(empty_database_url):
    return empty_database_url


@pytest.fixture
def postgres_url(empty_postgres_url):
    return empty_postgres_url


def change_by_hand(url, *statements):
    parsed = engines.parse(url)
    if engines.is_sqlite(parsed):
        engines.prepare_file(Path(parsed.database))
    engine = engines.migrating(parsed)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def looked_at(url, look):
    engine = engines.migrating(engines.parse(url))
    try:
        with engine.begin() as connection:
            return look(connection)
    finally:
        engine.dispose()


def differences(connection):
    options = {
        "version_table": migrate.VERSION_TABLE,
        "compare_type": True,
        "compare_server_default": True,
    }
    return compare_metadata(MigrationContext.configure(connection, opts=options), all_tables())


def tables(connection):
    return set(inspect(connection).get_table_names())


_SQLITE = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_POSTGRES = """
    SELECT 'column', relname || '.' || attname, format_type(atttypid, atttypmod) || attnotnull
        || coalesce(pg_get_expr(adbin, adrelid), '')
    FROM pg_class JOIN pg_attribute a ON attrelid = pg_class.oid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attnum > 0 AND relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'index', '', indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'key', conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'partition', '', pg_get_partkeydef(partrelid) FROM pg_partitioned_table
"""


def declared(connection):
    """All that the database knows of its tables, columns in any order."""
    found = connection.exec_driver_sql(
        _SQLITE if connection.dialect.name == "sqlite" else _POSTGRES
    )
    return sorted(
        (kind, name, *sorted(line.strip(" \t,") for line in text.strip().splitlines()))
        for kind, name, text in found
    )


def copied(url, version):
    """A database as a daemon of that version left it."""
    kind = engines.parse(url).get_backend_name()
    scripts = [DATABASES / f"{one}.{kind}.sql" for one in ("0.1", "0.2") if one <= version]
    change_by_hand(url)
    with engines.migrating(engines.parse(url)).begin() as connection:
        cursor = connection.connection.cursor()
        for line in "".join(one.read_text() for one in scripts).split(";\n"):
            if line.strip():
                cursor.execute(line)


@pytest.mark.parametrize("version", ["0.1", "0.2"])
async def test_a_database_of_an_older_version_opens_with_all_that_is_in_it(
    opened, empty_database_url, version
):
    url = empty_database_url
    copied(url, version)
    before = looked_at(url, contents)
    assert {one for one, rows in before.items() if rows} >= {
        "api_keys",
        "jobs",
        "logcache_lines",
        "reports",
    }
    database = opened(url)
    after = await database.run(contents)
    assert {one: after[one] for one in before if one in after} == {
        one: rows for one, rows in before.items() if one in after
    }
    assert before.keys() - after.keys() <= {"webhook_alerts", "own_events", "logcache_days"}
    assert len(after["events"]) == len(before.get("own_events", ()))


async def test_days_that_lacked_lines_are_imported_again(opened, empty_database_url):
    """Of a log cache of 0.2, which had compared them with the core."""
    url = empty_database_url
    copied(url, "0.2")
    change_by_hand(url, "UPDATE logcache_days SET missing = 3 WHERE day = 1763942400")
    (before,) = looked_at(url, cached)
    assert before.covered_from < 1763942400 + 86400
    (after,) = await opened(url).run(cached)
    assert after.covered_from == 1763942400 + 86400
    assert after.wanted_from == before.wanted_from


def cached(connection):
    return list(connection.exec_driver_sql("SELECT * FROM logcache_sites"))


async def test_the_migrations_make_what_a_new_database_gets(opened, database_url):
    copied(database_url, "0.2")
    await opened(database_url).stopService()
    partitions = looked_at(database_url, tables) - {"monrest_version", *all_tables().tables}
    change_by_hand(database_url, *(f"DROP TABLE {one}" for one in partitions))
    migrated = looked_at(database_url, declared)
    change_by_hand(database_url, *(f"DROP TABLE {one}" for one in reversed(_all())))
    assert looked_at(database_url, tables) == set()
    looked_at(database_url, migrate.upgrade_connection)
    assert migrated == looked_at(database_url, declared)


def contents(connection):
    """The rows of every table but the version."""
    found = {}
    for table in inspect(connection).get_table_names():
        if table != migrate.VERSION_TABLE:
            found[table] = sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {table}")))
    return found


def _all():
    return ["monrest_version", *(table.name for table in all_tables().sorted_tables)]


def test_a_new_database_has_the_number_of_the_newest_migration():
    assert ScriptDirectory.from_config(migrate.config()).get_current_head() == migrate.HEAD


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE users ADD COLUMN more TEXT",
        "ALTER TABLE users DROP COLUMN tz",
        "DROP INDEX ix_sessions_active",
    ],
)
async def test_the_comparison_sees_differences(database, database_url, statement):
    change_by_hand(database_url, statement)
    assert len(looked_at(database_url, differences)) == 1


def test_a_database_of_a_newer_version_is_refused_and_left_alone(database_url):
    change_by_hand(
        database_url,
        "CREATE TABLE monrest_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO monrest_version VALUES ('9999')",
    )
    with pytest.raises(StoreError) as caught:
        Database(None, database_url).startService()
    assert str(caught.value) == (
        "database.url: the database was made by a newer version: its revision is 9999, "
        f"this version knows none after {migrate.HEAD}"
    )
    assert looked_at(database_url, tables) == {"monrest_version"}


def test_a_migration_that_fails_leaves_nothing_behind(database_url):
    change_by_hand(database_url, "CREATE TABLE users (name TEXT)")
    with pytest.raises(StoreError, match="already exists"):
        Database(None, database_url).startService()
    assert looked_at(database_url, tables) == {"users"}


def test_daemons_that_start_at_once_migrate_only_once(database_url, children):
    """All of them start, and the tables are there; without a lock all but one would fail."""
    started = [children("start", database_url) for _ in range(3)]
    assert [child.line() for child in started] == ["ready"] * 3
    for child in started:
        child.go()
    assert [child.line() for child in started] == ["done"] * 3
    assert looked_at(database_url, differences) == []


def test_a_second_daemon_waits_for_the_migration_of_the_first(
    postgres_server, postgres_url, children
):
    """And not for one of its tables, whose name it would find taken afterwards."""
    child = children("start", postgres_url)
    assert child.line() == "ready"
    waiting = "SELECT wait_event FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    engine = engines.migrating(engines.parse(postgres_url))
    with engine.begin() as connection:
        migrate.upgrade_connection(connection)
        child.go()
        while not (found := postgres_server.execute(waiting)):
            assert child.process.poll() is None
        assert found == [("advisory",)]
    engine.dispose()
    assert child.line() == "done"
    assert looked_at(postgres_url, differences) == []


def test_a_built_package_has_the_migrations(tmp_path):
    """``pip install .`` and not only the checkout."""
    built, url = tmp_path / "built", sqlite_url(tmp_path)
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(built)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    code = (
        "import sys; from monrest.store.database import Database; "
        "Database(None, sys.argv[1]).startService(); "
        "import monrest; print(monrest.__file__)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, url],
        cwd=built,
        env={**os.environ, "PYTHONPATH": str(built)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.strip() == str(built / "monrest" / "__init__.py")
    assert looked_at(url, differences) == []
