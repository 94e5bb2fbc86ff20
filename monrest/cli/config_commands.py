"""``monrest config`` and ``check-config``: what an operator needs of it, without a daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from monrest.base.installed import shipped
from monrest.cli import output
from monrest.cli.command_line import Pairs
from monrest.cli.options import DEFAULT_CONFIG
from monrest.cli.output import FAILED, UsageError
from monrest.client.exchange import ClientError

_FILES: Mapping[str, str] = {
    "unit": "monrest.service",
    "socket": "monrest.socket",
    "sysusers": "monrest.sysusers",
    "tmpfiles": "monrest.tmpfiles",
}


def example(_: Sequence[str], options: Pairs) -> int:
    """Print the configuration example, or the one file for systemd that is asked for."""
    asked = {name for name, _ in options if name in _FILES}
    if len(asked) > 1:
        raise UsageError(f"expected one of {', '.join(f'--{name}' for name in _FILES)}")
    path = shipped(_FILES[asked.pop()] if asked else "monrest.toml")
    try:
        output.write(path.read_bytes())
    except FileNotFoundError:
        raise ClientError(f"{path} is missing") from None
    return 0


def check(files: Sequence[str], options: Pairs) -> int:
    """Print every problem of a configuration to standard error, without starting."""
    path = files[0] if files else DEFAULT_CONFIG
    from monrest.config import ConfigError, load

    try:
        config = load(path)
    except ConfigError as error:
        output.note(f"{path} cannot be used:\n{error}")
        return FAILED
    count = len(config.sites)
    output.write_text(f"{path} is good: {count} {'site' if count == 1 else 'sites'}\n")
    if "connect" not in dict(options):
        return 0
    from monrest.cli.probe import TITLES, probed

    lines = probed(config)
    if lines:
        output.write_text(output.aligned(TITLES, (line.cells() for line in lines)))
    return FAILED if any(line.problem for line in lines) else 0


class Setting(NamedTuple):
    """A value in force: the path of its key, itself without secrets, and its file and line."""

    key: str
    value: Any
    origin: str
    is_default: bool


def show(files: Sequence[str], options: Pairs) -> int:
    """Print the configuration, each value with its file and line."""
    from pathlib import Path

    from monrest.config import ConfigError
    from monrest.config.layers import read_layers
    from monrest.config.load import structured

    path = files[0] if files else DEFAULT_CONFIG
    layers = read_layers(Path(path), os.environ)
    try:
        config = structured(layers)
    except ConfigError as error:
        output.note(f"{path} cannot be used:\n{error}")
        return FAILED
    asked = dict(options)
    settings = [
        setting
        for setting in _settings(config, (), layers.origin)
        if not (setting.is_default and "changed" in asked)
    ]
    if "json" in asked:
        document = [
            {"key": setting.key, "value": setting.value, "origin": setting.origin}
            for setting in settings
        ]
        output.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    else:
        output.write_text(
            "".join(
                f"{setting.key} = {_toml(setting.value)}  # {setting.origin}\n"
                for setting in settings
            )
        )
    return 0


_DEFAULT = "default"


def _settings(table: Any, path: tuple[str | int, ...], origin_of: Any) -> Iterator[Setting]:
    """Every key of a table and of those in it; ``origin_of`` returns the origin of a path."""
    from attrs import fields, has

    from monrest.config.layers import keys_of, spelled, table_of
    from monrest.config.sections import Size
    from monrest.instance.hidden_settings import display_value

    kinds = keys_of(type(table))
    for attribute in fields(type(table)):
        at, value = (*path, attribute.name), getattr(table, attribute.name)
        items = value if isinstance(value, tuple) else (value,)
        if value and all(has(type(item)) for item in items):
            for number, item in enumerate(items):
                inner = (*at, number) if isinstance(value, tuple) else at
                yield from _settings(item, inner, origin_of)
        elif isinstance(value, Mapping) and value:
            for name, item in value.items():
                origin = origin_of((*at, name)) or origin_of(at) or _DEFAULT
                yield Setting(f"{spelled(at)}.{name}", display_value(item, name), origin, False)
        elif value is not None and not (
            # A list of tables of which there is none has no keys.
            value == () and any(table_of(inner) for inner in get_args(kinds[attribute.name]))
        ):
            is_default = value == attribute.default or value == {}
            if kinds[attribute.name] is Size:
                value = f"{value >> 20}MB"
            # The name of a file is no secret, what is in it may be one.
            name = "" if attribute.name.endswith("_file") else attribute.name
            yield Setting(
                spelled(at), display_value(value, name), origin_of(at) or _DEFAULT, is_default
            )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items())
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
