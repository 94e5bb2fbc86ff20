"""C-like formats for the function ``fmt`` (docs/spec/query.md, "Functions"), done without C.

The format comes from a client. It is cut into pieces once; each conversion is then made by
Python's own formatting of one value, so that no format can read or write what it should not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.query.scalars import number_of, text_of

MOST_WIDTH = 999
"""Largest width and largest precision."""

_CONVERSION = re.compile(r"%(?:%|([-+ 0#]*)([0-9]*)(?:\.([0-9]*))?(?:hh|h|ll|l)?([a-zA-Z]))")
_UNSIGNED = 2**64
_SURROGATES = range(0xD800, 0xE000)
_MOST_LETTER = 0x10FFFF


@frozen
class _Conversion:
    """One ``%…`` of a format: its letter, and flags, width and precision for Python."""

    letter: str
    spec: str
    width: str

    def text(self, value: Any) -> str:
        if self.letter == "s":
            return f"{self.spec}s" % text_of(value)
        number = number_of(text_of(value) if isinstance(value, list | dict) else value)
        if self.letter == "c":
            return f"{self.width}s" % _letter(number)
        if number is None:
            number = 0
        if self.letter in "feEgG":
            return f"{self.spec}{self.letter}" % float(number)
        whole = int(number)
        if self.letter in "di":
            return f"{self.spec}d" % whole
        if whole < 0:
            whole %= _UNSIGNED
        return f"{self.spec}{'d' if self.letter == 'u' else self.letter}" % whole


def _letter(number: int | float | None) -> str:
    if number is None:
        return ""
    code = int(number)
    if not 0 <= code <= _MOST_LETTER or code in _SURROGATES:
        return "\ufffd"
    return chr(code)


@frozen
class FormatTemplate:
    """A parsed format; ``fill`` may be called for any number of rows."""

    pieces: tuple[str | _Conversion, ...]

    @classmethod
    def parse(cls, text: str) -> FormatTemplate:
        """Cut ``text`` at its conversions ``s d i u f e E g G x X o c`` and ``%%``.

        Other conversions stay as they are, except that ``%n`` raises BadRequest, as do a width
        or a precision of more than 999.
        """
        pieces: list[str | _Conversion] = []
        end = 0
        for match in _CONVERSION.finditer(text):
            letter = match[4]
            if letter == "n":
                raise _refused("%n is not accepted")
            if letter is not None and letter not in "sdiufeEgGxXoc":
                continue
            pieces.append(text[end : match.start()])
            end = match.end()
            if letter is None:
                pieces.append("%")
                continue
            flags, width, precision = match[1], match[2], match[3]
            for digits in (width, precision or ""):
                if len(digits.lstrip("0")) > len(str(MOST_WIDTH)):
                    raise _refused(f"width and precision are at most {MOST_WIDTH}")
            before = f"%{flags}{width}"
            pieces.append(
                _Conversion(
                    letter, before if precision is None else f"{before}.{precision}", before
                )
            )
        pieces.append(text[end:])
        return cls(tuple(piece for piece in pieces if piece != ""))

    def fill(self, values: Sequence[Any]) -> str:
        """The format with ``values`` in order; missing ones are empty or 0, others left over."""
        following = iter(values)
        return "".join(
            [
                piece if isinstance(piece, str) else piece.text(next(following, None))
                for piece in self.pieces
            ]
        )


def _refused(description: str) -> BadRequest:
    return BadRequest("error during request", f"fmt: {description}")
