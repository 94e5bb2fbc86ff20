"""Arithmetic of output templates: ``+ - * /``, brackets, numbers and names.

Precedence is the usual one and operators of one rank go from left to right. A name that must
contain other characters is written in quotes.

Rules: docs/spec/cli.md, "Output templates".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

NumberToken: TypeAlias = int | float
Resolve: TypeAlias = Callable[[str], NumberToken]
"""Gives the number of a name; raises ExpressionError for a value that is none."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*(?:(?:\.|::)\w+)*)"
    r"|(?P<quoted>\"[^\"]+\"|'[^']+')"
    r"|(?P<sign>[-+*/()]))"
)
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


class ExpressionError(Exception):
    """The text is no expression, or it has no value."""


class _Reader:
    """The tokens of one expression, read once from left to right."""

    def __init__(self, text: str, resolve: Resolve) -> None:
        self._resolve = resolve
        self._tokens: list[tuple[str, str]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise ExpressionError(text)
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._tokens.reverse()

    def done(self) -> bool:
        return not self._tokens

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise ExpressionError("unexpected end")
        return self._tokens.pop()

    def terms(self, least: int = 1) -> NumberToken:
        """Operators of rank ``least`` and higher."""
        value = self._operand()
        while self._tokens:
            rank = _RANK.get(self._tokens[-1][1], 0) if self._tokens[-1][0] == "sign" else 0
            if rank < least:
                break
            operator = self._next()[1]
            value = _applied(operator, value, self.terms(rank + 1))
        return value

    def _operand(self) -> NumberToken:
        kind, text = self._next()
        if kind == "number":
            return int(text) if text.isdigit() else float(text)
        if kind == "name":
            return self._resolve(text)
        if kind == "quoted":
            return self._resolve(text[1:-1])
        if text == "-":
            return -self._operand()
        if text == "+":
            return self._operand()
        if text == "(":
            value = self.terms()
            if self._next() != ("sign", ")"):
                raise ExpressionError("missing bracket")
            return value
        raise ExpressionError(text)


def _applied(operator: str, left: NumberToken, right: NumberToken) -> NumberToken:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    return left / right


def evaluate(text: str, resolve: Resolve) -> NumberToken:
    """The value of ``text``; raise ExpressionError when it has none (division by zero, ...)."""
    try:
        reader = _Reader(text, resolve)
        value = reader.terms()
    except (ArithmeticError, ValueError, RecursionError):
        raise ExpressionError(text) from None
    if not reader.done():
        raise ExpressionError(text)
    return value
