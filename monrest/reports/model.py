"""The record of a report and what may be in one (docs/spec/reports.md, "Record"). Pure.

What is unknown here is kept and shown as it was given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from email.errors import MessageError
from functools import partial
from typing import Annotated, Any, Literal

from attrs import field, frozen
from sqlalchemy import BigInteger, Column, ForeignKey, LargeBinary, Table
from sqlalchemy import Text as TextColumn

from monrest.api.fields import CONTROL_BUT_LINES, Choice, Fields, Flag, Ruled, Text
from monrest.api.records import birth
from monrest.api.recurring import RecurringRow
from monrest.base import schedule
from monrest.base.errors import BadRequest
from monrest.base.values import ADMIN, Identity
from monrest.reports.settings import ReportSettings, completed, read
from monrest.reports.templates import TEMPLATE_NAME, ReportTemplate, Templates
from monrest.store.stored import INDEXED, KEY, Shown, StoredRow, stored
from monrest.store.tables import metadata

CANCEL, CONTINUE = "cancel", "continue"
ALL_USERS = "*"
_LONGEST_NAME, _LONGEST_TEXT = 300, 20_000
_MOST_ADDRESSES, _LONGEST_ADDRESS = 100, 254
_MOST_ENTRIES = 200


@stored("reports")
@frozen(kw_only=True)
class Report(RecurringRow):
    """``limit`` are the roles to which its owner was restricted when it was written.

    ``failure`` is what was wrong when it was made last, ``unsent`` when it was sent last. ``job``
    is the last job that made it, ``made`` when it was made.
    """

    schedule_field = "send_types"

    number: Annotated[int, KEY, Shown("its number", "number", name="nr")]
    limit: tuple[str, ...] | None = None
    failure: str | None = None
    unsent: str | None = None
    job: int | None = None
    made: float | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """A value that no other report ever has: numbers are used again."""
        return self.number, birth(self.version)

    @property
    def owner(self) -> str:
        return str(self.record.get("user") or "")

    @property
    def name(self) -> str:
        return str(self.record["name"])

    def template(self, templates: Templates) -> ReportTemplate:
        template = templates.get(str(self.record["template"]))
        if template is None:
            raise BadRequest("invalid report template", str(self.error(templates)))
        return template

    def error(self, templates: Templates) -> str | None:
        """The first line of what is wrong, None for nothing."""
        if self.record["template"] not in templates:
            return f"report template '{self.record['template']}' not available"
        text = self.failure or self.unsent
        return text.partition("\n")[0] if text else None

    def settings(self, templates: Templates) -> ReportSettings:
        """Its parameters; BadRequest where they cannot be what they are, or the template."""
        return read(self.template(templates), self.record["params"])

    def access(
        self, identity: Identity, groups: Collection[str], *, own: bool
    ) -> Literal["rw", "ro", ""]:
        """The right of a user in these contact groups.

        ``own``: the report is theirs, and made with no more roles than the request has.
        """
        if own or identity.may(ADMIN):
            return "rw"
        levels = {
            entry["perm"]
            for entry in self.record["permissions"]
            if _names_one(entry, identity.user, groups)
        }
        if self.record["is_public"]:
            levels.add("ro")
        return "rw" if "rw" in levels else "ro" if levels else ""


SCHEDULE, MAIL, QUEUE = "schedule", "mail", "queue"
"""Why a report is made: its time has come, or a user wants it to be mailed, or made."""

WAITING, MAILING, HANDING, DONE = "waiting", "mailing", "handing", "done"
"""Phases of a run: to be made, to be sent, being handed to a mail server, over."""


@stored("report_runs")
@frozen(kw_only=True)
class Run(StoredRow):
    """One time that a report is made, and sent unless its purpose is QUEUE.

    ``phase`` says how far it is, ``number`` is that of the duty of the daemon that works or worked
    at it. ``recipients`` have not got the ``message`` yet, which is kept until they have; ``again``
    is when the next try may begin.
    """

    report: Annotated[Report, KEY]
    at: Annotated[int, KEY]
    purpose: Annotated[str, KEY]
    open: Annotated[bool, INDEXED] = True
    phase: str = WAITING
    number: int = 0
    attempts: int = 0
    again: float = 0.0
    recipients: tuple[str, ...] = ()
    message: bytes | None = field(default=None, repr=False)
    error: str | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        return self.report.number, self.at, self.purpose


report_files = Table(
    "report_files",
    metadata,
    Column("report", BigInteger, ForeignKey("reports.number", ondelete="CASCADE"),
           primary_key=True),
    Column("format", TextColumn, primary_key=True),
    Column("name", TextColumn, nullable=False),
    Column("data", LargeBinary, nullable=False),
)  # fmt: skip
"""The last result of each report in its forms; ``name`` is what the report was called then."""


def _names_one(entry: Mapping[str, Any], user: str, groups: Collection[str]) -> bool:
    names = entry["name"]
    if ALL_USERS in names:
        return True
    return user in names if entry["type"] == "user" else any(group in names for group in groups)


def shown_permissions(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The permissions with the entry that ``is_public`` stands for."""
    permissions: list[dict[str, Any]] = list(record["permissions"])
    if record["is_public"] and not any(
        ALL_USERS in permission["name"] for permission in permissions
    ):
        permissions.append({"type": "user", "name": [ALL_USERS], "perm": "ro"})
    return permissions


