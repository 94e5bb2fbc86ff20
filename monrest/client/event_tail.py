"""Following events: what is asked for next, which lines are events, and when it is asked again.

Rules: docs/client.md, "Events".
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypedDict

from monrest.client.exchange import (
    ApiRequest,
    OverloadedError,
    Reply,
    SitesFailedError,
    UnreachableError,
    problem_of,
    query_of,
)

AGAIN = 3.0
"""Seconds until a lost stream is asked for again."""

LOST = (UnreachableError, OverloadedError, SitesFailedError)
"""Errors after which a stream is requested again: a proxy answers 502 while a daemon starts."""

_NO_RIGHTS = 403

_BESIDE = frozenset({"heartbeat", "snapshot"})


class EventDocument(TypedDict, total=False):
    """An event in the form of CloudEvents 1.0; ``cursor`` is where to continue behind it.

    ``type`` is one of those of `GET /events`, or ``gap`` where events were left out, because they
    were read too slowly: ``data`` names the path of `/logs` that has them.
    """

    specversion: str
    id: str
    source: str
    type: str
    time: str
    subject: str
    data: Mapping[str, Any]
    cursor: str


class EventTail:
    """A stream that continues behind its last event after a lost connection.

    ``parameters`` are those of `GET /events`, but for ``limit``: so many events at most.
    """

    def __init__(
        self, parameters: Mapping[str, Any], sites: Sequence[str] = (), limit: str = ""
    ) -> None:
        self._parameters = {**parameters, "format": "ndjson"}
        self._sites = tuple(sites)
        self._limit: str | int | None = int(limit) if limit.isdecimal() else limit or None
        self._cursor = ""
        self._began = False

    async def events(
        self,
        opened: Callable[[ApiRequest], Awaitable[Reply]],
        pause: Callable[[float], Awaitable[None]],
        lost: Callable[[Exception], object] = lambda _: None,
    ) -> AsyncGenerator[EventDocument, None]:
        """All events, over as many connections as it takes.

        ``opened`` sends a request and returns its success; ``lost`` gets why it is sent again.
        Raises ClientError when the first request fails, and whenever the daemon refuses.
        """
        while True:
            try:
                lines = (await opened(self._request())).lines()
                try:
                    async for line in lines:
                        event = self._take(line)
                        if event is not None:
                            yield event
                finally:
                    await lines.aclose()
            except LOST as error:
                # Once a stream was there, a failure is one of the connection.
                if not self._began:
                    raise
                lost(error)
            if self._limit == 0:
                return
            await pause(AGAIN)

    def _request(self) -> ApiRequest:
        more: dict[str, Any] = {"limit": self._limit}
        if self._cursor:
            more |= {"since": self._cursor, "snapshot": None}
        return ApiRequest("/events", query=query_of(self._parameters | more), sites=self._sites)

    def _take(self, line: bytes) -> EventDocument | None:
        """Return the event of a line, None for what is beside events.

        Raises ApiError when the daemon says why nothing more comes.
        """
        self._began = True
        if not line:
            return None
        event: EventDocument = json.loads(line)
        self._cursor = event.get("cursor") or self._cursor
        kind, data = event["type"], event["data"]
        if kind == "end":
            raise problem_of(int(data.get("code") or _NO_RIGHTS), data)
        if kind in _BESIDE:
            return None
        if isinstance(self._limit, int) and kind != "gap":
            self._limit -= 1
        return event
