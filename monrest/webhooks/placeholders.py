"""Bodies that users write: JSON whose texts have placeholders, which cost no more than copying.

``{{ data.host_name | upper }}`` stands for a value of the event. A text that is nothing but one
placeholder becomes the value itself, a number or a list as well; the result is JSON, since
values are put into a document and not into a text. There are no loops, no arithmetic and no calls,
so that no template can keep the daemon busy for ever. Pure.

Rules: docs/spec/webhooks.md, "Templates".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import orjson
from attrs import frozen

MOST_PLACEHOLDERS = 200
LONGEST_TEMPLATE = 16_384
LONGEST_VALUE = 10_000
"""Characters of one value that is put into a text."""

NAMES = frozenset(
    {"data", "datacontenttype", "id", "object", "severity", "site", "source", "specversion"}
    | {"state_name", "subject", "text", "time", "title", "type"}
)
"""With what the path of a placeholder begins."""

_MOST_LEVELS = 20
_MOST_FILTERS = 5
_LATEST = 253_402_300_799

_PLACE = re.compile(r"\{\{([^{}]*)\}\}")
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}(?:\.[A-Za-z0-9_]{1,100}){0,9}")
_ARGUMENT = r"""(?:'[^'\\{}]{0,200}'|"[^"\\{}]{0,200}"|-?[0-9]{1,9})"""
_FILTER = re.compile(
    rf"\s*\|\s*([a-z]{{1,20}})\s*(?:\(\s*({_ARGUMENT}(?:\s*,\s*{_ARGUMENT}){{0,20}})\s*\))?\s*"
)
_ONE_ARGUMENT = re.compile(_ARGUMENT)

FilterFunction: TypeAlias = Callable[..., Any]


def _default(value: Any, other: str) -> Any:
    return other if value is None or value == "" else value


def _truncate(value: Any, length: str) -> str:
    text, most = _text(value), max(int(length), 1)
    return text if len(text) <= most else text[: most - 1] + "…"


def _date(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        return _text(value)
    return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _choose(value: Any, *choices: str) -> str:
    text = _text(value)
    for choice in choices:
        name, equals, chosen = choice.partition("=")
        if equals and name in (text, "*"):
            return chosen
    return ""


_FILTERS: Mapping[str, tuple[FilterFunction, int, int]] = {
    "choose": (_choose, 1, 20),
    "date": (_date, 0, 0),
    "default": (_default, 1, 1),
    "json": (lambda value: orjson.dumps(value).decode(), 0, 0),
    "lower": (lambda value: _text(value).lower(), 0, 0),
    "truncate": (_truncate, 1, 1),
    "upper": (lambda value: _text(value).upper(), 0, 0),
}
"""By name, with the least and the most arguments."""

FILTER_NAMES = tuple(_FILTERS)


@frozen
class _Placeholder:
    path: tuple[str, ...]
    filters: tuple[tuple[FilterFunction, tuple[str, ...]], ...]

    def value(self, values: Mapping[str, Any]) -> Any:
        """Look the value up; None for what is not there."""
        value: Any = values
        for name in self.path:
            if isinstance(value, Mapping):
                value = value.get(name)
            elif isinstance(value, list | tuple) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            else:
                value = None
        for function, arguments in self.filters:
            value = function(value, *arguments)
        return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value[:LONGEST_VALUE])[:LONGEST_VALUE]
    if isinstance(value, Mapping):
        return orjson.dumps(value).decode()[:LONGEST_VALUE]
    return str(value)[:LONGEST_VALUE]


def _read_place(inside: str) -> _Placeholder:
    text = inside.strip()
    match = _PATH.match(text)
    if match is None:
        raise ValueError(f"expected a name such as data.host_name, got {{{{{inside[:80]}}}}}")
    at = match.end()
    filters: list[tuple[FilterFunction, tuple[str, ...]]] = []
    while at < len(text):
        part = _FILTER.match(text, at)
        if part is None or len(filters) >= _MOST_FILTERS:
            raise ValueError(f"expected up to {_MOST_FILTERS} filters, got {text[at : at + 80]!r}")
        known_filter = _FILTERS.get(part[1])
        if known_filter is None:
            raise ValueError(f"expected a filter out of {', '.join(FILTER_NAMES)}, got {part[1]!r}")
        words = _ONE_ARGUMENT.findall(part[2] or "")
        given = tuple(word[1:-1] if word[0] in "'\"" else word for word in words)
        function, least, most = known_filter
        if not least <= len(given) <= most:
            raise ValueError(f"{part[1]}: expected {least} to {most} arguments")
        if part[1] == "truncate" and not given[0].isdigit():
            raise ValueError("truncate: expected a number")
        filters.append((function, given))
        at = part.end()
    return _Placeholder(tuple(match[0].split(".")), tuple(filters))


def _compiled(text: str) -> list[str | _Placeholder]:
    parts = _PLACE.split(text)
    pieces = [_read_place(part) if at % 2 else part for at, part in enumerate(parts)]
    left = "".join(piece for piece in pieces if isinstance(piece, str))
    if "{{" in left or "}}" in left:
        raise ValueError(f"expected {{{{ name }}}}, got {text[:80]!r}")
    return [piece for piece in pieces if piece != ""]


def check(template: Any) -> None:
    """Raise ValueError that says what is wrong with a template."""
    if len(orjson.dumps(template)) > LONGEST_TEMPLATE:
        raise ValueError(f"expected at most {LONGEST_TEMPLATE} bytes of JSON")
    count = 0

    def visit(value: Any, level: int) -> None:
        nonlocal count
        if level > _MOST_LEVELS:
            raise ValueError(f"expected at most {_MOST_LEVELS} levels")
        if isinstance(value, str):
            for piece in _compiled(value):
                if isinstance(piece, _Placeholder):
                    count += 1
                    if piece.path[0] not in NAMES:
                        names = ", ".join(sorted(NAMES))
                        raise ValueError(f"expected one of {names}, got {piece.path[0]!r}")
        elif isinstance(value, Mapping):
            for name, piece in value.items():
                if "{{" in name:
                    raise ValueError("expected placeholders in values and not in names")
                visit(piece, level + 1)
        elif isinstance(value, list):
            for piece in value:
                visit(piece, level + 1)

    visit(template, 0)
    if count > MOST_PLACEHOLDERS:
        raise ValueError(f"expected at most {MOST_PLACEHOLDERS} placeholders")


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The document that a checked template makes of the values."""
    if isinstance(template, str):
        parts = _compiled(template)
        if len(parts) == 1 and isinstance(parts[0], _Placeholder):
            return parts[0].value(values)
        return "".join(
            _text(part.value(values)) if isinstance(part, _Placeholder) else part for part in parts
        )
    if isinstance(template, Mapping):
        return {name: filled(item, values) for name, item in template.items()}
    if isinstance(template, list):
        return [filled(item, values) for item in template]
    return template
