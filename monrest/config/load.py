"""The configuration out of its sources: substitution of ``{var_dir}``, strict types, checks.

Nothing of a file is coerced: a text is no number and ``"false"`` is no boolean. Every problem found
is reported, each as ``key.path: what was expected (its file and line)``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, get_args, get_origin

from attrs import has
from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.gen import make_dict_structure_fn

from monrest.base.durations import seconds_of
from monrest.config.check import problems_of
from monrest.config.frontend import Minutes, Size
from monrest.config.layers import (
    DURATION,
    MINUTES,
    KeyPath,
    Layers,
    did_you_mean,
    read_layers,
    spelled,
)
from monrest.config.sections import Config

_QUOTED_KEY = re.compile(r"\['([^']*)'\]")
_STEP = re.compile(r"\[[0-9]+\]|[^.\[\]]+")
_MISSING = "missing, but required"
_UNKNOWN = "unknown key "
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
    """The checked configuration of what was read; raises ConfigError listing every problem.

    What is wrong with the types of some values is taken out, so that everything that can be said
    of the rest is said as well.
    """
    wrong: list[tuple[KeyPath, str]] = []
    seen: list[tuple[KeyPath, str]] = []
    document = _substituted(layers.document)
    config = None
    while config is None:
        try:
            config = _CONVERTER.structure(document, Config)
        except (BaseValidationError, TypeError, ValueError) as error:
            found = [one for one in _described(error) if one not in seen]
            seen += found
            if not found:
                break
            # A required value that was taken out is missing then, which is no problem of its own.
            known = {path for path, _ in wrong}
            wrong += [(path, text) for path, text in found if path not in known]
            for path, text in found:
                _mend(document, path, missing=text == _MISSING)
    spelled_wrong = {spelled(path) for path, _ in wrong}
    problems = [
        *layers.problems,
        *sorted(_placed(layers, path, text) for path, text in wrong),
    ]
    for problem in () if config is None else problems_of(config):
        if not any(_names(problem, name) for name in spelled_wrong):
            name, _, text = problem.partition(": ")
            problems.append(_placed(layers, _path(name), text))
    if problems or config is None:
        raise ConfigError(problems)
    return config


def _placed(layers: Layers, path: KeyPath, text: str) -> str:
    """A problem with the file and line of its value."""
    origin = layers.nearest(path)
    return f"{spelled(path) or 'configuration'}: {text}{f' ({origin})' if origin else ''}"


def _path(text: str) -> KeyPath:
    return tuple(int(step[1:-1]) if step.startswith("[") else step for step in _STEP.findall(text))


def _names(problem: str, name: str) -> bool:
    """Whether a problem is about ``name``, what is in it, or compares with it."""
    return re.search(rf"(?<![\w.\]]){re.escape(name)}(?![\w-])", problem) is not None


def _mend(document: dict[str, Any], path: KeyPath, *, missing: bool) -> None:
    """Take a wrong value out, or put something in where a text is missing."""
    at: Any = document
    for place, step in enumerate(path):
        last = place == len(path) - 1
        if missing and last and isinstance(at, dict):
            at[step] = _STANDS_IN.get(str(step), ["/"])
        elif isinstance(at, dict) and step in at:
            inner = at[step]
            tables = isinstance(inner, list) and all(isinstance(one, dict) for one in inner)
            if last or not (isinstance(inner, dict) or tables):
                del at[step]
                return
            at = inner
        elif isinstance(at, list) and isinstance(step, int) and step < len(at):
            at = at[step]
        else:
            return


def _substituted(document: dict[str, Any]) -> dict[str, Any]:
    server = document.get("server", {})
    default = Config().server.var_dir
    given = server.get("var_dir", default) if isinstance(server, dict) else default
    var_dir = given if isinstance(given, str) else default

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{var_dir}", var_dir)
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if isinstance(value, dict):
            return {key: replaced(item) for key, item in value.items()}
        return value

    defaults = Config()
    with_defaults: dict[str, Any] = dict(document)
    for table, key, default in (
        ("database", "url", defaults.database.url),
        ("auth", "secret_key_file", defaults.auth.secret_key_file),
    ):
        present = with_defaults.get(table, {})
        if isinstance(present, dict):
            with_defaults[table] = {key: default, **present}
    changed: dict[str, Any] = replaced(with_defaults)
    return changed


def _got(value: Any) -> str:
    kind = _TOML_NAMES.get(type(value), f"a {type(value).__name__}")
    return kind if isinstance(value, (list, dict)) else f"{kind} {value!r}"


def _strict(kind: type) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"expected {_KINDS[kind]}, got {_got(value)}")
        return value

    return structure


def _seconds(value: Any, _: Any) -> float:
    """Every float of the configuration is a duration in seconds."""
    seconds: Any = seconds_of(value) if isinstance(value, str) else value
    if type(seconds) not in (int, float) or (isinstance(value, str) and seconds < 0):
        raise TypeError(f"expected {DURATION}, got {_got(value)}")
    return float(seconds)


def _minutes(value: Any, _: Any) -> Minutes:
    minutes = value
    if isinstance(value, str):
        seconds = seconds_of(value)
        minutes = None if seconds is None or seconds < 0 or seconds % 60 else int(seconds // 60)
    if type(minutes) is not int:
        raise TypeError(f"expected {MINUTES}, got {_got(value)}")
    return Minutes(minutes)


def _size(value: Any, _: Any) -> Size:
    found = _SIZE.match(value) if isinstance(value, str) else None
    if found is None:
        raise TypeError(f'expected a size like "512MB" or "2GB", got {_got(value)}')
    return Size(int(found[1]) << _UNITS[found[2]])


def _literal(value: Any, wanted: Any) -> Any:
    if value not in get_args(wanted):
        choices = ", ".join(str(choice) for choice in get_args(wanted))
        raise ValueError(f"expected one of {choices}, got {_got(value)}")
    return value


def _text_or_texts(value: Any, _: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"expected a text or a list of texts, got {_got(value)}")
    return tuple(value)


def _tuple(value: Any, wanted: Any) -> tuple[Any, ...]:
    element = get_args(wanted)[0]
    if not isinstance(value, list):
        of = "texts" if element is str else "tables"
        raise TypeError(f"expected a list of {of}, got {_got(value)}")
    items: Any = GenericAlias(list, (element,))
    return tuple(_CONVERTER.structure(value, items))


def _mapping(value: Any, wanted: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"expected a table, got {_got(value)}")
    entries: Any = GenericAlias(dict, get_args(wanted))
    return _CONVERTER.structure(value, entries)


def _table(table: type[Any]) -> Callable[[Any, Any], Any]:
    inner = make_dict_structure_fn(table, _CONVERTER, _cattrs_forbid_extra_keys=True)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"expected a table, got {_got(value)}")
        return inner(value, table)

    return structure


def _made_of(origin: Any) -> Callable[[Any], bool]:
    return lambda wanted: get_origin(wanted) is origin


_CONVERTER = Converter()
for _kind in (str, int, bool):
    _CONVERTER.register_structure_hook(_kind, _strict(_kind))
_CONVERTER.register_structure_hook(float, _seconds)
_CONVERTER.register_structure_hook(Minutes, _minutes)
_CONVERTER.register_structure_hook(Size, _size)
_CONVERTER.register_structure_hook_factory(has, _table)
_CONVERTER.register_structure_hook_func(_made_of(Literal), _literal)
_CONVERTER.register_structure_hook_func(
    lambda wanted: bool(wanted == (str | tuple[str, ...])), _text_or_texts
)
_CONVERTER.register_structure_hook_func(_made_of(tuple), _tuple)
_CONVERTER.register_structure_hook_func(_made_of(Mapping), _mapping)


def _described(error: BaseException) -> list[tuple[KeyPath, str]]:
    found: list[tuple[KeyPath, str]] = []
    for line in transform_error(error, "", _text_of):
        text, _, where = line.rpartition(" @ ")
        path = _path(_QUOTED_KEY.sub(r".\1", where).lstrip("."))
        if text.startswith(_UNKNOWN):
            keys = text.removeprefix(_UNKNOWN).split(", ")
            found += [((*path, key), f"unknown key{did_you_mean(key, path)}") for key in keys]
        else:
            found.append((path, text))
    return found


def _text_of(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return _MISSING
    if isinstance(error, ForbiddenExtraKeysError):
        return f"{_UNKNOWN}{', '.join(sorted(error.extra_fields))}"
    return str(error)
