"""The record of a recurring downtime, and what may be in one (docs/spec/downtimes.md, "Record").

Pure. What is unknown here is kept and shown as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from monrest.base import schedule
from monrest.base.errors import BadRequest
from monrest.base.truth import truth
from monrest.commands import texts
from monrest.config.values import CommandsConfig
from monrest.livestatus.command import Target
from monrest.store.storable import require_storable

HOST, HOSTGROUP, SERVICE, SERVICEGROUP = "host", "hostgroup", "service", "servicegroup"
TARGETS = (HOST, HOSTGROUP, SERVICE, SERVICEGROUP)
_LISTS: Mapping[str, tuple[str, ...]] = {
    HOST: (HOST,),
    HOSTGROUP: (HOSTGROUP,),
    SERVICE: (HOST, SERVICE),
    SERVICEGROUP: (SERVICEGROUP,),
}
NOT_STORED = frozenset({"backend", "backends", "error", "file", "fixable", "id"})
"""What is known from elsewhere: whoever sends a record back need not take them out."""

_LINE_END = re.compile(r"\r\n|[\r\n\t]")
_MINUTE = 60
_MOST_MINUTES = 10 * 366 * 24 * 60
_MOST_NAMES = 1000
_MOST_PAIRS = 10_000
_LONGEST_NAME = 4096
_LONGEST_COMMENT = 4096
_LONGEST = 1_048_576
_MOST_DIGITS = 9
_DEFAULTS: Mapping[str, Any] = {
    "schedule": [],
    "duration": 120,
    "fixed": 1,
    "flex_range": 720,
    "childoptions": 0,
    "comment": "automatic downtime",
}


@frozen(kw_only=True)
class Downtime:
    """A stored one: ``sites`` are ids with the names they had, all that have the object if empty.

    ``error`` is what the last check found wrong, ``failure`` what the last time it came.
    """

    number: int
    record: Mapping[str, Any] = field(eq=False)
    sites: Mapping[str, str] = field(factory=dict, eq=False)
    error: str | None = None
    failure: str | None = None
    version: int = 0

    @property
    def problems(self) -> str | None:
        """All that is wrong, a line each; None for nothing."""
        return "\n".join(filter(None, (self.error, self.failure))) or None

    @property
    def target(self) -> str:
        """The type of its objects."""
        target: str = self.record["target"]
        return target

    @property
    def fixed(self) -> bool:
        """Whether it begins at its time, and not with the first problem after that."""
        return bool(self.record["fixed"])

    def until(self, at: int) -> int:
        """When the occurrence of ``at`` is over, or, if flexible, can begin no more."""
        minutes: int = self.record["duration" if self.fixed else "flex_range"]
        return at + minutes * _MINUTE

    def targets(self) -> list[Target]:
        """The objects, each host with each service."""
        return targets_of(self.record)

    def crons(self) -> list[str]:
        """The expressions of its schedule."""
        return schedule.expressions(self.record["schedule"])


def targets_of(record: Mapping[str, Any]) -> list[Target]:
    """The objects of a checked record."""
    kind = record["target"]
    if kind == SERVICE:
        return [
            Target("services", host, service)
            for host in record[HOST]
            for service in record[SERVICE]
        ]
    return [Target(f"{kind}s", name) for name in record[kind]]


def checked(given: Mapping[str, Any], config: CommandsConfig) -> dict[str, Any]:
    """A whole record as it is stored, with defaults for what was left out.

    BadRequest that names the field and what was expected.
    """
    given = {key: value for key, value in given.items() if key not in NOT_STORED}
    record = {**given, **{key: _DEFAULTS[key] for key in _DEFAULTS if given.get(key) is None}}
    for kind in TARGETS:
        record[kind] = _names(kind, given.get(kind))
    record["target"] = _target(given.get("target"), record)
    for kind in _LISTS[record["target"]]:
        if not record[kind]:
            raise BadRequest(
                f"missing argument: {kind}",
                f"{kind}: expected at least one name, because target is {record['target']}",
            )
    if len(record[HOST]) * len(record[SERVICE]) > _MOST_PAIRS:
        raise BadRequest(
            "too many objects", f"host, service: expected at most {_MOST_PAIRS} pairs of them"
        )
    record["schedule"] = schedule.read(record["schedule"])
    for key in ("duration", "flex_range"):
        record[key] = _number(key, record[key], 1, _MOST_MINUTES)
        if 0 < config.downtime_max_duration < record[key] * _MINUTE:
            raise BadRequest(
                "downtime is too long",
                f"{key}: expected at most {int(config.downtime_max_duration) // _MINUTE} minutes "
                "(commands.downtime_max_duration)",
            )
    record["fixed"] = _number("fixed", record["fixed"], 0, 1)
    record["childoptions"] = _number("childoptions", record["childoptions"], 0, 2)
    record["comment"] = _comment(record["comment"])
    require_storable(record, _LONGEST)
    return record


def _target(value: Any, record: Mapping[str, Any]) -> str:
    """The type that was given, else the first for which there are names."""
    if value is None or value == "":
        named = (kind for kind in (SERVICE, HOST, HOSTGROUP, SERVICEGROUP) if record[kind])
        return next(named, SERVICE)
    if value not in TARGETS:
        raise BadRequest("invalid target", f"target: expected one of {', '.join(TARGETS)}")
    return str(value)


def _names(kind: str, value: Any) -> list[str]:
    """A list of names, or a text with commas, as a sorted list."""
    if value is None:
        return []
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        raise BadRequest(f"invalid {kind}", f"{kind}: expected a list of names")
    found: set[str] = set()
    for item in items:
        if item is None:
            continue
        if isinstance(item, bool) or not isinstance(item, (str, int)):
            raise BadRequest(f"invalid {kind}", f"{kind}: expected a list of names")
        name = str(item).strip()
        if len(name) > _LONGEST_NAME:
            raise BadRequest(
                f"invalid {kind}", f"{kind}: expected names of at most {_LONGEST_NAME} characters"
            )
        texts.check(kind, name)
        texts.no_semicolon(kind, name)
        found.add(name)
    found.discard("")
    if len(found) > _MOST_NAMES:
        raise BadRequest(f"invalid {kind}", f"{kind}: expected at most {_MOST_NAMES} names")
    return sorted(found)


def _number(key: str, value: Any, least: int, most: int) -> int:
    number: int | None = None
    if isinstance(value, str):
        text = value.strip().lower()
        if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
            number = int(text)
        elif most <= len(TARGETS):
            number = truth(text)  # a boolean is 0 or 1
    elif isinstance(value, (bool, int)) or (isinstance(value, float) and value.is_integer()):
        number = int(value)
    if number is None or not least <= number <= most:
        raise BadRequest(f"invalid {key}", f"{key}: expected a number from {least} to {most}")
    return number


def _comment(value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequest("invalid comment", "comment: expected a text")
    text = _LINE_END.sub(" ", value).strip()
    texts.check("comment", text)
    if len(text) > _LONGEST_COMMENT:
        raise BadRequest(
            "invalid comment", f"comment: expected at most {_LONGEST_COMMENT} characters"
        )
    return text or str(_DEFAULTS["comment"])
