"""The one place where an exception becomes an error that has a status, headers and texts.

A traceback, a path of the program or an address of a core never gets into a document
(docs/spec/http.md, "Errors").
"""

from __future__ import annotations

from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.logger import Logger
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException

from monrest.base.errors import BadRequest, NotFound, RequestTimedOut, RestError

log = Logger()


def rest_error(failure: Failure, request_id: str, root: str = "") -> RestError:
    """Return what ``failure`` means to the client; what was not expected is logged with its id.

    ``root`` is the path of the API, for requests beside it.
    """
    error = failure.value
    if isinstance(error, RestError):
        return error
    if isinstance(error, HTTPException):
        hint = f"the API is below {root}/; a browser gets a page at /"
        if error.code == NotFound.code:
            return NotFound("not found", hint)
        return BadRequest("bad request", hint)
    if isinstance(error, DeferredTimeout):
        return RequestTimedOut("request timed out", "a part of it took too long")
    log.failure("request {request_id} failed", failure, request_id=request_id)
    return RestError(
        "internal server error", f"please have a look at the log for request {request_id}"
    )
