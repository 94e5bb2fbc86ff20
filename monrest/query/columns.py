"""The ``columns`` parameter: items, renames, calculations and functions, and what they are made of.

A text that cannot be read as anything else is the name of a column, and an unknown column is
null and no error. Errors are a function that does not exist, that misses arguments or that
stands where it cannot work.

Rules: docs/spec/query.md, "Columns".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC
from math import isfinite

from attrs import Factory, define, evolve

from monrest.base.errors import BadRequest
from monrest.base.values import Column, Row
from monrest.query.column_names import ColumnNames, CoreSource
from monrest.query.functions import (
    AGGREGATES,
    CANONICAL,
    DISAGGREGATES,
    FUNCTIONS,
    MOST_ITEMS,
    Moment,
    ValueKind,
    build,
    pattern_of,
)
from monrest.query.model import Calculation, Call, Expression, Item, Literal_, Ref
from monrest.query.regex import MOST_WEIGHT
from monrest.query.scan import (
    Bracket,
    bare,
    brackets,
    outline,
    printable,
    quoted,
    split,
)

MOST_NESTED = 20
"""Functions within functions."""

MOST_CALLS = 1000
"""Functions in all items together."""

MOST_TEXT = 32_768
"""Characters of all ``columns`` together, so that reading them never takes long."""

_CALL = re.compile(r"([a-z_][a-z0-9_]*)\(")
_SIGN = re.compile(r"[-+*/]")
_OPERAND = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,4})?")


def split_list(text: str) -> list[str]:
    """Trimmed items between commas outside quotes, brackets and backticks; no empty ones."""
    return [item for item in split(text) if item]


def parse_columns(values: Sequence[str]) -> tuple[Item, ...]:
    """The items of all ``columns`` parameters, in order.

    Raises BadRequest for wrong calls, aggregations that are not outermost, disaggregations that are
    not innermost or not alone, and for more than 500 items, 1000 functions or 32 KiB.
    """
    if sum(map(len, values)) > MOST_TEXT:
        raise _wrong(f"at most {MOST_TEXT} characters are accepted")
    texts = [text for value in values for text in split_list(value)]
    if len(texts) > MOST_ITEMS:
        raise _wrong(f"at most {MOST_ITEMS} items are accepted, got {len(texts)}")
    reader = _Reader()
    items = tuple(item for text in texts for item in _items(text, reader))
    if len(items) > MOST_ITEMS:
        raise _wrong(f"at most {MOST_ITEMS} items are accepted, got {len(items)}")
    if sum(_disaggregations(item.expression) for item in items) > 1:
        raise _wrong("only one disaggregation function allowed")
    return items


def _items(text: str, reader: _Reader) -> list[Item]:
    """The item that ``text`` is; ``uniq`` of columns is those columns, each combination once."""
    expression, alias = _renamed(text)
    name = bare(expression)
    read = reader.read(expression)
    if any(call.function in AGGREGATES for call in calls(read) if call is not read):
        raise _wrong("aggregation function must be the outermost one")
    if _disaggregations(read) > 1:
        raise _wrong("only one disaggregation function allowed")
    item = Item(read, key=name if alias is None else alias, text=name, renamed=alias is not None)
    if not isinstance(read, Call) or read.function != "uniq":
        return [item]
    wanted = [text for text in split_list(name[name.index("(") + 1 : -1]) if text != "*"]
    inner = [item for part in wanted for item in _items(part, reader)]
    if not inner:
        return [evolve(item, expression=Call("uniq", ()))]
    if len(inner) == 1 and not inner[0].renamed:
        inner = [evolve(item, expression=inner[0].expression)]
    elif len(inner) == 1 and alias is not None:
        inner = [evolve(inner[0], key=alias)]
    return [Item(Call("uniq", ()), key="uniq()", text="uniq()"), *inner]


def _renamed(text: str) -> tuple[str, str | None]:
    """Expression and alias: ``expr as alias``, else ``expr:alias``.

    A colon in front belongs to the name, as in ``:FILE``; quotes and brackets protect theirs.
    """
    shape = outline(text)
    words = shape.rsplit(maxsplit=2)
    if len(words) == 3 and words[1].lower() == "as":
        alias = text[len(text) - len(words[2]) :]
        if not any(character.isspace() for character in alias):
            return text[: len(words[0])], alias
    colon = shape.find(":", 1)
    if colon < 0:
        return text, None
    return text[:colon].strip(), text[colon + 1 :].strip()


@define
class _Reader:
    """Reads expressions, counting their functions. Positions are those in ``text``."""

    text: str = ""
    brackets: dict[int, Bracket] = Factory(dict)
    calls: int = 0
    weight: int = 0

    def read(self, text: str) -> Expression:
        self.text = text.strip()
        self.brackets = brackets(self.text)
        return self._expression(0, len(self.text), 0)

    def _expression(self, start: int, end: int, depth: int) -> Expression:
        """The expression between two positions: an operand, or several with signs between them."""
        text = self.text[start:end]
        whole = self._operand(start, end, depth)
        if whole is not None:
            return whole
        lengths = [len(operand) for operand in _SIGN.split(outline(text))]
        parts: list[str] = []
        at = 0
        for length in lengths:
            parts.append(text[at : at + length].strip())
            at += length + 1
        # A sign counts between two parts; one at the end makes the whole an unknown column.
        if parts[-1] and any(parts[:-1]):
            return self._calculation(start, lengths, depth)
        return Ref(text)

    def _operand(self, start: int, end: int, depth: int) -> Expression | None:
        """A quoted name, a call or what is in parentheses; None for everything else."""
        text = self.text[start:end]
        name = quoted(text, "`")
        if name is not None:
            return Ref(name, quoted=True)
        call = _CALL.match(text)
        if call is None and not text.startswith("("):
            return None
        opening = start + call.end() - 1 if call else start
        bracket = self.brackets[opening]
        if call and bracket.end < 0:
            raise _wrong(f"expected closing bracket in {printable(text)}")
        if bracket.end != end - 1:
            return None
        if call:
            return self._call(call[1], opening + 1, bracket, depth)
        if depth >= MOST_NESTED:
            raise _wrong(f"at most {MOST_NESTED} brackets may be nested")
        first, last = self._trimmed(start + 1, end - 1)
        return self._expression(first, last, depth + 1) if last > first else None

    def _calculation(self, start: int, lengths: list[int], depth: int) -> Calculation:
        """Operands of the given lengths from ``start`` on, with one sign between each two."""
        if len(lengths) > MOST_ITEMS:
            raise _wrong(f"at most {MOST_ITEMS} operands are accepted in a calculation")
        operands: list[Expression] = []
        signs: list[str] = []
        for length in lengths:
            first, last = self._trimmed(start, start + length)
            operand = self._operand(first, last, depth) if last > first else None
            operands.append(_plain(self.text[first:last]) if operand is None else operand)
            signs.append(self.text[start + length : start + length + 1])
            start += length + 1
        return Calculation(operands[0], tuple(zip(signs[:-1], operands[1:], strict=True)))

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        text = self.text[start:end]
        first = start + len(text) - len(text.lstrip())
        return first, first + len(text.strip())

    def _call(self, name: str, start: int, bracket: Bracket, depth: int) -> Call:
        function = CANONICAL.get(name, name)
        signature = FUNCTIONS.get(function)
        if signature is None:
            raise _wrong(f"unknown function: {printable(name)}")
        self.calls += 1
        if depth >= MOST_NESTED:
            raise _wrong(f"at most {MOST_NESTED} functions may be nested")
        if self.calls > MOST_CALLS:
            raise _wrong(f"at most {MOST_CALLS} functions are accepted")
        spans = self._spans(start, bracket)
        wanted = signature.least <= len(spans) <= signature.most
        if not wanted or (signature.least and spans[0][0] == spans[0][1]):
            raise _wrong(f"usage: {function}({signature.usage})")
        call = Call(
            function,
            tuple(
                self._argument(span, signature.kind(position), depth + 1)
                for position, span in enumerate(spans)
            ),
        )
        if function in DISAGGREGATES and not isinstance(call.arguments[0], Ref):
            raise _wrong("disaggregation function must be the innermost one")
        if function not in AGGREGATES and function not in DISAGGREGATES:
            self._check(call)
        return call

    def _check(self, call: Call) -> None:
        """Check the literal arguments of a function, before anything is fetched."""
        arguments = [
            argument if isinstance(argument, Literal_) else _nothing for argument in call.arguments
        ]
        try:
            if call.function == "s":
                self.weight += pattern_of(arguments).weight
            build(call.function, arguments, Moment(now=0.0, zone=UTC))
        except BadRequest as error:
            raise _wrong(error.description.removeprefix("columns: ")) from None
        if self.weight > MOST_WEIGHT:
            raise _wrong("the regular expressions of a request are too large together")

    def _spans(self, start: int, bracket: Bracket) -> list[tuple[int, int]]:
        """The positions of the trimmed arguments between the commas of ``bracket``."""
        spans: list[tuple[int, int]] = []
        for end in (*bracket.commas, bracket.end):
            spans.append(self._trimmed(start, end))
            start = end + 1
        return [] if len(spans) == 1 and spans[0][0] == spans[0][1] else spans

    def _argument(self, span: tuple[int, int], kind: ValueKind, depth: int) -> Expression:
        text = self.text[span[0] : span[1]]
        literal = quoted(text, "'\"")
        if kind == "value":
            if literal is not None or not text:
                return Literal_(literal or "")
            value = _number(text)
            return self._expression(*span, depth) if value is None else Literal_(value)
        plain = text if literal is None else literal
        value = _number(plain.strip()) if kind == "number" else None
        return Literal_(plain if value is None else value)


def _plain(text: str) -> Expression:
    """An operand without brackets: a number or a column."""
    if not text:
        # Nothing before a sign counts as 0; the empty text keeps the spelling of the whole.
        return Literal_("")
    value = _number(text) if _OPERAND.fullmatch(text) else None
    return Ref(text) if value is None else Literal_(value)


def _number(text: str) -> int | float | None:
    """A number as written; integers beyond the cores' range as floats; None for all else."""
    if not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdigit() and len(text) <= 18:
        return int(text)
    value = float(text)
    return value if isfinite(value) else None


