"""Stats with Naemon's results, the odd ones included."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from monrest.demo.filters import compile_filter
from monrest.demo.output import Encode, Format
from monrest.demo.request import Request, Stat
from monrest.demo.tables import Field

_PERF = re.compile(r"('[^']*'|[^\s=']+)=([-+]?[0-9.]+)")
_SMALLEST = -9223372036854775808


def compute(rows: list[Any], request: Request) -> Iterator[list[Any] | None]:
    """Result rows one after the other: group texts, then the values. None is a pause."""
    plain = Format("csv", request.separators)
    writers = [_group_text(item, plain) for _, item in request.columns]
    groups: dict[tuple[str, ...], list[Any]] = {}
    if writers:
        for number, row in enumerate(rows):
            key = tuple([encode(get(row)) for get, encode in writers])
            groups.setdefault(key, []).append(row)
            if number % 2000 == 1999:
                yield None
    else:
        groups[()] = rows
    functions = [_function(stat) for stat in request.stats]
    for key in sorted(groups):
        result: list[Any] = list(key)
        for function in functions:
            result.append(function(groups[key]))
            yield None
        yield result


def _group_text(item: Field | None, plain: Format) -> tuple[Callable[[Any], Any], Encode]:
    """How a group is told by a column: lists and counters are no groups for a real core."""
    if item is None:
        return lambda _row: "", str
    base = item.base
    if base.style == "counter" or (base.type in ("list", "dict") and base.style != "bits"):
        return lambda _row: "invalid", str
    return item.getter(), plain.encoder(base)


def write_value(value: Any, layout: Format) -> str:
    """A group text or a stats value; infinite and undefined ones break JSON, as they do there."""
    if isinstance(value, str):
        return layout.strings(value)
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "-nan"
    return f"{value:.10e}"


def _function(stat: Stat) -> Callable[[list[Any]], Any]:
    if stat.test is not None:
        check = compile_filter(stat.test)
        return lambda rows: sum(map(bool, map(check, rows)))
    if stat.field is None:
        return lambda _rows: 0
    base = stat.field.base
    get = stat.field.getter()
    if base.style == "perf":
        return lambda rows: _perf(stat.function, list(map(get, rows)))
    if base.type not in ("int", "float"):
        return len
    real = base.type == "float" or base.style == "micro"

    def over(rows: list[Any]) -> int | float:
        value = aggregate(stat.function, list(map(get, rows)))
        return float(value) if real and value != _SMALLEST else value

    return over


def aggregate(function: str, values: Sequence[int | float]) -> int | float:
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
    return " ".join(f"{label}={aggregate(function, found):.8f}" for label, found in values.items())
