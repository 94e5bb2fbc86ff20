"""Rows and documents to bytes: JSON, wrapped JSON, CSV, Excel and text (pure, no network)."""
