"""What a request can end with instead of an answer; each is a ``ClientError``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """There is no result, and ``str(self)`` says why."""


class UnreachableError(ClientError):
    """Nothing came back, or not all of it. What was asked may have been done all the same."""


class ApiError(ClientError):
    """The daemon answered with an error.

    ``code`` is the status, ``message`` and ``description`` are its words, ``document`` is the whole
    answer, which may tell more (``problems`` of a list of commands, ``help`` of a refusal).
    """

    def __init__(self, code: int, document: Mapping[str, Any]) -> None:
        self.code = code
        self.document = document
        self.message = str(document.get("message") or "")
        self.description = str(document.get("description") or document.get("error") or "")
        text = ": ".join(part for part in (self.message, self.description) if part)
        super().__init__(plain(f"{code} {text}".rstrip()))

    def __reduce__(self) -> tuple[type[ApiError], tuple[int, Mapping[str, Any]]]:
        """Let it travel between processes: the text is not what it is made of."""
        return type(self), (self.code, self.document)


class InvalidRequestError(ApiError):
    """400: the request is wrong; the description names the parameter and what was expected."""


class NotAuthorizedError(ApiError):
    """401, 403: no user, or one who may not."""


class NotThereError(ApiError):
    """404: no such path or record."""


class ConflictError(ApiError):
    """409: it was changed meanwhile, or it is not possible at present."""


class OverloadedError(ApiError):
    """429, 503: not now. ``retry_after`` are the seconds that the daemon asks to wait, or None."""

    retry_after: float | None = None


class SitesFailedError(ApiError):
    """502, 504: no selected site answered."""


class IncompleteError(ClientError):
    """Sites are missing in an answer, which a client that wants it whole does not take."""

    def __init__(self, sites: list[str]) -> None:
        self.sites = sites
        super().__init__(f"no answer from {', '.join(sites)}")

    def __reduce__(self) -> tuple[type[IncompleteError], tuple[list[str]]]:
        """Let it travel between processes."""
        return type(self), (self.sites,)


_KINDS: Mapping[int, type[ApiError]] = {
    400: InvalidRequestError, 401: NotAuthorizedError, 403: NotAuthorizedError,
    404: NotThereError, 409: ConflictError, 429: OverloadedError, 502: SitesFailedError,
    503: OverloadedError, 504: SitesFailedError,
}  # fmt: skip


def problem_of(code: int, document: Mapping[str, Any]) -> ApiError:
    """The error of this status with these words."""
    return _KINDS.get(code, ApiError)(code, document)


def failure_of(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """The error that an answer with this status and body is."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"message": body[:200].decode("utf-8", "replace").strip()}
    error = problem_of(code, document)
    if isinstance(error, OverloadedError) and retry_after.isascii() and retry_after.isdigit():
        error.retry_after = float(retry_after)
    return error


def plain(text: str) -> str:
    """``text`` without what could steer a terminal: other control characters become ``?``."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
