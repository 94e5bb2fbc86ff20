"""The record of a report and what may be in one (docs/spec/reports.md, "Record"). Pure.

What is unknown here is kept and shown as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from email.errors import MessageError
from email.headerregistry import Address
from typing import Any, Literal

import orjson
from attrs import field, frozen

from monrest.base import schedule
from monrest.base.errors import BadRequest
from monrest.base.truth import flag
from monrest.base.values import ADMIN, Identity
from monrest.reports.settings import ReportSettings, completed, read
from monrest.reports.templates import TEMPLATE_NAME, ReportTemplate, Templates
from monrest.store.storable import require_storable

NOT_STORED = frozenset(
    {"nr", "backend", "backends", "readonly", "failed", "error", "long_error", "var"}
)
"""What is known from elsewhere: whoever sends a record back need not take them out."""

CANCEL, CONTINUE = "cancel", "continue"
EVERYBODY = "*"
_LONGEST_NAME, _LONGEST_TEXT, _LONGEST = 300, 20_000, 1_048_576
_MOST_ADDRESSES, _LONGEST_ADDRESS = 100, 254
_MOST_ENTRIES = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@frozen(kw_only=True)
class Report:
    """A stored one. ``sites`` are ids with the names they had, all of them if empty.

    ``limit`` are the roles to which its owner was restricted when he wrote it. ``failure`` is what
    was wrong when it was made last, ``unsent`` when it was sent last. ``job`` is the last job that
    made it, ``made`` when it was made.
    """

    number: int
    record: Mapping[str, Any] = field(eq=False)
    sites: Mapping[str, str] = field(factory=dict, eq=False)
    limit: tuple[str, ...] | None = None
    failure: str | None = None
    unsent: str | None = None
    job: int | None = None
    made: float | None = None
    version: int = 0

    @property
    def owner(self) -> str:
        """Whose it is."""
        return str(self.record.get("user") or "")

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.record["name"])

    def template(self, templates: Templates) -> ReportTemplate:
        """Its template; BadRequest where that is not there any more."""
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

    def crons(self) -> list[str]:
        """The expressions of its schedule."""
        return schedule.expressions(self.record["send_types"])

    def access(
        self, identity: Identity, groups: Collection[str], *, own: bool
    ) -> Literal["rw", "ro", ""]:
        """What somebody in these contact groups may do with it.

        ``own``: it is theirs, and made with no more than they come with.
        """
        if own or identity.may(ADMIN):
            return "rw"
        found = {
            entry["perm"]
            for entry in self.record["permissions"]
            if _names_one(entry, identity.user, groups)
        }
        if self.record["is_public"]:
            found.add("ro")
        return "rw" if "rw" in found else "ro" if found else ""


def _names_one(entry: Mapping[str, Any], user: str, groups: Collection[str]) -> bool:
    names = entry["name"]
    if EVERYBODY in names:
        return True
    return user in names if entry["type"] == "user" else any(one in names for one in groups)


# -------------------------------------------------------------------- checking


def checked(
    given: Mapping[str, Any], templates: Templates, default_template: str = ""
) -> dict[str, Any]:
    """A whole record as it is stored, with defaults; BadRequest that names what is wrong."""
    fields = {name: value for name, value in given.items() if name not in NOT_STORED}
    template = _template(fields.get("template") or default_template, templates)
    params = _nested("params", fields.get("params"), {})
    if not isinstance(params, dict):
        raise _wrong("params", "an object")
    permissions = _permissions(_nested("permissions", fields.get("permissions"), []))
    public = flag("is_public", fields.get("is_public"))
    record = {
        **fields,
        "name": _text("name", fields.get("name"), _LONGEST_NAME) or "New Report",
        "desc": _text("desc", fields.get("desc", "Description"), _LONGEST_TEXT, lines=True),
        "template": template.name,
        "params": completed(template, params),
        "to": _addresses("to", fields.get("to")),
        "cc": _addresses("cc", fields.get("cc")),
        "failed_backends": _failed_backends(fields.get("failed_backends")),
        "send_types": schedule.read(
            _nested("send_types", fields.get("send_types"), []), "send_types"
        ),
        "permissions": permissions,
        "is_public": int(public or any(EVERYBODY in one["name"] for one in permissions)),
    }
    require_storable(record, _LONGEST)
    return record


def _nested(name: str, value: Any, empty: Any) -> Any:
    """A value that is an object or a list, which a form can only give as a text of JSON."""
    if value is None or value == "":
        return empty
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        kind = "an object" if isinstance(empty, dict) else "a list"
        raise _wrong(name, f"{kind}, in a form as JSON") from None


def shown_permissions(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The permissions with the entry that ``is_public`` stands for."""
    permissions: list[dict[str, Any]] = list(record["permissions"])
    if record["is_public"] and not any(EVERYBODY in one["name"] for one in permissions):
        permissions.append({"type": "user", "name": [EVERYBODY], "perm": "ro"})
    return permissions


def _wrong(name: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid {name}", f"{name}: expected {expected}")


def _template(value: Any, templates: Templates) -> ReportTemplate:
    if not isinstance(value, str) or not TEMPLATE_NAME.fullmatch(value) or value not in templates:
        known = ", ".join(sorted(templates))
        raise BadRequest("invalid report template", f"template: expected one of {known}")
    return templates[value]


def _text(name: str, value: Any, most: int, *, lines: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _wrong(name, "a text")
    text = str(value).strip()
    bare = text.replace("\n", "").replace("\r", "").replace("\t", "") if lines else text
    if _CONTROL.search(bare):
        raise _wrong(name, "a text without control characters")
    if len(text) > most:
        raise _wrong(name, f"at most {most} characters")
    return text


def _failed_backends(value: Any) -> str:
    text = _text("failed_backends", value, _LONGEST_NAME) or CANCEL
    if text not in (CANCEL, CONTINUE):
        raise _wrong("failed_backends", f"{CANCEL} or {CONTINUE}")
    return text


def addresses(text: str) -> list[str]:
    """The addresses of a comma list."""
    return [one.strip() for one in text.split(",") if one.strip()]


def _addresses(name: str, value: Any) -> str:
    """Mail addresses between commas, or a list of them, as a text."""
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    found = [one for item in items for one in addresses(_text(name, item, _LONGEST_TEXT))]
    if len(found) > _MOST_ADDRESSES:
        raise _wrong(name, f"at most {_MOST_ADDRESSES} addresses")
    for one in found:
        if len(one) > _LONGEST_ADDRESS or not _is_address(one):
            raise _wrong(name, f"mail addresses, as user@example.org, got {one[:80]!r}")
    return ", ".join(dict.fromkeys(found))


def _is_address(text: str) -> bool:
    if not text.isascii() or not text.isprintable() or any(one in text for one in ' "<>();:\\[]'):
        return False
    if "=?" in text:
        return False  # what mails take for an encoded word, which may mean anything
    try:
        address = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError):
        return False
    return bool(address.username) and bool(address.domain)


def _permissions(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > _MOST_ENTRIES:
        raise _wrong("permissions", f"a list of at most {_MOST_ENTRIES} objects")
    found = []
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
        if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
            raise _wrong(f"{where}.name", "a list of names")
        cleaned = [_text(f"{where}.name", one, _LONGEST_NAME) for one in items]
        found.append({**entry, "name": [one for one in cleaned if one]})
    return found
