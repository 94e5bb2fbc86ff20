"""Rows of one core in the common layout: what it lacks is empty, what it says otherwise is fixed.

Of a Naemon that was asked for the whole layout in its order only those columns are looked at that
are taken apart later; everything else happens while the rows arrive, column by column, so that the
work per value is done by the interpreter's own loops. Rules: docs/spec/sites.md, "Rows of different
cores", and docs/spec/icinga2.md, "Values".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from typing import Any, TypeAlias

import orjson
from attrs import frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.framing import Transform
from monrest.query.column_names import EMPTY, CoreType

RowTypes: TypeAlias = tuple[tuple[str, CoreType], ...]
"""Names and types of the columns that every row shall have, in order."""

Values: TypeAlias = Sequence[Any]

_ADDED = frozenset({"hostgroups", "servicegroups"})
"""Tables whose rows of several sites become one: their numbers are added, their lists joined."""


def as_text(value: Any) -> str:
    """A value where a text belongs: null is empty, numbers as written, else JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # Deeper than JSON writers go, or a whole number beyond 64 bits.
        return str(value) if isinstance(value, int) else ""


def as_int(value: Any) -> int | float:
    """A value where a number belongs: true is 1, what is no number is 0."""
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float)) else 0


def as_number(value: Any) -> int | float:
    """A number that an LMD writes as a text; what is none is 0."""
    try:
        return int(value) if isinstance(value, str) else as_int(value)
    except ValueError:
        return 0


