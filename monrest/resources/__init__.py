"""The API: every endpoint declared once, and what the declarations are turned into."""
