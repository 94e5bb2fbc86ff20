"""A GET request's lines to a value."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from attrs import define, field, frozen

from monrest.demo.filters import (
    CoreDiedError,
    Every,
    Node,
    Not,
    RequestError,
    combine,
    read_test,
)
from monrest.demo.tables import Field, Table

FUNCTIONS = frozenset({"sum", "min", "max", "avg", "std", "suminv", "avginv"})
FORMATS = frozenset({"csv", "json", "wrapped_json", "python"})
TRIGGERS = frozenset({"check", "state", "log", "downtime", "comment", "command", "program", "all"})


@frozen
class Stat:
    """One Stats column: a count of rows that match ``test``, or a function over a field.

    With a function ``field`` is None when the table has no such column.
    """

    function: str = ""
    field: Field | None = None
    test: Node | None = None


@define(eq=False)
class Request:
    """What a client asks. ``columns`` pairs each name with its field, None when unknown.

    ``limit`` and ``offset`` are None when not given. ``shift`` are the seconds of Localtime.
    ``time_limit`` is in seconds, ``wait_timeout`` in milliseconds, 0 for ever.
    """

    table: Table
    now: float
    columns: list[tuple[str, Field | None]] = field(factory=list)
    headers: bool | None = None
    filters: list[Node] = field(factory=list)
    stats: list[Stat] = field(factory=list)
    sort: list[tuple[str, bool]] = field(factory=list)
    limit: int | None = None
    offset: int | None = None
    format: str = "csv"
    separators: tuple[str, str, str, str] = ("\n", ";", ",", "|")
    auth_user: str | None = None
    time_limit: int | None = None
    shift: int = 0
    wait_object: object = None
    wait_trigger: str = ""
    wait_timeout: int = 0
    wait_conditions: list[Node] = field(factory=list)

    @property
    def filter(self) -> Node:
        """All filters joined."""
        return self.filters[0] if len(self.filters) == 1 else Every(tuple(self.filters))

    @property
    def shows_headers(self) -> bool:
        """Whether the first row holds the names."""
        if self.headers is not None:
            return self.headers
        return not self.columns and not self.stats

    def shown(self) -> list[tuple[str, Field | None]]:
        """The columns that a row shows: all of the table without Columns and Stats."""
        if self.columns or self.stats:
            return self.columns
        return [(name, item.shifted(self.shift)) for name, item in self.table.fields.items()]


@define(eq=False)
class Framing:
    """How to answer; kept beside the request because it counts after an error too."""

    fixed16: bool = False
    keep_alive: bool = False


def read_request(
    lines: deque[str], tables: Mapping[str, Table], framing: Framing, now: float
) -> Request:
    """Read ``GET table`` and its headers, taking the lines one by one.

    Raises RequestError and CoreDiedError. Lines after the one at fault stay in the queue, where
    they become the beginning of the next request, as Naemon has it.
    """
    name = lines.popleft()[4:].strip()
    table = tables.get(name)
    # An unknown table is told after the headers, which say how it is to be told.
    request = Request(table or tables["columns"], now)
    while lines:
        line = lines.popleft()
        if not line.strip():
            # A carriage return alone: no empty line, but no header either.
            continue
        word, colon, value = line.partition(":")
        if not colon:
            raise RequestError(400, f"Missing colon in request header '{line}'")
        if table is None:
            if word in ("KeepAlive", "ResponseHeader"):
                _HEADERS[word](request, framing, value.strip())
            continue
        handle = _HEADERS.get(word)
        if handle is None:
            raise RequestError(400, f"Undefined request header '{word}'")
        handle(request, framing, value.strip())
    if table is None:
        if name == "statehist":
            raise RequestError(452, "Start of timeframe required. e.g. Filter: time > 1234567890")
        if not name:
            raise RequestError(400, "Invalid GET request, missing tablename")
        raise RequestError(404, f"Invalid GET request, no such table '{name}'")
    return request


def _whole(value: str, header: str) -> int:
    if not value.isdigit():
        raise RequestError(400, f"Invalid value for {header}: '{value}', must be a number >= 0")
    return int(value)


def _switch(value: str, header: str) -> bool:
    if value not in ("on", "off"):
        raise RequestError(400, f"Invalid value for {header}: must be 'on' or 'off'")
    return value == "on"


def _columns(request: Request, _framing: Framing, value: str) -> None:
    find = request.table.find
    for name in value.split():
        found = find(name)
        request.columns.append((name, found and found.shifted(request.shift)))


def _filter(request: Request, _framing: Framing, value: str) -> None:
    request.filters.append(read_test(value, request.table, request.shift))


def _stats(request: Request, _framing: Framing, value: str) -> None:
    words = value.split()
    if not words:
        raise RequestError(400, "empty stats line")
    if words[0] in FUNCTIONS:
        if len(words) != 2:
            raise RequestError(400, f"Invalid stats: {words[0]} needs one column")
        found = request.table.find(words[1])
        if found is not None and found.base.style == "counter":
            raise CoreDiedError(f"GET {request.table.name}, Stats: {value}")
        request.stats.append(Stat(words[0], found))
    else:
        request.stats.append(Stat(test=read_test(value, request.table, request.shift)))


def _joining(connector: str) -> Callable[[Request, Framing, str], None]:
    def join(request: Request, _framing: Framing, value: str) -> None:
        combine(request.filters, connector, _whole(value, connector))

    return join


def _stats_joining(connector: str) -> Callable[[Request, Framing, str], None]:
    def join(request: Request, _framing: Framing, value: str) -> None:
        count = _whole(value, f"Stats{connector}")
        nodes = _last_counts(request, count)
        combine(nodes, connector, count)
        request.stats[len(request.stats) - count :] = [Stat(test=nodes[0])]

    return join


def _last_counts(request: Request, count: int) -> list[Node]:
    last = request.stats[len(request.stats) - count :] if count <= len(request.stats) else []
    nodes = [stat.test for stat in last if stat.test is not None]
    if len(nodes) != len(last) or len(last) < count:
        raise RequestError(400, f"Cannot combine {count} stats: too few counting ones there")
    return nodes


def _negate(request: Request, _framing: Framing, _value: str) -> None:
    if not request.filters:
        raise RequestError(400, "Cannot use 'Negate:', no filter there")
    request.filters.append(Not(request.filters.pop()))


def _stats_negate(request: Request, _framing: Framing, _value: str) -> None:
    (node,) = _last_counts(request, 1)
    request.stats[-1] = Stat(test=Not(node))


def _sort(request: Request, _framing: Framing, value: str) -> None:
    name, _, direction = value.partition(" ")
    direction = direction.strip()
    if not name or direction not in ("", "asc", "desc"):
        raise RequestError(400, f"Invalid value for Sort: '{value}', column [asc|desc] expected")
    request.sort.append((name, direction == "desc"))


def _limit(request: Request, _framing: Framing, value: str) -> None:
    request.limit = _whole(value, "Limit")


def _offset(request: Request, _framing: Framing, value: str) -> None:
    request.offset = _whole(value, "Offset")


def _format(request: Request, _framing: Framing, value: str) -> None:
    if value not in FORMATS:
        raise RequestError(400, f"Invalid output format '{value}', use one of csv, json, "
                                "wrapped_json, python")  # fmt: skip
    request.format = value


def _headers(request: Request, _framing: Framing, value: str) -> None:
    request.headers = _switch(value, "ColumnHeaders")


def _response_header(_request: Request, framing: Framing, value: str) -> None:
    if value not in ("off", "fixed16"):
        raise RequestError(400, "Invalid value for ResponseHeader: must be 'off' or 'fixed16'")
    framing.fixed16 = value == "fixed16"


def _keep_alive(_request: Request, framing: Framing, value: str) -> None:
    framing.keep_alive = _switch(value, "KeepAlive")


def _separators(request: Request, _framing: Framing, value: str) -> None:
    marks = list(request.separators)
    for index, word in enumerate(value.split()[:4]):
        number = _whole(word, "Separators")
        if number > 255:
            raise RequestError(400, "Invalid value for Separators: bytes expected")
        marks[index] = bytes((number,)).decode("utf-8", "surrogateescape")
    request.separators = (marks[0], marks[1], marks[2], marks[3])


def _auth_user(request: Request, _framing: Framing, value: str) -> None:
    request.auth_user = value


def _time_limit(request: Request, _framing: Framing, value: str) -> None:
    request.time_limit = _whole(value, "Timelimit")
    if request.time_limit == 0:
        raise RequestError(413, "Maximum query time of 0 seconds exceeded!")


def _localtime(request: Request, _framing: Framing, value: str) -> None:
    difference = _whole(value, "Localtime") - request.now
    request.shift = round(difference / 1800) * 1800
    if abs(request.shift) >= 86400:
        raise RequestError(400, "Invalid value for Localtime: timezone difference too large")


def _wait_object(request: Request, _framing: Framing, value: str) -> None:
    find = request.table.wait_object
    found = find(value) if find is not None else None
    if found is None:
        raise RequestError(400, f"WaitObject: no object '{value}' in {request.table.name}")
    request.wait_object = found


def _wait_trigger(request: Request, _framing: Framing, value: str) -> None:
    if value not in TRIGGERS:
        raise RequestError(400, f"WaitTrigger: unknown trigger '{value}'")
    request.wait_trigger = value


def _wait_timeout(request: Request, _framing: Framing, value: str) -> None:
    request.wait_timeout = _whole(value, "WaitTimeout")


def _wait_condition(request: Request, _framing: Framing, value: str) -> None:
    request.wait_conditions.append(read_test(value, request.table, request.shift))


def _wait_joining(connector: str) -> Callable[[Request, Framing, str], None]:
    def join(request: Request, _framing: Framing, value: str) -> None:
        combine(request.wait_conditions, connector, _whole(value, f"WaitCondition{connector}"))

    return join


def _wait_negate(request: Request, _framing: Framing, _value: str) -> None:
    if not request.wait_conditions:
        raise RequestError(400, "Cannot use 'WaitConditionNegate:', no condition there")
    request.wait_conditions.append(Not(request.wait_conditions.pop()))


_HEADERS: Mapping[str, Callable[[Request, Framing, str], None]] = {
    "Columns": _columns,
    "ColumnHeaders": _headers,
    "Filter": _filter,
    "And": _joining("And"),
    "Or": _joining("Or"),
    "Negate": _negate,
    "Stats": _stats,
    "StatsAnd": _stats_joining("And"),
    "StatsOr": _stats_joining("Or"),
    "StatsNegate": _stats_negate,
    "StatsGroupBy": _columns,
    "Sort": _sort,
    "Limit": _limit,
    "Offset": _offset,
    "OutputFormat": _format,
    "ResponseHeader": _response_header,
    "KeepAlive": _keep_alive,
    "Separators": _separators,
    "AuthUser": _auth_user,
    "Localtime": _localtime,
    "Timelimit": _time_limit,
    "WaitObject": _wait_object,
    "WaitTrigger": _wait_trigger,
    "WaitTimeout": _wait_timeout,
    "WaitCondition": _wait_condition,
    "WaitConditionAnd": _wait_joining("And"),
    "WaitConditionOr": _wait_joining("Or"),
    "WaitConditionNegate": _wait_negate,
}
