"""The stream of events (docs/spec/events.md, "The stream")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import orjson
from attrs import define, field, frozen
from twisted.internet.defer import Deferred

from monrest.api.endpoint import LIST_PARAMETERS, SITE_PARAMETERS, Context, Endpoint, Parameter
from monrest.api.zones import moment_of
from monrest.base.concurrency import pause
from monrest.base.errors import BadRequest, RestError
from monrest.base.truth import flag
from monrest.base.values import Answer, Caller, Endless, Identity, Outlet, RestRequest
from monrest.events.filter import COLUMNS, EventFilter, read_filter
from monrest.events.followers import EventListener, Follower, Gap, StreamEvent, Write
from monrest.events.model import TYPES, Cursor, read_cursor, rfc3339
from monrest.events.present_objects import PresentProblems, problems
from monrest.events.service import Events
from monrest.query.parse import parse_query
from monrest.query.times import parse_time

_SSE = "text/event-stream; charset=utf-8"
_LINES = "application/x-ndjson; charset=utf-8"
_RESUMES = "last-event-id"
_AT_ONCE = 200
"""Events of a snapshot that are written in one go."""

_PATIENCE = 0.05
_RETRY = 3000
"""Milliseconds after which a browser connects again."""


def _as_event(stream_event: StreamEvent) -> bytes:
    body = orjson.dumps(stream_event.event.cloud_event(stream_event.data))
    place = b"id: %s\n" % stream_event.cursor.encode() if stream_event.cursor else b""
    return b"%sevent: %s\ndata: %s\n\n" % (place, stream_event.event.type.encode(), body)


def _as_line(stream_event: StreamEvent) -> bytes:
    whole = stream_event.event.cloud_event(stream_event.data)
    return (
        orjson.dumps(whole | ({"cursor": stream_event.cursor} if stream_event.cursor else {}))
        + b"\n"
    )


@frozen
class Wording:
    """The format of a stream: its events, and the messages beside them."""

    content_type: str
    event: Write
    lines: bool

    def beside(self, kind: str, cursor: str, now: float, data: dict[str, Any]) -> bytes:
        """A message beside events: a heartbeat, ``gap``, ``snapshot`` or ``end``."""
        if self.lines:
            whole = {
                "specversion": "1.0",
                "id": f"{kind}:{cursor}:{now:.3f}",
                "source": "/events",
                "type": kind,
                "time": rfc3339(now),
                "data": data,
            }
            return orjson.dumps(whole | ({"cursor": cursor} if cursor else {})) + b"\n"
        place = b"id: %s\n" % cursor.encode() if cursor else b""
        if kind == "heartbeat":
            # A client takes over the id and sees no event.
            return b": heartbeat\n%s\n" % place
        return b"%sevent: %s\ndata: %s\n\n" % (place, kind.encode(), orjson.dumps(data))


_WORDINGS = {
    "sse": Wording(_SSE, _as_event, lines=False),
    "ndjson": Wording(_LINES, _as_line, lines=True),
}


@define(eq=False)
class StreamListener(EventListener):
    """Writes what a follower gets to one client, ``left`` events at most."""

    outlet: Outlet
    wording: Wording
    context: Context
    left: int | None = None
    held: bool = False
    """Whether something comes first."""
    over: Deferred[None] = field(init=False, factory=Deferred)
    """Fires when it has all that were wanted."""

    @property
    def paused(self) -> bool:
        """Whether the client has not taken what it was given."""
        return self.held or self.outlet.paused

    def serve(self, follower: Follower) -> None:
        """See ``EventListener``: what all of the group get is written once for all."""
        if self.left is not None:
            super().serve(follower)
            return
        group = follower.group
        while follower.at < group.end and not self.outlet.paused:
            data, end = group.chunk(follower.at, self.wording.event)
            follower.took(end)
            self.outlet.write(data)

    def take(self, events: Sequence[StreamEvent]) -> None:
        if self.left is not None:
            events = events[: self.left]
            self.left -= len(events)
            if events and not self.left:
                # Not at once: the follower that gives them is still at work.
                self.context.clock.callLater(0, self.over.callback, None)
        self.outlet.write(b"".join(map(self.wording.event, events)))

    def miss(self, gap: Gap) -> None:
        data = {
            "since": gap.since,
            "until": gap.until,
            "count": gap.count,
            "logs": f"/logs?time[gte]={gap.time}",
        }
        self.outlet.write(self.wording.beside("gap", "", self.context.wall.now(), data))

    def end(self, error: RestError) -> None:
        data = {"code": error.code, "message": error.message, "description": error.description}
        self.outlet.write(self.wording.beside("end", "", self.context.wall.now(), data))

    def end_snapshot(self, cursor: str, count: int) -> None:
        """``cursor`` is where the stream continues behind the present problems."""
        now = self.context.wall.now()
        self.outlet.write(self.wording.beside("snapshot", cursor, now, {"count": count}))

    def beat(self, cursor: str) -> None:
        now = self.context.wall.now()
        self.outlet.write(self.wording.beside("heartbeat", cursor, now, {}))


@define(eq=False)
class EventEndpoints:
    """``/events`` of one generation of the configuration."""

    events: Events
    who: Callable[[Caller], Awaitable[Identity]]

    @Endpoint(
        path="/events",
        description="a stream of what happens, as it happens",
        text=(
            "Server-sent events without an end, in the JSON form of CloudEvents 1.0. "
            "`docs/guide/events.md` says how to read them."
        ),
        shape="object",
        columns=COLUMNS,
        parameters=(
            Parameter(name="types", description=f"comma list of {', '.join(TYPES)}"),
            *LIST_PARAMETERS[:3],
            Parameter(
                name="limit",
                description="ends the stream after so many events",
                type="integer",
                limit=LIST_PARAMETERS[4].limit,
            ),
            *SITE_PARAMETERS[:1],
            Parameter(
                name="since",
                description="the id of the last event that is known, or a time; `Last-Event-ID` "
                "is the same as a header",
            ),
            Parameter(
                name="snapshot", description="1 begins with the present problems", type="boolean"
            ),
            Parameter(name="format", description="sse or ndjson; default: sse"),
        ),
        at_once=True,
        media=tuple(wording.content_type.partition(";")[0] for wording in _WORDINGS.values()),
    )
    async def stream(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        given = dict(request.parameters)
        wanted = read_filter(request.parameters, request.sites)
        wording = _wording(request, given.get("format", ""))
        since = await _since(context, request, given.get("since", ""))
        snapshot = "snapshot" in given and flag("snapshot", given["snapshot"])
        resumed = _RESUMES in request.caller.headers
        if snapshot and since is not None and not resumed:
            raise BadRequest(
                "error during request",
                "snapshot: what happened since then comes instead, expected since or snapshot",
            )
        limit = parse_query(
            tuple(parameter for parameter in request.parameters if parameter[0] == "limit")
        ).limit
        await self.events.check(wanted, request.identity)

        async def run(outlet: Outlet) -> None:
            listener = StreamListener(outlet, wording, context, limit)
            if snapshot and not resumed:
                listener.held = True
            await self._run(context, request, wanted, since, listener)

        headers = (("Cache-Control", "no-store"),)
        return Endless(content_type=wording.content_type, run=run, headers=headers)

    async def _run(
        self,
        context: Context,
        request: RestRequest,
        wanted: EventFilter,
        since: Cursor | None,
        listener: StreamListener,
    ) -> None:
        who = partial(self.who, request.caller)
        follower = await self.events.follow(wanted, who, listener, since)
        try:
            listener.over.addCallback(lambda _: follower.end())
            listener.outlet.on_room(follower.resume)
            if not listener.wording.lines:
                listener.outlet.write(b"retry: %d\n" % _RETRY)
            if listener.held:
                await self._snapshot(context, request, follower, listener)
            elif since is None:
                listener.beat(follower.cursor)
            await follower.ended
        except RestError as error:
            listener.end(error)
        finally:
            follower.stop()

    async def _snapshot(
        self,
        context: Context,
        request: RestRequest,
        follower: Follower,
        listener: StreamListener,
    ) -> None:
        """Write the present problems; what happens meanwhile comes after them."""
        group, cursor = follower.group, follower.cursor
        sites = tuple(group.selection.sites)
        present = await problems(context, request.identity, sites) if sites else PresentProblems()
        events = [event for event, _ in present.problems]
        await group.prepare(events)
        present_events = [
            StreamEvent(event, data, "")
            for event in events
            if (data := group.judge(event)) is not None
        ]
        for at in range(0, len(present_events), _AT_ONCE):
            listener.take(present_events[at : at + _AT_ONCE])
            while listener.outlet.paused:
                await pause(context.clock, _PATIENCE)
        listener.end_snapshot(cursor, len(present_events))
        listener.held = False
        follower.resume()


def _wording(request: RestRequest, format: str) -> Wording:
    name = format.strip() or ("ndjson" if request.format == "ndjson" else "sse")
    if request.format not in ("json", "ndjson") or name not in _WORDINGS:
        raise BadRequest("error during request", f"format: expected one of {', '.join(_WORDINGS)}")
    return _WORDINGS[name]


async def _since(context: Context, request: RestRequest, given: str) -> Cursor | None:
    """The cursor of the request; the header of a browser that reconnects comes first."""
    header = request.caller.headers.get(_RESUMES, "").strip()
    if header:
        return read_cursor(header, "Last-Event-ID")
    text = given.strip()
    if not text:
        return None
    if "@" not in text and not text.isdigit():
        moment = await moment_of(context, request)
        since = parse_time(text, moment.now, moment.zone)
        if since is not None and since >= 0:
            return Cursor(base=int(since))
    return read_cursor(text, "since")
