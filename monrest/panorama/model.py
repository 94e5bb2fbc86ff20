"""The record of a dashboard: what may be in one, who may do what with it. Pure.

Rules: docs/spec/panorama.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import IntEnum
from functools import partial
from typing import Annotated, Any

import orjson
from attrs import field, frozen
from sqlalchemy import BigInteger, Column, ForeignKey, Table
from sqlalchemy import Text as TextColumn

from monrest.api.fields import (
    AS_IT_IS,
    NUL,
    Choice,
    Field,
    Fields,
    Number,
    ParameterType,
    Reading,
    Text,
)
from monrest.base.errors import BadRequest
from monrest.base.truth import flag
from monrest.store.documents import require_storable
from monrest.store.stored import KEY, NOT_STORED, WHOLE, StoredRow, stored
from monrest.store.tables import DOCUMENT, metadata

FILE_VERSION = 2
NEW_TITLE = "Dashboard"
COMPUTED = frozenset(
    {"file", "id", "maintenance", "nr", "objects", "readonly", "scripted", "ts"}
)  # fmt: skip
"""Keys that are not stored: a client that sends a record back need not remove them."""

RUNTIME = frozenset(
    {"currentPage", "pageSize", "state", "stateDetails", "stateHist", "totalCount"}
)  # fmt: skip
"""The present state of a panel; stored for each user and not with the dashboard."""

_IN_TAB = ("file", "owner")
"""Computed keys inside of the settings."""

free_text = partial(
    Text,
    refused=NUL,
    stripped=False,
    expected=("a text of at most {longest} characters",) * 3,
)

_PANEL = re.compile(r"(?:.*_)?panlet_([0-9]{1,9})", re.DOTALL)
_NR = re.compile(r"[0-9A-Za-z_-]{1,100}")
_LEVELS = ("read-only", "read-write")
_LONGEST_RECORD = 1_048_576
_short_text = partial(free_text, longest=10_000, title="invalid dashboard")
USER = _short_text("user", "owner, if an administrator asks")
VERSION = Number(
    "file_version",
    "1 for records of an older form",
    least=1,
    most=FILE_VERSION,
    default=FILE_VERSION,
    expected="1 or 2",
)
_MOST_NAMES = 1000
_MOST_DIGITS = 15
"""A longer number is shown as a text, because clients would lose its last digits."""


@frozen(kw_only=True)
class Refresh(Field):
    """A number of seconds, which forms send as text; a negative one or nothing switches it off."""

    type: ParameterType = "integer"
    limit = "9 digits"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise self.wrong(at, "a number of seconds")
        if _REFRESH.fullmatch(str(value)) is None:
            raise self.wrong(at, "a number of seconds")
        return value


@frozen(kw_only=True)
class SiteIds(Field):
    """Ids of sites; other front ends store each with its name, as ``{"id": "name"}``."""

    type: ParameterType = "list"
    limit = f"{_MOST_NAMES} sites"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> list[str]:
        ids: list[str] = []
        for item in value if isinstance(value, list) else [None]:
            names: list[Any] = [item]
            if isinstance(item, dict) and _are_texts(list(item.values())):
                names = list(item)
            ids += names
            if not names or not _are_texts(names) or len(ids) > _MOST_NAMES:
                raise self.wrong(at, 'a list of site ids, or of {"<id>": "<name>"}')
        return ids


def _are_texts(value: list[Any]) -> bool:
    return all(isinstance(item, str) for item in value)


@frozen(kw_only=True)
class Rights(Field):
    """The permissions, as objects of ``{name: read-only or read-write}``."""

    type: ParameterType = "list"
    limit = f"{_MOST_NAMES} entries"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> list[dict[str, str]]:
        """Return the entries that say something."""
        value = [] if value is None else value
        if (
            not isinstance(value, list)
            or len(value) > _MOST_NAMES
            or not all(
                isinstance(entry, dict) and all(right in _LEVELS for right in entry.values())
                for entry in value
            )
        ):
            raise self.wrong(at, 'a list of {"<name>": "read-only" or "read-write"}')
        return [dict(entry) for entry in value if entry]


SETTINGS = Fields(
    (
        _short_text("title", "its name"),
        Refresh("refresh", "seconds"),
        SiteIds("backends", "sites"),
        _short_text("background", "picture behind the panels"),
        _short_text("defaulticonset", "icons of panels that have none"),
        Choice("state_type", "which states count", ("soft", "hard"), "soft", "soft or hard"),
        Rights("groups", "contact groups with their rights; `*` is all users"),
        Rights("users", "users with theirs"),
    )
)
"""The settings of a dashboard that are looked at, in the ``xdata`` of its ``tab``."""

_ALWAYS = frozenset({"state_type", "groups", "users"})
_SETTING = Reading("tab.xdata.")
_REFRESH = re.compile(r"-?[0-9]{0,9}")


class Level(IntEnum):
    """The right of a user on a dashboard; each level includes the ones before."""

    NONE = 0
    READ = 1
    WRITE = 2
    OWNER = 3


@stored("dashboards")
@frozen(kw_only=True)
class Dashboard(StoredRow):
    """``record`` has ``user``, ``tab`` and a ``panlet_<nr>`` for each panel.

    ``changed`` is the Unix time of the last change. A ``script`` is the file that makes it.
    """

    nr: Annotated[str, KEY]
    record: Mapping[str, Any] = field(eq=False)
    changed: Annotated[float, WHOLE] = 0
    version: int = 0
    script: Annotated[str, NOT_STORED] = ""

    @property
    def file(self) -> str:
        """The place of the dashboard: its script, or the table and the record."""
        return self.script or f"{self.table.name}/{self.nr}"

    @property
    def scripted(self) -> bool:
        return bool(self.script)

    @property
    def title(self) -> str:
        return str(self.record["tab"]["xdata"].get("title") or "")

    @property
    def panels(self) -> int:
        return sum(key.startswith("panlet_") for key in self.record)


dashboard_backups = Table(
    "dashboard_backups",
    metadata,
    Column("nr", TextColumn, ForeignKey("dashboards.nr", ondelete="CASCADE"), primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("record", DOCUMENT, nullable=False),
)
"""Some of the records that a dashboard had before, by the time until which each was in force."""


dashboard_runtime = Table(
    "dashboard_runtime",
    metadata,
    Column("nr", TextColumn, ForeignKey("dashboards.nr", ondelete="CASCADE"), primary_key=True),
    Column("username", TextColumn, primary_key=True),
    Column("data", DOCUMENT, nullable=False),
)
"""The present states of a dashboard's panels; administrators share the row of no user."""


