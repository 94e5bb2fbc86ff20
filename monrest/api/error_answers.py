"""The one place where an exception becomes a status, headers and three texts.

A traceback, a path of the program or an address of a core never gets into a document
(docs/spec/http.md, "Errors").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import frozen
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.logger import Logger
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException

from monrest.base.errors import RestError

log = Logger()

_SERVER_ERROR = 500


@frozen(kw_only=True)
class Problem:
    """What the client gets; ``failed_sites`` go into a header, ``extra`` into the document."""

    code: int
    message: str
    description: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    extra: Mapping[str, Any] = MappingProxyType({})
    failed_sites: tuple[str, ...] = ()


def describe(failure: Failure, request_id: str, root: str = "") -> Problem:
    """Give what ``failure`` means to the client; what was not expected is logged with its id.

    ``root`` is the path of the API, for requests beside it.
    """
    error = failure.value
    if isinstance(error, RestError):
        return Problem(
            code=error.code,
            message=error.message,
            description=error.description,
            headers=error.headers,
            extra=error.extra,
            failed_sites=tuple(problem.site for problem in error.problems),
        )
    if isinstance(error, HTTPException):
        return Problem(
            code=error.code or _SERVER_ERROR,
            message="not found" if error.code == 404 else "bad request",
            description=f"the API is below {root}/; a browser gets a page at /",
        )
    if isinstance(error, DeferredTimeout):
        return Problem(
            code=504, message="request timed out", description="a part of it took too long"
        )
    log.failure("request {request_id} failed", failure, request_id=request_id)
    return Problem(
        code=_SERVER_ERROR,
        message="internal server error",
        description=f"please have a look at the log for request {request_id}",
    )
