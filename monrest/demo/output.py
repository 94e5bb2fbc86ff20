"""Rows to text in Naemon's output formats, column by column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, repeat
from json.encoder import encode_basestring_ascii
from typing import Any, TypeAlias

from attrs import define, field

from monrest.demo.tables import Column, Field, Part
from monrest.query.schema import EMPTY

Encode: TypeAlias = Callable[[Any], str]
Separators: TypeAlias = tuple[str, ...]

_FLOAT: Encode = "%.10e".__mod__
_MICRO: Encode = "%.6f".__mod__
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
_SURROGATE = re.compile(
    r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})"
    r"|ud[c-f][0-9a-f]{2}(?:\\u[0-9a-f]{4}|\\.|[^\"\\])?|.)"
)


def _json_list(value: Any) -> str:
    if not value:
        return "[]"
    return _short_list(value) if len(value) < 9 and _plain(value) else _COMPACT(value)


def _plain(value: Sequence[Any]) -> bool:
    return isinstance(value[0], str)


@lru_cache(maxsize=4096)
def _short_list(value: tuple[str, ...]) -> str:
    return _COMPACT(value)


def _json_dict(value: dict[str, Any]) -> str:
    return _COMPACT(value) if value else "{}"


def _python_list(value: Any) -> str:
    if isinstance(value, str):
        return "u" + encode_basestring_ascii(value)
    if isinstance(value, dict):
        items = (f"{_python_list(key)}:{_python_list(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_python_list, value)) + "]"
    return str(value)


def _csv_list(separators: Separators) -> Encode:
    between, inside = separators[2], separators[3]

    def element(item: Any) -> str:
        if isinstance(item, (list, tuple)):
            return inside.join(map(element, item))
        return str(item)

    return lambda value: between.join(map(element, value))


def _csv_dict(separators: Separators) -> Encode:
    between, inside = separators[2], separators[3]
    return lambda value: between.join(f"{name}{inside}{text}" for name, text in value.items())


@define(eq=False)
class Format:
    """One output format: how values, rows and the whole answer are written."""

    name: str
    separators: Separators
    strings: Encode = field(init=False)
    lists: Encode = field(init=False)
    dicts: Encode = field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.name == "csv":
            self.strings = str
            self.lists, self.dicts = _csv_list(self.separators), _csv_dict(self.separators)
        elif self.name == "python":
            self.strings = self.lists = self.dicts = _python_list
        else:
            self.strings = encode_basestring_ascii
            self.lists, self.dicts = _json_list, _json_dict

    def encoder(self, base: Column) -> Encode:
        """The function that writes a column's values."""
        if base.style == "micro":
            return _MICRO
        by_type: dict[str, Encode] = {
            "string": self.strings,
            "int": str,
            "float": _FLOAT,
            "list": self.lists,
            "dict": self.dicts,
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
class _Run:
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
class RowWriter:
    """Writes rows of a table, some at a time. ``fields`` holds None for unknown columns."""

    format: Format
    fields: Sequence[Field | None]
    _runs: list[_Run] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._runs = []
        for part, items in groupby(self.fields, lambda item: None if item is None else item.part):
            self._runs.append(self._run(part, list(items)))

    def _run(self, part: Part | None, fields: Sequence[Field | None]) -> _Run:
        writers = []
        constants = []
        for item in fields:
            if item is None:
                constants.append(self.format.strings(""))
                continue
            encode = self.format.encoder(item.base)
            writers.append((item.base.get, encode))
            constants.append(encode(EMPTY[item.base.type]))
        between = self.format.between_cells
        return _Run(part, writers, between.join(constants), between)

    def write(self, rows: list[Any]) -> str:
        """The text of complete rows."""
        texts = [run.texts(rows) for run in self._runs]
        joined = map(self.format.between_cells.join, zip(*texts, strict=True))
        return self.format.rows(texts[0] if len(texts) == 1 else joined)
