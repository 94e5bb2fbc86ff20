"""State: SQLAlchemy Core tables, their migrations and an async door to the database."""
