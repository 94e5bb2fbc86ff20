"""What may go wrong between us and a core, as short reasons without paths and addresses.

The texts are those that a user sees beside the site's id; the log has more.
"""

from __future__ import annotations

import errno
from typing import Self

from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.python.failure import Failure

_LONGEST_ERROR = 200


def first_line(text: str) -> str:
    """The first line of a core's message, printable and at most 200 characters long."""
    line = text.lstrip("\r\n").partition("\n")[0]
    return "".join(c if c.isprintable() else " " for c in line).strip()[:_LONGEST_ERROR]


def in_seconds(seconds: float) -> str:
    """A time-out for people: ``30 s``, ``0.5 s``."""
    return f"{seconds:g} s"


class LivestatusError(Exception):
    """A query failed; ``reason`` is one line for the user."""

    timed_out = False

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def anew(self) -> Self:
        """Give the same without the frames through which it went, and what those know."""
        one = type(self).__new__(type(self), *self.args)
        vars(one).update(vars(self))
        return one


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


_MOMENTARY = (errno.ENOENT, errno.ECONNREFUSED, errno.EACCES, errno.EAGAIN)
"""What a connect meets while a core makes its socket anew, and when too many wait before it."""

_BY_ERRNO = {
    errno.ENOENT: "no such socket",
    errno.ENOTSOCK: "not a socket",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ECONNREFUSED: "connection refused",
    errno.EAGAIN: "too many connections waiting",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "network unreachable",
    errno.EMFILE: "too many open files",
}


def connect_error(failure: Failure, seconds: float) -> ConnectError:
    """What the failure of an endpoint's ``connect`` means; ``seconds`` was its time-out."""
    value = failure.value
    if isinstance(value, ConnectError):
        return value
    if isinstance(value, (error.TimeoutError, error.UserError)):
        return ConnectError(f"timed out connecting after {in_seconds(seconds)}", timed_out=True)
    if isinstance(value, (error.DNSLookupError, error.UnknownHostError)):
        return ConnectError("host name not found")
    number = getattr(value, "osError", None)
    if number is None and isinstance(value, OSError):
        number = value.errno
    if number in _BY_ERRNO:
        return ConnectError(_BY_ERRNO[number], momentary=number in _MOMENTARY)
    if isinstance(value, error.ConnectionRefusedError):
        return ConnectError("connection refused", momentary=True)
    # Twisted has no number for a Unix socket before which too many connections wait.
    full = isinstance(value, error.ConnectError) and number is None
    return tls_error(failure) or ConnectError("cannot connect", momentary=full)


def tls_error(failure: Failure) -> ConnectError | None:
    """The reason if a connection ended with a failed TLS handshake, else None."""
    value = failure.value
    if isinstance(value, VerificationError):
        return ConnectError("TLS: the certificate is not for this server name")
    if isinstance(value, SSL.Error) and not isinstance(value, SSL.ZeroReturnError):
        queue = value.args[0] if value.args and isinstance(value.args[0], list) else []
        words = [entry[-1] for entry in queue if entry and entry[-1]]
        return ConnectError(f"TLS: {first_line(words[0])}" if words else "TLS: handshake failed")
    return None
