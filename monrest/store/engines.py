"""Making SQLAlchemy engines from ``database.url``: how connections are opened and set up.

SQLite: a write-ahead log, every commit synced to the disk, transactions begun by ourselves.
PostgreSQL: time-outs on the server for everything that may hang there.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from monrest.base.hidden import HIDDEN
from monrest.config.addresses import database_problem
from monrest.store.failures import FileReplacedError, Meaning, StoreError, meaning_of

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 5
"""Seconds for a connection to PostgreSQL, unless the URL sets others."""

_BUSY_SECONDS = 1.0
_MIGRATION_SECONDS = 60.0
_SETTING_PAUSE = 0.02
_CAN_SHRINK = "PRAGMA auto_vacuum = INCREMENTAL"
_WRITE_AHEAD = "PRAGMA journal_mode = WAL"
# About 20 ms of an embedded database's work; each question needs the interpreter's lock.
_STEPS = 1_000_000
_SECRET_OPTIONS = ("password", "sslpassword", "oauth_client_secret")


def parse(url: str) -> URL:
    """Read ``database.url``; StoreError, without the url, when it is none that can be used."""
    if problem := database_problem(url):
        raise StoreError(f"database.url: {problem}")
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError("database.url: expected a URL") from None


def is_sqlite(url: URL) -> bool:
    """Whether it is the embedded database."""
    return url.drivername == "sqlite"


def display_url(url: URL) -> str:
    """Spell a URL for people: no password, and of its options only where the server is."""
    where = {key: value for key, value in url.query.items() if key in ("host", "port", "dbname")}
    return url.set(query=where).render_as_string(hide_password=True)


def without_secrets(text: str, url: URL) -> str:
    """Take the password out of a text that a driver wrote."""
    secrets = [url.password, *(url.query.get(key) for key in _SECRET_OPTIONS)]
    for secret in secrets:
        for part in secret if isinstance(secret, tuple) else (secret,):
            if part:
                text = text.replace(part, HIDDEN)
    return text


def prepare_file(path: Path) -> None:
    """Make an empty database file that only its owner can read, or take others' rights away.

    SQLite gives its write-ahead log the mode of the file. The directory is made when only it is
    missing. Raises StoreError.
    """
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for suffix in ("", "-wal", "-shm"):
            file = path.with_name(path.name + suffix)
            if file.exists() and file.stat().st_mode & 0o077:
                file.chmod(0o600)
    except OSError as error:
        raise StoreError(f"database.url: {path}: {error.strerror or error}") from None


def writing(url: URL, size: int, seconds: float) -> Engine:
    """Make an engine for transactions that change something, with at most ``size`` connections.

    They see each other's changes as if they had run one after the other. ``seconds`` is how
    long a statement may take.
    """
    if is_sqlite(url):
        return _sqlite(url, size, "BEGIN IMMEDIATE", _BUSY_SECONDS)
    return _postgres(url, size, "SERIALIZABLE", statement=seconds, lock=seconds)


def reading(url: URL, size: int, seconds: float) -> Engine:
    """Make an engine whose transactions see one state of the database and cannot change it."""
    if is_sqlite(url):
        return _sqlite(url, size, "BEGIN", _BUSY_SECONDS, "PRAGMA query_only = ON")
    return _postgres(url, size, "REPEATABLE READ", statement=seconds, lock=seconds, read_only=True)


def asking(url: URL, seconds: float) -> Engine:
    """Make an engine with one connection to a server, to see whether it answers."""
    soon = url.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
    return reading(soon, 1, seconds)


def migrating(url: URL) -> Engine:
    """Make an engine for the one transaction of a migration, whose statements may take long."""
    if is_sqlite(url):
        # How a file shrinks is set before anything is in it, and written each time it is set.
        path = Path(url.database or "")
        new = (_CAN_SHRINK,) if path.exists() and not path.stat().st_size else ()
        return _sqlite(url, 1, "BEGIN IMMEDIATE", _MIGRATION_SECONDS, *new, _WRITE_AHEAD)
    # A daemon that waited for the lock must see the tables that the other one made meanwhile.
    return _postgres(url, 1, "READ COMMITTED", statement=0, lock=_MIGRATION_SECONDS)


def _sqlite(url: URL, size: int, begin: str, busy: float, *settings: str) -> Engine:
    path = url.database or ""

    def connect() -> sqlite3.Connection:
        # Never make the file: where it went missing, an empty one would hide it.
        connection = sqlite3.connect(
            f"file:{quote(path)}?mode=rw",
            uri=True,
            timeout=busy,
            isolation_level=None,  # the driver begins nothing on its own
            check_same_thread=False,  # it moves between threads, never used by two at a time
        )
        for setting in (*settings, "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"):
            _set(connection, setting, busy)
        return connection

    engine = create_engine(
        "sqlite:///file", creator=connect, pool_size=size, max_overflow=0, hide_parameters=True
    )

    def connected(_: object, record: Any) -> None:
        record.info["file"] = _identity(path)

    def begun(connection: Connection) -> None:
        if connection.info["file"] != _identity(path):
            raise FileReplacedError(f"{path} is not the file any more that was opened")
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _set(connection: sqlite3.Connection, setting: str, seconds: float) -> None:
    """Execute a setting; changing to a write-ahead log does not wait for others by itself."""
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute(setting)
        except sqlite3.Error as error:
            if meaning_of(error) is not Meaning.BUSY or time.monotonic() > end:
                raise
            time.sleep(_SETTING_PAUSE)
        else:
            return


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  with each transaction: a Path costs more than the call
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _postgres(
    url: URL,
    size: int,
    isolation: Any,
    *,
    statement: float,
    lock: float,
    read_only: bool = False,
) -> Engine:
    defaults = {
        "connect_timeout": str(CONNECT_SECONDS),
        "application_name": "monrest",
        "keepalives_idle": "30",
        "keepalives_interval": "5",
        "keepalives_count": "3",
    }
    engine = create_engine(
        url.update_query_dict({**defaults, **url.query}),
        pool_size=size,
        max_overflow=0,
        pool_use_lifo=True,
        hide_parameters=True,
        isolation_level=isolation,
    )
    settings = {
        "statement_timeout": statement,
        "lock_timeout": lock,
        "idle_in_transaction_session_timeout": statement,
    }

    def connected(connection: psycopg.Connection[Any], _: object) -> None:
        # Not as start-up options: connection poolers refuse those.
        connection.autocommit = True
        for name, seconds in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, str(int(seconds * 1000))))
        connection.autocommit = False
        connection.read_only = read_only

    event.listen(engine, "connect", connected)
    return engine


def stop_when(connection: Any, given_up: Callable[[], bool] | None) -> None:
    """Let an embedded database ask every few milliseconds whether to end its statement.

    Its own call to interrupt does nothing between two statements, and the next would run on.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.set_progress_handler(given_up, _STEPS if given_up else 0)


def interrupt(connection: Any) -> None:
    """End the statement that a connection to PostgreSQL waits for, from another thread.

    Its socket is shut down: a server that hangs would not hear a request to cancel either.
    """
    if isinstance(connection, sqlite3.Connection):
        return  # see stop_when
    import psycopg

    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        return  # it is closed already
