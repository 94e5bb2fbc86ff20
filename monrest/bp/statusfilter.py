"""The searches of function statusfilter: checking them, and finding rows.

A search is true for a row of which all text filters, states and properties are; several
searches are joined by or. Everything is evaluated here, over the rows of one question for all
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.bp.core_rows import CHECKED, STATE, CoreRows, NodeRows, Slices, chosen, number
from monrest.query.column_names import CoreType
from monrest.query.evaluate import Operand, RowTest, ValueTest, value_test
from monrest.query.functions import Moment
from monrest.query.model import Condition, Operator
from monrest.query.regex import compile_pattern
from monrest.query.scalars import number_of
from monrest.query.times import parse_duration, parse_time

TYPES = ("hosts", "services", "both")
_MOST_SEARCHES = 50
_MOST_TEXT_FILTERS = 50
_MASKS = {
    "hoststatustypes": 15,
    "servicestatustypes": 31,
    "hostprops": 1048575,
    "serviceprops": 1048575,
}
_OPERATORS: Mapping[str, Operator] = {
    "": "=", "=": "=", "!=": "!=", "~": "~~", "!~": "!~~", ">=": ">=", "<=": "<=",
}  # fmt: skip


@frozen
class _Kind:
    """Where a type of text filter looks: columns of hosts and of services, and their type."""

    hosts: tuple[str, ...]
    services: tuple[str, ...]
    type: CoreType = "string"
    reads: str = ""
    """``time``, ``duration``, ``age`` or ``comment``: how values or operands are read."""


_NAMES = ("name", "alias", "address", "display_name")
_OF_THE_HOST = ("host_name", "host_alias", "host_address", "host_display_name")
_SERVICE_NAMES = ("description", "display_name")

_KINDS: Mapping[str, _Kind] = {
    "search": _Kind(_NAMES, (*_OF_THE_HOST, *_SERVICE_NAMES)),
    "host": _Kind(_NAMES, _OF_THE_HOST),
    "service": _Kind(("services",), _SERVICE_NAMES),
    "hostgroup": _Kind(("groups",), ("host_groups",), "list"),
    "servicegroup": _Kind((), ("groups",), "list"),
    "contact": _Kind(("contacts",), ("contacts",), "list"),
    "contactgroup": _Kind(("contact_groups",), ("contact_groups",), "list"),
    "parent": _Kind(("parents",), ("host_parents",), "list"),
    "dependency": _Kind(
        ("depends_exec", "depends_notify"), ("depends_exec", "depends_notify"), "list", "pairs"
    ),
    "plugin output": _Kind(
        ("plugin_output", "long_plugin_output"), ("plugin_output", "long_plugin_output")
    ),
    "comment": _Kind(("comments_with_info",), ("comments_with_info",), "list", "comment"),
    "custom variable": _Kind(
        ("custom_variables",), ("custom_variables", "host_custom_variables"), "dict"
    ),
    "check period": _Kind(("check_period",), ("check_period",)),
    "notification period": _Kind(("notification_period",), ("notification_period",)),
    "event handler": _Kind(("event_handler",), ("event_handler",)),
    "command": _Kind(("check_command",), ("check_command",)),
    "number of services": _Kind(("num_services",), ("host_num_services",), "int"),
    "latency": _Kind(("latency",), ("latency",), "float"),
    "execution time": _Kind(("execution_time",), ("execution_time",), "float"),
    "% state change": _Kind(("percent_state_change",), ("percent_state_change",), "float"),
    "current attempt": _Kind(("current_attempt",), ("current_attempt",), "int"),
    "last check": _Kind(("last_check",), ("last_check",), "time", "time"),
    "next check": _Kind(("next_check",), ("next_check",), "time", "time"),
    "duration": _Kind(("last_state_change",), ("last_state_change",), "time", "age"),
    "downtime duration": _Kind(
        ("downtimes_with_info",), ("downtimes_with_info",), "list", "duration"
    ),
}
_COLUMN_TYPES: Mapping[str, CoreType] = {"services": "list"}

_PROPERTIES: tuple[tuple[str, bool], ...] = (
    # Two bits for each column: the first means that it has this value, the second another one.
    ("scheduled_downtime_depth", True),
    ("acknowledged", True),
    ("checks_enabled", False),
    ("event_handler_enabled", False),
    ("flap_detection_enabled", False),
    ("is_flapping", True),
    ("notifications_enabled", False),
    ("accept_passive_checks", False),
    ("check_type", True),
    ("state_type", True),
)
_HOST_STATES = {0: 2, 1: 4, 2: 8}
_SERVICE_STATES = {0: 2, 1: 4, 2: 16, 3: 8}
_PENDING = 1


def check_searches(arguments: Sequence[Any], where: str) -> None:
    """Refuse arguments of statusfilter that cannot be evaluated; BadRequest naming ``where``."""
    kind = arguments[1] if len(arguments) > 1 else None
    if kind not in TYPES:
        raise BadRequest("invalid type", f"{where}: argument 2: expected one of {', '.join(TYPES)}")
    given = arguments[2] if len(arguments) > 2 else None
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_SEARCHES:
        raise BadRequest(
            "invalid filter",
            f"{where}: argument 3: expected a list of 1 to {_MOST_SEARCHES} searches",
        )
    for at, search in enumerate(given):
        _check(search, f"{where}: search {at + 1}")
    for at, one in enumerate(arguments[3:], 4):
        if isinstance(one, (list, dict)):
            raise BadRequest("invalid threshold", f"{where}: argument {at}: expected a number")


def patterns_of(arguments: Sequence[Any]) -> Iterator[str]:
    """Give the regular expressions in the searches of arguments that were checked."""
    for search in searches_of(arguments):
        for one in search.get("text_filter") or ():
            value = one.get("value")
            if one.get("op") in ("~", "!~"):
                yield "" if value is None else str(value)


def _check(search: Any, where: str) -> None:
    if not isinstance(search, dict):
        raise BadRequest("invalid filter", f"{where}: expected an object")
    for name, highest in _MASKS.items():
        if not 0 <= _mask(search, name) <= highest:
            raise BadRequest("invalid filter", f"{where}: {name}: expected 0 to {highest}")
    filters = search.get("text_filter") or []
    if not isinstance(filters, list) or len(filters) > _MOST_TEXT_FILTERS:
        raise BadRequest(
            "invalid filter",
            f"{where}: text_filter: expected a list of at most {_MOST_TEXT_FILTERS} objects",
        )
    for one in filters:
        if not isinstance(one, dict) or one.get("type") not in _KINDS:
            raise BadRequest(
                "invalid filter", f"{where}: type: expected one of {', '.join(_KINDS)}"
            )
        if one.get("op", "=") not in _OPERATORS:
            raise BadRequest("invalid filter", f"{where}: op: expected one of = != ~ !~ >= <=")
        if any(isinstance(one.get(name), (list, dict)) for name in ("value", "val_pre")):
            raise BadRequest("invalid filter", f"{where}: value: expected a text or a number")
        if one["type"] == "custom variable" and not str(one.get("val_pre") or ""):
            raise BadRequest("invalid filter", f"{where}: val_pre: expected the name of a variable")
        kind = _KINDS[one["type"]]
        for columns in (kind.hosts, kind.services):
            _value_test(one, kind, columns[0] if columns else "", 0.0, None)


def _mask(search: Mapping[str, Any], name: str) -> int:
    """Give the bits of a search, -1 for what is no number."""
    value = search.get(name)
    if value is None or value == "":
        return _MASKS[name] if name.endswith("types") else 0
    found = number_of(value)
    return -1 if found is None else int(found)


def columns_of(searches: Sequence[Mapping[str, Any]], *, hosts: bool) -> dict[str, CoreType]:
    """Give the columns that the searches look at, with their types."""
    found: dict[str, CoreType] = {}
    for search in searches:
        for one in search.get("text_filter") or ():
            kind = _KINDS[one["type"]]
            for name in kind.hosts if hosts else kind.services:
                found[name] = _COLUMN_TYPES.get(name, kind.type)
        of_host = _mask(search, "hostprops")
        own = of_host if hosts else of_host | _mask(search, "serviceprops")
        for at, (name, _) in enumerate(_PROPERTIES):
            if own >> 2 * at & 3:
                found[name] = "int"
            if not hosts and of_host >> 2 * at & 3:
                found[f"host_{name}"] = "int"
        if not hosts:
            found["host_state"] = found["host_has_been_checked"] = "int"
    return found


def shown(searches: Sequence[Mapping[str, Any]]) -> str:
    """Give the text filters in short: ``host=h_b & service~disk``."""
    return " | ".join(
        " & ".join(
            f"{one['type']}{one.get('op', '=') or '='}{one.get('value', '')}"
            for one in search.get("text_filter") or ()
        )
        for search in searches
    )


def test_of(
    searches: Sequence[Mapping[str, Any]],
    index: Mapping[str, int],
    moment: Moment,
    *,
    hosts: bool,
) -> RowTest:
    """Give what says whether a row of these columns is found."""
    tests = [_search(one, index, moment, hosts=hosts) for one in searches]
    return lambda row: any(all(test(row) for test in parts) for parts in tests)


def searches_of(arguments: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    searches = arguments[2]
    return [searches] if isinstance(searches, dict) else searches


def searched(live: CoreRows, arguments: Sequence[Any], moment: Moment) -> NodeRows:
    kind, searches = arguments[1], searches_of(arguments)
    hosts: Slices = ()
    services: Slices = ()
    if kind != "services":
        test = test_of(searches, live.host_index, moment, hosts=True)
        hosts = chosen(live.hosts.values(), test)
    if kind != "hosts":
        test = test_of(searches, live.service_index, moment, hosts=False)
        services = chosen(live.services.values(), test)
    return NodeRows(hosts, services)


def _search(
    search: Mapping[str, Any], index: Mapping[str, int], moment: Moment, *, hosts: bool
) -> list[RowTest]:
    parts: list[RowTest] = []
    host_mask = _mask(search, "hoststatustypes")
    prefix = "" if hosts else "host_"
    if host_mask not in (0, 15):
        columns = (STATE, CHECKED)
        if not hosts:
            columns = (index["host_state"], index["host_has_been_checked"])
        parts.append(_states(host_mask, _HOST_STATES, *columns))
    parts += _properties(_mask(search, "hostprops"), index, prefix)
    if not hosts:
        mask = _mask(search, "servicestatustypes")
        if mask not in (0, 31):
            parts.append(_states(mask, _SERVICE_STATES, STATE, CHECKED))
        parts += _properties(_mask(search, "serviceprops"), index, "")
    for one in search.get("text_filter") or ():
        parts.append(_text_filter(one, index, moment, hosts=hosts))
    return parts


def _states(mask: int, bits: Mapping[int, int], state: int, checked: int) -> RowTest:
    def test(row: Row) -> bool:
        bit = _PENDING if not row[checked] else bits.get(number(row[state]), 0)
        return bool(mask & bit)

    return test


def _properties(mask: int, index: Mapping[str, int], prefix: str) -> list[RowTest]:
    parts: list[RowTest] = []
    for at, (name, first) in enumerate(_PROPERTIES):
        bits = mask >> 2 * at & 3
        if bits in (0, 3):
            continue
        column = index[f"{prefix}{name}"]
        wanted = first if bits == 1 else not first
        parts.append(_whether(column, wanted=wanted))
    return parts


def _whether(column: int, *, wanted: bool) -> RowTest:
    return lambda row: bool(row[column]) is wanted


def _text_filter(
    one: Mapping[str, Any], index: Mapping[str, int], moment: Moment, *, hosts: bool
) -> RowTest:
    kind = _KINDS[one["type"]]
    columns = kind.hosts if hosts else kind.services
    negative = str(one.get("op") or "=").startswith("!")
    tests = [
        (index[name], _value_test(one, kind, name, moment.now, moment.zone)) for name in columns
    ]
    if kind.type == "dict":
        return _variables(tests, str(one["val_pre"]).upper().removeprefix("_"))
    read = _READ.get(kind.reads)

    def test(row: Row) -> bool:
        values = ((row[at], found) for at, found in tests)
        if read is not None:
            values = ((read(value), found) for value, found in values)
        if negative:
            return all(found(value) for value, found in values)
        return any(found(value) for value, found in values)

    return test


def _variables(tests: Sequence[tuple[int, ValueTest]], wanted: str) -> RowTest:
    """Test a custom variable: the object's own, else that of its host; none is empty."""

    def test(row: Row) -> bool:
        values = (_variable(row[at], wanted) for at, _ in tests)
        return tests[0][1](next((value for value in values if value is not None), ""))

    return test


