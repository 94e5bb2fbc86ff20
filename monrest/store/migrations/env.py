"""The entry of Alembic: migrations in the transaction of the connection that it was given."""

from __future__ import annotations

from alembic import context

from monrest.store.migrate import VERSION_TABLE
from monrest.store.tables import all_tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=all_tables(),
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
