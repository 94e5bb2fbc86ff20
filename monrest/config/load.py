"""Reading the configuration file: TOML, substitution of ``{var_dir}``, strict types.

Nothing is coerced: a text is no number and ``"false"`` is no boolean. Every problem found is
reported, each as ``key.path: what was expected``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, get_args, get_origin

from attrs import has
from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.gen import make_dict_structure_fn

from monrest.config.check import problems_of
from monrest.config.sections import Config, Size

_QUOTED_KEY = re.compile(r"\['([^']*)'\]")
_SIZE = re.compile(r"(\d{1,9}) ?([KMG]B)\Z")
_UNITS = {"KB": 10, "MB": 20, "GB": 30}
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
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


def load(path: str | Path) -> Config:
    """Read, structure and check the file; raise ConfigError listing every problem."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"{path}: expected UTF-8 text"]) from None
    return loads(text, str(path))


def loads(text: str, source: str = "configuration") -> Config:
    """Like ``load`` for a text; ``source`` names it in errors of the TOML syntax."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{source}: not valid TOML: {error}"]) from None
    try:
        config = _CONVERTER.structure(_substituted(document), Config)
    except (BaseValidationError, TypeError, ValueError) as error:
        raise ConfigError(sorted(_described(error))) from None
    if problems := problems_of(config):
        raise ConfigError(problems)
    return config


def _substituted(document: dict[str, Any]) -> dict[str, Any]:
    server = document.get("server", {})
    var_dir = server.get("var_dir", Config().server.var_dir) if isinstance(server, dict) else ""

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{var_dir}", str(var_dir))
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


# ---------------------------------------------------------------- structuring


def _got(value: Any) -> str:
    kind = _TOML_NAMES.get(type(value), f"a {type(value).__name__}")
    return kind if isinstance(value, (list, dict)) else f"{kind} {value!r}"


def _strict(kind: type, *accepted: type) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) not in accepted:
            raise TypeError(f"expected {_KINDS[kind]}, got {_got(value)}")
        return kind(value)

    return structure


def _structure_size(value: Any, _: Any) -> Size:
    found = _SIZE.match(value) if isinstance(value, str) else None
    if found is None:
        raise TypeError(f'expected a size like "512MB" or "2GB", got {_got(value)}')
    return Size(int(found[1]) << _UNITS[found[2]])


def _is_literal(wanted: Any) -> bool:
    return get_origin(wanted) is Literal


def _structure_literal(value: Any, wanted: Any) -> Any:
    if value not in get_args(wanted):
        choices = ", ".join(str(choice) for choice in get_args(wanted))
        raise ValueError(f"expected one of {choices}, got {_got(value)}")
    return value


def _is_tuple(wanted: Any) -> bool:
    return get_origin(wanted) is tuple


def _is_text_or_texts(wanted: Any) -> bool:
    return bool(wanted == (str | tuple[str, ...]))


def _structure_text_or_texts(value: Any, _: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"expected a text or a list of texts, got {_got(value)}")
    return tuple(value)


def _is_mapping(wanted: Any) -> bool:
    return get_origin(wanted) is Mapping


def _tuples(converter: Converter) -> Callable[[Any, Any], Any]:
    def structure(value: Any, wanted: Any) -> Any:
        element = get_args(wanted)[0]
        if not isinstance(value, list):
            of = "texts" if element is str else "tables"
            raise TypeError(f"expected a list of {of}, got {_got(value)}")
        items: Any = GenericAlias(list, (element,))
        return tuple(converter.structure(value, items))

    return structure


def _mappings(converter: Converter) -> Callable[[Any, Any], Any]:
    def structure(value: Any, wanted: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"expected a table, got {_got(value)}")
        entries: Any = GenericAlias(dict, get_args(wanted))
        return converter.structure(value, entries)

    return structure


def _tables(converter: Converter) -> Callable[[type[Any]], Callable[[Any, Any], Any]]:
    def factory(table: type[Any]) -> Callable[[Any, Any], Any]:
        inner = make_dict_structure_fn(table, converter, _cattrs_forbid_extra_keys=True)

        def structure(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"expected a table, got {_got(value)}")
            return inner(value, table)

        return structure

    return factory


def _converter() -> Converter:
    converter = Converter()
    for kind, accepted in ((str, (str,)), (int, (int,)), (bool, (bool,)), (float, (int, float))):
        converter.register_structure_hook(kind, _strict(kind, *accepted))
    converter.register_structure_hook(Size, _structure_size)
    converter.register_structure_hook_factory(has, _tables(converter))
    converter.register_structure_hook_func(_is_literal, _structure_literal)
    converter.register_structure_hook_func(_is_text_or_texts, _structure_text_or_texts)
    converter.register_structure_hook_func(_is_tuple, _tuples(converter))
    converter.register_structure_hook_func(_is_mapping, _mappings(converter))
    return converter


_CONVERTER = _converter()


def _described(error: BaseException) -> list[str]:
    lines = []
    for line in transform_error(error, "", _text_of):
        text, _, path = line.rpartition(" @ ")
        path = _QUOTED_KEY.sub(r".\1", path).lstrip(".")
        if unknown := text.startswith("unknown key "):
            keys = text.removeprefix("unknown key ").split(", ")
            lines += [f"{path}.{key}: unknown key".lstrip(".") for key in keys]
        if not unknown:
            lines.append(f"{path or 'configuration'}: {text}")
    return lines


def _text_of(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return "missing, but required"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"unknown key {', '.join(sorted(error.extra_fields))}"
    return str(error)
