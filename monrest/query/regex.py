"""Patterns of clients: matched in linear time, and which of them a core may evaluate.

Rules: docs/spec/query.md, "Patterns" and "Push-down".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import re2
from attrs import define, field, frozen

from monrest.base.errors import BadRequest
from monrest.query.model import Operator

MOST_PATTERN = 1024
"""Longest pattern, in bytes of UTF-8."""

MOST_TEXT = 65_536
"""Characters of a text that a pattern looks at; what follows them is as if it were not there."""

SPECIAL = frozenset(r"\.^$*+?()[]{}|")
"""Characters with a meaning of their own in a pattern."""

_WILD = frozenset("^|*{}[]")
_MOST_PROGRAM = 5_000
_MOST_MEMORY = 1 << 20
_SHOWN = 100
_LONGEST_LETTER = 4

MOST_WEIGHT = 40_000
"""The weight of all patterns of a request, which is also what it takes to compile them."""

_LEAST_WEIGHT = 40
_LONG = 1_500_000
"""Characters times weight of a search that takes milliseconds."""
_MATCHES = 1_000
"""Matches after which the limit is checked."""

# RE2 takes these for k and s when it ignores case, most cores do not.
_OWN_LETTERS = {0x212A: "\ufffd", 0x017F: "\ufffd"}


def unlimited() -> None:
    """Check nothing, for patterns that no client sends."""


@frozen(eq=False)
class Pattern:
    """A compiled pattern; it is searched anywhere in a text.

    ``weight`` is what looking at one character may cost, as measured with patterns whose
    automaton has a new state for each character.
    """

    _search: Callable[[str], bool]
    _compiled: Any = field(repr=False)
    weight: int

    def matches(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the first 64 KiB of ``text``."""
        return self._search(text if len(text) <= MOST_TEXT else text[:MOST_TEXT])

    def sub(self, replacement: str, text: str) -> str:
        """``replaced`` in one go and without bounds, for patterns that no client sends."""
        result = self.replaced(replacement, text, MOST_TEXT * (len(replacement) + 1))
        assert result is not None
        return result

    def replaced(
        self, replacement: str, text: str, most: int, check: Callable[[], None] = unlimited
    ) -> str | None:
        """``text`` with every match replaced by ``replacement`` as it is, without references.

        Matches are looked for in the first 64 KiB; what follows them is kept. None for a text
        that grows by more than about ``most`` characters. ``check`` is called now and then.
        """
        data = text[:MOST_TEXT].encode("utf-8", "replace")
        new = replacement.encode("utf-8", "replace")
        end, grown = len(data), most * _LONGEST_LETTER
        pieces: list[bytes] = []
        at = kept = 0
        last = (-1, -1)
        for count in itertools.count(1):
            match = self._compiled.search(data, at)
            if match is None:
                break
            # An expression that ends with "or" may look at all that is left for each match.
            if count % _MATCHES == 0 or (end - at) * self.weight > _LONG:
                check()
            start, stop = span = match.span()
            # The library gives a match of nothing a second time when it has just moved there.
            if span != last:
                pieces += (data[kept:start], new)
                kept = stop
                grown -= len(new) - (stop - start)
                if grown < 0:
                    return None
            last = span
            if at == end:
                break
            at = stop if stop > at else at + _bytes_of(data[at])
        if not pieces:
            return text
        return (b"".join(pieces) + data[kept:]).decode() + text[MOST_TEXT:]


