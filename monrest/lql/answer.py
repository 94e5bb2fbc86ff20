"""A request to the body of its answer: rows, their order, statistics over them, output formats.

Statistics and formats are Naemon's, the odd ones included. An answer is a generator, so that a
large one lets other connections in between: its rows are living objects, which a thread must not
look at while they change.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import define, field

from monrest.lql.filters import RequestError, RowCondition, every
from monrest.lql.request import Aggregate, Request
from monrest.lql.tables import Column, Rows, ValueOf
from monrest.query.column_names import EMPTY

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

    ``nested`` writes lists and objects; ``between`` stands between two values of a row.
    """

    name: str
    separators: Separators
    strings: Encode = field(init=False)
    nested: Encode = field(init=False)
    between: str = field(init=False, default=",")

    def __attrs_post_init__(self) -> None:
        if self.name == "csv":
            self.strings, self.nested = str, _csv(self.separators)
            self.between = self.separators[1]
        elif self.name == "python":
            self.strings = self.nested = _python
        else:
            self.strings, self.nested = encode_basestring_ascii, _json

    def encoder(self, column: Column) -> Encode:
        if column.style == "micro":
            return _MICRO
        by_type: dict[str, Encode] = {
            "string": self.strings,
            "int": str,
            "float": _FLOAT,
            "list": self.nested,
            "dict": self.nested,
        }
        return by_type[column.type]

    def results(self, values: Iterable[Any]) -> str:
        """The joined cells of a row of statistics: texts of its group, then numbers."""
        return self.between.join(map(self._result, values))

    def _result(self, value: Any) -> str:
        if isinstance(value, str):
            return self.strings(value)
        if isinstance(value, int):
            return str(value)
        # Infinite and undefined ones break JSON, as they do in a Naemon.
        return "-nan" if math.isnan(value) else _FLOAT(value)

    def rows(self, texts: Iterable[str]) -> str:
        if self.name == "csv":
            end = self.separators[0]
            return "".join(text + end for text in texts)
        return ",\n".join(f"[{text}]" for text in texts)

    def whole(self, names: Sequence[str] | None, pieces: Sequence[str], total: int) -> bytes:
        """The answer's body. ``names`` is None without headers; ``pieces`` are texts of rows."""
        head = [] if names is None else [self.rows([self.between.join(map(self.strings, names))])]
        if self.name == "csv":
            return "".join([*head, *pieces]).encode("utf-8", "surrogateescape")
        if self.name == "wrapped_json":
            columns = "".join(f'"columns":{row},\n' for row in head)
            data = ",\n".join(pieces)
            text = f'{{{columns}"data":[{data}],\n"total_count":{total}}}\n'
        else:
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
    """Neighbouring columns of one object, written together and once for each joined object."""

    step: ValueOf | None
    writers: list[tuple[ValueOf, Encode]]
    empty: str
    between: str
    cells: dict[int, str] = field(factory=dict)

    def texts(self, rows: Rows) -> Iterable[str]:
        if not self.writers:
            return repeat(self.empty, len(rows))
        if self.step is None:
            return self._write(rows)
        neighbours = list(map(self.step, rows))
        texts = self.cells
        fresh = {
            id(item): item for item in neighbours if item is not None and id(item) not in texts
        }
        texts.update(zip(fresh, self._write(list(fresh.values())), strict=True))
        return [self.empty if item is None else texts[id(item)] for item in neighbours]

    def _write(self, objects: Rows) -> Iterator[str]:
        cells = [map(encode, map(get, objects)) for get, encode in self.writers]
        return map(self.between.join, zip(*cells, strict=True))


@define(eq=False)
class CellWriter:
    """Writes rows of a table, some at a time. ``columns`` holds None for unknown ones."""

    format: Format
    columns: Sequence[Column | None]
    _runs: list[_Neighbours] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._runs = [
            self._run(list(columns))
            for _, columns in groupby(self.columns, lambda column: column is None or (column.step,))
        ]

    def _run(self, columns: list[Column | None]) -> _Neighbours:
        present = [column for column in columns if column is not None]
        encoders = [self.format.encoder(column) for column in present]
        empty = [
            encode(EMPTY[column.type]) for column, encode in zip(present, encoders, strict=True)
        ] or [self.format.strings("")] * len(columns)
        writers = [(column.get, encode) for column, encode in zip(present, encoders, strict=True)]
        between = self.format.between
        step = present[0].step if present else None
        return _Neighbours(step, writers, between.join(empty), between)

    def write(self, rows: Rows) -> str:
        texts = [run.texts(rows) for run in self._runs]
        joined = map(self.format.between.join, zip(*texts, strict=True))
        return self.format.rows(texts[0] if len(texts) == 1 else joined)


AnswerSteps: TypeAlias = Generator[None, None, bytes]

_FILTERED_AT_ONCE = 2000
_CELLS_AT_ONCE = 20_000
_LARGEST_ANSWER = 500 * 1024 * 1024
"""Bytes of the largest answer."""