def _nothing(_row: Row) -> None:
    """Stands for an argument whose value depends on the row."""


def _disaggregations(expression: Expression) -> int:
    return sum(call.function in DISAGGREGATES for call in calls(expression))


def _wrong(description: str) -> BadRequest:
    return BadRequest("error during request", f"columns: {description}")


def parts(expression: Expression) -> list[Expression]:
    """An expression and everything that it is made of, in the order in which it is written."""
    every: list[Expression] = [expression]
    if isinstance(expression, Calculation):
        every += parts(expression.first)
        for _, operand in expression.steps:
            every += parts(operand)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            every += parts(argument)
    return every


def references(expression: Expression) -> list[Ref]:
    return [part for part in parts(expression) if isinstance(part, Ref)]


def calls(expression: Expression) -> list[Call]:
    if isinstance(expression, Ref):  # as most columns are
        return []
    return [part for part in parts(expression) if isinstance(part, Call)]


_SEARCHES = 20_000


def effort(expression: Expression) -> int:
    """The number of functions and operands of an expression.

    ``s`` may search thousands of times.
    """
    total = 0
    for part in parts(expression):
        if isinstance(part, Calculation):
            total += 1 + len(part.steps)
        elif isinstance(part, Call):
            total += _SEARCHES if part.function == "s" else 1
    return total


