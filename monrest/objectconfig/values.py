"""Attribute values between the text of a file and JSON (docs/spec/objectconfig.md, "Values")."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from monrest.base.errors import BadRequest
from monrest.objectconfig.attributes import OBJECT_TYPES, ObjectType
from monrest.objectconfig.grammar import BLANKS

Json = str | list[str]
"""A value in an answer."""

_ARRAYS = frozenset({"list", "options", "pairs"})
_BARE_SEMICOLON = re.compile(r"(?<!\\);")
_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_NAME_LIMIT = 200


def object_type(word: object) -> ObjectType:
    """The type that a ``:TYPE`` value names. Raises BadRequest."""
    found = OBJECT_TYPES.get(word) if isinstance(word, str) else None
    if found is None:
        raise BadRequest("bad request", f":TYPE: expected one of {', '.join(OBJECT_TYPES)}")
    return found


def is_array(kind: str, name: str) -> bool:
    """Whether an attribute of an object type is an array of strings in JSON."""
    found = OBJECT_TYPES.get(kind)
    attribute = None if found is None else found.attributes.get(name)
    if attribute is None:
        return False
    if attribute.kind == "command":
        return name == "event_handler"
    return (attribute.kind in _ARRAYS and not kind.endswith("extinfo")) or name == "use"


def to_json(kind: str, name: str, text: str) -> Json:
    """The JSON form of an attribute's text in the file."""
    return elements(text) if is_array(kind, name) else text


def elements(text: str) -> list[str]:
    """The elements of a comma separated text, trimmed, without empty ones."""
    return [part for part in map(str.strip, text.split(",")) if part]


def texts(kind: str, values: Mapping[str, Any]) -> dict[str, str | None]:
    """Attributes of a request as texts for the file, by canonical name.

    None stands for ``null``; every key that begins with ``:`` is left out. Raises BadRequest that
    names the attribute.
    """
    found: dict[str, str | None] = {}
    spelled: dict[str, str] = {}
    for given, value in values.items():
        if given.startswith(":"):
            continue
        name = canonical(kind, given)
        if name in found:
            raise _wrong(given, f"it means the same as {spelled[name]}; expected one of them")
        spelled[name] = given
        found[name] = None if value is None else text_of_value(kind, name, value)
    return found


def canonical(kind: str, name: str) -> str:
    """The attribute that a name in a request means. Raises BadRequest for what is no name."""
    stripped = " ".join(name.split()) if kind == "timeperiod" else name
    attribute = OBJECT_TYPES[kind].spellings.get(stripped)
    if attribute is not None:
        return attribute.name
    if not stripped or len(stripped) > _NAME_LIMIT or not stripped.isprintable():
        raise _wrong(name, "expected the name of an attribute")
    blank = kind == "timeperiod" and not stripped.startswith("_")
    if stripped[0] in "#;}{" or any(letter in ";\\" for letter in stripped):
        raise _wrong(name, "expected the name of an attribute")
    if stripped == "define" or (not blank and any(map(str.isspace, stripped))):
        raise _wrong(name, "expected the name of an attribute, without blanks")
    return stripped


def text_of_value(kind: str, name: str, value: Any) -> str:
    """The text that stands for a request's value. Raises BadRequest naming the attribute."""
    array = is_array(kind, name)
    if isinstance(value, list):
        parts = [_scalar(name, part).strip() for part in value]
        return ",".join(part for part in parts if part or not array)
    text = _scalar(name, value)
    return ",".join(elements(text)) if array else text


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _wrong(name, "expected a number")
        return repr(value).removesuffix(".0")
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise _wrong(name, "expected a text, a number, true, false or a list of them")
    return _clean(name, value)


def _clean(name: str, text: str) -> str:
    """One line that reads back as it is: line breaks become blanks, a bare ``;`` is escaped."""
    text = _BARE_SEMICOLON.sub(r"\\;", _BREAKS.sub(" ", text).strip(BLANKS))
    if any((ord(letter) < 32 and letter != "\t") or 127 <= ord(letter) < 160 for letter in text):
        raise _wrong(name, "expected a text without control characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _wrong(name, "expected a text that UTF-8 can write") from None
    return text


def _wrong(name: str, expected: str) -> BadRequest:
    shown = name.encode("utf-8", "replace").decode()[:_NAME_LIMIT]
    return BadRequest("bad request", f"{shown}: {expected}")
