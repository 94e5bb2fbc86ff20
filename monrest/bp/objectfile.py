"""The text of the file with the objects of all processes (docs/spec/bp.md, "Export"); pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from monrest.bp.export import CoreObject
from monrest.objectconfig.block import Block

NAGIOS, ICINGA2 = FORMATS = ("nagios", "icinga2")

_HEADER = (
    "mon: readonly",
    "Written by monrest from its business processes, and again whenever one of them changes.",
)
_OWNER = re.compile(
    r"""^ +(?:vars\["[A-Z]\w*_BP_ID"\] = "|_[A-Z]\w*_BP_ID +)(\d+)"?$""", re.MULTILINE
)
_KIND = re.compile(r'(?:define|object) (\w+) (?:"(.*)")?')
_HOST = re.compile(r'^  host_name(?: = "| +)(.*?)"?$', re.MULTILINE)
_SERVICE = re.compile(r"^  service_description +(.*)$", re.MULTILINE)
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?\Z")
_LISTS = {"contacts": "contacts", "contact_groups": "contact_groups"}
_TEXTS = {"notification_period": "notification_period"}
"""What Icinga 2 has no attributes for: custom variables, for its rules of notifications."""


def block(one: CoreObject, form: str) -> str:
    """Give the text of one object. Raises UnwritableError for what no file can say."""
    if form == ICINGA2:
        return "\n".join(_object(one.type, one.attributes))
    return Block.new(one.type, one.attributes, "", "\n").text.strip()


def joined(blocks: Iterable[str], form: str) -> bytes:
    """Give the content of the file: hosts by name, then services by host and name."""
    mark = "//" if form == ICINGA2 else "#"
    header = "".join(f"{mark} {line}\n" for line in _HEADER)
    return "".join([header, *(f"\n{one}\n" for one in sorted(blocks, key=_place))]).encode()


def _place(text: str) -> tuple[str, ...]:
    """Where an object stands in the file."""
    kind, host, service = (pattern.search(text) for pattern in (_KIND, _HOST, _SERVICE))
    word, named = (kind[1].lower(), kind[2] or "") if kind else ("", "")
    return word, host[1] if host else named, service[1] if service else named


def split(content: bytes | None) -> list[tuple[str, str]]:
    """Give the objects of a file that ``joined`` made, each with the number of its process."""
    found = []
    for one in (content or b"").decode("utf-8", "replace").split("\n\n"):
        number = _OWNER.search(one)
        if number is not None:
            found.append((number[1] or number[2], one.strip("\n")))
    return found


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
