"""An Alertmanager is sent the present problems: no alerts are stored any more."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Drop their table."""
    op.drop_table("webhook_alerts")
