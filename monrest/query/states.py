"""Names of states in conditions: ``state = critical`` (docs/spec/query.md, "States").

A condition with names becomes one with numbers before it is bound, so that cores are asked for
numbers. In lists of hosts and services together a name says which of both is meant as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from monrest.base.errors import BadRequest
from monrest.query.column_names import ColumnNames, CoreSource
from monrest.query.model import Condition, FilterTree, Group, Operator
from monrest.query.scalars import number_of
from monrest.query.scan import printable

StateKind: TypeAlias = Literal["host", "service", "both"]

NUMBERS: Mapping[str, Mapping[str, int]] = {
    "host": {"up": 0, "down": 1, "unreachable": 2},
    "service": {"ok": 0, "warning": 1, "critical": 2, "unknown": 3},
}
PENDING = "pending"
_MOST_WORDS = 100

_STATES = r"(?:(?:last_)?(?:hard_)?state|(?:initial|old)_state)"
_COLUMN = re.compile(rf"(current_)?(host_|service_)?{_STATES}")
_WORST = re.compile(r"(?:host_)?worst_(host|service)_(?:hard_)?state")
_WITH_PENDING = re.compile(r"((?:host_|service_)?)(?:hard_)?state")
_TABLES: Mapping[str, StateKind] = {
    "hosts": "host", "services": "service", "log": "both", "events": "both",
}  # fmt: skip
_ALTERNATIVES = re.compile(r"\^?\(?([a-z]+(?:\|[a-z]+)*)\)?\$?")


def _kind_of(names: ColumnNames, column: str) -> StateKind | None:
    """Whose state a column is, None for a column that is none."""
    worst = _WORST.fullmatch(column)
    if worst:
        return "host" if worst[1] == "host" else "service"
    match = _COLUMN.fullmatch(column)
    if match is None:
        return None
    if match[2]:
        return "host" if match[2] == "host_" else "service"
    if "_type" in names.schema.columns:
        return "both"
    return _TABLES.get(names.schema.table or names.schema.name)


def as_numbers(condition: Condition, source: CoreSource, names: ColumnNames) -> FilterTree | None:
    """A condition on a state column in numbers; None where it has no names.

    Several names or numbers are joined with commas, in patterns with ``|``. Raises BadRequest
    for any other text.
    """
    kind = _kind_of(names, source.name)
    if kind is None or source.core_type not in ("int", "float"):
        return None
    words = _words(condition, kind)
    if words is None:
        return None
    if condition.op in (">", "<", ">=", "<="):
        number = _numbers(kind).get(words[0]) if len(words) == 1 else None
        if number is None:
            raise _wrong(condition, kind, ",".join(words), pending=False)
        return Condition(condition.column, condition.op, str(number), condition.parameter)
    negated = condition.op.startswith("!")
    each = [_of_word(condition, source, names, kind, word, negated=negated) for word in words]
    return Group("and" if negated else "or", tuple(each))


def _words(condition: Condition, kind: StateKind) -> list[str] | None:
    text = condition.value.strip().lower()
    if condition.op.endswith("~"):
        match = _ALTERNATIVES.fullmatch(text)
        words = match[1].split("|") if match else []
        accepted = {*_numbers(kind), PENDING}
        return words if words and accepted.issuperset(words) else None
    if not text or number_of(text) is not None:
        return None
    words = list(dict.fromkeys(word.strip() for word in text.split(",")))
    if len(words) > _MOST_WORDS:
        raise BadRequest(
            "error during request",
            f"{printable(condition.parameter)}: at most {_MOST_WORDS} states are accepted",
        )
    return words


def _numbers(kind: StateKind) -> dict[str, int]:
    kinds = ("host", "service") if kind == "both" else (kind,)
    return {word: number for kind in kinds for word, number in NUMBERS[kind].items()}


def _of_word(
    condition: Condition,
    source: CoreSource,
    names: ColumnNames,
    kind: StateKind,
    word: str,
    *,
    negated: bool,
) -> FilterTree:
    op: Operator = "!=" if negated else "="
    if word == PENDING:
        match = _WITH_PENDING.fullmatch(source.name)
        checked = f"{match[1]}has_been_checked" if match else ""
        if not isinstance(names.find(checked), CoreSource):
            raise _wrong(condition, kind, word, pending=False)
        return Condition(checked, op, "0", condition.parameter)
    if number_of(word) is not None:
        return Condition(condition.column, op, word, condition.parameter)
    number = _numbers(kind).get(word)
    if number is None:
        raise _wrong(condition, kind, word)
    test = Condition(condition.column, op, str(number), condition.parameter)
    if kind != "both":
        return test
    # Numbers of hosts and services overlap: a line or row of the other kind is not meant.
    of_host = word in NUMBERS["host"]
    if "_type" in names.schema.columns:
        own = Condition("_type", op, "host" if of_host else "service", condition.parameter)
    else:
        operator: Operator = "!~" if negated else "~"
        own = Condition("type", operator, "HOST" if of_host else "SERVICE", condition.parameter)
    return Group("or" if negated else "and", (test, own))


def _wrong(condition: Condition, kind: StateKind, word: str, *, pending: bool = True) -> BadRequest:
    words = [*_numbers(kind), *([PENDING] if pending else [])]
    return BadRequest(
        "error during request",
        f"{printable(condition.parameter)}: {printable(condition.column)} is a state, expected "
        f"{', '.join(words)} or a number, got '{printable(word)}'",
    )
