"""Bringing a database to the tables of this version, with Alembic inside this process.

The migrations are a package beside this module. All of them run in one transaction, and two
daemons that start at once wait for each other: the second one finds nothing left to do.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import SQLAlchemyError

from monrest.store import engines
from monrest.store.failures import StoreError, is_away, told

VERSION_TABLE = "monrest_version"
"""Where the database keeps its revision; Alembic's own name may be taken by a neighbour."""

_LOCK = 0x6D6F6E72657374  # "monrest"; any number that others do not use


def config() -> AlembicConfig:
    """Make the Alembic configuration; nothing of it comes from a file."""
    made = AlembicConfig()
    folder = Path(__file__).parent / "migrations"
    made.set_main_option("script_location", str(folder).replace("%", "%%"))
    return made


def upgrade(url: URL) -> None:
    """Migrate the database to the newest revision; StoreError when that cannot be done.

    A database whose revision this version does not know, made by a newer one, is left alone.
    """
    engine = engines.migrating(url)
    try:
        with engine.begin() as connection:
            upgrade_connection(connection)
    except SQLAlchemyError as error:
        reason = engines.without_secrets(told(error), url)
        text = f"database.url: {engines.shown(url)}: {reason}"
        raise StoreError(text, away=is_away(error)) from None
    finally:
        engine.dispose()


def upgrade_connection(connection: Connection) -> None:
    """Migrate inside the transaction of ``connection``, alone; StoreError as ``upgrade``."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    alembic = config()
    alembic.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(alembic)
    known = {script.revision for script in scripts.walk_revisions()}
    present = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_heads()
    unknown = [revision for revision in present if revision not in known]
    if unknown:
        raise StoreError(
            f"database.url: the database was made by a newer version: its revision is "
            f"{', '.join(unknown)}, this version knows none after {scripts.get_current_head()}"
        )
    try:
        command.upgrade(alembic, "head")
    except CommandError as error:
        raise StoreError(f"database.url: the database cannot be migrated: {error}") from None
