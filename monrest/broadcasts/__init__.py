"""Broadcasts: their records, their texts and who sees them when."""
