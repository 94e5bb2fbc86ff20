"""Bringing a database to the tables of this version, with Alembic inside this process.

An empty database gets the tables as they are declared. One of an older version is brought here by
the migrations, a package beside this module; Alembic is imported for these alone, because it takes
10 MB. All is one transaction, and two daemons that start at once wait for each other: the second
one finds nothing left to do.
"""

from __future__ import annotations

from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from sqlalchemy import URL, Column, Connection, MetaData, String, Table, insert, inspect, select
from sqlalchemy import text as sql
from sqlalchemy.exc import SQLAlchemyError

from monrest.store import engines
from monrest.store.failures import StoreError, error_text, is_away
from monrest.store.migrations import versions
from monrest.store.space import let_shrink
from monrest.store.tables import all_tables

if TYPE_CHECKING:
    from alembic.config import Config as AlembicConfig

HEAD = max(iter_module.name for iter_module in iter_modules(versions.__path__))[1:]
"""The newest migration, after which the tables are the declared ones."""

VERSION_TABLE = "monrest_version"
"""The table with the revision; Alembic's own name may be taken by another program."""

_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
_version.primary_key.name = f"{VERSION_TABLE}_pkc"

_LOCK = 0x6D6F6E72657374  # "monrest"; any number that others do not use


def config() -> AlembicConfig:
    """Make the Alembic configuration; nothing of it comes from a file."""
    from alembic.config import Config as AlembicConfig

    alembic = AlembicConfig()
    folder = Path(__file__).parent / "migrations"
    alembic.set_main_option("script_location", str(folder).replace("%", "%%"))
    return alembic


def upgrade(url: URL) -> None:
    """Migrate the database to the newest revision; StoreError when that cannot be done.

    A database whose revision this version does not know, made by a newer one, is left alone.
    """
    engine = engines.migrating(url)
    try:
        with engine.begin() as connection:
            upgrade_connection(connection)
        if engines.is_sqlite(url):
            let_shrink(engine, Path(url.database or ""))
    except SQLAlchemyError as error:
        reason = engines.without_secrets(error_text(error), url)
        text = f"database.url: {engines.display_url(url)}: {reason}"
        raise StoreError(text, away=is_away(error)) from None
    finally:
        engine.dispose()


def upgrade_connection(connection: Connection) -> None:
    """Migrate inside the transaction of ``connection``, alone; StoreError as ``upgrade``."""
    if connection.dialect.name == "postgresql":
        connection.execute(sql("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if not inspect(connection).has_table(VERSION_TABLE):
        all_tables().create_all(connection, checkfirst=False)
        _version.create(connection)
        connection.execute(insert(_version), {"version_num": HEAD})
    elif list(connection.scalars(select(_version.c.version_num))) != [HEAD]:
        migrate(connection)


def migrate(connection: Connection) -> None:
    """Run the migrations that the database has not seen."""
    from alembic import command
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    alembic = config()
    alembic.attributes["connection"] = connection
    revisions = {
        script.revision for script in ScriptDirectory.from_config(alembic).walk_revisions()
    }
    present = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_heads()
    unknown = [revision for revision in present if revision not in revisions]
    if unknown:
        raise StoreError(
            f"database.url: the database was made by a newer version: its revision is "
            f"{', '.join(unknown)}, this version knows none after {HEAD}"
        )
    try:
        command.upgrade(alembic, "head")
    except CommandError as error:
        raise StoreError(f"database.url: the database cannot be migrated: {error}") from None
