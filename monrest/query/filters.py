"""Filters given as parameters: ``column=value`` and ``column[op]=value``.

Rules: docs/spec/query.md, "Filters".
"""

from __future__ import annotations

from monrest.base.errors import BadRequest
from monrest.query.model import OPERATORS, Condition
from monrest.query.scan import bare, outline, printable

_SPLIT_SIGNS = frozenset({"", "!", ">", "<", "!>"})
"""What an unescaped operator loses when a pair is cut at its first equals sign."""


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
