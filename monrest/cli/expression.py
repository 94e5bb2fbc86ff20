"""Arithmetic of output templates: ``+ - * /``, brackets, numbers and names.

Precedence is that of Python, whose parser reads the tokens; names and numbers are put in
afterwards. A name that must contain other characters is written in quotes.

Rules: docs/spec/cli.md, "Output templates".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

NumberToken: TypeAlias = int | float
Resolve: TypeAlias = Callable[[str], NumberToken]
"""Returns the number of a name; raises ExpressionError for a value that is none."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*(?:(?:\.|::)\w+)*)"
    r"|(?P<quoted>\"[^\"]+\"|'[^']+')"
    r"|(?P<sign>[-+*/()]))"
)
_OPERATORS: Mapping[str, Callable[..., NumberToken]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "UAdd": operator.pos, "USub": operator.neg,
}  # fmt: skip
"""By their names in Python's syntax tree."""


class ExpressionError(Exception):
    """The text is no expression, or it has no value."""


def evaluate(text: str, resolve: Resolve) -> NumberToken:
    """The value of ``text``; raise ExpressionError when it has none (division by zero, ...)."""
    from ast import parse  # 7 ms, which a template without calculations does not cost

    numbers: list[NumberToken] = []
    words: list[str] = []
    position, end = 0, len(text.rstrip())
    try:
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(text)
            position = match.end()
            if match["sign"]:
                words.append(match["sign"])
                continue
            words.append(f"_{len(numbers)}")
            if number := match["number"]:
                numbers.append(int(number) if number.isdigit() else float(number))
            else:
                numbers.append(resolve(match["name"] or match["quoted"][1:-1]))
        return _value(parse(" ".join(words), mode="eval").body, numbers)
    except (ArithmeticError, ValueError, SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(text) from None


def _value(node: Any, numbers: Sequence[NumberToken]) -> NumberToken:
    kind = type(node).__name__
    if kind == "Name":
        return numbers[int(node.id[1:])]
    if kind == "UnaryOp":
        return _OPERATORS[type(node.op).__name__](_value(node.operand, numbers))
    if kind == "BinOp":
        left, right = _value(node.left, numbers), _value(node.right, numbers)
        return _OPERATORS[type(node.op).__name__](left, right)
    raise ExpressionError("expected numbers between the signs")
