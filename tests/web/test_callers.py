"""Who is let in: public paths, sessions and their tokens, proxies, further headers of answers."""

import json
import os
import socket

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

from monrest.accounts.authenticate import Proxies
from monrest.base.errors import Forbidden, TooManyRequests
from monrest.base.values import Document
from monrest.web.app import caller_of
from monrest.web.channel import RemoteEnd, peer_of
from tests.fakes.door import Session

ROOT = "/mon/r"
NO_CONTACT = {"X-Mon-Auth-Key": None, "X-Mon-Auth-User": None}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_a_public_path_asks_nobody_who_it_is(room, ask):
    assert ask(f"{ROOT}/open", "POST", NO_CONTACT).status == 200
    assert room.seen[0].identity.source == "none"
    assert ask(f"{ROOT}/open", "POST", {"X-Mon-Auth-Key": "wrong"}).status == 200
    assert ask(f"{ROOT}/open", "GET", NO_CONTACT).status == 401
    assert ask(f"{ROOT}/hosts", "POST", NO_CONTACT).status == 401


@pytest.fixture
def by_cookie(room):
    room.sessions.known["c0ffee"] = Session(csrf_token="t0ken")
    return {**NO_CONTACT, **FORM, "Cookie": "other=1; mon_auth=c0ffee"}


def test_reading_needs_no_token(room, ask, by_cookie):
    assert ask(f"{ROOT}/hosts?CSRFtoken=x", "GET", by_cookie).status == 200
    assert room.seen[0].identity.user == "ann"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_changing_by_cookie_needs_the_token(room, ask, by_cookie, method):
    for path in ("/hosts", "/hosts?CSRFtoken=wrong", "/hosts?CSRFtoken="):
        reply = ask(f"{ROOT}{path}", method, by_cookie)
        assert (reply.status, json.loads(reply.body)["message"]) == (403, "CSRF Security Alert")
    assert room.seen == []
    assert ask(f"{ROOT}/hosts?CSRFtoken=t0ken&a=1", method, by_cookie).status == 200
    assert room.seen[0].parameters == (("a", "1"),)
    assert ask(f"{ROOT}/hosts", method, {**by_cookie, "X-Mon-CSRF-Token": "t0ken"}).status == 200


def test_the_token_may_stand_in_the_body(room, ask, by_cookie):
    assert ask(f"{ROOT}/hosts", "POST", by_cookie, b"token=t0ken&a=1").status == 200
    assert room.seen[0].parameters == (("a", "1"),)
    as_json = {**by_cookie, "Content-Type": "application/json"}
    assert ask(f"{ROOT}/hosts", "POST", as_json, b'{"CSRFtoken": "t0ken"}').status == 200


def test_a_key_needs_no_token_whatever_cookie_comes_along(room, ask, by_cookie):
    del by_cookie["X-Mon-Auth-Key"], by_cookie["X-Mon-Auth-User"]
    assert ask(f"{ROOT}/hosts", "POST", by_cookie).status == 200
    assert room.seen[0].identity.source == "secret_key"


def test_answers_and_errors_carry_further_headers(room, ask):
    room.answers["/login"] = Document(
        value={}, headers=(("Set-Cookie", "a=1; HttpOnly"), ("Set-Cookie", "b=2"))
    )
    assert ask(f"{ROOT}/login").headers["set-cookie"] == "a=1; HttpOnly, b=2"
    room.answers["/slow"] = TooManyRequests("too many", "wait", 2.2)
    reply = ask(f"{ROOT}/slow")
    assert (reply.status, reply.headers["retry-after"]) == (429, "3")


def test_an_error_document_has_further_members(room, ask):
    room.answers["/no"] = Forbidden("no", "never", extra={"problems": [1], "code": 1})
    assert json.loads(ask(f"{ROOT}/no").body) == {
        "code": 403,
        "failed": True,
        "message": "no",
        "description": "never",
        "problems": [1],
    }


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
    from tests.web.room import Room, asking

    room = Room(clock, behind_proxy=True)
    ask = asking(room)
    ask(f"{ROOT}/hosts", headers={"X-Forwarded-For": ["127.0.0.1", "192.0.2.9"]})
    assert room.seen[0].caller.client == "192.0.2.9"