def _variable(value: Any, wanted: str) -> Any:
    if not isinstance(value, dict):
        return None
    return next((one for name, one in value.items() if str(name).upper() == wanted), None)


def _value_test(
    one: Mapping[str, Any], kind: _Kind, column: str, now: float, zone: tzinfo | None
) -> ValueTest:
    """Give the test of one value; BadRequest for a pattern or an operand that is none."""
    value = one.get("value")
    text = "" if value is None else str(value)
    op = _OPERATORS[str(one.get("op") or "=")]
    operand: Operand = text
    if op.endswith("~"):
        operand = compile_pattern(text, ignore_case=op.endswith("~~"), parameter=_named(one))
    elif kind.type in ("int", "float", "time") or kind.reads == "duration":
        operand, op = _operand(text, op, kind, now, zone)
    listed = kind.type == "list" and kind.reads != "duration"
    listed = listed or _COLUMN_TYPES.get(column) == "list"
    if listed and op in ("=", "!="):
        # A search for a group or contact means "has it", not "has nothing else".
        op = ">=" if op == "=" else "!>="
    condition = Condition(column, op, text, _named(one))
    return value_test(condition, operand, listed=listed, folded=True)


def _named(one: Mapping[str, Any]) -> str:
    return f"statusfilter: {one['type']}"


