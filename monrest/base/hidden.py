"""Hiding of values whose names sound like those of secrets. Pure."""

from __future__ import annotations

HIDDEN = "***"
"""The text in the place of a hidden value."""

SENSITIVE = "pass(?!ive)|secret|token|credential|community|(?:api|auth|private)[-_.]?key"
"""Expression, in any case, for the name of a parameter or custom variable that is a secret."""