def _wrong(name: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid {name}", f"{name}: expected {expected}")


def _template(value: Any, templates: Templates) -> ReportTemplate:
    if not isinstance(value, str) or not TEMPLATE_NAME.fullmatch(value) or value not in templates:
        names = ", ".join(sorted(templates))
        raise BadRequest("invalid report template", f"template: expected one of {names}")
    return templates[value]


def addresses(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _addresses(name: str, value: Any) -> str:
    """Mail addresses between commas, or a list of them, as a text."""
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    texts = [
        address
        for item in items
        for address in addresses(Text(name, "", longest=_LONGEST_TEXT).read(item))
    ]
    if len(texts) > _MOST_ADDRESSES:
        raise _wrong(name, f"at most {_MOST_ADDRESSES} addresses")
    for address in texts:
        if len(address) > _LONGEST_ADDRESS or not _is_address(address):
            raise _wrong(name, f"mail addresses, as user@example.org, got {address[:80]!r}")
    return ", ".join(dict.fromkeys(texts))


def _is_address(text: str) -> bool:
    if (
        not text.isascii()
        or not text.isprintable()
        or any(letter in text for letter in ' "<>();:\\[]')
    ):
        return False
    if "=?" in text:
        return False  # what mails take for an encoded word, which may mean anything
    from email.headerregistry import Address

    try:
        address = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError):
        return False
    return bool(address.username) and bool(address.domain)


def _permissions(value: Any) -> list[dict[str, Any]]:
    value = [] if value is None else value
    if not isinstance(value, list) or len(value) > _MOST_ENTRIES:
        raise _wrong("permissions", f"a list of at most {_MOST_ENTRIES} objects")
    permissions = []
    for at, entry in enumerate(value):
        where = f"permissions.{at}"
        if not isinstance(entry, dict):
            raise _wrong(where, 'an object as {"type": "user", "name": ["…"], "perm": "ro"}')
        if entry.get("type") not in ("user", "group"):
            raise _wrong(f"{where}.type", "user or group")
        if entry.get("perm") not in ("ro", "rw"):
            raise _wrong(f"{where}.perm", "ro or rw")
        names = entry.get("name")
        items = names.split(",") if isinstance(names, str) else names
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise _wrong(f"{where}.name", "a list of names")
        cleaned = [Text(f"{where}.name", "", longest=_LONGEST_NAME).read(item) for item in items]
        permissions.append({**entry, "name": [name for name in cleaned if name]})
    return permissions


def _params(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict | None):
        raise _wrong("params", "an object")
    return value or {}


FIELDS = Fields(
    (
        Ruled("params", "parameters of the template, an object, in a form as JSON (so are "
              "`send_types` and `permissions`)", type="object", rule=_params, nested=True,
              in_rows=Shown("parameters of the template, an object")),
        Ruled("permissions", "list of objects with `type` user or group, `name` a list of names "
              "(`*`: all users) and `perm` ro or rw", type="list", rule=_permissions, nested=True,
              most=f"{_MOST_ENTRIES} entries",
              in_rows=Shown("who else may read or change it, a list of objects")),
        Flag("is_public", "1: all users may read it"),
        Text("name", "name, default `New Report`", longest=_LONGEST_NAME, default="New Report",
             in_rows="name"),
        Text("desc", "description", longest=_LONGEST_TEXT, refused=CONTROL_BUT_LINES),
        Ruled("to", "mail addresses with commas", rule=partial(_addresses, "to"),
              most=f"{_MOST_ADDRESSES} addresses", in_rows="mail addresses that get it"),
        Ruled("cc", "mail addresses with commas", rule=partial(_addresses, "cc"),
              most=f"{_MOST_ADDRESSES} addresses", in_rows="mail addresses that get a copy"),
        Choice("failed_backends", "cancel (default): nothing is made while one of its sites does "
               "not answer; continue: without that site", (CANCEL, CONTINUE), default=CANCEL,
               expected=f"{CANCEL} or {CONTINUE}", in_rows=None),
        Ruled("send_types", "list of objects with `type` day, week, month, monthday or cust, and "
              "`minute`, `hour`, `week_day`, `day`, `month_day` or `cust`, as the schedule of "
              "recurring downtimes", type="list", nested=True,
              rule=partial(schedule.read, name="send_types"),
              most=f"{schedule.MOST_ENTRIES} entries",
              in_rows="when it is made and sent, a list of objects"),
    ),
    computed=frozenset(
        {"nr", "backend", "backends", "readonly", "failed", "error", "long_error", "var"}
    ),
)  # fmt: skip


def checked(
    given: Mapping[str, Any], templates: Templates, default_template: str = ""
) -> dict[str, Any]:
    """A whole record as it is stored, with defaults; BadRequest that names what is wrong."""
    record = FIELDS.record({"desc": "Description", **given})
    template = _template(record.get("template") or default_template, templates)
    for_all = any(ALL_USERS in permission["name"] for permission in record["permissions"])
    return {
        **record,
        "template": template.name,
        "params": completed(template, record["params"]),
        "is_public": int(record["is_public"] or for_all),
    }
