"""Every failure that a client may see, one class per meaning.

An error is raised where it is understood and becomes the document
``{"code", "message", "description"}`` in one place, ``monrest.api.error_answers``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monrest.base.values import SiteProblem


class ClientLeftError(Exception):
    """The client has left: its answer is not made to the end."""


class BrokenRowsError(Exception):
    """The complete answer of ``site`` turns out to be broken while its rows are read.

    ``error`` is the error of its core.
    """

    def __init__(self, site: Any, error: Any) -> None:
        super().__init__(site, error)
        self.site = site
        self.error = error


class LostError(Exception):
    """Another daemon has taken over this work. Nothing was changed; no client sees the error."""


class RestError(Exception):
    """A failure with an HTTP status; ``message`` is short, ``description`` says what to do.

    ``extra`` are further members of the error document, ``headers`` further response headers,
    ``problems`` the sites that failed meanwhile.
    """

    code: ClassVar[int] = 500
    message: str
    description: str
    headers: tuple[tuple[str, str], ...] = ()
    problems: tuple[SiteProblem, ...] = ()

    def __init__(
        self, message: str, description: str = "", *, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, description)
        self.message = message
        self.description = description
        self.extra: Mapping[str, Any] = extra or {}

    def __str__(self) -> str:
        return f"{self.message}: {self.description}" if self.description else self.message


class BadRequest(RestError):
    """The request itself is wrong; the description names the parameter and what was expected."""

    code = 400


class NotAuthenticated(RestError):
    """No credentials at all, or wrong ones.

    ``challenges`` are the methods of authentication, each a header of its own; a 401 needs one.
    """

    code = 401

    def __init__(self, message: str, description: str, challenges: Sequence[str]) -> None:
        super().__init__(message, description)
        self.headers = tuple(("WWW-Authenticate", challenge) for challenge in challenges)


class Forbidden(RestError):
    """The user, the key or the session may not do this, or the key is wrong."""

    code = 403


class NotFound(RestError):
    """No such path, or no such object of the front end's own data."""

    code = 404


class MethodNotAllowed(RestError):
    """A known path with a method it does not have; ``allowed`` goes into the Allow header."""

    code = 405

    def __init__(self, path: str, allowed: Sequence[str]) -> None:
        super().__init__(
            "method not allowed", f"available methods for {path} are: {', '.join(allowed)}"
        )
        self.headers = (("Allow", ", ".join(allowed)),)


class Conflict(RestError):
    """The change is not possible in the present state, or another user made one."""

    code = 409


class TooSlow(RestError):
    """The request itself takes too long to arrive."""

    code = 408


class RequestTimedOut(RestError):
    """The answer, or a part of it, takes longer than a request may last."""

    code = 504


class TooLarge(RestError):
    """The body is longer than the service reads."""

    code = 413


class TooManyRequests(RestError):
    """The caller has to wait; ``seconds`` go into the Retry-After header."""

    code = 429

    def __init__(self, message: str, description: str, seconds: float) -> None:
        super().__init__(message, description)
        self.headers = (("Retry-After", str(max(1, math.ceil(seconds)))),)


class SitesFailed(RestError):
    """All selected sites failed; ``problems`` holds one entry for each.

    502 when they answered wrongly or not at all, 504 when every one of them timed out.
    """

    code = 502

    def __init__(self, problems: Sequence[SiteProblem]) -> None:
        super().__init__(
            "no backend available",
            "; ".join(f"{problem.site}: {problem.reason}" for problem in problems),
        )
        self.problems = tuple(problems)


class SitesTimedOut(SitesFailed):
    """All selected sites failed and each of them by not answering in time."""

    code = 504


def all_sites_failed(problems: Sequence[SiteProblem]) -> SitesFailed:
    """The error where all sites that were asked have failed, each with its problem."""
    late = all(problem.timed_out for problem in problems)
    return (SitesTimedOut if late else SitesFailed)(problems)


class Unavailable(RestError):
    """The service itself cannot answer now, for example while it stops.

    ``seconds``, if known, go into the Retry-After header.
    """

    code = 503

    def __init__(self, message: str, description: str = "", *, seconds: float = 0) -> None:
        super().__init__(message, description)
        if seconds:
            self.headers = (("Retry-After", str(math.ceil(seconds))),)


class LoopDetected(RestError):
    """Instances ask each other in a circle, or the chain of instances is too long."""

    code = 508


class NotInstalled(RestError):
    """A package that is needed is not installed here; the description says how to get it."""

    code = 501


class NotClustered(RestError):
    """The daemon is no node of a cluster."""

    code = 501


_MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        400: "the request cannot be understood as it is",
        401: "expected an API key, a password or the cookie of a login",
        403: "your user, or the key or session that you use, may not do this",
        404: "there is none of this name or number, or you may not see it",
        409: "it is not in a state in which this can be done",
    }
)
"""Descriptions of errors that have none of their own, by status."""


def error_value(
    code: int,
    message: str,
    description: str,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The members of an error document (docs/spec/http.md, "Errors"), beside ``extra``.

    The description is never empty.
    """
    described = description or _MEANINGS.get(code, "the log of the daemon says more")
    return {
        **extra, "failed": True, "code": code, "message": message, "description": described,
    }  # fmt: skip
