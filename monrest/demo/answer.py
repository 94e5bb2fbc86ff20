"""A request to the body of its answer: rows, their order, statistics over them, and their text.

Statistics have Naemon's results and texts Naemon's formats, the odd ones included. An answer is a
generator, so that a large one lets other connections in between: its rows are the living objects
of the core, which a thread must not look at while they change.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import define, field, frozen

from monrest.demo.core import Core
from monrest.demo.core_tables import ObjectColumn, Part, ShownColumn
from monrest.demo.request import Aggregate, Request, RequestError, RowCondition, every
from monrest.query.column_names import EMPTY

AnswerSteps: TypeAlias = Generator[None, None, bytes]

_FILTERED_AT_ONCE = 2000
_CELLS_AT_ONCE = 20_000
_LARGEST_ANSWER = 500 * 1024 * 1024
"""Bytes of the largest answer."""


def answer(core: Core, request: Request) -> AnswerSteps:
    """Make the body; every ``yield`` is a pause of at most some milliseconds of work.

    Raises RequestError 413 after the time limit or above the largest size.
    """
    rows = yield from _matching(core, request)
    layout = Format(request.format, request.separators)
    if request.stats:
        return (yield from _statistics(rows, request, layout))
    total = len(rows)
    rows = _cut(_sorted(rows, request), request)
    shown = request.shown()
    writer = CellWriter(layout, [item for _, item in shown])
    pieces: list[str] = []
    size = 0
    step = max(_CELLS_AT_ONCE // max(len(shown), 1), 1)
    for start in range(0, len(rows), step):
        pieces.append(writer.write(rows[start : start + step]))
        size += len(pieces[-1])
        if size > _LARGEST_ANSWER:
            raise RequestError(413, f"Maximum response size of {_LARGEST_ANSWER} bytes exceeded!")
        _check_time(core, request)
        yield
    names = [name for name, _ in shown] if request.shows_headers else None
    return layout.whole(names, pieces, total)


def _check_time(core: Core, request: Request) -> None:
    limit = request.time_limit
    if limit is not None and core.clock.seconds() - request.started > limit:
        raise RequestError(413, f"Maximum query time of {limit} seconds exceeded!")


def _matching(core: Core, request: Request) -> Generator[None, None, list[Any]]:
    table, condition = request.table, every(request.filters)
    if any(one.is_misread for one in request.filters):
        rows: list[Any] = []
    elif condition.rows is not None:
        rows = condition.rows()
    elif table.name == "log":
        rows = core.log.newest_first(condition.since, condition.until)
    else:
        rows = table.rows()
    if request.auth_user is not None and table.visible is not None:
        rows = list(filter(table.visible(request.auth_user), rows))
    if not request.filters:
        return rows
    found: list[Any] = []
    for start in range(0, len(rows), _FILTERED_AT_ONCE):
        found += filter(condition.holds, rows[start : start + _FILTERED_AT_ONCE])
        if start:
            _check_time(core, request)
            yield
    return found


def _sorted(rows: list[Any], request: Request) -> list[Any]:
    keys = []
    for name, descending in request.sort:
        found = request.table.find(name)
        if found is not None and found.base.type not in ("list", "dict"):
            keys.append((found.getter(), descending))
    wanted = None if request.limit is None else request.limit + (request.offset or 0)
    return _order(rows, keys, wanted)


def _order(
    rows: list[Any], keys: Sequence[tuple[Callable[[Any], Any], bool]], wanted: int | None
) -> list[Any]:
    if not keys:
        return rows
    directions = {descending for _, descending in keys}
    gets = [get for get, _ in keys]
    if len(directions) == 1:
        (descending,) = directions
        key: Callable[[Any], Any] = (
            gets[0] if len(gets) == 1 else lambda row: tuple([get(row) for get in gets])
        )
    else:
        descending = False

        def key(row: Any) -> Any:
            return tuple([_Down(get(row)) if down else get(row) for get, down in keys])

    if wanted is not None and wanted < len(rows):
        pick = heapq.nlargest if descending else heapq.nsmallest
        return pick(wanted, rows, key=key)
    return sorted(rows, key=key, reverse=descending)


@frozen(order=False)
class _Down:
    """A sort value in descending order."""

    value: Any

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)


def _cut(rows: list[Any], request: Request) -> list[Any]:
    offset = request.offset or 0
    if request.sort and request.limit is None:
        # Naemon forgets the offset of a sorted answer without a limit.
        offset = 0
    end = None if request.limit is None else offset + request.limit
    return rows[offset:end]


_PERF = re.compile(r"('[^']*'|[^\s=']+)=([-+]?[0-9.]+)")
_SMALLEST = -9223372036854775808


def _statistics(rows: list[Any], request: Request, layout: Format) -> AnswerSteps:
    """A result row for each group, by its texts: these, then the values."""
    groups = yield from _grouped(rows, request)
    functions = [_function(stat) for stat in request.stats]
    results: list[list[Any]] = []
    for key in sorted(groups):
        result: list[Any] = list(key)
        for function in functions:
            result.append(function(groups[key]))
            yield
        results.append(result)
    names = [name for name, _ in request.columns]
    names += [f"stats_{number}" for number in range(1, len(request.stats) + 1)]
    keys = [
        (itemgetter(names.index(name)), descending)
        for name, descending in request.sort
        if name in names
    ]
    total = len(results)
    results = _cut(_order(results, keys, None), request)
    between = layout.between_cells
    texts = [between.join([_written(value, layout) for value in row]) for row in results]
    pieces = [layout.rows(texts)] if texts else []
    return layout.whole(names if request.shows_headers else None, pieces, total)


def _grouped(
    rows: list[Any], request: Request
) -> Generator[None, None, dict[tuple[str, ...], list[Any]]]:
    if not request.columns:
        return {(): rows}
    plain = Format("csv", request.separators)
    texts = [_group_text(item, plain) for _, item in request.columns]
    groups: dict[tuple[str, ...], list[Any]] = {}
    for number, row in enumerate(rows, 1):
        groups.setdefault(tuple([text(row) for text in texts]), []).append(row)
        if number % _FILTERED_AT_ONCE == 0:
            yield
    return groups


def _group_text(item: ShownColumn | None, plain: Format) -> Callable[[Any], str]:
    """The text of a group by a column: lists and counters are no groups for a real core."""
    if item is None:
        return lambda _row: ""
    base = item.base
    if base.style == "counter" or (base.type in ("list", "dict") and base.style != "bits"):
        return lambda _row: "invalid"
    get, encode = item.getter(), plain.encoder(base)
    return lambda row: encode(get(row))


def _written(value: Any, layout: Format) -> str:
    """A group text or a stats value; infinite and undefined ones break JSON, as they do there."""
    if isinstance(value, str):
        return layout.strings(value)
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "-nan"
    return f"{value:.10e}"


def _function(stat: RowCondition | Aggregate) -> Callable[[list[Any]], Any]:
    if isinstance(stat, RowCondition):
        holds = stat.holds
        return lambda rows: sum(map(bool, map(holds, rows)))
    if stat.column is None:
        return lambda _rows: 0
    base = stat.column.base
    get = stat.column.getter()
    if base.style == "perf":
        return lambda rows: _perf(stat.function, list(map(get, rows)))
    if base.type not in ("int", "float"):
        return len
    real = base.type == "float" or base.style == "micro"

    def over(rows: list[Any]) -> int | float:
        value = _aggregate(stat.function, list(map(get, rows)))
        return float(value) if real and value != _SMALLEST else value

    return over


def _aggregate(function: str, values: Sequence[int | float]) -> int | float:
    """One of sum, min, max, avg, std, suminv, avginv over numbers."""
    count = len(values)
    if function == "sum":
        return sum(values)
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, default=0)
    if function == "avg":
        return sum(values) / count if count else math.nan
    if function == "std":
        if count < 2:
            return math.nan
        mean = sum(values) / count
        return math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    inverse = sum(1 / value if value else math.inf for value in values)
    if function == "suminv":
        return float(inverse)
    return inverse / count if count else _SMALLEST


def _perf(function: str, texts: Sequence[str]) -> str:
    values: dict[str, list[float]] = {}
    for text in texts:
        for label, number in _PERF.findall(text):
            try:
                values.setdefault(label.strip("'"), []).append(float(number))
            except ValueError:
                continue
    return " ".join(f"{label}={_aggregate(function, found):.8f}" for label, found in values.items())


Encode: TypeAlias = Callable[[Any], str]
Separators: TypeAlias = tuple[str, ...]

_FLOAT: Encode = "%.10e".__mod__
_MICRO: Encode = "%.6f".__mod__
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
_SURROGATE = re.compile(
    r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})"
    r"|ud[c-f][0-9a-f]{2}(?:\\u[0-9a-f]{4}|\\.|[^\"\\])?|.)"
)


def _json(value: Any) -> str:
    if value:
        return _COMPACT(value)
    return "{}" if isinstance(value, dict) else "[]"


def _python(value: Any) -> str:
    if isinstance(value, str):
        return "u" + encode_basestring_ascii(value)
    if isinstance(value, dict):
        items = (f"{_python(key)}:{_python(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_python, value)) + "]"
    return str(value)


def _csv(separators: Separators) -> Encode:
    between, inside = separators[2], separators[3]

    def element(item: Any) -> str:
        if isinstance(item, (list, tuple)):
            return inside.join(map(element, item))
        return str(item)

    def write(value: Any) -> str:
        return between.join(map(element, value.items() if isinstance(value, dict) else value))

    return write


@define(eq=False)
class Format:
    """One output format: how values, rows and the whole answer are written.

    ``nested`` writes lists and objects.
    """

    name: str
    separators: Separators
    strings: Encode = field(init=False)
    nested: Encode = field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.name == "csv":
            self.strings, self.nested = str, _csv(self.separators)
        elif self.name == "python":
            self.strings = self.nested = _python
        else:
            self.strings, self.nested = encode_basestring_ascii, _json

    def encoder(self, base: ObjectColumn) -> Encode:
        """The function that writes a column's values."""
        if base.style == "micro":
            return _MICRO
        by_type: dict[str, Encode] = {
            "string": self.strings,
            "int": str,
            "float": _FLOAT,
            "list": self.nested,
            "dict": self.nested,
        }
        return by_type[base.type]

    @property
    def between_cells(self) -> str:
        """What stands between two values of a row."""
        return self.separators[1] if self.name == "csv" else ","

    def rows(self, texts: Iterable[str]) -> str:
        """Complete rows from the joined cells of each."""
        if self.name == "csv":
            end = self.separators[0]
            return "".join(text + end for text in texts)
        return ",\n".join(f"[{text}]" for text in texts)

    def names(self, names: Iterable[str]) -> str:
        """The joined cells of the row of column names."""
        return self.between_cells.join(map(self.strings, names))

    def whole(self, names: Sequence[str] | None, pieces: Sequence[str], total: int) -> bytes:
        """The answer's body. ``names`` is None without headers; ``pieces`` are texts of rows."""
        if self.name == "csv":
            head = [] if names is None else [self.rows([self.names(names)])]
            return "".join([*head, *pieces]).encode("utf-8", "surrogateescape")
        if self.name == "wrapped_json":
            columns = "" if names is None else f'"columns":[{self.names(names)}],\n'
            data = ",\n".join(pieces)
            text = f'{{{columns}"data":[{data}],\n"total_count":{total}}}\n'
        else:
            head = [] if names is None else [f"[{self.names(names)}]"]
            text = "[" + ",\n".join([*head, *pieces]) + "]\n"
        return spoil(text).encode("ascii")


