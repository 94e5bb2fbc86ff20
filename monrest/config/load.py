"""The configuration out of its sources: substitution of ``{var_dir}``, strict types, checks.

Nothing of a file is coerced: a text is no number and ``"false"`` is no boolean. Every problem found
is reported, each as ``key.path: what was expected (its file and line)``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from attrs import NOTHING, define, field, fields

from monrest.base.durations import seconds_of
from monrest.base.truth import truth
from monrest.config.check import problems_of
from monrest.config.layers import (
    KeyPath,
    Layers,
    Variable,
    did_you_mean,
    keys_of,
    read_layers,
    spelled,
    table_of,
    toml_value,
)
from monrest.config.sections import Config, Minutes, Size

DURATION = 'a number of seconds, or a duration such as "90s", "1h30m" or "70d"'
MINUTES = 'a whole number of minutes, or a duration of whole minutes such as "5m"'
_STEP = re.compile(r"\[[0-9]+\]|[^.\[\]]+")
_STANDS_IN = {"address": "unix:/", "id": "missing", "name": "missing", "site": "missing"}
_SIZE = re.compile(r"(\d{1,9}) ?([KMG]B)\Z")
_UNITS = {"KB": 10, "MB": 20, "GB": 30}
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    str: "a text",
}
_TOML_NAMES = {bool: "a boolean", int: "a number", float: "a number", str: "the text",
               list: "a list", dict: "a table"}  # fmt: skip


class ConfigError(Exception):
    """The configuration cannot be used; ``problems`` are lines of ``key.path: expectation``."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(tuple(problems))
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