dashboard_maintenance = Table(
    "dashboard_maintenance",
    metadata,
    Column("nr", TextColumn, primary_key=True),
    Column("text", TextColumn, nullable=False),
)
"""Dashboards in maintenance, scripted ones as well, and what is shown instead of their panels."""


def is_nr(text: str) -> bool:
    return _NR.fullmatch(text) is not None


def level(
    record: Mapping[str, Any],
    user: str,
    groups: Collection[str],
    *,
    admin: bool,
    readonly: bool,
) -> Level:
    """The right of ``user``. ``readonly``: owners may only read."""
    if admin:
        return Level.OWNER
    if user and record["user"] == user:
        return Level.READ if readonly else Level.OWNER
    settings = record["tab"]["xdata"]
    highest = Level.NONE
    for entry in settings.get("groups") or ():
        for name, right in entry.items():
            if name == "*" or name in groups:
                highest = max(highest, _level_of(right))
    for entry in settings.get("users") or ():
        if user and user != "*" and user in entry:
            highest = _level_of(entry[user])
    return min(highest, Level.READ) if readonly else highest


def _level_of(right: str) -> Level:
    return Level.WRITE if right == "read-write" else Level.READ


def checked(given: Mapping[str, Any], user: str) -> dict[str, Any]:
    """A whole record as it is stored, with defaults; what is shown at present stays inside.

    ``user`` owns it unless it says otherwise. Older forms become the present one. BadRequest
    that names the field.
    """
    # Read again: a copy of Python's own takes ten times as long, and the reactor waits for it.
    fields: dict[str, Any] = orjson.loads(require_storable(dict(given), _LONGEST_RECORD))
    version = VERSION.read(fields.pop(VERSION.name, None))
    public = fields.pop("public", None)
    record: dict[str, Any] = {
        "user": USER.read(fields.pop("user", None) or user),
        "tab": _settings(fields.pop("tab", None), public=public),
    }
    for key, value in fields.items():
        if key in COMPUTED:
            continue
        match = _PANEL.fullmatch(key)
        if match is None:
            raise BadRequest(
                "invalid dashboard", f"{key[:80]!r}: expected tab, user and panlet_<number>"
            )
        name = f"panlet_{int(match[1])}"
        if name in record:
            raise BadRequest("invalid dashboard", f"{name}: expected only one of this number")
        record[name] = _panel(key, value, old=version < FILE_VERSION)
    return record


