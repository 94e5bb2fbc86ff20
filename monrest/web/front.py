"""The resource before Klein: finds the API's root in the undecoded path.

Klein routes on decoded text and would lose an encoded slash, redirect a doubled one and answer odd
bytes in HTML; it therefore only ever sees the root, and the rest travels beside it
(docs/spec/http.md, "Routing").
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure
from twisted.web.resource import Resource

from monrest.web.intake import UNKNOWN
from monrest.web.site import ApiRequest

if TYPE_CHECKING:
    from klein.resource import KleinResource

_ABSOLUTE = re.compile(rb"https?://[^/?]*", re.IGNORECASE)


class FrontResource(Resource):
    """Serves ``/mon/r`` and everything below through ``klein``; ``fail`` answers failures.

    ``admit`` gives the bytes of a body that a request below the root may have.

    Several slashes at the start count as one. What is outside the root ends in Klein's own 404,
    which the error handler turns into JSON.
    """

    isLeaf = True

    def __init__(
        self,
        root: str,
        klein: KleinResource,
        fail: Callable[[ApiRequest, Failure], None],
        admit: Callable[[ApiRequest], Awaitable[int]],
    ) -> None:
        super().__init__()
        self.fail = fail
        self._admit = admit
        self._klein = klein
        self._root = root.strip("/").encode("ascii")
        self._below = self._root + b"/"
        self._segments = self._root.split(b"/")

    def render(self, request: ApiRequest) -> Any:
        """Set ``request.rest`` and let Klein work; returns NOT_DONE_YET."""
        request.postpath = self._segments.copy() if self._locate(request) else []
        return self._klein.render(request)

    async def admit(self, request: ApiRequest) -> int:
        """Give the bytes of a body that ``request`` may have; raises when it is refused."""
        return await self._admit(request) if self._locate(request) else UNKNOWN

    def _locate(self, request: ApiRequest) -> bool:
        """Set ``request.rest``; whether the path is below the root."""
        path = request.path
        if not path.startswith(b"/"):
            path = _ABSOLUTE.sub(b"", path, count=1)
        path = path.lstrip(b"/")
        below = path == self._root or path.startswith(self._below)
        if below:
            request.rest = path[len(self._root) :]
        return below
