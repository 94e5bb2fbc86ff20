"""Errors between us and a core, as short reasons without paths and addresses.

The texts are those that a user sees beside the site's id; the log has more.
"""

from __future__ import annotations

from typing import Self

from twisted.python.failure import Failure

from monrest.base.connecting import in_seconds, not_connected, tls_reason

_LONGEST_ERROR = 200


def first_line(text: str) -> str:
    """The first line of a core's message, printable and at most 200 characters long."""
    line = text.lstrip("\r\n").partition("\n")[0]
    return "".join(c if c.isprintable() else " " for c in line).strip()[:_LONGEST_ERROR]


class LivestatusError(Exception):
    """A query failed; ``reason`` is one line for the user."""

    timed_out = False

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def anew(self) -> Self:
        """Return the same without the frames through which it went, and what those know."""
        error = type(self).__new__(type(self), *self.args)
        vars(error).update(vars(self))
        return error


class ConnectError(LivestatusError):
    """No connection could be made, so that nothing has reached the core.

    ``momentary``: the core may be back in a moment, as in a reload.
    """

    def __init__(self, reason: str, *, timed_out: bool = False, momentary: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out
        self.momentary = momentary


class QueryTimeoutError(LivestatusError):
    """The core did not answer in time, or no connection came free in time."""

    timed_out = True

    def __init__(self, seconds: float) -> None:
        super().__init__(f"timed out after {in_seconds(seconds)}")


class HangingError(LivestatusError):
    """The core takes connections and says nothing."""

    timed_out = True

    def __init__(self, seconds: float) -> None:
        super().__init__(f"hangs: no sign of life within {in_seconds(seconds)}")


class LostCoreError(LivestatusError):
    """The core went away or was restarted while it was asked; it is not asked that again."""


class BrokenConnectionError(LivestatusError):
    """The connection ended before the answer was complete.

    ``begun``: some of the answer was there already. ``kept``: none was, on a connection that had
    served before, so that the core may have closed it for being idle.
    """

    def __init__(self, reason: str, *, begun: bool = False, kept: bool = False) -> None:
        super().__init__(reason)
        self.begun = begun
        self.kept = kept


class ProtocolError(LivestatusError):
    """The answer is not what the protocol says."""

    def __init__(self, what: str) -> None:
        super().__init__(f"protocol error: {what}")


class NoHeaderError(ProtocolError):
    """The answer has no header; ``text`` is its first line."""

    def __init__(self, text: str) -> None:
        super().__init__(f"no header but {text!r}" if text else "no header")
        self.text = text


class RefusedError(LivestatusError):
    """The core answered with a status other than 200: ``400: <first line of its message>``."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {first_line(message)}")
        self.status = status


class StoppedError(LivestatusError):
    """The service stops, or the site was taken out of the configuration."""

    def __init__(self) -> None:
        super().__init__("connection closed by monrest")


class WithdrawnError(LivestatusError):
    """The caller may not send any more."""

    def __init__(self) -> None:
        super().__init__("withdrawn before it was sent")


def connect_error(failure: Failure, seconds: float) -> ConnectError:
    """The error of a failed ``connect`` of an endpoint; ``seconds`` was its time-out."""
    if isinstance(failure.value, ConnectError):
        return failure.value
    reason = not_connected(failure.value, seconds)
    return ConnectError(reason.reason, timed_out=reason.timed_out, momentary=reason.momentary)


def tls_error(failure: Failure) -> ConnectError | None:
    """The reason if a connection ended with a failed TLS handshake, else None."""
    reason = tls_reason(failure.value)
    return ConnectError(reason) if reason else None
