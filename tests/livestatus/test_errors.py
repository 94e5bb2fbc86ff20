"""Reasons for the user: short, and without paths and addresses."""

import errno

import pytest
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.python.failure import Failure

from monrest.livestatus.core_errors import (
    ConnectError,
    connect_error,
    first_line,
    tls_error,
)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (error.ConnectError(errno.ENOENT, "/run/x"), "no such socket"),
        (error.ConnectError(errno.EACCES, "/run/x"), "permission denied"),
        (error.ConnectError(errno.ENOTSOCK, "/run/x"), "not a socket"),
        (error.ConnectError(errno.EAGAIN, "/run/x"), "too many connections waiting"),
        (error.ConnectionRefusedError(), "connection refused"),
        (error.ConnectionRefusedError(errno.ECONNREFUSED, "/run/x"), "connection refused"),
        (error.NoRouteError(errno.EHOSTUNREACH, "10.0.0.1"), "host unreachable"),
        (error.DNSLookupError("no results for core.example"), "host name not found"),
        (error.ConnectError(12345, "/run/x"), "cannot connect"),
        (PermissionError(errno.EACCES, "/run/x"), "permission denied"),
        (ConnectError("as it is"), "as it is"),
        (RuntimeError("/run/x"), "cannot connect"),
    ],
)
def test_connecting(value, reason):
    found = connect_error(Failure(value), 5.0)
    assert found.reason == reason
    assert not found.timed_out


def test_connecting_too_long():
    found = connect_error(Failure(error.TimeoutError()), 5.0)
    assert found.reason == "timed out connecting after 5 s"
    assert found.timed_out


def test_tls():
    verify = SSL.Error([("SSL routines", "", "certificate verify failed")])
    assert tls_error(Failure(verify)).reason == "TLS: certificate verify failed"
    assert tls_error(Failure(SSL.SysCallError(-1, "x"))).reason == "TLS: handshake failed"
    assert tls_error(Failure(VerificationError([]))).reason.startswith("TLS: the certificate")
    assert tls_error(Failure(SSL.ZeroReturnError())) is None
    assert tls_error(Failure(error.ConnectionDone())) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo", "one"),
        ("\n\none\r\n", "one"),
        ("a\tb\x00c", "a b c"),
        ("", ""),
        ("x" * 1000, "x" * 200),
    ],
)
def test_first_line(text, line):
    assert first_line(text) == line
