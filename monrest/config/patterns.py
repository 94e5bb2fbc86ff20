"""Texts of the configuration that stand for more than themselves; pure."""

from __future__ import annotations

import re
from typing import Any

import re2
from attrs import field, frozen

from monrest.base.hidden import HIDDEN

_SIGNS = frozenset("/#,;!@%~")
_MARKS = 3
_MACRO_RANGE = re.compile(r"([A-Za-z_]*)([0-9]{1,6})-([0-9]{1,6})\Z")


@frozen(eq=False)
class Replacement:
    r"""An expression of ``display.commandline_obfuscate_pattern``.

    Either a regular expression, whose matches become ``***``, or ``/expression/replacement/``,
    with one of ``/#,;!@%~`` around both; the replacement may refer to groups as ``\1``.
    """

    text: str
    _pattern: Any = field(init=False, repr=False)
    _with: str = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError when the expression cannot be compiled or has no such group."""
        expression, replacement, sign = self.text, HIDDEN, self.text[:1]
        if sign in _SIGNS and self.text.count(sign) == _MARKS and self.text.endswith(sign):
            expression, replacement = self.text[1:-1].split(sign)
        if not expression:
            raise ValueError("expected a regular expression")
        try:
            pattern = re2.compile(expression)
            groups: int = pattern.groups
        except re2.error as error:
            raise ValueError(f"expected a regular expression: {error}") from None
        if any(int(number) > groups for number in re.findall(r"\\([0-9]+)", replacement)):
            raise ValueError(f"expected references to the {groups} groups of the expression")
        object.__setattr__(self, "_pattern", pattern)
        object.__setattr__(self, "_with", replacement)

    def apply(self, text: str) -> str:
        """Return ``text`` with every match replaced."""
        replaced: str = self._pattern.sub(self._with, text)
        return replaced


@frozen
class MacroNames:
    """The user macros that are expanded: the entries of ``display.expand_user_macros``."""

    entries: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Whether the macro (``USER1``, without dollar signs) is expanded."""
        return any(_names(entry.strip().strip("$"), name) for entry in self.entries)


def _names(entry: str, name: str) -> bool:
    if entry in ("ALL", "NONE"):
        return entry == "ALL"
    match = _MACRO_RANGE.match(entry)
    if match is not None:
        word, first, last = match.groups()
        number = name.removeprefix(word) if name.startswith(word) else ""
        # Cores know no leading zeros; int() would take them, and digits of other scripts.
        plain = number.isascii() and number.isdigit() and str(int(number)) == number
        return plain and int(first) <= int(number) <= int(last)
    pattern = ".*".join(re2.escape(part) for part in entry.split("*"))
    return re2.fullmatch(f"(?s:{pattern})", name) is not None