def answer(request: Request, seconds: Callable[[], float]) -> AnswerSteps:
    """Make the body; every ``yield`` is a pause of at most some milliseconds of work.

    Raises RequestError 413 after the time limit, by the clock ``seconds``, or above the largest
    size.
    """
    rows = yield from _matching(request, seconds)
    layout = Format(request.format, request.separators)
    if request.stats:
        return (yield from _statistics(rows, request, layout))
    total = len(rows)
    keys: list[tuple[ValueOf, bool]] = []
    for name, descending in request.sort:
        declared = request.table.find(name)
        if declared is not None and declared.type not in ("list", "dict"):
            keys.append((declared.getter(), descending))
    rows = _cut(_sorted(rows, keys), request)
    columns = request.output_columns()
    writer = CellWriter(layout, [column for _, column in columns])
    pieces: list[str] = []
    size = 0
    step = max(_CELLS_AT_ONCE // max(len(columns), 1), 1)
    for start in range(0, len(rows), step):
        pieces.append(writer.write(rows[start : start + step]))
        size += len(pieces[-1])
        if size > _LARGEST_ANSWER:
            raise RequestError(413, f"Maximum response size of {_LARGEST_ANSWER} bytes exceeded!")
        request.check_time(seconds())
        yield
    names = [name for name, _ in columns] if request.shows_headers else None
    return layout.whole(names, pieces, total)


def _matching(request: Request, seconds: Callable[[], float]) -> Generator[None, None, Rows]:
    table, condition = request.table, every(request.filters)
    if any(condition.is_misread for condition in request.filters):
        rows: Rows = []
    elif condition.rows is not None:
        rows = condition.rows()
    elif table.between is not None:
        rows = table.between(condition.since, condition.until)
    else:
        rows = table.rows()
    if request.auth_user is not None and table.visible is not None:
        rows = list(filter(table.visible(request.auth_user), rows))
    if not request.filters:
        return rows
    matching: Rows = []
    for start in range(0, len(rows), _FILTERED_AT_ONCE):
        matching += filter(condition.holds, rows[start : start + _FILTERED_AT_ONCE])
        if start:
            request.check_time(seconds())
            yield
    return matching


def _sorted(rows: Rows, keys: Sequence[tuple[ValueOf, bool]]) -> Rows:
    for get, descending in reversed(keys):
        rows = sorted(rows, key=get, reverse=descending)
    return rows


def _cut(rows: Rows, request: Request) -> Rows:
    if request.limit is None:
        # Naemon forgets the offset of a sorted answer without a limit.
        return rows if request.sort else rows[request.offset or 0 :]
    offset = request.offset or 0
    return rows[offset : offset + request.limit]


def _statistics(rows: Rows, request: Request, layout: Format) -> AnswerSteps:
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
    texts = [layout.results(result) for result in _cut(_sorted(results, keys), request)]
    pieces = [layout.rows(texts)] if texts else []
    return layout.whole(names if request.shows_headers else None, pieces, total)


def _grouped(rows: Rows, request: Request) -> Generator[None, None, dict[tuple[str, ...], Rows]]:
    if not request.columns:
        return {(): rows}
    plain = Format("csv", request.separators)
    texts = [_group_text(column, plain) for _, column in request.columns]
    groups: dict[tuple[str, ...], Rows] = {}
    for number, row in enumerate(rows, 1):
        groups.setdefault(tuple([text(row) for text in texts]), []).append(row)
        if number % _FILTERED_AT_ONCE == 0:
            yield
    return groups


def _group_text(column: Column | None, plain: Format) -> Callable[[Any], str]:
    """The text of a group by a column: lists and counters are no groups for a real core."""
    if column is None:
        return lambda _row: ""
    if column.style == "counter" or (column.type in ("list", "dict") and column.bits is None):
        return lambda _row: "invalid"
    get, encode = column.getter(), plain.encoder(column)
    return lambda row: encode(get(row))


_SMALLEST = -9223372036854775808


def _function(stat: RowCondition | Aggregate) -> Callable[[Rows], Any]:
    if isinstance(stat, RowCondition):
        holds = stat.holds
        return lambda rows: sum(map(bool, map(holds, rows)))
    column, function = stat.column, stat.function
    if column is None:
        return lambda _rows: 0
    get = column.getter()
    if column.style == "perf":
        return lambda rows: _perf(function, list(map(get, rows)))
    if column.type not in ("int", "float"):
        return len
    real = column.type == "float" or column.style == "micro"

    def over(rows: Rows) -> int | float:
        value = _aggregate(function, list(map(get, rows)))
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


_PERF = re.compile(r"('[^']*'|[^\s=']+)=([-+]?[0-9.]+)")


def _perf(function: str, texts: Sequence[str]) -> str:
    values: dict[str, list[float]] = {}
    for text in texts:
        for label, number in _PERF.findall(text):
            try:
                values.setdefault(label.strip("'"), []).append(float(number))
            except ValueError:
                continue
    return " ".join(
        f"{label}={_aggregate(function, numbers):.8f}" for label, numbers in values.items()
    )
