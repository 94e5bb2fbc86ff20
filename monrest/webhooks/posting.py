"""One POST to a receiver that nobody vouches for (docs/spec/webhooks.md, "Sending").

A name is looked up once and the connection is made to an address that was checked; its certificate
must be for the name. No redirect is followed, and of the answer not more is read than says why a
message was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen
from OpenSSL import SSL, crypto
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from monrest.base.clock import WallClock
from monrest.base.connecting import CONNECT_TIMEOUT, client_tls, in_seconds
from monrest.config import WebhooksConfig
from monrest.livestatus.core_errors import LivestatusError, first_line
from monrest.sites.federation.remote import WholeBody, exchange_problem
from monrest.webhooks.model import Receiver

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpNetwork: TypeAlias = IPv4Network | IPv6Network

_NAT64 = ip_network("64:ff9b::/96")
_UNICAST = ip_network("2000::/3")
"""All that is public of version 6."""
_SPECIAL = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""What the registries of special-purpose addresses list and Python 3.11 takes for public."""
_LOW_32 = 0xFFFFFFFF


@frozen
class AllowedTargets:
    """``networks`` are reached by whatever name, ``names`` at all but link-local addresses.

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
        if any(one in network for network in self.networks for one in forms):
            return True
        if any(one.is_link_local or one.is_multicast or one.is_unspecified for one in forms):
            return False
        return len(forms) == 1 and (_is_public(ip) or self._is_named(host))

    def _is_named(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        if name in self.names:
            return True
        parts = name.split(".")
        return any("*." + ".".join(parts[at:]) in self.names for at in range(1, len(parts)))


def _is_public(ip: IpAddress) -> bool:
    if (ip.version == 6 and ip not in _UNICAST) or any(ip in one for one in _SPECIAL):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _inside(ip: IpAddress) -> list[IpAddress]:
    """Give the addresses of version 4 that an address of version 6 stands for."""
    if isinstance(ip, IPv4Address):
        return []
    found: list[IpAddress | None] = [ip.ipv4_mapped, ip.sixtofour]
    if ip.teredo is not None:
        found += ip.teredo
    if ip in _NAT64 or (int(ip) >> 32 == 0 and int(ip) > 1):
        found.append(IPv4Address(int(ip) & _LOW_32))
    return [one for one in found if one is not None]


_MOST_RECEIVED = 65_536
"""Bytes of an answer, its head included."""

_MOST_READ = 2048
"""Bytes of the body of a refusal."""

_LINGER = 1.0
_MOST_ADDRESSES = 3
_LONGEST_PAUSE = 86_400.0
_GONE = 410
_TRY_LATER = frozenset({429, 503})
_OF_RECEIVER = frozenset({401, 403, 404, 405, 407, 408, 425, 429, 502, 503, 504})
"""Statuses that say nothing about what was sent."""

ResolveHost: TypeAlias = Callable[[str], Deferred[Sequence[str]]]
"""Gives the addresses of a name, an address for itself; none, or a failure, for no name."""


@frozen(kw_only=True)
class PostResult:
    """What became of a POST: ``status`` None where there was no answer, ``error`` empty if taken.

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
        """Whether the receiver takes nothing now, whatever is sent."""
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
        seconds = self.config.timeout
        sending = Deferred.fromCoroutine(self._post(to, headers, body))
        try:
            return await sending.addTimeout(seconds, self.reactor)
        except CancelledError:
            raise
        except DeferredTimeout:
            return PostResult(error=f"timed out after {in_seconds(seconds)}")
        except (RefusedTargetError, LivestatusError) as error:
            return PostResult(error=first_line(str(error)))
        except (SSL.Error, crypto.Error, OSError, ValueError) as error:
            return PostResult(error=first_line(f"cannot send: {error}"))

    async def _post(self, to: Receiver, headers: Mapping[str, str], body: bytes) -> PostResult:
        addresses = await self._addresses(to)
        last = PostResult()
        for address in addresses:
            last, connected = await self._post_to(address, to, headers, body)
            if connected:
                break
        return last

    async def _addresses(self, to: Receiver) -> list[str]:
        """Look the name up, once, and give the addresses that may be reached."""
        try:
            found = list(await self.resolve(to.host))
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  whatever a resolver says, there is no address
            found = []
        good = [one for one in dict.fromkeys(found) if self._allowed.permits(to.host, one)]
        if not good:
            # The same for a name that there is not: owners do not learn which internal names exist.
            raise RefusedTargetError(
                f"{to.host} has no address that is public or in webhooks.allow"
            )
        return good[:_MOST_ADDRESSES]

    async def _post_to(
        self, address: str, to: Receiver, headers: Mapping[str, str], body: bytes
    ) -> tuple[PostResult, bool]:
        """Send to one address; also gives whether there was a connection."""
        endpoint = _Counting(self.reactor, self._endpoint(address, to))
        pool = HTTPConnectionPool(self.reactor, persistent=False)
        agent = Agent.usingEndpointFactory(self.reactor, _Pinned(endpoint), pool)
        sent = {"User-Agent": ["monrest"]} | {name: [value] for name, value in headers.items()}
        try:
            response = await agent.request(
                b"POST", to.url.encode("ascii"), Headers(sent), WholeBody(body)
            )
            return await self._understood(response), True
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  the reason is what the owner sees
            if endpoint.too_much:
                return PostResult(error=f"an answer of more than {_MOST_RECEIVED} bytes"), True
            problem = exchange_problem(Failure(error), kept=False)
            return PostResult(error=problem.reason), endpoint.connected
        finally:
            endpoint.close()

    async def _understood(self, response: Any) -> PostResult:
        status = int(response.code)
        if 200 <= status < 300:
            # Nothing of the body matters, however much there is.
            return PostResult(status=status)
        reader = _Beginning(_MOST_READ)
        response.deliverBody(reader)
        said = first_line((await reader.done).decode("utf-8", "replace"))
        if 300 <= status < 400:
            return PostResult(status=status, error=f"status {status}: redirects are not followed")
        error = f"status {status}: {said}" if said else f"status {status}"
        result = PostResult(status=status, error=error)
        if status in _TRY_LATER:
            values = response.headers.getRawHeaders(b"retry-after") or [b""]
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


