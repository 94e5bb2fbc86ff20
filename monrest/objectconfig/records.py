"""Typed reading of a resolved object: numbers, flags, options, lists, with defaults (18.6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from attrs import define

from monrest.objectconfig.attributes import OBJECT_TYPES, Attribute
from monrest.objectconfig.parser import FileProblem
from monrest.objectconfig.templates import Resolved

Report = Callable[[FileProblem], None]
"""Where problems go; reading continues with a harmless value."""

_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def split_names(text: str | None) -> tuple[str, ...]:
    """The elements of a comma separated list, trimmed, without empty ones."""
    if not text:
        return ()
    return tuple(part for part in map(str.strip, text.split(",")) if part)


def number_of(text: str) -> float:
    """The leading number of a text; other text reads as 0, as in the core."""
    found = _NUMBER.match(text)
    return float(found[0]) if found is not None else 0.0


@define(eq=False)
class ObjectRecord:
    """A registered object by name; ``name`` of a service is its description."""

    name: str
    source: Resolved
    report: Report

    @property
    def type(self) -> str:
        """The object type."""
        return self.source.type

    @property
    def custom(self) -> Mapping[str, str]:
        """Custom variables by upper-case name without the underscore."""
        return self.source.custom

    def is_set(self, attribute: str) -> bool:
        """Whether the object or a template sets the attribute, be it to ``null``."""
        return attribute in self.source.values

    def text(self, attribute: str) -> str:
        """The text, or the default, or empty. ``=x`` defaults copy attribute x."""
        value = self.source.values.get(attribute)
        if value is not None:
            return value
        if attribute in self.source.values:
            return ""
        default = self._declared(attribute).default
        return self.text(default[1:]) if default.startswith("=") else default

    def number(self, attribute: str) -> float:
        """The number; what is no number reads as 0."""
        return number_of(self.text(attribute))

    def flag(self, attribute: str) -> int:
        """0 or 1; only the first character counts and must be one of them."""
        text = self.text(attribute)
        if text[:1] not in ("0", "1"):
            self.wrong(f"{attribute}: 0 or 1 expected, not {text!r}", attribute)
            return 0
        return int(text[0])

    def names(self, attribute: str) -> tuple[str, ...]:
        """The elements of a list."""
        return split_names(self.text(attribute))

    def options(self, attribute: str) -> frozenset[str]:
        """The letters of an option list; ``a`` stands for all of them, ``n`` for none."""
        letters = self._declared(attribute).letters
        words = {word: letter for letter, word in letters.items()} | {"none": "n", "all": "a"}
        found: set[str] = set()
        for item in self.names(attribute):
            letter = words.get(item, item)
            if letter == "a":
                found.update(letters)
            elif letter in letters:
                found.add(letter)
            elif letter != "n":
                expected = ", ".join([*letters, "n", "a"])
                self.wrong(f"{attribute}: one of {expected} expected, not {item!r}", attribute)
        return frozenset(found)

    def wrong(self, text: str, attribute: str = "") -> None:
        """Report a problem at the attribute's line."""
        self.report(self.source.problem(text, attribute))

    def _declared(self, attribute: str) -> Attribute:
        return OBJECT_TYPES[self.type].attributes[attribute]
