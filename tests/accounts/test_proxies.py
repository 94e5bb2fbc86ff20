"""Trusted proxies: who may speak for others, and whom they speak for."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.accounts.authenticate import Proxies
from tests.table import each

LOCAL = Proxies.of(("127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"))


@pytest.mark.parametrize(
    ("address", "trusted"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("::1", True),
        ("2001:db8:1::7", True),
        ("2001:db9::7", False),
        ("::ffff:10.0.0.1", True),
        ("::ffff:11.0.0.1", False),
        ("2001:db8::1%eth0", True),
        ("", False),
        ("unix", False),
        ("localhost", False),
        ("127.0.0.1 ", False),
        ("127.1", False),
        ("0x7f000001", False),
        ("10.0.0.1\n", False),
    ],
)
def test_who_is_trusted(address, trusted):
    assert LOCAL.trusts(address) is trusted
    assert not Proxies.of(()).trusts(address)


@each(
    ("peer", "forwarded", "client"),
    [
        # What a stranger says is nothing, wherever he says to come from.
        ("192.0.2.1", "", "192.0.2.1"),
        ("192.0.2.1", "127.0.0.1", "192.0.2.1"),
        ("192.0.2.1", "10.0.0.1, 127.0.0.1", "192.0.2.1"),
        ("", "127.0.0.1", ""),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("127.0.0.1", " 192.0.2.1 ", "192.0.2.1"),
        # The client wrote the first one himself; the proxy added the last one.
        ("127.0.0.1", "127.0.0.1, 192.0.2.1", "192.0.2.1"),
        ("127.0.0.1", "10.0.0.9,192.0.2.1,10.0.0.1", "192.0.2.1"),
        ("127.0.0.1", "10.0.0.9, 10.0.0.1", "10.0.0.9"),
        ("127.0.0.1", "198.51.100.1, 192.0.2.1, 10.0.0.1, ::1", "192.0.2.1"),
        # What is no address ends the walk at the last one who is known.
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "192.0.2.1, unknown, 10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "192.0.2.1, ", "127.0.0.1"),
        ("127.0.0.1", "<script>, 10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "192.0.2.1\nadmin", "127.0.0.1"),
        # Spellings.
        ("127.0.0.1", "192.0.2.1:4711", "192.0.2.1"),
        ("127.0.0.1", "[2001:db9::1]:4711", "2001:db9::1"),
        ("127.0.0.1", "[2001:db9::1]", "2001:db9::1"),
        ("127.0.0.1", "2001:DB9:0::1", "2001:db9::1"),
        ("127.0.0.1", "::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:127.0.0.1", "192.0.2.1", "192.0.2.1"),
    ],
)
def test_who_the_client_is(peer, forwarded, client):
    assert LOCAL.client(peer, forwarded) == client


def test_a_long_list_is_not_walked_for_ever():
    assert (
        LOCAL.client("127.0.0.1", "192.0.2.1," + "10.0.0.1," * 100_000 + "10.0.0.2") == "10.0.0.1"
    )


def test_what_is_no_network_is_refused():
    with pytest.raises(ValueError, match="localhost"):
        Proxies.of(("localhost",))


@given(st.ip_addresses().map(str), st.lists(st.one_of(st.ip_addresses().map(str), st.text())))
def test_a_stranger_is_who_he_is(peer, said):
    assert Proxies.of(()).client(peer, ",".join(said)) == peer


@given(st.lists(st.one_of(st.ip_addresses().map(str), st.text())), st.ip_addresses(v=4).map(str))
def test_what_a_client_sends_does_not_change_who_the_proxy_says_he_is(forged, real):
    proxies = Proxies.of(("127.0.0.1",))
    if real == "127.0.0.1":
        return
    assert proxies.client("127.0.0.1", ",".join([*forged, real])) == real


@given(st.ip_addresses(v=4).map(str), st.integers(0, 32))
def test_networks(address, length):
    network = str(ip_network(f"{address}/{length}", strict=False))
    assert Proxies.of((network,)).trusts(address)
