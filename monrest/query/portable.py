"""Which patterns a core may evaluate without changing an answer (docs/spec/query.md, "Push-down").

Cores use POSIX extended expressions, ICU, PCRE, Boost or RE2, some of them byte by byte and with
backtracking. Only a small language means the same in all of them; it is read here by a grammar
of its own, and every other pattern is evaluated here.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from attrs import define

Pushability: TypeAlias = Literal["exact", "wider", "no"]

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset("0123456789")
_PLAIN = _LETTERS | _DIGITS | frozenset(" _-:,;/@%&=!<>~#\"'")
_IN_CLASS = _LETTERS | _DIGITS | frozenset(" _.,/@")
_ESCAPED = frozenset("\\.^$*+?()[|")
_QUANTIFIERS = frozenset("*+?")

# Without regard to case ICU finds "ss" in a sharp s and "fi" in a ligature, and it takes the sign
# of Kelvin for a k and a long s for an s, as PCRE does; ours and byte engines do neither.
_FOLDED_FURTHER = re.compile("[ks]|f[fil]", re.IGNORECASE)

# Engines that backtrack take a power of the text's length, and Boost gives up without a match.
_MOST_LOOPS = 2
_MOST_QUANTIFIERS = 4
_DEEPEST = 10


class _NotPortableError(Exception):
    """The pattern is outside the common language."""


def pushability(pattern: str, *, ignore_case: bool) -> Pushability:
    """What a core may do with the pattern.

    ``exact``: every engine finds it in the same texts as ours. ``wider``: no engine misses a
    text in which ours finds it, but some find it in more. ``no``: it must be evaluated here.
    All of it is about texts of one line, which is what cores keep in the columns they search.
    """
    if pattern != pattern.strip() or not pattern:
        return "no"
    try:
        wider = _Reader(pattern, ignore_case=ignore_case).wider()
    except _NotPortableError:
        return "no"
    return "wider" if wider or (ignore_case and _FOLDED_FURTHER.search(pattern)) else "exact"


@define
class _Group:
    """What a group contains, which decides how it may be repeated."""

    branches: bool = False
    quantified: bool = False
    anchored: bool = False


@define
class _Reader:
    pattern: str
    ignore_case: bool
    at: int = 0
    loops: int = 0
    quantifiers: int = 0
    more: bool = False

    def wider(self) -> bool:
        """Whether some engine finds more; raises _NotPortableError."""
        self._alternatives(0)
        if self.at < len(self.pattern):
            raise _NotPortableError
        return self.more

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _alternatives(self, depth: int) -> _Group:
        if depth > _DEEPEST:
            raise _NotPortableError
        group = _Group()
        while True:
            self._sequence(group, depth)
            if self._peek() != "|":
                return group
            group.branches = True
            self.at += 1

    def _sequence(self, group: _Group, depth: int) -> None:
        """One alternative: ``^``, then pieces with quantifiers, then ``$``; never nothing."""
        first = self.at
        if self._peek() == "^":
            group.anchored = True
            self.at += 1
        elif depth == 0 and self.pattern.startswith(".*", self.at):
            # At the ends of a search anything is no restriction in any engine.
            self.at += 2
        while (sign := self._peek()) not in ("", "|", ")"):
            if sign == "$":
                group.anchored = True
                self.at += 1
                break
            if depth == 0 and self.pattern[self.at : self.at + 3] in (".*", ".*|"):
                self.at += 2
                break
            self._piece(sign, group, depth)
        if self.at == first or self.pattern[first : self.at] in ("^", "$", "^$"):
            raise _NotPortableError
        if self._peek() not in ("", "|", ")"):
            raise _NotPortableError

    def _piece(self, sign: str, group: _Group, depth: int) -> None:
        repeatable, must_repeat = True, False
        self.at += 1
        if sign == "(":
            inner = self._alternatives(depth + 1)
            if self._peek() != ")":
                raise _NotPortableError
            self.at += 1
            group.quantified |= inner.quantified
            group.branches |= inner.branches
            group.anchored |= inner.anchored
            repeatable = not (inner.quantified or inner.branches or inner.anchored)
            if self._peek() == "?" and not inner.anchored:
                repeatable = True
        elif sign == "[":
            must_repeat = self._class()
            if must_repeat and self.ignore_case:
                # Engines disagree whether case is ignored before or after the negation.
                raise _NotPortableError
        elif sign == ".":
            must_repeat = True
        elif sign == "\\":
            if self._peek() not in _ESCAPED:
                raise _NotPortableError
            self.at += 1
        elif sign not in _PLAIN:
            raise _NotPortableError
        self._quantifier(group, repeatable=repeatable, must_repeat=must_repeat)

    def _quantifier(self, group: _Group, *, repeatable: bool, must_repeat: bool) -> None:
        sign = self._peek()
        if must_repeat:
            # Engines that read bytes see several where we see one character, and they differ
            # in what ends a line; as a run they see no less than we do.
            if sign not in ("*", "+"):
                raise _NotPortableError
            self.more = True
        if sign not in _QUANTIFIERS:
            return
        self.at += 1
        self.quantifiers += 1
        self.loops += sign != "?"
        group.quantified = True
        if (
            not repeatable
            or self._peek() in _QUANTIFIERS
            or self.loops > _MOST_LOOPS
            or self.quantifiers > _MOST_QUANTIFIERS
        ):
            raise _NotPortableError

    def _class(self) -> bool:
        """A bracket expression after its bracket; whether it must be repeated."""
        negated = self._peek() == "^"
        if negated:
            self.at += 1
        empty = True
        while (letter := self._peek()) != "]":
            if letter not in _IN_CLASS:
                raise _NotPortableError
            self.at += 1
            empty = False
            if self._peek() == "-":
                self._range(letter, negated=negated)
        if empty:
            raise _NotPortableError
        self.at += 1
        return negated

    def _range(self, first: str, *, negated: bool) -> None:
        last = self.pattern[self.at + 1 : self.at + 2]
        self.at += 2
        for kind in (_DIGITS, _LETTERS):
            if first in kind and last in kind and first <= last:
                break
        else:
            raise _NotPortableError
        if kind is _LETTERS:
            # Some locales put letters of the other case into a range.
            if negated or first.isupper() != last.isupper():
                raise _NotPortableError
            self.more = True
