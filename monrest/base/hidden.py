"""What is not shown: values whose names sound like those of secrets. Pure."""

from __future__ import annotations

HIDDEN = "***"
"""What stands in the place of something that is not shown."""

SENSITIVE = "pass(?!ive)|secret|token|credential|community|(?:api|auth|private)[-_.]?key"
"""Expression, in any case, for the name of a parameter or custom variable that is a secret."""
