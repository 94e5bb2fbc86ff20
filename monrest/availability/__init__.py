"""How long objects were in which state, by their log."""
