"""The record of a broadcast: its fields, its readers, the time in which it is shown. Pure.

Unknown fields are kept and shown as they were sent.

Rules: docs/spec/broadcasts.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime, tzinfo
from functools import partial
from typing import Annotated, Any

from attrs import field, frozen

from monrest.api.fields import DATE, NUL, Choice, Date, Fields, Flag, NameList, Text
from monrest.base.errors import BadRequest
from monrest.broadcasts import markdown
from monrest.query.functions import Moment
from monrest.store.stored import KEY, Shown, StoredRow, stored

OF_AUTHOR = ("author", "authoremail")

_FILE = re.compile(r"([0-9A-Za-z_-]{1,100})(?:\.json)?")
_NOT_IN_FILE = re.compile(r"[^0-9A-Za-z_-]")
_CLOCK = "%H:%M:%S"


@stored("broadcasts")
@frozen(kw_only=True)
class Broadcast(StoredRow):
    """``file`` is without ``.json``, ``changed`` the Unix time of the last change."""

    file: Annotated[str, KEY, Shown("its name")]
    record: Mapping[str, Any] = field(eq=False)
    changed: int = 0
    version: int = 0

    def visible_to(self, user: str, groups: Collection[str]) -> bool:
        """Whether a user without the role sees it."""
        contacts, contactgroups = (self.record[name] for name in ("contacts", "contactgroups"))
        members = {name for name in contactgroups if not name.startswith("!")}
        persons = {name for name in contacts if not name.startswith("!")}
        if (members or persons) and user not in persons and members.isdisjoint(groups):
            return False
        if f"!{user}" in contacts:
            return False
        return {name[1:] for name in contactgroups if name.startswith("!")}.isdisjoint(groups)

    def active(self, now: float, zone: tzinfo) -> bool:
        """Whether it is shown at ``now``: it is no template, has begun and has not expired."""
        begins, ends = self.moment("hide_before", zone), self.moment("expires", zone)
        return not self.record["template"] and begins <= now and (ends == 0 or now <= ends)

    def moment(self, name: str, zone: tzinfo) -> int:
        """The time of ``expires`` or ``hide_before``, 0 for none."""
        text = self.record[name]
        return int(datetime.strptime(text, DATE).replace(tzinfo=zone).timestamp()) if text else 0


def file_name(text: str) -> str:
    """The name of a file without ``.json``; BadRequest for an invalid one."""
    match = _FILE.fullmatch(text)
    if match is None:
        raise BadRequest(
            "invalid file name",
            "file: expected up to 100 letters, digits, _ and -, with .json behind or without",
        )
    return match[1]


def default_file_name(user: str, now: float, zone: tzinfo) -> str:
    """The name of the file of a broadcast that was sent without one."""
    day = datetime.fromtimestamp(now, zone)
    return f"{day:%Y-%m-%d}-{_NOT_IN_FILE.sub('_', user)[:80] or 'admin'}"


def _signed(item: Any) -> list[str] | None:
    """Names between commas; ``!`` in front stays, spaces after it go."""
    if not isinstance(item, str):
        return None
    names = [name.strip() for name in item.split(",")]
    signed = [f"!{name[1:].strip()}" if name[:1] == "!" else name for name in names]
    return [name for name in signed if name != "!"]


_ANY_TEXT = ("a text of at most {longest} characters, none of them U+0000",) * 3
_Text = partial(Text, refused=NUL, stripped=False, expected=_ANY_TEXT)

FIELDS = Fields(
    (
        _Text("name", "title", longest=1000),
        _Text("text", "Markdown, also with HTML; front matter between two lines `---` with a "
              "`key: value` each; `{{key}}` is replaced", longest=markdown.LONGEST_TEXT,
              needed="the message of the broadcast",
              in_rows="the text without front matter, macros replaced"),
        Choice("annotation", "its icon", ("info", "warning"),
               expected="info, warning or nothing", in_rows="its icon: info, warning or none"),
        NameList("contacts", "users that see it, a list or with commas, `!` in front for those "
                 "who do not; none: all users", most=1000, item=_signed,
                 in_rows="users that see it; ! in front: do not"),
        NameList("contactgroups", "contact groups, in the same way", most=1000, item=_signed,
                 in_rows="groups that see it; ! in front: do not"),
        Date("expires", "date, or a time such as `+7d`",
             in_rows="date from which it is not shown any more"),
        Date("hide_before", "date, or a time such as `tomorrow`",
             in_rows="date from which it is shown"),
        Flag("loginpage", "1: show it before the login", in_rows="1: shown before the login, too"),
        Flag("panorama", "1: show it on dashboards", in_rows="1: shown on dashboards, too"),
        Flag("template", "1: never show it",
             in_rows="1: only a pattern for others, never shown"),
    ),
    computed=frozenset(
        {"active", "author", "authoremail", "expires_ts", "file", "frontmatter",
         "hide_before_ts", "html", "macros", "raw_text"}
    ),
)  # fmt: skip


def checked(given: Mapping[str, Any], now: float, zone: tzinfo) -> dict[str, Any]:
    """A whole record as it is stored; relative dates are those at ``now``."""
    record = FIELDS.record(given, Moment(now=now, zone=zone))
    if not markdown.parted(record["text"])[1]:
        raise BadRequest("missing text", "text: expected a message below the front matter")
    return record


def broadcast_record(broadcast: Broadcast, now: float, zone: tzinfo) -> dict[str, Any]:
    """One broadcast as it is shown, without ``html``."""
    stored = broadcast.record
    front, text = markdown.parted(stored["text"])
    author, email = stored.get("author") or "none", stored.get("authoremail") or "none"
    macros = {
        "date": _shown_time(broadcast.changed, now, zone),
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
        "text": markdown.expanded(text, macros),
    }


def _shown_time(moment: int, now: float, zone: tzinfo) -> str:
    """A time of today without the day."""
    then = datetime.fromtimestamp(moment, zone)
    today = datetime.fromtimestamp(now, zone).date()
    return then.strftime(_CLOCK if then.date() == today else DATE)
