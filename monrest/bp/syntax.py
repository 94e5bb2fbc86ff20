"""Functions of nodes as they are written: ``at_least('50%', 2)`` (docs/spec/bp.md, "Functions")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import frozen

from monrest.base.errors import BadRequest

FUNCTIONS = (
    "status",
    "groupstatus",
    "fixed",
    "worst",
    "best",
    "at_least",
    "not_more",
    "equals",
    "statusfilter",
    "random",
    "custom",
)
"""Every function of a node."""

Argument: TypeAlias = Any
"""A text, a number, or for statusfilter the list of its searches."""

_CALL = re.compile(r"\s*([^()\s]*)\s*(?:\((.*)\)\s*)?\Z", re.DOTALL)
_ARGUMENT = re.compile(r"'([^']*)'|\"([^\"]*)\"|([0-9]+)")
_DIGITS = re.compile(r"[0-9]{1,15}\Z")
_WILD = frozenset("^|*{}[]")
_LONGEST = 100_000
_MOST_ARGUMENTS = 100


@frozen
class Function:
    """A function with its arguments in their order."""

    name: str
    arguments: tuple[Argument, ...] = ()


NO_FUNCTION = Function("")


def parse(given: Any, arguments: Any = None, *, where: str = "function") -> Function:
    """Read a function given as text or list; ``arguments``, if there are any, override its own.

    Raises BadRequest naming ``where`` for what is neither, and for an unknown function.
    """
    if isinstance(given, str):
        found = _call(given, where)
    elif isinstance(given, list) and given and isinstance(given[0], str):
        found = Function(given[0], tuple(given[1:]))
    else:
        raise BadRequest(
            "invalid function", f"{where}: expected a text such as worst() or a list [name, ...]"
        )
    if arguments:
        if not isinstance(arguments, list):
            raise BadRequest("invalid function arguments", f"{where}_args: expected a list")
        found = Function(found.name, tuple(arguments))
    if found.name not in FUNCTIONS:
        raise BadRequest(
            f"unknown function: {found.name[:80]}",
            f"{where}: expected one of {', '.join(FUNCTIONS)}",
        )
    _check(found, where)
    return found


def _call(text: str, where: str) -> Function:
    if len(text) > _LONGEST:
        raise BadRequest("invalid function", f"{where}: expected at most {_LONGEST} characters")
    match = _CALL.match(text)
    if match is None:
        raise BadRequest("invalid function", f"{where}: expected name(arguments)")
    return Function(match[1].lower(), tuple(_arguments(match[2] or "")))


def _arguments(text: str) -> list[Argument]:
    found: list[Argument] = []
    for single, double, bare in _ARGUMENT.findall(text):
        value = bare or single or double
        found.append(int(value) if _DIGITS.match(value) else value)
    return found


def _check(function: Function, where: str) -> None:
    if len(function.arguments) > _MOST_ARGUMENTS:
        raise BadRequest(
            "too many arguments", f"{where}: expected at most {_MOST_ARGUMENTS} arguments"
        )
    for at, one in enumerate(function.arguments):
        if isinstance(one, (list, dict)) and function.name not in ("statusfilter", "custom"):
            raise BadRequest(
                "invalid argument", f"{where}: argument {at + 1}: expected a text or a number"
            )


def text_at(arguments: Sequence[Argument], at: int) -> str:
    """Give one argument as text; empty when it is missing."""
    value = arguments[at] if at < len(arguments) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def matching_of(service: str, op: str) -> tuple[str, str, bool]:
    """Give operator, pattern and whether the best match counts, of the arguments of status.

    The operator is ``=`` by default, and a regular expression where the text looks like one; then
    it begins with ``b:`` for the best match or ``w:`` for the worst.
    """
    op = op or "="
    if op in ("=", "!=") and not _WILD.isdisjoint(service):
        op = {"=": "~", "!=": "!~"}[op]
    if op == "=":
        return op, service, False
    best = service.startswith("b:")
    if best or service.startswith("w:"):
        service = service[2:]
    return op, service, best


def expression_of(pattern: str) -> str:
    """Give a pattern of status as a regular expression: ``*`` alone in front is anything."""
    return f".{pattern}" if pattern.startswith("*") else pattern
