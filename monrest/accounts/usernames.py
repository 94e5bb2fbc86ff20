"""Names of users as they come in: checked, then changed as the configuration says.

Rules: docs/spec/accounts.md, "Users".
"""

from __future__ import annotations

from typing import Any

import re2
from attrs import frozen

from monrest.api.fields import AS_IT_IS, Reading, Text
from monrest.base.errors import BadRequest
from monrest.base.values import INTERNAL
from monrest.config import AuthConfig

LONGEST_USER = 255
"""Characters of a name."""


@frozen
class UserName:
    """A name in force, and the ``original`` that was presented."""

    name: str
    original: str


@frozen(kw_only=True)
class UserField(Text):
    """A parameter that names a user, empty for none."""

    longest: int = LONGEST_USER

    def read(self, value: Any, at: Reading = AS_IT_IS) -> str:
        text = str(value or "").strip()
        if text:
            check(text, f"{at.where}{self.name}")
        return text


@frozen
class UserNames:
    """Reads names from outside."""

    config: AuthConfig

    def read(self, text: str, where: str) -> UserName:
        """Return the name behind ``text``; BadRequest, naming ``where``, when it is none."""
        check(text, where)
        name = text
        if self.config.lowercase_user:
            name = name.lower()
        if self.config.uppercase_user:
            name = name.upper()
        if self.config.user_replace:
            pattern, replacement = self.config.user_replace
            name = re2.sub(pattern, replacement, name)
        check(name, where)
        return UserName(name, text)


def check(name: str, where: str) -> None:
    """Raise BadRequest unless ``name`` can be a user's; ``where`` is the header or parameter."""
    if not name or len(name) > LONGEST_USER or not name.isprintable():
        expected = f"1 to {LONGEST_USER} printable characters"
    elif "/" in name or ".." in name:
        expected = "a name without '/' and '..'"
    elif name in INTERNAL:
        expected = "another name, this one is internal"
    else:
        return
    raise BadRequest("invalid user name", f"{where}: expected {expected}")
