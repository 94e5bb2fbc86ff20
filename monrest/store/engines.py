"""Making SQLAlchemy engines from ``database.url``: how connections are opened and set up.

SQLite: a write-ahead log, every commit synced to the disk, transactions begun by ourselves.
PostgreSQL: time-outs on the server for everything that may hang there.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from monrest.store.failures import StoreError

CONNECT_SECONDS = 5
"""How long making a connection to PostgreSQL may take."""

_BUSY_SECONDS = 1.0
_SECRET_OPTIONS = ("password", "passfile", "sslpassword")


def parse(url: str) -> URL:
    """Read ``database.url``; StoreError, without the url, when it is none that can be used."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(
            "database.url: expected sqlite:////path/to/file or "
            "postgresql+psycopg://user@host/database"
        ) from None
    if parsed.drivername == "postgresql+psycopg":
        return parsed
    if parsed.drivername in ("sqlite", "sqlite+pysqlite") and parsed.database not in (
        None,
        "",
        ":memory:",
    ):
        return parsed
    raise StoreError(
        "database.url: expected sqlite:////path/to/file or postgresql+psycopg://user@host/database"
    )


def shown(url: URL) -> str:
    """Spell a URL for people: no password, wherever it stands."""
    hidden = url.update_query_dict(
        {key: "***" for key in _SECRET_OPTIONS if key in url.query}, append=False
    )
    return hidden.render_as_string(hide_password=True)


def without_secrets(text: str, url: URL) -> str:
    """Take the password out of a text that a driver wrote."""
    secrets = [url.password, *(url.query.get(key) for key in _SECRET_OPTIONS)]
    for secret in secrets:
        for one in secret if isinstance(secret, tuple) else (secret,):
            if one:
                text = text.replace(one, "***")
    return text


def prepare_file(path: Path) -> None:
    """Make an empty database file that only its owner can read, or take others' rights away.

    SQLite gives its write-ahead log the mode of the file. Raises OSError.
    """
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists() and file.stat().st_mode & 0o077:
            file.chmod(0o600)


def writing(url: URL, size: int, seconds: float) -> Engine:
    """Make an engine for transactions that change something, with at most ``size`` connections.

    They see each other's changes as if they had run one after the other. ``seconds`` is how
    long a statement may take.
    """
    if url.drivername.startswith("sqlite"):
        return _sqlite(url, size, "BEGIN IMMEDIATE", query_only=False)
    return _postgres(url, size, seconds, "SERIALIZABLE", read_only=False)


def reading(url: URL, size: int, seconds: float) -> Engine:
    """Make an engine whose transactions see one state of the database and cannot change it."""
    if url.drivername.startswith("sqlite"):
        return _sqlite(url, size, "BEGIN", query_only=True)
    return _postgres(url, size, seconds, "REPEATABLE READ", read_only=True)


def migrating(url: URL) -> Engine:
    """Make an engine for the one transaction of a migration, whose statements may take long."""
    if url.drivername.startswith("sqlite"):
        return _sqlite(url, 1, "BEGIN IMMEDIATE", query_only=False)
    # Whoever waited for the lock must see the tables that the other one made meanwhile.
    return _postgres(url, 1, 0, "READ COMMITTED", read_only=False)


def _sqlite(url: URL, size: int, begin: str, *, query_only: bool) -> Engine:
    engine = create_engine(
        url,
        pool_size=size,
        max_overflow=0,
        hide_parameters=True,
        # A connection wanders between the threads of one pool, never used by two at a time.
        connect_args={"check_same_thread": False, "timeout": _BUSY_SECONDS},
    )

    def connected(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # the driver begins nothing on its own
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if query_only:
            connection.execute("PRAGMA query_only = ON")

    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _postgres(url: URL, size: int, seconds: float, isolation: Any, *, read_only: bool) -> Engine:
    given = url.query.get("connect_timeout")
    engine = create_engine(
        url,
        pool_size=size,
        max_overflow=0,
        pool_pre_ping=True,  # a connection that died while idle is replaced before it is used
        pool_use_lifo=True,
        hide_parameters=True,
        isolation_level=isolation,
        connect_args={
            "connect_timeout": int(str(given)) if given else CONNECT_SECONDS,
            "application_name": url.query.get("application_name", "monrest"),
            "keepalives_idle": 30,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        },
    )
    milliseconds = int(seconds * 1000)

    def connected(connection: Any, _: object) -> None:
        connection.autocommit = True
        for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(f"SET {setting} = {milliseconds}")
        connection.autocommit = False
        connection.read_only = read_only

    event.listen(engine, "connect", connected)
    return engine


def interrupt(connection: Any) -> None:
    """End whatever a driver's connection waits for, from another thread.

    SQLite gives up the statement. PostgreSQL's socket is shut down, because a server that
    hangs would not hear a request to cancel either.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.interrupt()
        return
    with socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