def _settings(tab: Any, *, public: Any) -> dict[str, Any]:
    tab = {} if tab is None else tab
    if not isinstance(tab, dict) or not isinstance(tab.setdefault("xdata", {}), dict):
        raise BadRequest("invalid tab", "tab: expected an object with an object xdata")
    settings = tab["xdata"]
    for name in _IN_TAB:
        settings.pop(name, None)
    settings.setdefault("title", NEW_TITLE)
    for declared in SETTINGS.declared:
        if declared.name in _ALWAYS or settings.get(declared.name) is not None:
            settings[declared.name] = declared.read(settings.get(declared.name), _SETTING)
    shared = [flag("public", sent) for sent in (settings.pop("public", None), public)]
    if any(shared):
        names = {name for entry in settings["groups"] for name in entry}
        if "*" not in names:
            settings["groups"].append({"*": "read-only"})
    return tab


def _panel(name: str, value: Any, *, old: bool) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.setdefault("xdata", {}), dict):
        raise BadRequest("invalid panel", f"{name[:80]}: expected an object with an object xdata")
    inner = value["xdata"]
    if inner.get("cls") is not None:
        inner["cls"] = _short_text(f"{name[:80]}.xdata.cls", "").read(inner["cls"])
    for part in ("general", "appearance", "label", "layout", "link", "popup", "map"):
        if inner.get(part) is not None and not isinstance(inner[part], (dict, list)):
            raise BadRequest("invalid panel", f"{name[:80]}.xdata.{part}: expected an object")
    label = inner.get("label")
    if old and isinstance(label, dict):
        x, y = label.pop("offsetx", None), label.pop("offsety", None)
        label.update({k: v for k, v in (("offsetx", y), ("offsety", x)) if v is not None})
    return value


def parted(record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A checked record, and what its panels show at present, by panel."""
    kept, present = dict(record), {}
    for name, panel in record.items():
        if not name.startswith("panlet_"):
            continue
        inner = panel["xdata"]
        now = {key: value for key, value in inner.items() if key in RUNTIME}
        if now:
            present[name] = now
            rest = {key: value for key, value in inner.items() if key not in RUNTIME}
            kept[name] = {**panel, "xdata": rest}
    return kept, present


def shared(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the same people have the same rights in both."""
    return before["user"] == after["user"] and all(
        before["tab"]["xdata"].get(name) == after["tab"]["xdata"].get(name)
        for name in ("groups", "users")
    )


def dashboard_record(
    dashboard: Dashboard,
    may: Level,
    present: Mapping[str, Any],
    maintenance: str | None,
) -> dict[str, Any]:
    """The row of a dashboard for a user with these rights."""
    record, nr = dashboard.record, dashboard.nr
    is_number = nr.isascii() and nr.isdigit() and len(nr) <= _MOST_DIGITS
    row: dict[str, Any] = {}
    for name, panel in record.items():
        if name.startswith("panlet_"):
            now = present.get(name)
            row[name] = {**panel, "xdata": {**panel["xdata"], **now}} if now else panel
    tab = record["tab"]
    computed = {"file": dashboard.file, "owner": record["user"]}
    row |= {
        "file": dashboard.file,
        "file_version": FILE_VERSION,
        "id": f"pantab_{nr}",
        "nr": int(nr) if is_number else nr,
        "objects": dashboard.panels,
        "readonly": int(dashboard.scripted or may < Level.WRITE),
        "scripted": int(dashboard.scripted),
        "tab": {**tab, "xdata": {**tab["xdata"], **computed}},
        "ts": dashboard.changed,
        "user": record["user"],
    }
    if maintenance is not None:
        row["maintenance"] = maintenance
    return row
