"""Own words, who is let in, who is at the other end of a connection or a proxy, and bugs: in memory."""

import json
import os
import socket

import pytest
from attrs import evolve
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

from monrest.accounts.authenticate import Proxies
from monrest.base.names import Names
from monrest.web.app import caller_of
from monrest.web.channel import RemoteEnd, peer_of
from tests.web.room import KEY, Room, asking, rows

ROOT = "/mon/r"
OWN = {"X-Abc-Auth-Key": KEY, "X-Abc-Auth-User": "ann"}


def refused(reply, code, message):
    document = json.loads(reply.body)
    assert document.pop("failed") is True
    assert set(document) == {"code", "message", "description"}
    assert (reply.status, document["code"]) == (code, code)
    assert document["message"] == message
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-request-id"]
    return document["description"]


def test_the_root_has_the_words_of_the_site(clock):
    room = Room(clock, names=Names(app="abc"))
    ask = asking(room)
    assert ask("/abc/r/hosts", headers=OWN).status == 200
    assert room.seen[0].path == "/hosts"
    refused(ask("/mon/r/hosts"), 404, "not found")


def test_what_programs_ask_beside_the_root(clock):
    room = Room(clock, names=Names(app="abc"))
    ask = asking(room)
    for path in ("/-/healthy", "/-/ready", "/metrics", "/openapi.json", "//metrics"):
        assert ask(path, headers=OWN).status == 200, path
    paths = ["/abc/healthy", "/abc/ready", "/abc/metrics", "/openapi.json", "/abc/metrics"]
    assert [one.path for one in room.seen] == paths


def test_a_bug_shows_nothing_of_itself(room, ask, stray_failures):
    stray_failures.append(ZeroDivisionError)

    async def broken(_):
        return 1 / 0

    room.answers["/hosts"] = broken
    reply = ask(f"{ROOT}/hosts")
    description = refused(reply, 500, "internal server error")
    assert reply.headers["x-request-id"] in description
    assert b"division" not in reply.body


def test_a_bug_in_rendering_too(room, ask, stray_failures):
    stray_failures.append(ZeroDivisionError)
    room.answers["/hosts"] = evolve(rows(3), expand=lambda _: 1 / 0)
    refused(ask(f"{ROOT}/hosts"), 500, "internal server error")


NO_CONTACT = {"X-Mon-Auth-Key": None, "X-Mon-Auth-User": None}


def test_a_public_path_asks_nobody_who_it_is(room, ask):
    assert ask(f"{ROOT}/open", "POST", NO_CONTACT).status == 200
    assert room.seen[0].identity.source == "none"
    assert ask(f"{ROOT}/open", "POST", {"X-Mon-Auth-Key": "wrong"}).status == 200
    assert ask(f"{ROOT}/open", "GET", NO_CONTACT).status == 401
    assert ask(f"{ROOT}/hosts", "POST", NO_CONTACT).status == 401


class Transport:
    def __init__(self, peer, handle=None):
        self.peer, self.socket = peer, handle

    def getPeer(self):
        return self.peer


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (IPv4Address("TCP", "192.0.2.1", 1), "192.0.2.1"),
        (IPv6Address("TCP", "2001:db8::1", 1), "2001:db8::1"),
        (IPv6Address("TCP", "::ffff:192.0.2.1", 1), "192.0.2.1"),
    ],
)
def test_the_other_end_of_a_connection(peer, address):
    assert peer_of(Transport(peer)) == RemoteEnd(address=address)


def test_the_user_of_a_unix_socket():
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_of(Transport(UNIXAddress(""), ours)).uid == os.getuid()
    assert peer_of(Transport(UNIXAddress(""))).uid is None


@pytest.mark.parametrize(
    ("address", "forwarded", "proto", "client", "secure"),
    [
        ("192.0.2.1", "", "", "192.0.2.1", False),
        ("192.0.2.1", "127.0.0.1", "https", "192.0.2.1", False),
        ("10.0.0.1", "192.0.2.9", "", "192.0.2.9", False),
        ("10.0.0.1", "127.0.0.1, 192.0.2.9", "https", "192.0.2.9", True),
        ("10.0.0.1", "192.0.2.9, 10.0.0.2", "HTTPS, http", "192.0.2.9", True),
        ("10.0.0.1", "nonsense", "http", "10.0.0.1", False),
        ("", "192.0.2.9", "https", "unix", False),
    ],
)
def test_forwarded_headers_count_from_trusted_proxies_only(
    address, forwarded, proto, client, secure
):
    caller = caller_of(
        "GET",
        {"x-forwarded-proto": proto} if proto else {},
        RemoteEnd(address=address),
        forwarded_for=forwarded,
        proxies=Proxies.of(["10.0.0.0/8"]),
    )
    assert (caller.client, caller.secure, caller.address) == (client, secure, address)


def test_repeated_forwarded_headers_are_read_as_one_list(clock):
    room = Room(clock, behind_proxy=True)
    ask = asking(room)
    ask(f"{ROOT}/hosts", headers={"X-Forwarded-For": ["127.0.0.1", "192.0.2.9"]})
    assert room.seen[0].caller.client == "192.0.2.9"
