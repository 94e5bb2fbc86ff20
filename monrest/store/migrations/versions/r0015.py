"""All events are stored in one table, with what of each site is stored without a gap."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_COPIED = "number, time, type, subject, data, owner, roles, name"


def upgrade() -> None:
    """Make the tables, and take over what is in no log."""
    document = sa.JSON(none_as_null=True)
    op.create_table(
        "events",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("data", document, nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("roles", document, nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("nth", sa.BigInteger()),
        sa.PrimaryKeyConstraint("number", name="pk_events"),
        sa.UniqueConstraint("name", name="uq_events_name"),
    )
    op.create_index("ix_events_time", "events", ["time"])
    op.create_index("ix_events_log", "events", ["site", "time", "nth"])
    op.create_table(
        "event_sites",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("first", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("site", "first", name="pk_event_sites"),
    )
    op.execute(
        f"INSERT INTO events ({_COPIED}, site) "  # noqa: S608  no text from outside
        f"SELECT {_COPIED}, coalesce(site, '') FROM own_events"
    )
    op.drop_table("own_events")
