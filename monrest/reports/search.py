"""The search that chooses the objects of a report, as conditions of the query language. Pure.

It comes as the fields of a search form: ``dfl_s0_type``, ``dfl_s0_op``, ``dfl_s0_value`` and so on,
one or many of each; searches ``s0``, ``s1``, … are joined by or, the lines of one by and
(docs/spec/reports.md, "Parameters").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.query.model import Condition, FilterTree, Group, Operator
from monrest.query.q import parse_q

_FIELD = re.compile(
    r"(?:dfl_)?s([0-9]{1,3})_(type|op|value|val_pre|hoststatustypes|servicestatustypes"
    r"|hostprops|serviceprops)"
)
_OPS: Mapping[str, Operator] = {
    "": "=", "=": "=", "!=": "!=", "~": "~~", "!~": "!~~", ">=": ">=", "<=": "<=",
}  # fmt: skip
_LISTS: Mapping[str, Operator] = {"=": ">=", "!=": "!>=", ">=": ">=", "~~": "~~", "!~~": "!~~"}
_COLUMNS = {"host": "host", "service": "service"}
_GROUPS = {
    "hostgroup": "host_groups",
    "servicegroup": "service_groups",
    "contact": "contacts",
    "contactgroup": "contact_groups",
}
_EVERYTHING = {"hoststatustypes": (0, 15), "servicestatustypes": (0, 31)}
_MOST = 500


@frozen
class Search:
    """``trees`` have all to hold, on columns of hosts or of services."""

    trees: tuple[FilterTree, ...] = ()


def read_search(given: Any, q: str) -> Search:
    """Read the fields of a form and a text of the query language; ValueError says what is wrong.

    A filter that is a text is the query language as well.
    """
    texts = [q] if q else []
    trees: list[FilterTree] = []
    if isinstance(given, str):
        texts += [given] if given.strip() else []
    elif isinstance(given, Mapping):
        trees += _form(given)
    elif given is not None:
        raise ValueError("an object of search fields, or a text of the query language")
    for text in texts:
        try:
            trees.append(parse_q(text))
        except BadRequest as error:
            raise ValueError(f"the query language: {error.description}") from None
    return Search(tuple(trees))


def _form(given: Mapping[Any, Any]) -> list[FilterTree]:
    searches: dict[int, dict[str, list[str]]] = {}
    for name, value in given.items():
        match = _FIELD.fullmatch(str(name))
        if match is None:
            raise ValueError(f"fields such as dfl_s0_type, got {str(name)[:80]!r}")
        items = value if isinstance(value, list) else [value]
        if len(items) > _MOST or not all(isinstance(one, (str, int)) for one in items):
            raise ValueError(f"texts, got something else in {name}")
        searches.setdefault(int(match[1]), {})[match[2]] = [str(one) for one in items]
    found = [_search(searches[number]) for number in sorted(searches)]
    chosen = [one for one in found if one.items]
    # A search without any condition finds everything, and so do all of them together.
    return [Group("or", tuple(chosen))] if chosen and len(chosen) == len(found) else []


def _search(fields: Mapping[str, list[str]]) -> Group[Condition]:
    for name, values in fields.items():
        if name in ("hostprops", "serviceprops") or name in _EVERYTHING:
            neutral = _EVERYTHING.get(name, (0,))
            if any(value not in ("", *map(str, neutral)) for value in values):
                raise ValueError(f"no {name}: a report is about all states of its objects")
    types, ops = fields.get("type", []), fields.get("op", [])
    values = fields.get("value", [])
    if len(values) > len(types):
        raise ValueError("a type for each value")
    found = []
    for at, kind in enumerate(types):
        op = ops[at] if at < len(ops) else ""
        value = values[at].strip() if at < len(values) else ""
        if value:
            found.append(_line(kind.strip().lower(), op.strip(), value))
    return Group("and", tuple(found))


def _line(kind: str, op: str, value: str) -> FilterTree:
    sign = _OPS.get(op)
    if sign is None:
        raise ValueError(f"one of {' '.join(one for one in _OPS if one)} in op, got {op[:20]!r}")
    if kind == "search":
        how: Operator = "~~" if sign in ("=", "~~") else "!~~"
        text = re.escape(value) if sign in ("=", "!=") else value
        both = (Condition("host", how, text, "filter"), Condition("service", how, text, "filter"))
        return Group("or" if how == "~~" else "and", both)
    if kind in _COLUMNS:
        return Condition(_COLUMNS[kind], sign, value, "filter")
    if kind in _GROUPS:
        listed = _LISTS.get(sign)
        if listed is None:
            raise ValueError(f"one of = != ~ !~ for a {kind}, got {op!r}")
        return Condition(_GROUPS[kind], listed, value, "filter")
    known = ", ".join(("search", *_COLUMNS, *_GROUPS))
    raise ValueError(f"one of {known} in type, got {kind[:40]!r}")
