"""The sources of a configuration: its file, the files of ``conf.d`` beside it, the environment.

Later ones win: tables are joined key by key, lists of tables (``[[sites]]``) get further elements,
and everything else is replaced. Rules: docs/spec/config.md, "Sources".
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from errno import ENOENT
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, get_args

from attrs import define, field, fields, has, resolve_types

from monrest.config.sections import Config

KeyPath: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of keys, and places in lists."""

PREFIX = "MONREST__"
_SEPARATOR = "__"
_HEADER = re.compile(r"\s*\[(\[?)([^\[\]]+)\]\]?\s*(?:#|\Z)")
_KEY = re.compile(r"""\s*(?:([A-Za-z0-9_-]+)|["']([^"']+)["'])\s*[.=]""")


def spelled(path: KeyPath) -> str:
    """A path as messages write it: ``sites[0].address``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")


class Variable(str):
    """A text of the environment, which the type of its key says how to read."""

    __slots__ = ()


@define
class Layers:
    """A document and the origins of its values.

    ``problems`` are those of the sources themselves, before any value is looked at.
    """

    document: dict[str, Any] = field(factory=dict)
    problems: list[str] = field(factory=list)
    _origins: dict[KeyPath, str] = field(factory=dict)
    _lengths: Counter[KeyPath] = field(factory=Counter)
    """Elements of the lists of tables so far: those of a further file follow."""

    def origin(self, path: KeyPath) -> str:
        """File and line, or variable, of the value at ``path``; empty for a default."""
        value: Any = self.document
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return ""
        return self.nearest(path)

    def nearest(self, path: KeyPath) -> str:
        """The origin of the value at ``path``, or of the nearest table around it; empty: none."""
        ends = (path[:end] for end in range(len(path), 0, -1))
        return next((self._origins[end] for end in ends if end in self._origins), "")

    def add_file(self, text: str, source: str) -> None:
        """Join a TOML text; ``source`` is its name in origins."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            self.problems.append(f"{source}: not valid TOML: {error}".lstrip(": "))
            return
        _join(document, self.document)
        self._find_lines(text, f"{source}, line" if source else "line")

    def _find_lines(self, text: str, source: str) -> None:
        """Note in which line each table and key begins, as files are usually written.

        What is in an inline table has the line of its key; a line within a text of several lines
        may be taken for a key.
        """
        table: KeyPath = ()
        for number, line in enumerate(text.split("\n"), 1):
            if header := _HEADER.match(line):
                table = ()
                *above, last = (name.strip(" \"'") for name in header[2].split("."))
                for name in above:
                    table = self._latest((*table, name))
                if header[1]:
                    self._lengths[*table, last] += 1
                table = self._latest((*table, last))
                self._origins[table] = f"{source} {number}"
            elif key := _KEY.match(line):
                self._origins[*table, key[1] or key[2]] = f"{source} {number}"

    def _latest(self, path: KeyPath) -> KeyPath:
        """The path of the last element where there is a list of tables at ``path``."""
        return (*path, self._lengths[path] - 1) if self._lengths[path] else path

    def add_environment(self, environment: Mapping[str, str]) -> None:
        """Put in what variables of the environment say, in the order of their names."""
        names = (name for name in environment if name.upper().startswith(PREFIX))
        for name in sorted(names, key=_by_parts):
            steps = name[len(PREFIX) :].lower().split(_SEPARATOR)
            path = tuple(int(step) if step.isdecimal() else step for step in steps)
            try:
                self._put(path, Variable(environment[name]))
            except ValueError as error:
                self.problems.append(f"{name}: {error}")
                continue
            for end in range(1, len(path)):
                self._origins.setdefault(path[:end], f"environment, {name}")
            self._origins[path] = f"environment, {name}"

    def _put(self, path: KeyPath, value: Any) -> None:
        at: Any = self.document
        for step, then in pairwise(path):
            below = _entered(at, step, [] if isinstance(then, int) else {})
            if isinstance(below, Variable):
                below = at[step] = toml_value(below)
            at = below
        _entered(at, path[-1], None)
        at[path[-1]] = value


def _join(new: Mapping[str, Any], old: dict[str, Any]) -> None:
    """Put ``new`` into ``old``: key by key, and lists of tables behind each other."""
    for key, value in new.items():
        table = old.get(key)
        if isinstance(value, dict) and isinstance(table, dict):
            _join(value, table)
        elif isinstance(table, list) and _are_tables(table) and _are_tables(value):
            table.extend(value)
        else:
            old[key] = value


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _entered(at: Any, step: str | int, otherwise: Any) -> Any:
    """The value below ``at``, which is made when it is not there."""
    if isinstance(step, int):
        if not isinstance(at, list) or step > len(at):
            raise ValueError(f"expected a number up to {len(at)}, got {step}")
        if step == len(at):
            at.append(otherwise)
    elif not isinstance(at, dict):
        raise ValueError("expected a table there")  # noqa: TRY004  about a text
    elif step not in at:
        at[step] = otherwise
    return at[step]


def read_layers(path: Path, environment: Mapping[str, str]) -> Layers:
    """Read a file, what is in ``conf.d`` beside it, and the environment."""
    layers = Layers()
    for file in (path, *sorted((path.parent / "conf.d").glob("*.toml"))):
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            hint = "; `monrest config example` prints one" if error.errno == ENOENT else ""
            layers.problems.append(f"{file}: cannot be read: {error.strerror}{hint}")
        except UnicodeDecodeError:
            layers.problems.append(f"{file}: expected UTF-8 text")
        else:
            layers.add_file(text, str(file))
    layers.add_environment(environment)
    return layers


def toml_value(text: str) -> Any:
    """The value that a text is in TOML; the text itself where it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _by_parts(name: str) -> list[tuple[int, str]]:
    """Elements of lists in the order of their numbers."""
    steps = name.upper().split(_SEPARATOR)
    return [(int(step), "") if step.isdigit() else (-1, step) for step in steps]


def keys_of(table: type[Any]) -> dict[str, Any]:
    """The keys of a table with their declared types."""
    return {attribute.name: attribute.type for attribute in fields(resolve_types(table))}


def table_of(wanted: Any) -> type[Any] | None:
    """The class of a table, where a declared type is one or may be one."""
    for get_arg in get_args(wanted) if isinstance(wanted, UnionType) else (wanted,):
        if isinstance(get_arg, type) and has(get_arg):
            return get_arg
    return None


def did_you_mean(key: str, path: KeyPath, table: type[Any]) -> str:
    """The key that was probably meant by one that the ``table`` at ``path`` does not have."""
    from difflib import get_close_matches

    near = [
        spelled((*path, get_close_matche))
        for get_close_matche in get_close_matches(key, keys_of(table), n=1, cutoff=0.6)
    ]
    elsewhere = [
        f"{name}.{key}"
        for name, kind in keys_of(Config).items()
        if (inner := table_of(kind)) is not None and key in keys_of(inner)
    ]
    # What is spelled right and in one other table only was meant for that.
    meant = elsewhere if len(elsewhere) == 1 else near or elsewhere
    return f", did you mean {' or '.join(meant)}?" if meant else ""
