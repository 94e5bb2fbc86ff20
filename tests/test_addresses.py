"""Addresses of sites and listeners as they stand in the configuration."""

import pytest

from monrest.config import parse_address, parse_listener


@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ("unix:/run/naemon/live", "unix", "/run/naemon/live"),
        ("tcp:core.example:6557", "tcp", ("core.example", 6557)),
        ("tcp:[::1]:6557", "tcp", ("::1", 6557)),
        ("tls:10.0.0.1:1", "tls", ("10.0.0.1", 1)),
        ("https://other:8443/mon", "https", "https://other:8443/mon"),
    ],
)
def test_addresses(text, kind, where):
    address = parse_address(text)
    assert address.kind == kind
    assert where in (address.path, address.url, (address.host, address.port))


@pytest.mark.parametrize(
    "text",
    ["", "unix:", "unix:relative", "tcp:host", "tcp:host:0", "tcp:host:65536", "tcp:a b:1",
     "tcp::1:1", "tls:host:x", "http:host", "http://", "unix:/a\n", "TCP:host:1"],
)  # fmt: skip
def test_wrong_addresses(text):
    with pytest.raises(ValueError, match="expected unix:PATH"):
        parse_address(text)


def test_listeners_keep_escaped_colons():
    listener = parse_listener(r"tcp6:8080:interface=\:\:1")
    assert listener.arguments == {"port": "8080", "interface": "::1"}
    assert parse_listener("tcp:port=80").arguments == {"port": "80"}
    assert parse_listener("systemd:domain=INET:name=monrest").files == ()
    assert parse_listener("ssl:1:privateKey=/k:certKey=/c").files == (
        ("privateKey", "/k"),
        ("certKey", "/c"),
    )


@pytest.mark.parametrize(
    "text",
    ["", "tcp", "tcp:", "tcp:x", "tcp:99999", "tcp:1:2", "ssl:1", "unix:x", "unix:/x:mode=9",
     "systemd:name=x", "systemd:domain=INET", "systemd:domain=INET:name=a:index=0"],
)  # fmt: skip
def test_wrong_listeners(text):
    with pytest.raises(ValueError, match="endpoint"):
        parse_listener(text)