def _operand(
    text: str, op: Operator, kind: _Kind, now: float, zone: tzinfo | None
) -> tuple[str | float, Operator]:
    """Read a number, a moment or a duration; an age is compared as the moment it began."""
    found: float | None
    if kind.reads == "time":
        found = parse_time(text, now, zone or UTC)
    elif kind.reads in ("age", "duration"):
        found = parse_duration(text)
        if found is not None and kind.reads == "age":
            found, op = now - found, _TURNED.get(op, op)
    else:
        found = number_of(text)
    return (text if found is None else found), op


_TURNED: Mapping[Operator, Operator] = {">=": "<=", "<=": ">="}


def _comment_texts(value: Any) -> list[str]:
    entries = value if isinstance(value, list) else []
    return [str(part) for one in entries if isinstance(one, list) for part in one[1:3]]


def _longest(value: Any) -> float:
    entries = value if isinstance(value, list) else []
    spans = [
        number(one[5]) - number(one[4]) for one in entries if isinstance(one, list) and len(one) > 5
    ]
    return max(spans, default=0)


def _pairs(value: Any) -> list[str]:
    """Give names on which something depends; of services ``host;description`` and both apart."""
    found: list[str] = []
    for one in value if isinstance(value, list) else ():
        parts = [str(part) for part in one[:2]] if isinstance(one, list) else [str(one)]
        found += [*parts, ";".join(parts)] if len(parts) > 1 else parts
    return found


_READ: Mapping[str, Callable[[Any], Any]] = {
    "comment": _comment_texts,
    "duration": _longest,
    "pairs": _pairs,
}
