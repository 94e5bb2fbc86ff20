"""Connections to another program: TLS, and in words why one was not made, or ended too early.

The words are those that users see: one line without paths and addresses.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from attrs import frozen
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import (
    Certificate,
    CertificateOptions,
    PrivateCertificate,
    optionsForClientTLS,
    trustRootFromCertificates,
)
from zope.interface import implementer

CONNECT_TIMEOUT = 5.0
"""Seconds for connecting, TLS handshake included."""

_BEGIN = b"-----BEGIN CERTIFICATE-----"


class ExchangeError(Exception):
    """There is no answer, or not all of it; ``reason`` is one line for the user.

    ``connected``: there was a connection, so that something may have been sent.
    """

    connected = True

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotConnectedError(ExchangeError):
    """Nothing was sent; ``connected``: the other side was there, but the TLS handshake failed.

    ``momentary``: the other side may be back in a moment, as a core in a reload.
    """

    def __init__(
        self,
        reason: str,
        *,
        timed_out: bool = False,
        momentary: bool = False,
        connected: bool = False,
    ) -> None:
        super().__init__(reason)
        self.timed_out = timed_out
        self.momentary = momentary
        self.connected = connected


def in_seconds(seconds: float) -> str:
    """A time-out for people: ``30 s``, ``0.5 s``."""
    return f"{seconds:g} s"


_MOMENTARY = (errno.ENOENT, errno.ECONNREFUSED, errno.EACCES, errno.EAGAIN)
"""Errors of a connect while a core recreates its socket, or when its queue is full."""

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


def not_connected(value: BaseException | None, seconds: float) -> NotConnectedError:
    """The error of a failed ``connect`` of an endpoint; ``seconds`` was its time-out."""
    if isinstance(value, NotConnectedError):
        return value
    if isinstance(value, (error.TimeoutError, error.UserError)):
        text = f"timed out connecting after {in_seconds(seconds)}"
        return NotConnectedError(text, timed_out=True)
    if isinstance(value, (error.DNSLookupError, error.UnknownHostError)):
        return NotConnectedError("host name not found")
    number = getattr(value, "osError", None)
    if number is None and isinstance(value, OSError):
        number = value.errno
    if number in _BY_ERRNO:
        return NotConnectedError(_BY_ERRNO[number], momentary=number in _MOMENTARY)
    if isinstance(value, error.ConnectionRefusedError):
        return NotConnectedError("connection refused", momentary=True)
    # Twisted has no number for a Unix socket before which too many connections wait.
    full = isinstance(value, error.ConnectError) and number is None
    return NotConnectedError(tls_reason(value) or "cannot connect", momentary=full)


def tls_reason(value: BaseException | None) -> str:
    """Why a TLS handshake failed, if that ended a connection, else nothing."""
    if isinstance(value, VerificationError):
        return "TLS: the certificate is not for this server name"
    if isinstance(value, SSL.Error) and not isinstance(value, SSL.ZeroReturnError):
        queue = value.args[0] if value.args and isinstance(value.args[0], list) else []
        words = [entry[-1] for entry in queue if entry and entry[-1]]
        return f"TLS: {words[0]}" if words else "TLS: handshake failed"
    return ""


def client_tls(
    name: str, *, verify: bool = True, ca_file: str = "", cert_file: str = "", key_file: str = ""
) -> IOpenSSLClientConnectionCreator:
    """What asks for a certificate of ``name``; OSError, ValueError, SSL.Error, crypto.Error.

    ``ca_file`` has the only authorities that count, default: those of the system. Loading them
    takes 10 to 20 ms, too much for each connection. ``cert_file`` is a certificate of our own,
    with those between it and an authority behind it, and its key unless ``key_file`` has that.
    """
    own: PrivateCertificate | None = None
    extra: dict[str, Any] = {}
    if cert_file:
        chain = _certificates(cert_file)
        pem = Path(cert_file).read_bytes() + b"\n" + Path(key_file or cert_file).read_bytes()
        own = PrivateCertificate.loadPEM(pem)
        if chain[1:]:
            extra["extraCertChain"] = [certificate.original for certificate in chain[1:]]
    if not verify:
        if own is not None:
            extra["privateKey"] = own.privateKey.original
            extra["certificate"] = own.original
        return _Unverified(CertificateOptions(verify=False, **extra).getContext(), name)
    trust = trustRootFromCertificates(_certificates(ca_file)) if ca_file else None
    creator: IOpenSSLClientConnectionCreator = optionsForClientTLS(
        name, trustRoot=trust, clientCertificate=own, extraCertificateOptions=extra or None
    )
    return creator


def _certificates(path: str) -> list[Certificate]:
    pieces = Path(path).read_bytes().split(_BEGIN)[1:]
    if not pieces:
        raise ValueError(f"{path} holds no certificate")
    return [Certificate.loadPEM(_BEGIN + piece) for piece in pieces]


@implementer(IOpenSSLClientConnectionCreator)
@frozen(eq=False)
class _Unverified:
    """Encrypts without checking the certificate of the other side."""

    context: SSL.Context
    name: str

    def clientConnectionForTLS(self, _tlsProtocol: object) -> SSL.Connection:
        connection = SSL.Connection(self.context, None)
        connection.set_tlsext_host_name(self.name.encode("idna"))
        return connection
