"""Scripts of other origins: which may use the API (docs/spec/http.md, "Other origins")."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from attrs import frozen

from monrest.base.names import Names

if TYPE_CHECKING:
    from monrest.web.api_site import ApiRequest

ANY = "*"

_METHODS = b"GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"
_ASKED = ("Auth-Key", "Auth-User", "OutputFormat", "Output-Metadata-Only", "CSRF-Token")
_SHOWN = ("Failed-Sites", "Warnings")
_KNOWN_FOR = b"7200"
"""Seconds for which a browser need not ask again, the most that any of them accepts."""


@frozen(kw_only=True)
class Origins:
    """The origins whose pages may use the API. They send keys; cookies are not for them."""

    allowed: frozenset[bytes]
    accepted: bytes
    exposed: bytes

    @classmethod
    def of(cls, origins: Collection[str], names: Names) -> Origins | None:
        """Take them from the configuration; None where no other origin may use the API."""
        if not origins:
            return None

        def spelled(*groups: tuple[str, ...]) -> bytes:
            return ", ".join(name for group in groups for name in group).encode("ascii")

        def own(words: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(names.header(word).title() for word in words)

        return cls(
            allowed=frozenset(one.lower().encode("ascii") for one in origins),
            accepted=spelled(
                ("Accept", "Authorization", "Content-Type", "If-None-Match"),
                ("Traceparent", "X-Request-Id"),
                own(_ASKED),
            ),
            exposed=spelled(
                ("Allow", "Content-Disposition", "ETag", "Location", "Retry-After"),
                ("WWW-Authenticate",), own(_SHOWN),
            ),
        )  # fmt: skip

    def admit(self, request: ApiRequest) -> bool:
        """Whether the page that asks may read the answer, which says so then."""
        given = request.requestHeaders.getRawHeaders(b"Origin")
        headers = request.responseHeaders
        anybody = ANY.encode("ascii") in self.allowed
        if not anybody:
            headers.setRawHeaders(b"Vary", [b"Origin"])
        if given is None or not (anybody or given[-1].lower() in self.allowed):
            return False
        headers.setRawHeaders(b"Access-Control-Allow-Origin", [b"*" if anybody else given[-1]])
        headers.setRawHeaders(b"Access-Control-Expose-Headers", [self.exposed])
        return True

    def permit(self, request: ApiRequest) -> bool:
        """Answer a browser that asks for an admitted page before it sends the request itself."""
        if (
            request.method != b"OPTIONS"
            or not request.requestHeaders.hasHeader(b"Access-Control-Request-Method")
            or not request.responseHeaders.hasHeader(b"Access-Control-Allow-Origin")
        ):
            return False
        headers = request.responseHeaders
        headers.setRawHeaders(b"Access-Control-Allow-Methods", [_METHODS])
        headers.setRawHeaders(b"Access-Control-Allow-Headers", [self.accepted])
        headers.setRawHeaders(b"Access-Control-Max-Age", [_KNOWN_FOR])
        request.setResponseCode(204)
        return True