def _bytes_of(first: int) -> int:
    """The length of the letter that begins with this byte of UTF-8."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else _LONGEST_LETTER


def compile_pattern(pattern: str, *, ignore_case: bool, parameter: str) -> Pattern:
    """The pattern ready to search.

    Raises BadRequest naming ``parameter`` for a pattern that is longer than 1 KiB, that RE2 does
    not accept or that would make too large a program; such as back references, look-around and
    repetitions of more than 1000.
    """
    try:
        length = len(pattern.encode())
    except UnicodeEncodeError:
        raise _invalid(parameter, pattern, "half of a surrogate pair") from None
    if length > MOST_PATTERN:
        raise BadRequest(
            "error during request",
            f"{parameter}: regular expressions have at most {MOST_PATTERN} bytes, got {length}",
        )
    try:
        return _compile(pattern, ignore_case)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        if isinstance(reason, bytes):
            reason = reason.decode("utf-8", "replace")
        # The part that is wrong follows the first colon, and the pattern is named already.
        raise _invalid(parameter, pattern, str(reason).partition(": ")[0]) from None


def _invalid(parameter: str, pattern: str, reason: str) -> BadRequest:
    short = pattern.encode("utf-8", "replace").decode()
    if len(short) > _SHOWN:
        short = f"{short[:_SHOWN]}…"
    return BadRequest("error during request", f"{parameter}: invalid regex in {short}: {reason}")


@lru_cache(maxsize=128)
def _compile(pattern: str, ignore_case: bool) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    # Bounds the program, hence the time per character, and what the cache of patterns holds.
    options.max_mem = _MOST_MEMORY
    # Groups are not used, and without them the quicker automaton does.
    options.never_capture = True
    compiled = re2.compile(pattern, options)
    if compiled.programsize > _MOST_PROGRAM:
        raise re2.error(b"pattern too large")
    if not ignore_case and SPECIAL.isdisjoint(pattern):
        return Pattern(lambda text: pattern in text, compiled, 1)
    # A set says only whether there is a match, which takes a fifth of the time.
    compiled_set = re2.Set.SearchSet(options)
    compiled_set.Add(pattern.encode())
    compiled_set.Compile()
    matches = compiled_set.Match
    weight = compiled.programsize + _LEAST_WEIGHT

    def search(text: str) -> bool:
        return bool(matches(text.encode("utf-8", "replace")))

    if ignore_case and pattern.isascii():
        return Pattern(
            lambda text: search(text if text.isascii() else text.translate(_OWN_LETTERS)),
            compiled,
            weight,
        )
    return Pattern(search, compiled, weight)


def wildcard(segment: str) -> tuple[Operator, str]:
    """The operator and operand for a name in a path that may hold wildcards.

    Without any of ``^ | * { } [ ]`` the name is meant exactly. Literals and ``*`` match the
    whole name, every other pattern anywhere in it, both ignoring case. Raises BadRequest for an
    invalid pattern.
    """
    simple = segment.replace(".*", "*")
    if _WILD.isdisjoint(simple):
        return "=", segment
    if _WILD.isdisjoint(simple.replace("*", "")):
        parts = [escape(part) for part in simple.split("*")]
        inner = [part for part in parts[1:-1] if part]
        # No anchor, instead of anything up to it: cores may evaluate that for themselves.
        first = f"^{parts[0]}" if parts[0] else ""
        last = f"{parts[-1]}$" if parts[-1] else ""
        pattern = ".*".join(part for part in (first, *inner, last) if part) or ".*"
    else:
        pattern = simple.replace("*", ".*")
    compile_pattern(pattern, ignore_case=True, parameter="path")
    return "~~", pattern


def escape(text: str) -> str:
    """A pattern that matches ``text`` as it is, with no more backslashes than all cores know."""
    return "".join([f"\\{letter}" if letter in SPECIAL else letter for letter in text])


# Cores use POSIX extended expressions, ICU, PCRE, Boost or RE2, some of them byte by byte and with
# backtracking. Only a small language means the same in all of them; it is read here by a grammar
# of its own, and every other pattern is evaluated here.

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
    """Whether a core may use the pattern.

    ``exact``: every engine finds it in the same texts as ours. ``wider``: no engine misses a text
    in which ours finds it, but some find it in more. ``no``: it must be evaluated here. Texts have
    one line, as in the columns that cores search.
    """
    if pattern != pattern.strip() or not pattern:
        return "no"
    try:
        wider = _CommonLanguage(pattern, ignore_case=ignore_case).wider()
    except _NotPortableError:
        return "no"
    return "wider" if wider or (ignore_case and _FOLDED_FURTHER.search(pattern)) else "exact"


@define
class _Group:
    """The contents of a group, which decide how it may be repeated."""

    branches: bool = False
    quantified: bool = False
    anchored: bool = False


@define
class _CommonLanguage:
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
