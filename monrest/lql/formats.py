"""The text of an answer in each output format, with Naemon's oddities."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from json.encoder import encode_basestring_ascii
from typing import Any, TypeAlias

from attrs import define, field

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
