"""The searches of function statusfilter, which are those of the front end's search form.

A row is found by a search if all of its text filters, states and properties hold; several searches
are joined by or. Everything is evaluated here, over the rows of one question for all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.bp.core_rows import number
from monrest.query.column_names import CoreType
from monrest.query.evaluate import Operand, RowTest, ValueTest, all_of, any_of, value_test
from monrest.query.functions import Moment
from monrest.query.model import Condition, Operator
from monrest.query.regex import compile_pattern
from monrest.query.scalars import number_of
from monrest.query.times import parse_duration, parse_time

_MOST_SEARCHES = 50
_MOST_TEXT_FILTERS = 50
_OPERATORS: Mapping[str, Operator] = {
    "=": "=", "!=": "!=", "~": "~~", "!~": "!~~", ">=": ">=", "<=": "<=",
}  # fmt: skip
PATTERN_OPERATORS = ("~", "!~")


@frozen
class TextFilter:
    """``variable`` is the name of a custom variable in capitals, where the type is that."""

    type: str
    op: str
    value: str
    variable: str = ""

    def __str__(self) -> str:
        return f"{self.type}{self.op}{self.value}"


@frozen
class Search:
    """Numbers are masks: a bit for each state, and two bits for each property."""

    hoststatustypes: int
    servicestatustypes: int
    hostprops: int
    serviceprops: int
    text_filter: tuple[TextFilter, ...] = ()

    def __str__(self) -> str:
        return " & ".join(map(str, self.text_filter))


_ALL_STATES = {"hoststatustypes": 15, "servicestatustypes": 31}
_MASKS = {**_ALL_STATES, "hostprops": 1048575, "serviceprops": 1048575}


@frozen
class _Kind:
    """The columns of a type of text filter, of hosts and of services, and their type."""

    hosts: tuple[str, ...]
    services: tuple[str, ...]
    type: CoreType = "string"
    reads: str = ""
    """``time``, ``duration``, ``age``, ``pairs`` or ``comment``: what the values mean."""


_NAMES = ("name", "alias", "address", "display_name")
_OF_THE_HOST = ("host_name", "host_alias", "host_address", "host_display_name")
_SERVICE_NAMES = ("description", "display_name")


def _alike(*columns: str, held: CoreType = "string", reads: str = "") -> _Kind:
    return _Kind(columns, columns, held, reads)


_KINDS: Mapping[str, _Kind] = {
    "search": _Kind(_NAMES, (*_OF_THE_HOST, *_SERVICE_NAMES)),
    "host": _Kind(_NAMES, _OF_THE_HOST),
    "service": _Kind(("services",), _SERVICE_NAMES),
    "hostgroup": _Kind(("groups",), ("host_groups",), "list"),
    "servicegroup": _Kind((), ("groups",), "list"),
    "contact": _alike("contacts", held="list"),
    "contactgroup": _alike("contact_groups", held="list"),
    "parent": _Kind(("parents",), ("host_parents",), "list"),
    "dependency": _alike("depends_exec", "depends_notify", held="list", reads="pairs"),
    "plugin output": _alike("plugin_output", "long_plugin_output"),
    "comment": _alike("comments_with_info", held="list", reads="comment"),
    "custom variable": _Kind(
        ("custom_variables",), ("custom_variables", "host_custom_variables"), "dict"
    ),
    "check period": _alike("check_period"),
    "notification period": _alike("notification_period"),
    "event handler": _alike("event_handler"),
    "command": _alike("check_command"),
    "number of services": _Kind(("num_services",), ("host_num_services",), "int"),
    "latency": _alike("latency", held="float"),
    "execution time": _alike("execution_time", held="float"),
    "% state change": _alike("percent_state_change", held="float"),
    "current attempt": _alike("current_attempt", held="int"),
    "last check": _alike("last_check", held="time", reads="time"),
    "next check": _alike("next_check", held="time", reads="time"),
    "duration": _alike("last_state_change", held="time", reads="age"),
    "downtime duration": _alike("downtimes_with_info", held="list", reads="duration"),
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


def read_searches(given: Any, where: str) -> tuple[Search, ...]:
    """Read what a form sends, one search or a list; BadRequest naming ``where``."""
    searches = [given] if isinstance(given, dict) else given
    if not isinstance(searches, list) or not 0 < len(searches) <= _MOST_SEARCHES:
        raise _wrong(f"{where}: argument 3", f"a list of 1 to {_MOST_SEARCHES} searches")
    return tuple(_read(search, f"{where}: search {at}") for at, search in enumerate(searches, 1))


def _wrong(where: str, expected: str) -> BadRequest:
    return BadRequest("invalid filter", f"{where}: expected {expected}")


def _read(search: Any, where: str) -> Search:
    if not isinstance(search, dict):
        raise _wrong(where, "an object")
    masks: dict[str, int] = {}
    for name, highest in _MASKS.items():
        value = search.get(name)
        mask = _ALL_STATES.get(name, 0) if value is None or value == "" else number_of(value)
        if mask is None or not 0 <= int(mask) <= highest:
            raise _wrong(f"{where}: {name}", f"0 to {highest}")
        masks[name] = int(mask)
    filters = search.get("text_filter") or []
    if not isinstance(filters, list) or len(filters) > _MOST_TEXT_FILTERS:
        raise _wrong(f"{where}: text_filter", f"a list of at most {_MOST_TEXT_FILTERS} objects")
    return Search(
        **masks, text_filter=tuple(_read_text_filter(text_filter, where) for text_filter in filters)
    )


def _read_text_filter(given: Any, where: str) -> TextFilter:
    kind = given.get("type") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _wrong(f"{where}: type", f"one of {', '.join(_KINDS)}")
    op = given.get("op", "=")
    op = "=" if op == "" else op
    if not isinstance(op, str) or op not in _OPERATORS:
        raise _wrong(f"{where}: op", f"one of {' '.join(_OPERATORS)}")
    value, variable = given.get("value"), given.get("val_pre")
    if isinstance(value, (list, dict)) or isinstance(variable, (list, dict)):
        raise _wrong(f"{where}: value", "a text or a number")
    if kind == "custom variable" and not variable:
        raise _wrong(f"{where}: val_pre", "the name of a variable")
    text = "" if value is None else str(value)
    if op in PATTERN_OPERATORS:
        compile_pattern(text, ignore_case=True, parameter=f"statusfilter: {kind}")
    return TextFilter(kind, op, text, str(variable or "").upper().removeprefix("_"))


ValuesTest: TypeAlias = Callable[[Sequence[Any]], bool]


@frozen
class _Criterion:
    """One condition of a search: the columns it is about, and what tests their values."""

    columns: Mapping[str, CoreType]
    test: Callable[[Moment], ValuesTest]


def columns_of(searches: Sequence[Search], *, hosts: bool) -> dict[str, CoreType]:
    """The columns that the searches look at, with their types."""
    columns: dict[str, CoreType] = {}
    for search in searches:
        for criterion in _criteria(search, hosts=hosts):
            columns.update(criterion.columns)
    return columns


def row_test(
    searches: Sequence[Search], index: Mapping[str, int], moment: Moment, *, hosts: bool
) -> RowTest:
    """Make the test whether a row with columns at these places is found."""

    def test(criterion: _Criterion) -> RowTest:
        holds, places = criterion.test(moment), [index[name] for name in criterion.columns]
        return lambda row: holds([row[at] for at in places])

    return any_of(
        [
            all_of([test(criterion) for criterion in _criteria(search, hosts=hosts)])
            for search in searches
        ]
    )


def _criteria(search: Search, *, hosts: bool) -> Iterator[_Criterion]:
    prefix = "" if hosts else "host_"
    yield from _states(search.hoststatustypes, "hoststatustypes", prefix, _HOST_STATES)
    yield from _properties(search.hostprops, prefix)
    if not hosts:
        yield from _states(search.servicestatustypes, "servicestatustypes", "", _SERVICE_STATES)
        yield from _properties(search.serviceprops, "")
    for text_filter in search.text_filter:
        yield _text_filter(text_filter, hosts=hosts)


def _states(mask: int, name: str, prefix: str, bits: Mapping[int, int]) -> Iterator[_Criterion]:
    def test(values: Sequence[Any]) -> bool:
        state, checked = values
        return bool(mask & (bits.get(number(state), 0) if checked else _PENDING))

    if mask not in (0, _ALL_STATES[name]):
        columns = (f"{prefix}state", f"{prefix}has_been_checked")
        yield _Criterion(dict.fromkeys(columns, "int"), lambda _: test)


def _properties(mask: int, prefix: str) -> Iterator[_Criterion]:
    for at, (name, first) in enumerate(_PROPERTIES):
        bits = mask >> 2 * at & 3
        if bits in (1, 2):
            yield _property(f"{prefix}{name}", wanted=first if bits == 1 else not first)


def _property(column: str, *, wanted: bool) -> _Criterion:
    return _Criterion({column: "int"}, lambda _: lambda values: bool(values[0]) is wanted)


def _text_filter(text_filter: TextFilter, *, hosts: bool) -> _Criterion:
    kind = _KINDS[text_filter.type]
    columns = {
        name: _COLUMN_TYPES.get(name, kind.type)
        for name in (kind.hosts if hosts else kind.services)
    }

    def test(moment: Moment) -> ValuesTest:
        tests = [_value_test(text_filter, kind, held, moment) for held in columns.values()]
        if kind.type == "dict":
            return lambda values: tests[0](_variable(values, text_filter.variable))
        read = _READ.get(kind.reads, _as_it_is)
        # A negative operator has to hold for all of the columns.
        enough = all if text_filter.op.startswith("!") else any
        return lambda values: enough(
            holds(read(value)) for holds, value in zip(tests, values, strict=True)
        )

    return _Criterion(columns, test)


def _variable(values: Sequence[Any], wanted: str) -> Any:
    """A custom variable: the object's own, else that of its host; empty where none has it."""
    for variables in values:
        for name, value in variables.items() if isinstance(variables, dict) else ():
            if str(name).upper() == wanted:
                return value
    return ""


