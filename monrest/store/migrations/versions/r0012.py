"""Webhooks, what they have to send, and the alerts of an Alertmanager."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("secrets", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("limit", sa.JSON(none_as_null=True)),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("position", sa.Text()),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("paused", sa.Text()),
        sa.Column("paused_at", sa.Double()),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("rests", sa.Double(), nullable=False),
        sa.Column("delivered", sa.Double()),
        sa.Column("error", sa.Text()),
        sa.Column("error_at", sa.Double()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_webhooks"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("webhook", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("made", sa.Double(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("again", sa.Double(), nullable=False),
        sa.Column("status", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("ended", sa.Double()),
        sa.ForeignKeyConstraint(
            ["webhook"],
            ["webhooks.number"],
            name="fk_webhook_deliveries_webhook",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("webhook", "seq", name="pk_webhook_deliveries"),
    )
    op.create_index(
        "ix_webhook_deliveries_open", "webhook_deliveries", ["webhook", "phase", "subject", "seq"]
    )
    op.create_index("ix_webhook_deliveries_event", "webhook_deliveries", ["webhook", "event"])
    op.create_table(
        "webhook_alerts",
        sa.Column("webhook", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("alert", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("starts", sa.Double(), nullable=False),
        sa.Column("ends", sa.Double()),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook"],
            ["webhooks.number"],
            name="fk_webhook_alerts_webhook",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("webhook", "subject", name="pk_webhook_alerts"),
    )