def spoil(text: str) -> str:
    r"""Damage JSON text as Naemon does: letters beyond U+FFFF and bytes that are no UTF-8.

    The former come as one wrong letter, the latter vanish together with the following one.
    """
    if "\\ud" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            pair = bytes.fromhex(match[1] + match[2]).decode("utf-16-be").encode()
            return f"\\u{(pair[1] & 63) << 6 | (pair[2] & 63) << 6 | (pair[3] & 63):04x}"
        return "" if match[0].startswith("\\ud") else match[0]

    return _SURROGATE.sub(replace, text)


@define(eq=False)
class _Neighbours:
    """Neighbouring columns of one part, written together and once for each joined object."""

    part: Part | None
    writers: list[tuple[Callable[[Any], Any], Encode]]
    constant: str
    between: str
    known: dict[int, str] = field(factory=dict)

    def texts(self, rows: list[Any]) -> Iterable[str]:
        if self.part is None:
            return repeat(self.constant, len(rows))
        step = self.part.step
        if step is None:
            return self._write(rows)
        found = list(map(step, rows))
        known = self.known
        fresh = {id(item): item for item in found if item is not None and id(item) not in known}
        known.update(zip(fresh, self._write(list(fresh.values())), strict=True))
        return [self.constant if item is None else known[id(item)] for item in found]

    def _write(self, objects: list[Any]) -> Iterator[str]:
        cells = [map(encode, map(get, objects)) for get, encode in self.writers]
        return map(self.between.join, zip(*cells, strict=True))


@define(eq=False)
class CellWriter:
    """Writes rows of a table, some at a time. ``columns`` holds None for unknown ones."""

    format: Format
    columns: Sequence[ShownColumn | None]
    _runs: list[_Neighbours] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._runs = []
        for part, items in groupby(self.columns, lambda item: None if item is None else item.part):
            self._runs.append(self._run(part, list(items)))

    def _run(self, part: Part | None, columns: Sequence[ShownColumn | None]) -> _Neighbours:
        writers = []
        constants = []
        for item in columns:
            if item is None:
                constants.append(self.format.strings(""))
                continue
            encode = self.format.encoder(item.base)
            writers.append((item.base.get, encode))
            constants.append(encode(EMPTY[item.base.type]))
        between = self.format.between_cells
        return _Neighbours(part, writers, between.join(constants), between)

    def write(self, rows: list[Any]) -> str:
        """The text of complete rows."""
        texts = [run.texts(rows) for run in self._runs]
        joined = map(self.format.between_cells.join, zip(*texts, strict=True))
        return self.format.rows(texts[0] if len(texts) == 1 else joined)
