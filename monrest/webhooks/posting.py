"""One POST to a receiver that is not trusted (docs/spec/webhooks.md, "Sending").

A name is looked up once and the connection is made to an address that was checked; its certificate
must be for the name. No redirect is followed, and of the answer not more is read than says why a
message was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path
from socket import SOCK_STREAM, getaddrinfo
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen
from OpenSSL import SSL, crypto
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IStreamClientEndpoint
from twisted.internet.threads import deferToThreadPool

from monrest.base.clock import WallClock
from monrest.base.connecting import CONNECT_TIMEOUT, ExchangeError, client_tls
from monrest.base.http_client import HttpAnswer, HttpClient, in_time
from monrest.config import WebhooksConfig
from monrest.livestatus.core_errors import first_line
from monrest.webhooks.model import Receiver

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpNetwork: TypeAlias = IPv4Network | IPv6Network

_NAT64 = ip_network("64:ff9b::/96")
_UNICAST = ip_network("2000::/3")
"""The public addresses of version 6."""
_SPECIAL = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""Special-purpose addresses of the registries that Python 3.11 considers public."""
_LOW_32 = 0xFFFFFFFF


@frozen
class AllowedTargets:
    """``networks`` are reached by any name, ``names`` at all but link-local addresses.

    A name that begins with ``*.`` stands for everything below it.
    """

    networks: tuple[IpNetwork, ...] = ()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entries: Iterable[str]) -> AllowedTargets:
        """Read the list of the configuration; what is no network is a name."""
        networks: list[IpNetwork] = []
        names = set()
        for entry in entries:
            try:
                networks.append(ip_network(entry, strict=False))
            except ValueError:
                names.add(entry.lower().rstrip("."))
        return cls(tuple(networks), frozenset(names))

    def permits(self, host: str, address: str) -> bool:
        """Whether ``host``, which is at ``address``, may be reached there."""
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        forms = [ip, *_inside(ip)]
        if any(form in network for network in self.networks for form in forms):
            return True
        if any(form.is_link_local or form.is_multicast or form.is_unspecified for form in forms):
            return False
        return len(forms) == 1 and (_is_public(ip) or self._is_named(host))

    def _is_named(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        if name in self.names:
            return True
        parts = name.split(".")
        return any("*." + ".".join(parts[at:]) in self.names for at in range(1, len(parts)))


def _is_public(ip: IpAddress) -> bool:
    if (ip.version == 6 and ip not in _UNICAST) or any(ip in network for network in _SPECIAL):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _inside(ip: IpAddress) -> list[IpAddress]:
    """Return the addresses of version 4 that an address of version 6 stands for."""
    if isinstance(ip, IPv4Address):
        return []
    addresses: list[IpAddress | None] = [ip.ipv4_mapped, ip.sixtofour]
    if ip.teredo is not None:
        addresses += ip.teredo
    if ip in _NAT64 or (int(ip) >> 32 == 0 and int(ip) > 1):
        addresses.append(IPv4Address(int(ip) & _LOW_32))
    return [address for address in addresses if address is not None]


_MOST_READ = 2048
"""Bytes of the body of a refusal."""

_MOST_ADDRESSES = 3
_LONGEST_PAUSE = 86_400.0
_GONE = 410
_TRY_LATER = frozenset({429, 503})
_OF_RECEIVER = frozenset({401, 403, 404, 405, 407, 408, 425, 429, 502, 503, 504})
"""Statuses that say nothing about what was sent."""

ResolveHost: TypeAlias = Callable[[str], Deferred[Sequence[str]]]
"""Returns the addresses of a name, an address for itself; none, or a failure, for no name."""


@frozen(kw_only=True)
class PostResult:
    """The result of a POST: ``status`` None where there was no answer, ``error`` empty if taken.

    ``rest`` are the seconds for which the receiver wants to be left alone.
    """

    status: int | None = None
    error: str = ""
    rest: float = 0.0

    @property
    def taken(self) -> bool:
        return not self.error

    @property
    def gone(self) -> bool:
        """Whether the receiver wants nothing any more."""
        return self.status == _GONE

    @property
    def by_target(self) -> bool:
        """Whether the receiver takes nothing now."""
        status = self.status
        return not self.taken and (status is None or status < 400 or status in _OF_RECEIVER)


class RefusedTargetError(Exception):
    """A receiver that is not asked; the text says why."""


@define(eq=False, kw_only=True)
class Sender:
    """Sends to receivers; ``resolve`` looks a name up."""

    reactor: Any
    wall: WallClock
    resolve: ResolveHost
    config: WebhooksConfig
    _allowed: AllowedTargets = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._allowed = AllowedTargets.of(self.config.allow)

    def configure(self, config: WebhooksConfig) -> None:
        self.config, self._allowed = config, AllowedTargets.of(config.allow)

    async def post(self, to: Receiver, headers: Mapping[str, str], body: bytes) -> PostResult:
        """Send a body once and say what became of it; raises nothing but CancelledError."""
        try:
            return await in_time(self._post(to, headers, body), self.config.timeout, self.reactor)
        except CancelledError:
            raise
        except (RefusedTargetError, ExchangeError) as error:
            return PostResult(error=first_line(str(error)))
        except (SSL.Error, crypto.Error, OSError, ValueError) as error:
            return PostResult(error=first_line(f"cannot send: {error}"))

    async def _post(self, to: Receiver, headers: Mapping[str, str], body: bytes) -> PostResult:
        *others, last = await self._addresses(to)
        for address in others:
            try:
                return await self._post_to(address, to, headers, body)
            except ExchangeError as error:
                if error.connected:
                    raise
        return await self._post_to(last, to, headers, body)

    async def _addresses(self, to: Receiver) -> list[str]:
        """Look the name up, once, and return the addresses that may be reached."""
        try:
            addresses = list(await self.resolve(to.host))
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  any error of a resolver: there is no address
            addresses = []
        good = [
            fromkey
            for fromkey in dict.fromkeys(addresses)
            if self._allowed.permits(to.host, fromkey)
        ]
        if not good:
            # The same for a name that there is not: owners do not learn which internal names exist.
            raise RefusedTargetError(
                f"{to.host} has no address that is public or in webhooks.allow"
            )
        return good[:_MOST_ADDRESSES]

    async def _post_to(
        self, address: str, to: Receiver, headers: Mapping[str, str], body: bytes
    ) -> PostResult:
        endpoint = self._endpoint(address, to)
        # Connects to the address that was checked, not to the name in the URL.
        client = HttpClient(reactor=self.reactor, endpoint=lambda _: endpoint)
        answer = await client.ask("POST", to.url, {"User-Agent": "monrest", **headers}, body)
        try:
            return await self._understood(answer)
        finally:
            answer.close()

    async def _understood(self, answer: HttpAnswer) -> PostResult:
        status = answer.status
        if 200 <= status < 300:
            # Nothing of the body matters, however much there is.
            return PostResult(status=status)
        beginning = b""
        with suppress(ExchangeError):
            while len(beginning) < _MOST_READ and (piece := await answer.piece()):
                beginning += piece
        text = first_line(beginning[:_MOST_READ].decode("utf-8", "replace"))
        if 300 <= status < 400:
            return PostResult(status=status, error=f"status {status}: redirects are not followed")
        error = f"status {status}: {text}" if text else f"status {status}"
        result = PostResult(status=status, error=error)
        if status in _TRY_LATER:
            values = answer.headers.getRawHeaders(b"retry-after") or [b""]
            return evolve(result, rest=_seconds(values[0], self.wall.now()))
        return result

    def _endpoint(self, address: str, to: Receiver) -> IStreamClientEndpoint:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        seconds = min(CONNECT_TIMEOUT, self.config.timeout)
        endpoint: IStreamClientEndpoint = kind(self.reactor, address, to.port, timeout=seconds)
        if not to.secure:
            return endpoint
        file = self.config.ca_file
        changed = Path(file).stat().st_mtime_ns if file else 0
        return wrapClientTLS(_tls(to.host, file, changed), endpoint)


@lru_cache(maxsize=32)
def _tls(host: str, ca_file: str, _changed: int) -> IOpenSSLClientConnectionCreator:
    return client_tls(host, ca_file=ca_file)


def _seconds(value: bytes, now: float) -> float:
    """Read a Retry-After, which is seconds or a date; 0 for what is neither."""
    text = value.decode("ascii", "replace").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _LONGEST_PAUSE)
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - now, 0.0), _LONGEST_PAUSE)
    except (ValueError, TypeError, OverflowError):
        return 0.0


def resolver(reactor: Any) -> ResolveHost:
    """Asks the system for the addresses of a name."""

    def resolve(name: str) -> Deferred[Sequence[str]]:
        def addresses() -> list[str]:
            return [str(known[4][0]) for known in getaddrinfo(name, None, type=SOCK_STREAM)]

        return deferToThreadPool(reactor, reactor.getThreadPool(), addresses)

    return resolve
