"""An event, and how far a follower is (docs/spec/events.md).

All events are rows of one table, and a stream continues behind the number of a row. The id of an
event of a log is its place among the events of its second, so that every daemon gives the same line
the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any
from urllib.parse import quote, unquote

from attrs import evolve, field, frozen
from sqlalchemy import Index

from monrest.base.errors import BadRequest
from monrest.store.stored import INDEXED, KEY, UNIQUE, StoredRow, stored

OWN = ""
"""The site of events of the daemon itself; no core has an empty id."""

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "state": "a host or service has another state, or is checked again for a soft one",
        "acknowledgement": "a problem was acknowledged, or is no longer",
        "downtime": "a downtime begins, ends or is canceled",
        "comment": "a comment was added or removed",
        "flapping": "an object begins or ends to flap",
        "notification": "a contact was notified",
        "command": "an external command reached a core",
        "site": "a site can be reached, or cannot",
        "config": "object configuration was saved, or a core has read it",
        "job": "a background job makes progress or has ended",
    }
)
"""All types of events with what they mean."""

_LATEST = 2**53
_PLACE = re.compile(r"([^@,]*)@([0-9]{1,16})(?:\.([0-9]{1,16}))?", re.ASCII)
_BASE = re.compile(r"[0-9]{1,16}", re.ASCII)


@frozen(order=True)
class Place:
    """Behind which event of a site's log a stream is: the ``number``-th of the second ``time``.

    Number 0 is before all events of that second.
    """

    time: int
    number: int = 0


@stored("events", Index("ix_events_log", "site", "time", "nth"))
@frozen(kw_only=True, eq=False)
class Event(StoredRow):
    """One thing that happened; ``number`` is 0 until it is stored.

    ``site`` is the id of the site, ``OWN`` where it is of none. ``time`` is in seconds since the
    epoch. ``subject`` is the path of what it is about, such as ``services/web01/Disk%20%2F``.
    ``data`` is what clients get: names as in ``/logs``. ``owner``: only this user may see it, with
    all of ``roles``, and administrators. Of all with the same ``name`` the first one is stored.
    ``nth`` is its number within its second in the log of its site.
    """

    number: Annotated[int, KEY] = 0
    time: Annotated[float, INDEXED]
    type: str
    subject: str
    data: dict[str, Any]
    owner: str | None = None
    roles: list[str] = field(factory=list)
    site: str = OWN
    name: Annotated[str | None, UNIQUE] = None
    nth: int | None = None

    @property
    def host(self) -> str:
        return str(self.data.get("host_name", "")) if self.site else ""

    @property
    def service(self) -> str:
        return str(self.data.get("service_description", "")) if self.site else ""

    @property
    def action(self) -> str:
        """The action: added, removed, started …; empty for a state."""
        return str(self.data.get("action", ""))

    @property
    def place(self) -> Place | None:
        """Its place in the log of its site; None for an event that is in no log."""
        return None if self.nth is None else Place(int(self.time), self.nth)

    @property
    def id(self) -> str:
        """Unique, and for a line of a log the same everywhere; a stream can continue behind it."""
        return self.name if self.name and (self.nth or not self.number) else f"@{self.number}"

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return 1000 + 3 * len(self.data.get("message", ""))

    @property
    def source(self) -> str:
        """Its site, as a path of the API."""
        return f"/sites/{quote(self.site, safe='')}" if self.site else "/mon"

    def cloud_event(self, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The event in the JSON form of CloudEvents 1.0; other ``data`` replace its own."""
        return {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "time": rfc3339(self.time),
            "subject": self.subject,
            "datacontenttype": "application/json",
            "data": self.data if data is None else data,
        }


def rfc3339(moment: float) -> str:
    """A time as CloudEvents wants it."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(
        timespec="milliseconds" if moment % 1 else "seconds"
    )
    return text.replace("+00:00", "Z")


def object_subject(host: str, service: str) -> str:
    if service:
        return f"services/{quote(host, safe='')}/{quote(service, safe='')}"
    return f"hosts/{quote(host, safe='')}"


def site_subject(site: str) -> str:
    return f"sites/{quote(site, safe='')}"


def line_id(site: str, place: Place) -> str:
    """The id of an event of a log, and the place of a stream in that log."""
    number = f".{place.number}" if place.number else ""
    return f"{quote(site, safe='')}@{place.time}{number}"


@stored("event_sites")
@frozen(kw_only=True)
class Coverage(StoredRow):
    """The events of a site's log from the second ``since`` on are stored, until the next begins.

    Their numbers are greater than ``first``. ``token`` is the number of the duty under which the
    site is watched.
    """

    site: Annotated[str, KEY]
    first: Annotated[int, KEY]
    since: int
    token: int = 0


@frozen
class Cursor:
    """The position of a stream: all events up to ``number``, but for the sites of ``places``.

    Of such a site it has the events of its log up to there. ``number`` is None where a client has
    given a time or the id of an event instead: then it is before the second ``base``.
    """

    number: int | None = None
    base: int | None = None
    places: Mapping[str, Place] = field(factory=dict)

    @property
    def time(self) -> int | None:
        """The earliest second from which something may be missing; None where no time is known."""
        times = [place.time for place in self.places.values()]
        return min([*times, *([] if self.base is None else [self.base])], default=None)

    def at(self, site: str, place: Place) -> Cursor:
        """The same with another place in the log of a site."""
        return evolve(self, places={**self.places, site: place})

    def without(self, site: str) -> Cursor:
        """The same where nothing of a site is missing any more."""
        return evolve(self, places={k: v for k, v in self.places.items() if k != site})

    def __str__(self) -> str:
        items = [] if self.base is None else [str(self.base)]
        items += [] if self.number is None else [f"@{self.number}"]
        return ",".join([*items, *(line_id(site, place) for site, place in self.places.items())])


def read_cursor(text: str, parameter: str) -> Cursor:
    """The cursor that was given as ``str(cursor)`` or as the id of an event; raise BadRequest.

    A bare number is a time: everything from that second on.
    """
    number = base = None
    places: dict[str, Place] = {}
    for at, item in enumerate(text.strip().split(",")):
        match = _PLACE.fullmatch(item)
        if match is not None:
            site, time, nth = match.groups()
            if site:
                places[unquote(site)] = Place(int(time), int(nth or 0))
            else:
                number = int(time)
        elif at == 0 and _BASE.fullmatch(item):
            base = int(item)
        else:
            raise _no_cursor(parameter)
    figures = [
        number or 0,
        *(value for place in places.values() for value in (place.time, place.number)),
    ]
    if max(figures) > _LATEST:
        raise _no_cursor(parameter)
    return Cursor(number, base, places)


def _no_cursor(parameter: str) -> BadRequest:
    return BadRequest(
        "error during request",
        f"{parameter}: expected the id of an event as this stream has given it, or a time",
    )


def read_types(values: Iterable[str]) -> frozenset[str]:
    """The types that comma lists name, all of them for none; raise BadRequest."""
    wanted = {name for value in values for part in value.split(",") if (name := part.strip())}
    unknown = sorted(wanted - TYPES.keys())
    if unknown:
        raise BadRequest(
            "error during request",
            f"types: no such type of event: {', '.join(unknown)[:100]}; "
            f"expected some of {', '.join(TYPES)}",
        )
    return frozenset(wanted or TYPES)
