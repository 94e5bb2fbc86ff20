"""The text of the file with the objects of all processes (frontend-data.md, section 2.10); pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from monrest.bp.export import CoreObject
from monrest.objectconfig.document import ConfigFile

NAGIOS, ICINGA2 = FORMATS = ("nagios", "icinga2")

_HEADER = (
    "mon: readonly",
    "Written by monrest from its business processes, and again whenever one of them changes.",
)
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?\Z")
_LISTS = {"contacts": "contacts", "contact_groups": "contact_groups"}
_TEXTS = {"notification_period": "notification_period"}
"""What Icinga 2 has no attributes for: custom variables, for its rules of notifications."""


def text(objects: Iterable[CoreObject], form: str) -> bytes:
    """Give the content of the file. Raises UnwritableError for what no file can say."""
    return _icinga2(objects) if form == ICINGA2 else _nagios(objects)


def _nagios(objects: Iterable[CoreObject]) -> bytes:
    header = "".join(f"# {line}\n" for line in _HEADER)
    file = ConfigFile(path="", trailer=f"{header}\n")
    for one in objects:
        file.add(one.type, one.attributes)
    return file.data()


def _icinga2(objects: Iterable[CoreObject]) -> bytes:
    lines = [f"// {line}" for line in _HEADER]
    for one in objects:
        lines += ["", *_object(one.type, one.attributes)]
    return ("\n".join(lines) + "\n").encode()


def _object(kind: str, attributes: Mapping[str, str]) -> Iterator[str]:
    name = attributes["host_name" if kind == "host" else "service_description"]
    yield f"object {kind.capitalize()} {_quoted(name)} {{"
    for template in filter(None, map(str.strip, attributes.get("use", "").split(","))):
        yield f"  import {_quoted(template)}"
    for key, value in attributes.items():
        if key == "host_name":
            if kind == "service":
                yield f"  host_name = {_quoted(value)}"
        elif key not in ("use", "service_description", "alias"):
            yield f"  {_attribute(key, value)}"
    yield "}"


def _attribute(key: str, value: str) -> str:
    if key.startswith("_"):
        return f"vars[{_quoted(key[1:])}] = {_quoted(value)}"
    if key in _LISTS:
        members = ", ".join(_quoted(one) for one in value.split(",") if one)
        return f'vars["{_LISTS[key]}"] = [ {members} ]'
    if key in _TEXTS:
        return f'vars["{_TEXTS[key]}"] = {_quoted(value)}'
    if key == "event_handler":
        return f"event_command = {_quoted(value)}"
    if _NUMBER.match(value):
        return f"{key} = {value}{'m' if key.endswith('_interval') else ''}"
    return f"{key} = {_quoted(value)}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
