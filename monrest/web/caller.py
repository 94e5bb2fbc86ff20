"""Where a request comes from: the other end of the connection, and what trusted proxies say.

Forwarded headers count only from ``auth.trusted_proxies`` (docs/spec/http.md, "The caller").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import ISSLTransport

from monrest.accounts.proxies import Proxies
from monrest.base.unix_peer import credentials
from monrest.base.values import Caller


@frozen(kw_only=True)
class RemoteEnd:
    """The other end of a connection: an address, or the user of a Unix socket."""

    address: str = ""
    uid: int | None = None
    secure: bool = False


def peer_of(transport: Any) -> RemoteEnd:
    """Look at a connection that was just made."""
    other = transport.getPeer()
    if isinstance(other, (IPv4Address, IPv6Address)):
        # An IPv4 client of a listener for both families comes as ::ffff:192.0.2.1.
        address = other.host.removeprefix("::ffff:") if "." in other.host else other.host
        return RemoteEnd(address=address, secure=ISSLTransport.providedBy(transport))
    known = credentials(transport)
    return RemoteEnd(uid=known.uid if known else None)


def caller_of(
    method: str,
    headers: Mapping[str, str],
    peer: RemoteEnd,
    *,
    forwarded_for: str,
    proxies: Proxies,
) -> Caller:
    """Put together who calls; ``forwarded_for`` are all X-Forwarded-For headers, joined."""
    client, secure = peer.address or "unix", peer.secure
    if peer.address and proxies.trusts(peer.address):
        if forwarded_for:
            client = proxies.client(peer.address, forwarded_for)
        proto = headers.get("x-forwarded-proto", "")
        if proto:
            secure = proto.partition(",")[0].strip().lower() == "https"
    return Caller(
        method=method,
        headers=headers,
        address=peer.address,
        client=client,
        uid=peer.uid,
        secure=secure,
    )
