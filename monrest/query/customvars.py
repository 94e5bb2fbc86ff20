"""Custom variables: the columns that they make, and who may see them.

Rules: docs/spec/query.md, "Custom variables and secrets".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

_OF_HOST = "HOST"


def columns(variables: Mapping[str, str], prefix: str) -> dict[str, str]:
    """One key per variable: ``prefix`` (``_``, ``_HOST``) and the name in upper case.

    Of names that differ only in case the one in upper case counts, else the first.
    """
    found = {prefix + name.upper(): value for name, value in variables.items()}
    if len(found) < len(variables):
        for name, value in reversed(list(variables.items())):
            found[prefix + name.upper()] = variables.get(name.upper(), value)
    return found


@frozen
class Visibility:
    """Which variables somebody may see.

    ``patterns`` are names with or without the leading underscore, ``*`` stands for anything, and
    the case of letters does not count. ``all_visible`` is for those who see everything.
    """

    patterns: tuple[str, ...]
    all_visible: bool = False

    def visible(self, name: str, host: bool = False) -> bool:
        """Whether the variable may be seen; ``host`` for a host's variable on a service.

        The latter needs a pattern that itself begins with ``HOST``.
        """
        return self.all_visible or _matches(self.patterns, name, host)

    def filter(self, variables: Mapping[str, str], host: bool = False) -> dict[str, str]:
        """A new dictionary of the visible ones."""
        if self.all_visible:
            return dict(variables)
        patterns = self.patterns
        return {name: one for name, one in variables.items() if _matches(patterns, name, host)}


@lru_cache(maxsize=8192)
def _matches(patterns: tuple[str, ...], name: str, host: bool) -> bool:
    full = f"{_OF_HOST}{name}".upper() if host else name.upper()
    for pattern in patterns:
        wanted = pattern.removeprefix("_").upper()
        if host and not wanted.startswith(_OF_HOST):
            continue
        if _fits(wanted.split("*"), full):
            return True
    return False


def _fits(parts: list[str], name: str) -> bool:
    """Whether ``name`` is the parts in order with anything in between."""
    first, *others = parts
    if not others:
        return name == first
    *middle, last = others
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    if not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
