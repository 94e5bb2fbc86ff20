"""Sessions that end with the password with which they began."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column; of sessions that are there already nobody knows the password."""
    op.execute("DELETE FROM sessions")
    op.add_column("sessions", sa.Column("proof", sa.Text()))
