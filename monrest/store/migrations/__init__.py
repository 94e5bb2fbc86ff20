"""The migrations of the database, run by ``monrest.store.migrate``."""
