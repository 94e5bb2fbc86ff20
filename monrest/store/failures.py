"""Errors of a database by their meaning: try again, report to the caller, or a bug of ours.

The only module that knows SQLite's and PostgreSQL's error codes.
"""

from __future__ import annotations

import sqlite3
import sys
from enum import Enum, auto
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

if TYPE_CHECKING:
    import psycopg


class StoreError(Exception):
    """The database cannot be used at all; the text says why and contains no password.

    ``away``: it may be there in a moment, as that of a machine that starts.
    """

    def __init__(self, text: str, *, away: bool = False) -> None:
        super().__init__(text)
        self.away = away


class FileReplacedError(Exception):
    """The file of the embedded database was taken away or is another one now."""


class Meaning(Enum):
    """The outcome of a failed transaction."""

    BUSY = auto()
    """Another one was in the way and nothing was changed; it may work in a moment."""
    LOST = auto()
    """No connection to the database, or not any more."""
    FULL = auto()
    """No room for more."""
    SLOW = auto()
    """It took too long and was ended."""
    REFUSED = auto()
    """The database is there and cannot be used: its files, its rights, its state."""
    VALUE = auto()
    """A value that this database cannot hold."""
    OURS = auto()
    """None of these, such as a violated constraint, which the caller understands."""


_SQLITE = {
    sqlite3.SQLITE_BUSY: Meaning.BUSY,
    sqlite3.SQLITE_LOCKED: Meaning.BUSY,
    sqlite3.SQLITE_FULL: Meaning.FULL,
    sqlite3.SQLITE_INTERRUPT: Meaning.SLOW,
    sqlite3.SQLITE_IOERR: Meaning.REFUSED,
    sqlite3.SQLITE_CANTOPEN: Meaning.REFUSED,
    sqlite3.SQLITE_READONLY: Meaning.REFUSED,
    sqlite3.SQLITE_PERM: Meaning.REFUSED,
    sqlite3.SQLITE_CORRUPT: Meaning.REFUSED,
    sqlite3.SQLITE_NOTADB: Meaning.REFUSED,
    sqlite3.SQLITE_NOMEM: Meaning.REFUSED,
}
# A file that may not grow (RLIMIT_FSIZE, a quota) is an input/output error to SQLite.
_SQLITE_FULL = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})

_POSTGRES = {
    "40001": Meaning.BUSY,  # serialization failure
    "40P01": Meaning.BUSY,  # deadlock
    "55P03": Meaning.BUSY,  # lock not available in time
    "53100": Meaning.FULL,
    "57014": Meaning.SLOW,  # statement_timeout
    "25P03": Meaning.SLOW,  # idle_in_transaction_session_timeout
    "25P04": Meaning.SLOW,  # transaction_timeout
    "25006": Meaning.REFUSED,  # read-only: a standby, or our own reading connection
    "57P01": Meaning.LOST,
    "57P02": Meaning.LOST,
    "57P03": Meaning.LOST,
    "57P05": Meaning.LOST,
}
_POSTGRES_CLASSES = {
    "08": Meaning.LOST,  # connection exception
    "28": Meaning.REFUSED,  # authorization
    "3D": Meaning.REFUSED,  # no such database
    "42": Meaning.OURS,
    "53": Meaning.REFUSED,  # too many connections, out of memory
    "58": Meaning.REFUSED,  # input/output error of the server
    "XX": Meaning.REFUSED,  # corrupt
}


def meaning_of(error: BaseException) -> Meaning:
    """Tell what an exception that came out of a transaction means."""
    if isinstance(error, FileReplacedError):
        return Meaning.LOST
    if isinstance(error, PoolTimeout):
        return Meaning.SLOW
    if isinstance(error, (UnicodeEncodeError, OverflowError)):
        return Meaning.VALUE
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        if code is None:
            return Meaning.OURS
        return Meaning.FULL if code in _SQLITE_FULL else _SQLITE.get(code & 0xFF, Meaning.OURS)
    # Without PostgreSQL its client is never imported: it takes 8 MB.
    if "psycopg" in sys.modules:
        import psycopg

        if isinstance(cause, psycopg.Error):
            return _of_postgres(cause)
    return Meaning.OURS


def _of_postgres(error: psycopg.Error) -> Meaning:
    import psycopg

    state = error.sqlstate
    if state is not None:
        failure = _POSTGRES.get(state) or _POSTGRES_CLASSES.get(state[:2])
        if failure is not None:
            return failure
    if isinstance(error, psycopg.DataError):
        return Meaning.VALUE
    # Without a state the server never answered: refused, timed out, cut off.
    if state is None and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return Meaning.LOST
    return Meaning.OURS


_COMING = ("starting up", "shutting down", "recovery", "too many")


def is_away(error: BaseException) -> bool:
    """Whether a database that cannot be opened may be there in a moment.

    A server that answers and refuses, for example because it has no such database, will do so
    again; its refusals of a connection come without a code.
    """
    if meaning_of(error) not in (Meaning.LOST, Meaning.BUSY, Meaning.SLOW):
        return False
    text = error_text(error)
    return "FATAL:" not in text or any(words in text for words in _COMING)


def error_text(error: BaseException) -> str:
    """Return the text of a database's error in one line, without statement and parameters."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    text = " ".join(str(cause).split())
    return text or type(cause).__name__
