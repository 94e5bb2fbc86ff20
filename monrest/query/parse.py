"""All parameters of a list request as one value (docs/spec/http.md, "Parameters")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from monrest.base.errors import BadRequest
from monrest.base.values import Parameters
from monrest.query.columns import MOST_TEXT, parse_columns, split_list
from monrest.query.model import OPERATORS, Condition, FilterTree, Group, Query, SortKey, leaves
from monrest.query.q import EVERYTHING, MOST_CONDITIONS, parse_q
from monrest.query.scan import UNPRINTABLE, bare, outline, printable

_SPLIT_SIGNS = frozenset({"", "!", ">", "<", "!>"})
"""The end of an unescaped operator, which is lost when a pair is cut at its first equals sign."""


def parse_parameter(name: str, value: str) -> Condition | None:
    """The condition of one parameter; None for a blank name, which is ignored.

    The operator is the text in the last pair of brackets, in any case; the column may be the
    text of a selected expression and may be in backticks. Raises BadRequest for an unknown
    operator and for a name that cannot be read; no name is ever dropped.
    """
    whole = name
    name = name.strip()
    if not name:
        return None
    sign = "="
    shape = outline(name)
    opening = shape.rfind("[")
    if shape.endswith("]"):
        if opening < 0:
            raise _unreadable(whole)
        name, sign = name[:opening], name[opening + 1 : -1]
    elif opening >= 0 and name[opening + 1 :] in _SPLIT_SIGNS and value.startswith("]="):
        # ``name[>=]=5`` without percent-encoding arrives as ``name[>`` and ``]=5``.
        name, sign, value = name[:opening], name[opening + 1 :] + "=", value[2:]
    elif opening > shape.rfind("]"):
        raise _unreadable(whole)
    operator = OPERATORS.get(sign.strip().lower())
    if operator is None:
        raise BadRequest(
            "error during request",
            f"{printable(whole)}: unknown operator '{printable(sign)}', "
            f"expected one of {' '.join(OPERATORS)}",
        )
    column = bare(name)
    if not column.strip():
        raise _unreadable(whole)
    return Condition(column, operator, value, whole)


def _unreadable(name: str) -> BadRequest:
    return BadRequest(
        "error during request",
        f"{printable(name)}: unreadable parameter name, expected column or column[operator]",
    )


RESERVED = frozenset(
    {
        "CSRFtoken",
        "backend",
        "backends",
        "background",
        "columns",
        "headers",
        "limit",
        "logcache",
        "offset",
        "pretty",
        "q",
        "sort",
        "strict",
        "timeout",
    }
)
"""Names that are never filters, in exactly this spelling."""

MOST_SORT_KEYS = 500
"""Keys of all ``sort`` parameters together."""

MOST_PARAMETER_TEXT = 1_048_576
"""Characters of all names and values of a request together."""

MOST_NAME = 4096
"""Characters of the name of a filter."""

MOST_DIGITS = 18
"""Digits of ``limit`` and ``offset``."""

_COUNT = re.compile(rf"[0-9]{{1,{MOST_DIGITS}}}")
_UNPRINTABLE_IN_Q = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def parse_query(parameters: Parameters) -> Query:
    """The query that ``parameters`` (in the order sent, names may repeat) describe.

    Columns and sort keys of repeated parameters are joined, every filter and every ``q`` has to
    hold, and of all other options the last value counts. A limit of 0 is none. Raises
    BadRequest, whose description names the parameter, for anything that cannot be understood,
    for control characters anywhere and for more than the limits (docs/spec/query.md, "Limits").
    """
    length = sum(len(name) + len(value) for name, value in parameters)
    if length > MOST_PARAMETER_TEXT:
        name, _ = max(parameters, key=lambda pair: len(pair[0]) + len(pair[1]))
        raise _wrong(name, f"at most {MOST_PARAMETER_TEXT} characters are accepted in a query")
    options: dict[str, list[str]] = {}
    filters: list[FilterTree] = []
    conditions = 0
    for name, value in parameters:
        unprintable = _UNPRINTABLE_IN_Q if name == "q" else UNPRINTABLE
        if UNPRINTABLE.search(name) or unprintable.search(value):
            raise _wrong(name, "control characters are not accepted, expected printable text")
        tree: FilterTree | None = None
        if name == "q":
            tree = parse_q(value)
        elif name in RESERVED:
            options.setdefault(name, []).append(value)
        elif len(name) > MOST_NAME:
            raise _wrong(name, f"at most {MOST_NAME} characters are accepted in a name")
        else:
            tree = parse_parameter(name, value)
        if tree is None:
            continue
        conditions += sum(1 for _ in leaves([tree]))
        if conditions > MOST_CONDITIONS:
            raise _wrong(name, f"at most {MOST_CONDITIONS} conditions are accepted")
        if tree != EVERYTHING:
            filters.append(tree)
    return Query(
        items=parse_columns(options.get("columns", ())) or None,
        filter=Group("and", tuple(filters)),
        sort=_sort(options.get("sort", ())),
        limit=_count(options, "limit") or None,
        offset=_count(options, "offset"),
        backends=_names(options.get("backend", ())) or _names(options.get("backends", ())),
    )


def _count(options: Mapping[str, Sequence[str]], name: str) -> int:
    """A non-negative integer; 0 when it is absent or empty."""
    text = options.get(name, [""])[-1].strip()
    if not text:
        return 0
    if not _COUNT.fullmatch(text):
        raise BadRequest(
            "error during request",
            f"{name} must be a non-negative integer of at most {MOST_DIGITS} digits"
            if text.isascii() and text.isdigit()
            else f"{name} must be a non-negative integer",
        )
    return int(text)


def _sort(values: Sequence[str]) -> tuple[SortKey, ...]:
    """The keys: ``-`` before one is descending, ``+`` or nothing ascending."""
    if sum(map(len, values)) > MOST_TEXT:
        raise _wrong("sort", f"at most {MOST_TEXT} characters are accepted")
    keys: list[SortKey] = []
    for text in (item for value in values for item in split_list(value)):
        signed = text[0] in "+-"
        name = bare(text[1:] if signed else text)
        if name:
            keys.append(SortKey(name, descending=text[0] == "-"))
    if len(keys) > MOST_SORT_KEYS:
        raise _wrong("sort", f"at most {MOST_SORT_KEYS} keys are accepted, got {len(keys)}")
    return tuple(keys)


def _names(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for value in values for part in value.split(",") if (name := part.strip()))


def _wrong(name: str, description: str) -> BadRequest:
    return BadRequest("error during request", f"{printable(name)}: {description}")