def as_float(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def as_list(value: Any) -> list[Any]:
    """A value where a list belongs: Icinga 2 has 0 for an empty modified_attributes_list."""
    return value if isinstance(value, list) else []


def as_dict(value: Any) -> dict[str, Any]:
    """Custom variables: a dictionary already, or the [name, value] pairs of Icinga 2."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    pairs = [pair for pair in value if isinstance(pair, list) and len(pair) > 1]
    return {as_text(pair[0]): as_text(pair[1]) for pair in pairs}


_FIX: dict[CoreType, tuple[type, Callable[[Any], Any]]] = {
    "string": (str, as_text),
    "int": (int, as_int),
    "time": (int, as_int),
    "float": (float, as_float),
    "list": (list, as_list),
    "dict": (dict, as_dict),
}


_LMD_TEXTS = frozenset({("contacts", "id")})
"""Numbers that an LMD writes as texts."""


def _typed(core_type: CoreType, *, texts: bool = False) -> Callable[[Values], Values]:
    wanted, fix = (int, as_number) if texts else _FIX[core_type]
    right = {wanted}

    def column(values: Values) -> Values:
        return values if set(map(type, values)) <= right else list(map(fix, values))

    return column


def _checked(layout: RowTypes, positions: Iterable[int]) -> Transform:
    """Rows as they are, with what is of a wrong type in these columns replaced in place."""
    columns = [(at, itemgetter(at), *_FIX[layout[at][1]]) for at in positions]
    checks = [(at, pick, {right}, fix) for at, pick, right, fix in columns]

    def transform(rows: list[Row]) -> list[Row]:
        for at, pick, right, fix in checks:
            if not set(map(type, map(pick, rows))) <= right:
                for row in rows:
                    row[at] = fix(row[at])
        return rows

    return transform


def fixed(layout: RowTypes) -> Transform:
    """Rows whose values all have the types of the layout, replaced in place where they have not."""
    return _checked(layout, range(len(layout)))


def _less(value: Any, pending: Any) -> int | float:
    return max(0, as_int(value) - as_int(pending))


def _worst_service(value: Any, warn: Any, crit: Any, unknown: Any, pending: Any) -> Any:
    if value != 3:
        return value
    if as_int(crit) > 0:
        return 2
    if _less(unknown, pending) > 0:
        return 3
    return 1 if as_int(warn) > 0 else 0


def _worst_host(value: Any, down: Any, unreachable: Any, pending: Any) -> Any:
    if value != 1 or _less(down, pending) > 0:
        return value
    return 2 if as_int(unreachable) > 0 else 0


def _log_host(value: Any, current: Any, kind: Any, options: Any) -> Any:
    """The host of a log line; Icinga 2 has null for lines of hosts, and of what is gone."""
    if value or current or not isinstance(kind, str) or not isinstance(options, str):
        return value or current
    parts = options.split(";")
    at = 1 if kind.endswith(" NOTIFICATION") else 0
    has_host = kind.endswith((" ALERT", " STATE", " NOTIFICATION")) and len(parts) > at + 1
    return parts[at] if has_host else value


_SERVICE_COUNTERS = tuple(f"num_services_{s}" for s in ("warn", "crit", "unknown", "pending"))

_RULES: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    **dict.fromkeys(
        ("state", "hard_state", "last_state", "last_hard_state", "last_check"),
        (("has_been_checked",), lambda value, checked: 0 if checked == 0 else value),
    ),
    # What is pending is in a hard state.
    "state_type": (("has_been_checked",), lambda value, checked: 1 if checked == 0 else value),
    "num_services_unknown": (("num_services_pending",), _less),
    "num_hosts_down": (("num_hosts_pending",), _less),
    "worst_service_state": (_SERVICE_COUNTERS, _worst_service),
    "host_name": (("current_host_name", "type", "options"), _log_host),
    "worst_host_state": (("num_hosts_down", "num_hosts_unreach", "num_hosts_pending"), _worst_host),
}
"""Column: the columns beside it that say what its value means, and what to make of it."""


def _members(state: int, length: int) -> Callable[[Any], list[Any]]:
    def fix(value: Any) -> list[Any]:
        fixed = []
        for member in as_list(value):
            if not isinstance(member, list) or len(member) <= state:
                continue
            full = member + [1] * (length - len(member))
            if full[state + 1] == 0:
                full[state] = 0
            fixed.append(full)
        return fixed

    return fix


def _group_services(value: Any) -> list[Any]:
    # [host, service, state of the host, state of the service], seen on 2.13.6; Naemon has the
    # state of the service and whether it was checked.
    members = [member for member in as_list(value) if isinstance(member, list) and len(member) > 3]
    return [[host, service, state, 1] for host, service, _, state, *_ in members]


def _padded(length: int) -> Callable[[Any], list[Any]]:
    def fix(value: Any) -> list[Any]:
        entries = [entry for entry in as_list(value) if isinstance(entry, list)]
        return [entry + [0] * (length - len(entry)) for entry in entries]

    return fix


_LISTS: dict[str, Callable[[Any], list[Any]]] = {
    "custom_variable_values": lambda value: list(map(as_text, as_list(value))),
    "comments_with_info": _padded(7),
    "downtimes_with_info": _padded(9),
    "services_with_state": _members(1, 3),
    "services_with_info": _members(1, 4),
}


def _rule(name: str, names: Iterable[str]) -> tuple[tuple[str, ...], Callable[..., Any]] | None:
    """The rule of a column under any prefix, if the table has the columns that it needs."""
    for base, (needs, function) in _RULES.items():
        if name.endswith(base):
            prefix = name[: len(name) - len(base)]
            columns = tuple(prefix + need for need in needs)
            if all(column in names for column in columns):
                return columns, function
    return None


def _list_fix(table: str, name: str) -> Callable[[Any], list[Any]] | None:
    for base, fix in _LISTS.items():
        if name.endswith(base):
            return fix
    if name.endswith("members_with_state"):
        services = table == "servicegroups" or name.startswith("servicegroup_")
        return _group_services if services else _members(1, 3)
    return None


@lru_cache(maxsize=512)
def with_companions(
    table: str, columns: tuple[str, ...], capabilities: Capabilities
) -> tuple[str, ...]:
    """``columns`` and what must be asked beside them to know what their values mean."""
    if not capabilities.icinga2:
        return columns
    types = capabilities.tables.get(table, {})
    asked = dict.fromkeys(columns)
    for name in columns:
        rule = _rule(name, types)
        if rule is not None:
            asked.update(dict.fromkeys(rule[0]))
    return tuple(asked)


@frozen
class _Cell:
    """The source of one column of the layout: ``at`` in the core's rows, None if it lacks it."""

    at: int | None
    empty: Any
    typed: Callable[[Values], Values] | None = None
    beside: tuple[int, ...] = ()
    rule: Callable[..., Any] | None = None
    lists: Callable[[Any], list[Any]] | None = None

    def of(self, columns: Sequence[Values], count: int) -> Iterable[Any]:
        if self.at is None:
            return repeat(self.empty, count)
        values = columns[self.at]
        if self.rule is not None:
            values = list(map(self.rule, values, *(columns[at] for at in self.beside)))
        if self.lists is not None:
            values = list(map(self.lists, values))
        return values if self.typed is None else self.typed(values)


@lru_cache(maxsize=512)
def normaliser(
    table: str, columns: tuple[str, ...], capabilities: Capabilities, layout: RowTypes
) -> Transform | None:
    """A function from rows of ``columns`` to rows of ``layout``; None when both are the same."""
    kind = capabilities.kind
    names = tuple(name for name, _ in layout)
    types = capabilities.tables.get(table, {})
    position = {name: at for at, name in enumerate(columns)}
    cells = []
    for name, core_type in layout:
        at = position.get(name)
        texts = kind == "lmd" and (table, name) in _LMD_TEXTS
        # Icinga 2 and Shinken give null, true or "" where a number, a text or a list belongs. On
        # the types of the last three our own code relies; all else takes values as they are, so
        # that a lie in it shows and breaks nothing.
        loose = (
            capabilities.icinga2
            or kind == "shinken"
            or texts
            or core_type == "dict"
            or name.endswith("perf_data")
            or table in _ADDED
        )
        rule = _rule(name, types) if capabilities.icinga2 else None
        if rule is not None and not all(need in position for need in rule[0]):
            rule = None
        cells.append(
            _Cell(
                at,
                EMPTY[core_type],
                _typed(core_type, texts=texts) if loose else None,
                tuple(position[need] for need in rule[0]) if rule else (),
                rule[1] if rule else None,
                _list_fix(table, name) if capabilities.icinga2 else None,
            )
        )
    texts = kind == "lmd" and any((table, name) in _LMD_TEXTS for name in names)
    if columns == names and not texts and not any(cell.rule or cell.lists for cell in cells):
        loosely = [at for at, cell in enumerate(cells) if cell.typed]
        return _checked(layout, loosely) if loosely else None

    def transform(rows: list[Row]) -> list[Row]:
        if not rows:
            return rows
        by_column = list(zip(*rows, strict=True))
        count = len(rows)
        done = [cell.of(by_column, count) for cell in cells]
        return list(map(list, zip(*done, strict=True))) if done else [[] for _ in rows]

    return transform
