"""An event, and how far a follower is (docs/spec/events.md).

What happens at a site is told by its log: the number of an event is its place among the events of
its second, so that every daemon gives the same line the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from attrs import Factory, evolve, field, frozen

from monrest.base.errors import BadRequest

OWN = ""
"""The site of what the daemon itself tells; no core has an empty id."""

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
        "job": "a background job goes on or has ended",
    }
)
"""All types of events with what they mean."""

_LATEST = 2**53
_PLACE = re.compile(r"([^@,]*)@([0-9]{1,16})(?:\.([0-9]{1,16}))?", re.ASCII)
_BASE = re.compile(r"[0-9]{1,16}", re.ASCII)


@frozen(order=True)
class Place:
    """Behind which event of a site a follower is: the ``number``-th of the second ``time``.

    Number 0 is before all events of that second. Of what the daemon tells by itself ``time`` is
    the number of the event, which grows without end.
    """

    time: int
    number: int = 0


@frozen(kw_only=True, eq=False)
class Event:
    """One thing that happened, with its ``place`` among the events of its site.

    ``site`` is the id of the site, ``OWN`` where it is of none. ``time`` is in seconds since the
    epoch. ``subject`` is the path of what it is about, such as ``services/web01/Disk%20%2F``.
    ``data`` is what clients get: names as in ``/logs``. ``host`` and ``service`` are the object,
    empty for none. ``audience`` says who may see what the daemon itself tells.
    """

    site: str
    place: Place
    type: str
    time: float
    subject: str
    data: dict[str, Any]
    host: str = ""
    service: str = ""
    audience: Mapping[str, Any] = field(factory=dict)
    name: str = ""
    """Its id, where it is none of the log and nothing goes on behind it."""
    by: str = field(default=Factory(lambda self: self.site, takes_self=True))
    """Among whose events it has its place: the site's, or those of the daemon (``OWN``)."""

    @property
    def id(self) -> str:
        """Unique and the same from every daemon; a stream goes on behind it."""
        return self.name or str(Cursor(places={self.by: self.place}))

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return 1000 + 3 * len(self.data.get("message", ""))

    @property
    def source(self) -> str:
        """Where it happened, as a path of the API."""
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
    shown = datetime.fromtimestamp(moment, UTC).isoformat(
        timespec="milliseconds" if moment % 1 else "seconds"
    )
    return shown.replace("+00:00", "Z")


def object_subject(host: str, service: str) -> str:
    if service:
        return f"services/{quote(host, safe='')}/{quote(service, safe='')}"
    return f"hosts/{quote(host, safe='')}"


def site_subject(site: str) -> str:
    return f"sites/{quote(site, safe='')}"


@frozen
class Cursor:
    """How far a stream over any number of sites has got.

    ``places`` are those of single sites. Of every other site all events before the second ``base``
    were told, and none from then on; None where nothing is known of the others: they begin with
    the earliest of the places.
    """

    base: int | None = None
    places: Mapping[str, Place] = field(factory=dict)

    def of(self, site: str) -> Place | None:
        """Where a site goes on; None: with what happens from now on."""
        known = self.places.get(site)
        if known is not None:
            return known
        if not site:
            return None
        base = self.base
        if base is None:
            base = min((one.time for name, one in self.places.items() if name), default=None)
        return None if base is None else Place(base)

    def behind(self, event: Event) -> Cursor:
        """The same after one more event."""
        return evolve(self, places={**self.places, event.by: event.place})

    def __str__(self) -> str:
        items = [] if self.base is None else [str(self.base)]
        for site, place in self.places.items():
            number = f".{place.number}" if place.number else ""
            items.append(f"{quote(site, safe='')}@{place.time}{number}")
        return ",".join(items)


def read_cursor(text: str, parameter: str) -> Cursor:
    """The cursor that was given as ``str(cursor)`` or as the id of an event; raise BadRequest.

    A bare number is a time: everything from that second on.
    """
    base: int | None = None
    places: dict[str, Place] = {}
    for at, item in enumerate(text.strip().split(",")):
        found = _PLACE.fullmatch(item)
        if found is not None:
            site, time, number = found.groups()
            places[unquote(site)] = Place(int(time), int(number or 0))
        elif at == 0 and _BASE.fullmatch(item):
            base = int(item)
        else:
            raise _no_cursor(parameter)
    if any(one.time > _LATEST or one.number > _LATEST for one in places.values()):
        raise _no_cursor(parameter)
    return Cursor(base, places)


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
