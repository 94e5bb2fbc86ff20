"""Which addresses a webhook may reach: public ones, and what ``[webhooks] allow`` lists. Pure.

Rules: docs/spec/webhooks.md, "Addresses".
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from attrs import frozen

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
