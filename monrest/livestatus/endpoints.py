"""From a site's configuration to a Twisted endpoint: Unix sockets, TCP, TLS.

Plain Livestatus is neither encrypted nor authenticated; ``tls:`` is the same protocol inside TLS,
with the server's certificate checked unless the operator says no. Addresses of other instances are
reached in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from OpenSSL import SSL, crypto
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.endpoints import HostnameEndpoint, UNIXClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.base.connecting import CONNECT_TIMEOUT, NotConnectedError, client_tls
from monrest.livestatus.core_errors import ConnectError, connect_error

if TYPE_CHECKING:
    from monrest.config.sections import SiteConfig

_LONGEST_PATH = 107


def endpoint_for(reactor: Any, config: SiteConfig) -> IStreamClientEndpoint:
    """The endpoint of one site; certificates are read now, so that renewed ones count.

    What makes connecting impossible (an unknown kind of address, an unreadable certificate) shows
    as a failing ``connect``, like a site that is not there.
    """
    try:
        where = config.where()
    except ValueError:
        return _Impossible("the address is not understood")
    if where.kind == "unix":
        # Twisted would leave such a connect hanging.
        if len(where.path.encode()) > _LONGEST_PATH:
            return _Impossible("socket path too long")
        return UNIXClientEndpoint(reactor, where.path, timeout=CONNECT_TIMEOUT)
    endpoint = HostnameEndpoint(reactor, where.host, where.port, timeout=CONNECT_TIMEOUT)
    if not where.encrypted:
        return endpoint
    try:
        creator = _tls(
            config.tls_server_name or where.host,
            config.tls_verify,
            _stamped(config.tls_ca_file),
            _stamped(config.tls_cert_file),
            _stamped(config.tls_key_file or config.tls_cert_file),
        )
    except OSError:
        return _Impossible("a TLS certificate or key file cannot be read")
    except (SSL.Error, crypto.Error, ValueError):
        return _Impossible("a TLS certificate or key file is not valid")
    return wrapClientTLS(creator, endpoint)


def uses_tls(config: SiteConfig) -> bool:
    """Whether a connection only counts as made after a handshake."""
    return config.address.startswith("tls:")


def _stamped(path: str) -> tuple[str, int]:
    return (path, Path(path).stat().st_mtime_ns) if path else ("", 0)


@lru_cache(maxsize=1024)
def _tls(
    name: str, verify: bool, ca: tuple[str, int], cert: tuple[str, int], key: tuple[str, int]
) -> IOpenSSLClientConnectionCreator:
    return client_tls(name, verify=verify, ca_file=ca[0], cert_file=cert[0], key_file=key[0])


@implementer(IStreamClientEndpoint)
@define(eq=False)
class AlternativeEndpoints:
    """Several addresses of the same: the one that answered last is tried first."""

    reactor: Any
    configs: Sequence[SiteConfig]
    _at: int = field(init=False, default=0)

    def skip(self) -> None:
        """Begin with the next one from now on."""
        self._at = (self._at + 1) % len(self.configs)

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect to the first that can be reached; fails as the last one does."""
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: IProtocolFactory) -> IProtocol:
        count, first = len(self.configs), self._at
        seconds = CONNECT_TIMEOUT / count
        errors: list[ConnectError] = []
        for turn in range(count):
            at = (first + turn) % count
            attempt = endpoint_for(self.reactor, self.configs[at]).connect(factory)
            if count > 1:
                attempt.addTimeout(seconds, self.reactor)
            try:
                protocol: IProtocol = await attempt
            except CancelledError:
                raise
            except Exception:  # noqa: BLE001  the next one may be there
                errors.append(connect_error(Failure(), seconds))
                continue
            self._at = at
            return protocol
        raise next((error for error in errors if error.momentary), errors[-1])


@implementer(IStreamClientEndpoint)
@frozen(eq=False)
class _Impossible:
    """Fails every attempt with the same reason."""

    reason: str

    def connect(self, _protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        return fail(NotConnectedError(self.reason))
