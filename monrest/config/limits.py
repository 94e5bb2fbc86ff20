"""Limits of values of the configuration; each stands at its field, in ``sections``.

A limit returns what was expected of a value, empty for a valid one. That of a list holds for each
of its elements. What several values have to be together is in ``monrest.config.check``.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from importlib.resources import files
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

import re2
from attrs import field

from monrest.base.installed import is_installed, remedy
from monrest.config.addresses import HIGHEST_PORT, database_problem, parse_address, parse_listener

Limit: TypeAlias = Callable[[Any], str]

LIMIT = "limit"
"""The key of a limit in the metadata of a field."""

T = TypeVar("T")

_NODE_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_NODE_URL = re.compile(
    rf"https?://{_NODE_HOST}(?::(?P<port>[0-9]{{1,5}}))?(?:/[A-Za-z0-9._~/-]*)?\Z"
)
_HOST_NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,30}")
_SITE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}\Z")
_COMMAND_NUMBERS = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?\Z")


def limited(default: T, limit: Limit) -> T:
    """A field with a default, which the limit need not hold for."""
    return field(default=default, metadata={LIMIT: limit})


def expected(wanted: str, is_good: Callable[[Any], object], unit: str = "") -> Limit:
    """The limit of values for which ``is_good`` is true; ``unit`` is that of the wrong one."""
    return lambda value: "" if is_good(value) else f"expected {wanted}, got {value!r}{unit}"


def between(least: float, most: float, unit: str = "") -> Limit:
    return expected(f"{least} to {most}{unit}", lambda value: least <= value <= most)


def at_least(least: float, wanted: str, unit: str = "") -> Limit:
    return expected(wanted, lambda value: least <= value < math.inf, unit)


def choice(*values: int, wanted: str) -> Limit:
    return expected(wanted, lambda value: value in values)


def matching(pattern: str, wanted: str) -> Limit:
    return expected(wanted, re.compile(pattern, re.ASCII).fullmatch)


def optional(limit: Limit) -> Limit:
    """The same limit, where 0 or an empty text are good as well."""
    return lambda value: limit(value) if value else ""


def readable_by(parse: Callable[[str], object]) -> Limit:
    """The limit of texts that ``parse`` takes; its ValueError says what was expected."""

    def limit(text: str) -> str:
        try:
            parse(text)
        except ValueError as error:
            return str(error)
        return ""

    return limit


positive = expected("a number above 0", lambda value: 0 < value < math.inf)
not_negative = at_least(0, "0 or more")
absolute_path = expected("an absolute path", lambda path: path.startswith("/") and "\0" not in path)
readable_file = optional(
    expected("a readable file", lambda path: Path(path).is_file() and os.access(path, os.R_OK))
)
folder = optional(expected("a directory", lambda path: Path(path).is_dir()))
printable = expected("a printable text", lambda text: text.strip() and text.isprintable())


def absolute_file(path: str) -> str:
    return absolute_path(path) or readable_file(path)


def state_folder(path: str) -> str:
    """The limit of ``server.var_dir``, which need not be there."""
    if path.startswith("/") and Path(path).exists() and not Path(path).is_dir():
        return f"expected a directory, got the file {path}"
    return absolute_path(path)


def saved_file(path: str) -> str:
    """The limit of a file that is written: its directory is there."""
    if path and not (Path(path).is_absolute() and Path(path).parent.is_dir()):
        return f"expected an absolute path in a directory, got {path!r}"
    if path and (Path(path).is_dir() or ".." in Path(path).parts):
        return f"expected the path of a file without .., got {path!r}"
    return ""


def shell_command(text: str) -> str:
    return "expected a shell command, got a text with a zero byte" if "\0" in text else ""


def regular_expression(text: str) -> str:
    try:
        re2.compile(text)
    except re2.error:
        return f"expected a regular expression, got {text!r}"
    return ""


def time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return f"no such time zone: {name!r}"
    return ""


def _is_lmd(text: str) -> bool:
    try:
        return parse_address(text).kind in ("unix", "tcp")
    except ValueError:
        return False


lmd_address = expected("unix:PATH or tcp:HOST:PORT", _is_lmd)
site_id = expected(
    "up to 64 letters, digits and _.:- (not ALL or LOCAL)",
    lambda key: _SITE_ID.match(key) and key not in ("ALL", "LOCAL"),
)


def listener(text: str) -> str:
    """The limit of an endpoint string, whose files are readable."""
    try:
        problems = [(key, readable_file(file)) for key, file in parse_listener(text).files]
    except ValueError as error:
        return str(error)
    return next((f"{key}: {problem}" for key, problem in problems if problem), "")


def database(url: str) -> str:
    """The limit of a database's URL, which may have a password in it."""
    if problem := database_problem(url):
        return problem
    if url.startswith("postgresql") and not is_installed("psycopg"):
        return remedy("psycopg")
    return ""


def _is_network(text: str, *, strict: bool) -> bool:
    try:
        ip_network(text, strict=strict)
    except ValueError:
        return False
    return True


network = expected("an IP address or network", lambda text: _is_network(text, strict=True))
receiver = expected(
    "a network such as 10.0.0.0/8, an address, or a name such as alerts.example.org or "
    "*.example.org",
    lambda text: _is_network(text, strict=False) or _HOST_NAME.fullmatch(text),
)


def _is_node(url: str) -> bool:
    match = _NODE_URL.match(url)
    return match is not None and 0 < int(match["port"] or 1) <= HIGHEST_PORT


node_url = expected("http(s)://HOST:PORT", _is_node)


def _selects_commands(item: str) -> bool:
    """Whether it does: read from the data of the catalogue, whose room is above."""
    if span := _COMMAND_NUMBERS.match(item):
        return int(span[1]) <= int(span[2] or span[1])
    catalogue = json.loads((files("monrest.livestatus") / "commands.json").read_text("utf-8"))
    return any(item.lower() in commands for commands in catalogue.values())


commands = expected(
    'the name of a command, its number or a range of numbers such as "35-36"', _selects_commands
)