class _Beginning(Protocol):
    """Reads the beginning of a body."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.data = b""
        self.done: Deferred[bytes] = Deferred(lambda _: self._leave())
        self.ended = False

    def _leave(self) -> None:
        self.ended = True

    def dataReceived(self, data: bytes) -> None:
        """Collect up to the limit."""
        if not self.ended:
            self.data += data[: self.most - len(self.data)]
            if len(self.data) >= self.most:
                self._finish()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Give what there is, however it ended."""
        del reason
        if not self.ended:
            self._finish()

    def _finish(self) -> None:
        self.ended = True
        self.done.callback(self.data)


@implementer(IAgentEndpointFactory)
@frozen(eq=False)
class _Pinned:
    """Connects to the address that was checked, whatever the URL says."""

    endpoint: IStreamClientEndpoint

    def endpointForURI(self, _uri: object) -> IStreamClientEndpoint:
        return self.endpoint


class _CountedProtocol(ProtocolWrapper):
    """Ends a connection over which more comes than anybody needs."""

    received = 0

    def dataReceived(self, data: bytes) -> None:
        if self.received > _MOST_RECEIVED:
            self.factory.counting.too_much = True
            self.abortConnection()
            return
        # The piece that reaches the limit is read: it may be the first of a body.
        self.received += len(data)
        super().dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note that nothing is left to be closed."""
        self.factory.counting.wrapper = None
        super().connectionLost(reason)


class _CountedFactory(WrappingFactory):
    protocol = _CountedProtocol
    noisy = False

    def __init__(self, wrapped: Any, counting: _Counting) -> None:
        super().__init__(wrapped)
        self.counting = counting


@implementer(IStreamClientEndpoint)
@define(eq=False)
class _Counting:
    """Bounds what comes over a connection, since the head of an answer has no other bound."""

    reactor: Any
    endpoint: IStreamClientEndpoint
    connected: bool = field(init=False, default=False)
    too_much: bool = field(init=False, default=False)
    wrapper: _CountedProtocol | None = field(init=False, default=None)

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        def note(wrapper: Any) -> Any:
            self.connected, self.wrapper = True, wrapper
            return wrapper.wrappedProtocol

        connecting = self.endpoint.connect(_CountedFactory(protocolFactory, self))
        return connecting.addCallback(note)

    def close(self) -> None:
        """End the connection: politely, and where the other side does not let it end, anyhow."""
        if self.wrapper is not None:
            self.wrapper.loseConnection()
            self.reactor.callLater(_LINGER, self._abort)

    def _abort(self) -> None:
        if self.wrapper is not None:
            self.wrapper.abortConnection()


def resolver(reactor: Any) -> ResolveHost:
    """Give what asks the system for the addresses of a name."""

    def resolve(name: str) -> Deferred[Sequence[str]]:
        receiver = _Addresses()
        reactor.nameResolver.resolveHostName(receiver, name)
        return receiver.done

    return resolve


class _Addresses:
    """Collects what a resolver finds."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.done: Deferred[Sequence[str]] = Deferred(lambda _: self._leave())
        self._left = False

    def _leave(self) -> None:
        self._left = True

    def resolutionBegan(self, resolution: object) -> None:
        del resolution

    def addressResolved(self, address: Any) -> None:
        self.found.append(str(address.host))

    def resolutionComplete(self) -> None:
        if not self._left:
            self.done.callback(self.found)