def unpacked(expression: Expression) -> Expression | None:
    """The argument of ``to_rows`` inside an expression, or None."""
    return next(
        (call.arguments[0] for call in calls(expression) if call.function == "to_rows"), None
    )


def blanks_as_plus(expression: Expression, names: ColumnNames) -> Expression:
    """``up down`` of numbers is what is left of an unescaped ``up+down``, wherever it stands."""
    if isinstance(expression, Calculation):
        steps = tuple((op, blanks_as_plus(operand, names)) for op, operand in expression.steps)
        return Calculation(blanks_as_plus(expression.first, names), steps)
    if isinstance(expression, Call):
        arguments = tuple(blanks_as_plus(argument, names) for argument in expression.arguments)
        return Call(expression.function, arguments)
    if not isinstance(expression, Ref) or expression.quoted or " " not in expression.name:
        return expression
    operands: list[Expression] = []
    for part in expression.name.split():
        source = names.find(part)
        if _DIGITS.fullmatch(part) and operands:
            operands.append(Literal_(int(part)))
        elif isinstance(source, CoreSource) and source.core_type in ("int", "float", "time"):
            operands.append(Ref(part))
        else:
            return expression
    if len(operands) < 2:
        return expression
    return Calculation(operands[0], tuple(("+", operand) for operand in operands[1:]))


_DIGITS = re.compile(r"[0-9]{1,15}")
_TEXT_FUNCTIONS = frozenset(
    {"lower", "upper", "substr", "s", "concat", "fmt", "duration", "utc", "date"}
    | {"hoststate", "servicestate"}
)


def described(
    expression: Expression, key: str, column_of: Callable[[str], Column | None]
) -> Column:
    """Type and unit of an expression, from those of the columns that it names."""
    if isinstance(expression, Ref):
        column = column_of(expression.name)
        return Column(key) if column is None else evolve(column, name=key)
    if isinstance(expression, Calculation):
        name = described(expression.first, key, column_of)
        for op, operand in expression.steps:
            name = _combined(op, name, described(operand, key, column_of))
        return evolve(name, name=key, description="")
    if isinstance(expression, Literal_):
        return Column(key)
    function, arguments = expression.function, expression.arguments
    inner = described(arguments[0], key, column_of) if arguments else Column(key)
    if function in _TEXT_FUNCTIONS:
        return Column(key, "string")
    if function == "age":
        return Column(key, "number", "s")
    if function == "unit":
        unit = arguments[1] if len(arguments) > 1 else None
        text = getattr(unit, "value", None) or getattr(unit, "name", "")
        return Column(key, "number", str(text))
    if function == "to_rows":
        return Column(key)
    if function == "calc":
        op = str(getattr(arguments[1], "value", "")).strip() or "+"
        return _combined(op, inner, Column(key))
    if function in ("min", "max") and inner.type == "time":
        return Column(key, "time")
    return Column(key, "number", "" if function == "count" else inner.unit)


def _combined(op: str, left: Column, right: Column) -> Column:
    """The result of an operation: sums keep times and units, all other results are plain numbers.

    A number that is written has no unit, and may be added to anything.
    """
    if op not in ("+", "-"):
        return Column(left.name, "number")
    times = (left.type == "time", right.type == "time")
    if all(times):
        return Column(left.name, "number", "s" if op == "-" else "")
    if any(times):
        return Column(left.name, "time" if times[0] or op == "+" else "number")
    units = {column.unit for column in (left, right) if column.type}
    return Column(left.name, "number", units.pop() if len(units) == 1 else "")
