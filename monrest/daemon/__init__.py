"""Everything is built, started, read again and stopped here."""