def _value_test(text_filter: TextFilter, kind: _Kind, held: CoreType, moment: Moment) -> ValueTest:
    op, parameter = _OPERATORS[text_filter.op], f"statusfilter: {text_filter.type}"
    operand: Operand = text_filter.value
    if text_filter.op in PATTERN_OPERATORS:
        operand = compile_pattern(text_filter.value, ignore_case=True, parameter=parameter)
    elif kind.type in ("int", "float", "time") or kind.reads == "duration":
        operand, op = _operand(text_filter.value, op, kind, moment)
    listed = held == "list" and kind.reads != "duration"
    if listed and op in ("=", "!="):
        # A search for a group or contact means "has it", not "has nothing else".
        op = ">=" if op == "=" else "!>="
    condition = Condition(text_filter.type, op, text_filter.value, parameter)
    return value_test(condition, operand, listed=listed, folded=True)


def _operand(text: str, op: Operator, kind: _Kind, moment: Moment) -> tuple[str | float, Operator]:
    """Read a number, a moment or a duration; an age is compared as the moment it began."""
    operand: float | None
    if kind.reads == "time":
        operand = parse_time(text, moment.now, moment.zone)
    elif kind.reads in ("age", "duration"):
        operand = parse_duration(text)
        if operand is not None and kind.reads == "age":
            operand, op = moment.now - operand, _TURNED.get(op, op)
    else:
        operand = number_of(text)
    return (text if operand is None else operand), op


_TURNED: Mapping[Operator, Operator] = {">=": "<=", "<=": ">="}


def _as_it_is(value: Any) -> Any:
    return value


def _entries(value: Any) -> list[list[Any]]:
    return [entry for entry in value if isinstance(entry, list)] if isinstance(value, list) else []


def _comment_texts(value: Any) -> list[str]:
    return [str(part) for entry in _entries(value) for part in entry[1:3]]


def _longest(value: Any) -> float:
    spans = [number(entry[5]) - number(entry[4]) for entry in _entries(value) if len(entry) > 5]
    return max(spans, default=0)


def _pairs(value: Any) -> list[str]:
    """Names on which something depends; of services ``host;description`` and both apart."""
    names: list[str] = []
    for item in value if isinstance(value, list) else ():
        parts = [str(part) for part in item[:2]] if isinstance(item, list) else [str(item)]
        names += [*parts, ";".join(parts)] if len(parts) > 1 else parts
    return names


_READ: Mapping[str, Callable[[Any], Any]] = {
    "comment": _comment_texts,
    "duration": _longest,
    "pairs": _pairs,
}
