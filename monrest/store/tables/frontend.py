"""Recurring downtimes, broadcasts and dashboards."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Table, Text

from monrest.store.tables.base import DOCUMENT, metadata

recurring_downtimes = Table(
    "recurring_downtimes",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("record", DOCUMENT, nullable=False),
    Column("sites", DOCUMENT, nullable=False),
    Column("error", Text),
    Column("failure", Text),
    Column("next_at", BigInteger, index=True),
    Column("version", BigInteger, nullable=False),
)
"""Recurring downtimes: ``sites`` are ids with the names they had.

``error`` is what a check found, ``failure`` what went wrong when it came last, ``next_at`` the
first time that has no occurrence yet; ``version`` grows with every change.
"""

downtime_occurrences = Table(
    "downtime_occurrences",
    metadata,
    Column(
        "downtime",
        BigInteger,
        ForeignKey("recurring_downtimes.number", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("until", BigInteger, nullable=False),
    Column("open", Boolean, nullable=False, index=True),
    Column("number", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("accepted", DOCUMENT, nullable=False),
)
"""The times at which downtimes came; of use ``until`` then. ``number`` is that of the duty of who
works or worked at it, 0 for nobody; ``accepted`` are the commands that each site has taken."""

broadcasts = Table(
    "broadcasts",
    metadata,
    Column("file", Text, primary_key=True),
    Column("record", DOCUMENT, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
)
"""Broadcasts; ``changed`` is the time of the last change."""

dashboards = Table(
    "dashboards",
    metadata,
    Column("nr", Text, primary_key=True),
    Column("record", DOCUMENT, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
)
"""Dashboards, without what is shown at present."""

dashboard_backups = Table(
    "dashboard_backups",
    metadata,
    Column("nr", Text, ForeignKey("dashboards.nr", ondelete="CASCADE"), primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("record", DOCUMENT, nullable=False),
)
"""Some of the records that a dashboard had before, by the time until which each was in force."""

dashboard_runtime = Table(
    "dashboard_runtime",
    metadata,
    Column("nr", Text, ForeignKey("dashboards.nr", ondelete="CASCADE"), primary_key=True),
    Column("username", Text, primary_key=True),
    Column("data", DOCUMENT, nullable=False),
)
"""What is shown on a dashboard at present, by panel; administrators share that of nobody."""

dashboard_maintenance = Table(
    "dashboard_maintenance",
    metadata,
    Column("nr", Text, primary_key=True),
    Column("text", Text, nullable=False),
)
"""Dashboards in maintenance, scripted ones as well, and what is told instead of their panels."""
