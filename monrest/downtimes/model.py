"""The record of a recurring downtime, and what may be in one (docs/spec/downtimes.md, "Record").

Pure. What is unknown here is kept and shown as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from attrs import field, frozen

from monrest.api.fields import Choice, Fields, NameList, Number, Ruled
from monrest.api.recurring import RecurringRow
from monrest.base import schedule
from monrest.base.errors import BadRequest
from monrest.commands.arguments import require_field, require_text
from monrest.config.sections import CommandsConfig
from monrest.livestatus.command import Target
from monrest.store.stored import INDEXED, KEY, Shown, StoredRow, stored

HOST, HOSTGROUP, SERVICE, SERVICEGROUP = "host", "hostgroup", "service", "servicegroup"
TARGETS = (HOST, HOSTGROUP, SERVICE, SERVICEGROUP)
_LISTS: Mapping[str, tuple[str, ...]] = {
    HOST: (HOST,),
    HOSTGROUP: (HOSTGROUP,),
    SERVICE: (HOST, SERVICE),
    SERVICEGROUP: (SERVICEGROUP,),
}
_LINE_END = re.compile(r"\r\n|[\r\n\t]")
_MINUTE = 60
_MOST_PAIRS = 10_000
_LONGEST_COMMENT = 4096


@stored("recurring_downtimes")
@frozen(kw_only=True)
class Downtime(RecurringRow):
    """``error`` is what the last check found wrong, ``failure`` what the last time it came."""

    schedule_field = "schedule"

    number: Annotated[int, KEY, Shown("its number", "number", name="file")]
    error: str | None = None
    failure: str | None = None

    @property
    def problems(self) -> str | None:
        """A line for each problem; None without any."""
        return "\n".join(filter(None, (self.error, self.failure))) or None

    @property
    def target(self) -> str:
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


@stored("downtime_occurrences")
@frozen(kw_only=True)
class Occurrence(StoredRow):
    """One time at which a downtime came, of use ``until`` then.

    ``number`` is that of the duty of the daemon that works or worked at it, 0 for none.
    ``accepted`` are the keys of orders that each site has taken.
    """

    downtime: Annotated[Downtime, KEY]
    at: Annotated[int, KEY]
    until: int
    open: Annotated[bool, INDEXED] = True
    number: int = 0
    attempts: int = 0
    accepted: Mapping[str, Sequence[str]] = field(factory=dict)


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


def _name(item: Any) -> tuple[str, ...] | None:
    """One name; null is none, a number is one."""
    if item is None:
        return ()
    named = isinstance(item, (str, int)) and not isinstance(item, bool)
    return (str(item).strip(),) if named else None


def _comment(value: Any) -> str:
    if not isinstance(value, str | None):
        raise BadRequest("invalid comment", "comment: expected a text")
    text = _LINE_END.sub(" ", value or "").strip()
    require_text("comment", text)
    if len(text) > _LONGEST_COMMENT:
        raise BadRequest(
            "invalid comment", f"comment: expected at most {_LONGEST_COMMENT} characters"
        )
    return text or "automatic downtime"


_Names = partial(
    NameList,
    most=1000,
    longest=4096,
    item=_name,
    check=require_field,
    ordered=True,
    number="at most {most} names",
)
_Minutes = partial(Number, least=1, most=10 * 366 * 24 * 60)

FIELDS = Fields(
    (
        _Names(HOST, "hosts, a list or with commas", in_rows="hosts"),
        _Names(SERVICE, "services, each on each of the hosts"),
        _Names(HOSTGROUP, "host groups"),
        _Names(SERVICEGROUP, "service groups"),
        Choice("target", "type of the objects", TARGETS,
               in_rows=f"type of its objects: {', '.join(TARGETS)}"),
        Ruled("schedule", "list of objects with `type` day, week, month, monthday or cust, and "
              "`minute`, `hour`, `week_day` (0 to 7, with commas), `day`, `month_day` (as "
              "`1st_Monday`, `Last_Friday`) or `cust` (five cron fields)", type="list",
              rule=schedule.read, most=f"{schedule.MOST_ENTRIES} entries",
              in_rows="when it comes, a list of objects"),
        _Minutes("duration", "minutes, default 120", default=120,
                 in_rows=Shown("how long a downtime lasts", "number", "minutes")),
        _Minutes("flex_range", "minutes, default 720", default=720,
                 in_rows=Shown("for how long a flexible one may begin", "number", "minutes")),
        Number("fixed", "0 for flexible, default 1", least=0, most=1, default=1, words=True,
               in_rows=Shown("1: begins at its time; 0: with the next problem", "boolean")),
        Number("childoptions", "for hosts", least=0, most=2, words=True,
               in_rows="for hosts: 1 their children as well, triggered; 2 too"),
        Ruled("comment", "default `automatic downtime`", rule=_comment,
              most=f"{_LONGEST_COMMENT} characters", in_rows="comment of the downtimes"),
    ),
    computed=frozenset(
        {"backend", "backends", "created_by", "edited_by", "error", "file", "fixable", "id",
         "last_changed"}
    ),
)  # fmt: skip


def checked(given: Mapping[str, Any], config: CommandsConfig) -> dict[str, Any]:
    """A whole record as it is stored, with defaults for what was left out.

    BadRequest that names the field and what was expected.
    """
    record = FIELDS.record(given)
    named = (kind for kind in (SERVICE, HOST, HOSTGROUP, SERVICEGROUP) if record[kind])
    record["target"] = record["target"] or next(named, SERVICE)
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
    for key in ("duration", "flex_range"):
        if 0 < config.downtime_max_duration < record[key] * _MINUTE:
            raise BadRequest(
                "downtime is too long",
                f"{key}: expected at most {int(config.downtime_max_duration) // _MINUTE} minutes "
                "(commands.downtime_max_duration)",
            )
    return record