def load(path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
    """Read and check the file, ``conf.d`` beside it and ``environment`` (default: the process's).

    Raises ConfigError listing every problem.
    """
    return structured(read_layers(Path(path), os.environ if environment is None else environment))


def loads(text: str, source: str = "") -> Config:
    """Like ``load`` for a text alone; ``source`` names it in errors."""
    layers = Layers()
    layers.add_file(text, source)
    return structured(layers)


def structured(layers: Layers) -> Config:
    """The checked configuration of what was read; raises ConfigError listing every problem."""
    reading = _Reading(_var_dir(layers.document))
    config: Config = reading.table(layers.document, Config, ())
    problems = [
        *layers.problems,
        *sorted(_placed(layers, path, text) for path, text in reading.wrong),
    ]
    spelled_wrong = {spelled(path) for path, _ in reading.wrong}
    for problem in problems_of(config):
        if not any(_names(problem, name) for name in spelled_wrong):
            name, _, text = problem.partition(": ")
            path = tuple(
                int(step[1:-1]) if step.startswith("[") else step for step in _STEP.findall(name)
            )
            problems.append(_placed(layers, path, text))
    if problems:
        raise ConfigError(problems)
    return config


def _placed(layers: Layers, path: KeyPath, text: str) -> str:
    """A problem with the file and line of its value."""
    origin = layers.nearest(path)
    return f"{spelled(path) or 'configuration'}: {text}{f' ({origin})' if origin else ''}"


def _names(problem: str, name: str) -> bool:
    """Whether a problem is about ``name``, what is in it, or compares with it."""
    return re.search(rf"(?<![\w.\]]){re.escape(name)}(?![\w-])", problem) is not None


def _var_dir(document: Mapping[str, Any]) -> str:
    """The value of ``{var_dir}``."""
    server = document.get("server")
    given = server.get("var_dir") if isinstance(server, dict) else None
    return given if isinstance(given, str) else Config().server.var_dir


def _from_environment(text: str, wanted: Any) -> Any:
    """A text of the environment as the value that a file would have, if it is one."""
    if wanted is bool or bool in get_args(wanted):
        answer = truth(text)
        return text if answer is None else answer
    if get_origin(wanted) is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    is_text = wanted in (str, Size) or get_origin(wanted) is Literal
    return str(text) if is_text else toml_value(text)


_WRONG: Any = object()
"""Stands for a value of another type than its key has."""


@define
class _Reading:
    """Makes values of their declared types; ``wrong`` is what was expected, by the way to it.

    For what is wrong or missing the default stands, or something of the right type, so that all
    that can be checked of the rest is checked as well. ``var_dir`` is put into texts and defaults.
    """

    var_dir: str
    wrong: list[tuple[KeyPath, str]] = field(factory=list)

    def table(self, document: Mapping[str, Any], kind: type[Any], path: KeyPath) -> Any:
        """The value of the class ``kind`` for a table."""
        declared = keys_of(kind)
        for key in document.keys() - declared.keys():
            self.wrong.append(((*path, key), f"unknown key{did_you_mean(key, path, kind)}"))
        given = {}
        for attribute in fields(kind):
            at, value = (*path, attribute.name), _WRONG
            if attribute.name in document:
                value = self.value(document[attribute.name], declared[attribute.name], at)
            elif attribute.default is NOTHING:
                self.wrong.append((at, "missing, but required"))
            elif isinstance(attribute.default, str):
                value = self._text(attribute.default)
            elif table_of(declared[attribute.name]) is declared[attribute.name]:
                value = self.table({}, declared[attribute.name], at)
            if value is not _WRONG:
                given[attribute.name] = value
            elif attribute.default is NOTHING:
                given[attribute.name] = _STANDS_IN.get(attribute.name, ("/",))
        return kind(**given)

    def value(self, value: Any, wanted: Any, path: KeyPath) -> Any:
        """The value of the declared type ``wanted``; ``_WRONG`` if it has another one."""
        if isinstance(value, Variable):
            value = _from_environment(value, wanted)
        if isinstance(value, str):
            value = self._text(value)
        table = table_of(wanted)
        if table is not None:
            if isinstance(value, dict):
                return self.table(value, table, path)
            return self._note(path, "a table", value)
        if get_origin(wanted) is tuple:
            element = get_args(wanted)[0]
            if not isinstance(value, list):
                of = "texts" if element is str else "tables"
                return self._note(path, f"a list of {of}", value)
            items = tuple(self.value(item, element, (*path, at)) for at, item in enumerate(value))
            return _WRONG if _WRONG in items else items
        if get_origin(wanted) is Mapping:
            if not isinstance(value, dict):
                return self._note(path, "a table", value)
            kind = get_args(wanted)[1]
            read = {name: self.value(item, kind, (*path, name)) for name, item in value.items()}
            return {name: item for name, item in read.items() if item is not _WRONG}
        return self._plain(value, wanted, path)

    def _plain(self, value: Any, wanted: Any, path: KeyPath) -> Any:
        if get_origin(wanted) is Literal:
            choices = get_args(wanted)
            if value in choices:
                return value
            return self._note(path, f"one of {', '.join(choices)}", value)
        if isinstance(wanted, UnionType) and str in get_args(wanted):
            if isinstance(value, str):
                return value
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                return tuple(map(self._text, value))
            return self._note(path, "a text or a list of texts", value)
        if wanted is float:
            seconds: Any = seconds_of(value) if isinstance(value, str) else value
            if type(seconds) in (int, float) and not (isinstance(value, str) and seconds < 0):
                return float(seconds)
            return self._note(path, DURATION, value)
        if wanted is Minutes:
            minutes = value
            if isinstance(value, str):
                given = seconds_of(value)
                minutes = None if given is None or given < 0 or given % 60 else int(given // 60)
            return minutes if type(minutes) is int else self._note(path, MINUTES, value)
        if wanted is Size:
            size = _SIZE.match(value) if isinstance(value, str) else None
            if size is not None:
                return int(size[1]) << _UNITS[size[2]]
            return self._note(path, 'a size like "512MB" or "2GB"', value)
        kind = bool if isinstance(wanted, UnionType) else wanted
        return value if type(value) is kind else self._note(path, _KINDS[kind], value)

    def _text(self, text: str) -> str:
        return text.replace("{var_dir}", self.var_dir)

    def _note(self, path: KeyPath, expected: str, value: Any) -> Any:
        kind = _TOML_NAMES.get(type(value), f"a {type(value).__name__}")
        got = kind if isinstance(value, (list, dict)) else f"{kind} {value!r}"
        self.wrong.append((path, f"expected {expected}, got {got}"))
        return _WRONG
