"""The record of a broadcast: what may be in one, who sees it, when it is shown. Pure.

What is unknown here is kept and shown as it was given.

Rules: docs/spec/broadcasts.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime, tzinfo
from typing import Any

from attrs import field, frozen

from monrest.base.errors import BadRequest
from monrest.base.truth import flag
from monrest.broadcasts import texts
from monrest.query.times import parse_time
from monrest.store.storable import require_storable

ANNOTATIONS = ("", "info", "warning")
COMPUTED = frozenset(
    {"active", "expires_ts", "file", "frontmatter", "hide_before_ts", "html", "macros", "raw_text"}
)
"""What is not stored: whoever sends a record back need not take it out."""

OF_AUTHOR = frozenset({"author", "authoremail"})

_FLAGS = ("loginpage", "panorama", "template")
_LISTS = ("contacts", "contactgroups")
_DATES = ("expires", "hide_before")
_FILE = re.compile(r"([0-9A-Za-z_-]{1,100})(?:\.json)?")
_NOT_IN_FILE = re.compile(r"[^0-9A-Za-z_-]")
_DATE = "%Y-%m-%d %H:%M:%S"
_CLOCK = "%H:%M:%S"
_LATEST = 253402128000  # two days before the year 10000, in any zone
_MOST_NAMES = 1000
_LONGEST_NAME = 1000
_LONGEST = 1_048_576


@frozen(kw_only=True)
class Broadcast:
    """A stored one; ``file`` is without ``.json``, ``changed`` the Unix time of its last change."""

    file: str
    record: Mapping[str, Any] = field(eq=False)
    changed: int = 0
    version: int = 0

    def visible_to(self, user: str, groups: Collection[str]) -> bool:
        """Whether somebody without the role sees it."""
        contacts, contactgroups = (self.record[name] for name in _LISTS)
        members = {name for name in contactgroups if not name.startswith("!")}
        persons = {name for name in contacts if not name.startswith("!")}
        if (members or persons) and user not in persons and members.isdisjoint(groups):
            return False
        if f"!{user}" in contacts:
            return False
        return {name[1:] for name in contactgroups if name.startswith("!")}.isdisjoint(groups)

    def active(self, now: float, zone: tzinfo) -> bool:
        """Whether it is to be shown now: it is no template, has begun and has not expired."""
        begins, ends = self.moment("hide_before", zone), self.moment("expires", zone)
        return not self.record["template"] and begins <= now and (ends == 0 or now <= ends)

    def moment(self, name: str, zone: tzinfo) -> int:
        """The time of ``expires`` or ``hide_before``, 0 for none."""
        text = self.record[name]
        return int(datetime.strptime(text, _DATE).replace(tzinfo=zone).timestamp()) if text else 0


def file_name(text: str) -> str:
    """The name of a file without ``.json``; BadRequest for one that is none."""
    match = _FILE.fullmatch(text)
    if match is None:
        raise BadRequest(
            "invalid file name",
            "file: expected up to 100 letters, digits, _ and -, with .json behind or without",
        )
    return match[1]


def usual_name(user: str, now: float, zone: tzinfo) -> str:
    """How the file of somebody's broadcast is called if he does not say."""
    day = datetime.fromtimestamp(now, zone)
    return f"{day:%Y-%m-%d}-{_NOT_IN_FILE.sub('_', user)[:80] or 'admin'}"


def checked(given: Mapping[str, Any], now: float, zone: tzinfo) -> dict[str, Any]:
    """A whole record as it is stored, with defaults for what was left out.

    Dates become what they mean at ``now``. BadRequest that names the field.
    """
    record = {key: value for key, value in given.items() if key not in COMPUTED | OF_AUTHOR}
    record["name"] = _text("name", given.get("name"), _LONGEST_NAME)
    record["text"] = _text("text", given.get("text"), texts.LONGEST)
    if not record["text"].strip():
        raise BadRequest("missing text", "text: expected the message of the broadcast")
    record["annotation"] = _text("annotation", given.get("annotation"), _LONGEST_NAME)
    if record["annotation"] not in ANNOTATIONS:
        raise BadRequest("invalid annotation", "annotation: expected info, warning or nothing")
    for name in _LISTS:
        record[name] = _names(name, given.get(name))
    for name in _DATES:
        record[name] = _date(name, given.get(name), now, zone)
    for name in _FLAGS:
        record[name] = int(flag(name, given.get(name)))
    require_storable(record, _LONGEST)
    return record


def _text(name: str, value: Any, longest: int) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > longest or "\0" in value:
        raise BadRequest(
            f"invalid {name}",
            f"{name}: expected a text of at most {longest} characters, none of them U+0000",
        )
    return value


def _names(name: str, value: Any) -> list[str]:
    """A list of names, or a text with commas; ``!`` in front stays."""
    items = value.split(",") if isinstance(value, str) else [] if value is None else value
    if not isinstance(items, list) or len(items) > _MOST_NAMES:
        raise BadRequest(f"invalid {name}", f"{name}: expected a list of names")
    found: dict[str, None] = {}
    for item in items:
        if not isinstance(item, str):
            raise BadRequest(f"invalid {name}", f"{name}: expected a list of names")
        for part in item.split(","):
            sign, rest = ("!", part.strip()[1:].strip()) if part.strip()[:1] == "!" else ("", part)
            if rest.strip():
                found[sign + rest.strip()] = None
    return list(found)


def _date(name: str, value: Any, now: float, zone: tzinfo) -> str:
    if value is None or value == "":
        return ""
    moment = None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        moment = parse_time(str(value), now, zone)
    if moment is None or not 0 <= moment <= _LATEST:
        raise BadRequest(
            f"invalid {name}",
            f"{name}: expected YYYY-MM-DD HH:MM:SS, YYYY-MM-DD HH:MM, or a time such as +7d",
        )
    return datetime.fromtimestamp(int(moment), zone).strftime(_DATE)


def shown(broadcast: Broadcast, now: float, zone: tzinfo) -> dict[str, Any]:
    """One broadcast as it is shown, without ``html``."""
    stored = broadcast.record
    front, text = texts.parted(stored["text"])
    author, email = stored.get("author") or "none", stored.get("authoremail") or "none"
    macros = {
        "date": _spelled(broadcast.changed, now, zone),
        "contact": author,
        "contactemail": email,
        "theme": "",
        "name": stored["name"],
        "title": stored["name"],
        **front,
    }
    return {
        **stored,
        "active": int(broadcast.active(now, zone)),
        "author": author,
        "authoremail": email,
        "expires_ts": broadcast.moment("expires", zone),
        "file": broadcast.file,
        "frontmatter": front,
        "hide_before_ts": broadcast.moment("hide_before", zone),
        "macros": macros,
        "raw_text": stored["text"],
        "text": texts.expanded(text, macros),
    }


def _spelled(moment: int, now: float, zone: tzinfo) -> str:
    """A time of today without the day."""
    then = datetime.fromtimestamp(moment, zone)
    today = datetime.fromtimestamp(now, zone).date()
    return then.strftime(_CLOCK if then.date() == today else _DATE)
