"""Databases of version 0.1 stand here.

A new database gets the tables as they are declared and stands at the newest revision at once.
"""

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Nothing comes before version 0.1."""
