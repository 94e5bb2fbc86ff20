"""Days of the log cache are no longer compared with the core: what is known of them goes."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"

_DOUBTFUL = (
    "SELECT max(day) + 86400 FROM logcache_days "
    "WHERE logcache_days.site = logcache_sites.id AND missing > 0"
)


def upgrade() -> None:
    """Drop the table; the next import fetches the days that lack lines, and those before."""
    op.execute(
        f"UPDATE logcache_sites SET covered_from = ({_DOUBTFUL}) "  # noqa: S608  no text from outside
        f"WHERE covered_from < ({_DOUBTFUL})"
    )
    op.drop_table("logcache_days")
