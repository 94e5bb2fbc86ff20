"""Which neighbours may speak for others, and who the client behind them is.

Forwarded headers count only from ``auth.trusted_proxies`` (docs/spec/http.md, "The caller"): what
anybody else says about addresses is made up.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from attrs import define, field

IPAddress: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_MOST_HOPS = 32
_REMEMBERED = 1024


@define(eq=False)
class Proxies:
    """The trusted ones."""

    trusted: tuple[Network, ...]
    _known: dict[str, bool] = field(factory=dict, init=False)

    @classmethod
    def of(cls, trusted: Iterable[str]) -> Proxies:
        """Read addresses and networks such as ``10.0.0.0/8``; ValueError for anything else."""
        return cls(tuple(ip_network(one) for one in trusted))

    def trusts(self, address: str) -> bool:
        """Whether the neighbour with this address may speak for others; nobody without one."""
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            read = _address(address)
            known = self._known[address] = read is not None and self._among(read)
        return known

    def client(self, peer: str, forwarded_for: str) -> str:
        """Give the client's address from the other end of a connection and X-Forwarded-For.

        Every proxy appends whom it was asked by, so the list is read from its end, for as long
        as the one who says so is trusted. What is no address ends it as well.
        """
        client = peer
        if not self.trusts(peer):
            return client
        for text in reversed(forwarded_for.split(",")[-_MOST_HOPS:]):
            read = _address(_without_port(text.strip()))
            if read is None:
                break
            client = str(read)
            if not self._among(read):
                break
        return client

    def _among(self, address: IPAddress) -> bool:
        return any(address in network for network in self.trusted)


def _address(text: str) -> IPAddress | None:
    """Read an address; IPv4 inside IPv6 is IPv4, and the zone of a link-local one is no matter."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
