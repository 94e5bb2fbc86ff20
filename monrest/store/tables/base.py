"""What all tables have in common."""

from __future__ import annotations

from sqlalchemy import JSON, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)

# An absent document is NULL, not the JSON text "null".
DOCUMENT = JSON(none_as_null=True)
