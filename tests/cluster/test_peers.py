"""Calls between nodes: seals that only the key makes, nodes that refuse, lie, hang or are not there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol

from monrest.base.names import Names
from monrest.cluster import seal
from monrest.cluster.model import PeerError, Pong
from monrest.cluster.peers import Peers

KEY, OTHER = seal.key_of("a" * 32), seal.key_of("b" * 32)
URL = "http://node:8080"
ANSWER = {
    "time": 1.5, "node_id": "7", "run": 3, "hostname": "h", "version": "1", "pid": 4,
    "maintenance": 0, "ready": True,
}  # fmt: skip


def answer(value, status="200 OK"):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return (f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


class Node(Protocol):
    """Answers every request with what ``factory.says`` makes of its number."""

    def connectionMade(self):
        self.received = b""
        self.factory.open.append(self)

    def dataReceived(self, data):
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, self.received = self.received.partition(b"\r\n\r\n")
            self.factory.heads.append(head.decode())
            (line,) = [one for one in head.decode().split("\r\n")
                       if one.lower().startswith("x-mon-cluster-auth")]  # fmt: skip
            said = self.factory.says(line.partition(": ")[2].partition(":")[0])
            if said is None:
                self.transport.abortConnection()
            elif said:
                self.transport.write(said)


async def call(says, waiting=(), key=KEY):
    """What a call gives to a node that speaks like this, and the heads of its requests."""
    factory = Factory.forProtocol(Node)
    factory.noisy = False
    factory.says, factory.open, factory.heads = says, [], []
    port = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)
    peers = Peers(reactor=reactor, names=Names(), key=key)
    try:
        url = f"http://127.0.0.1:{port.getHost().port}/"
        work = Deferred.fromCoroutine(peers.ping(url))
        if isinstance(waiting, list):
            waiting.append(work)
        return await work, factory.heads, url
    finally:
        await peers.close()
        await port.stopListening()
        for one in factory.open:
            one.transport.abortConnection()


async def test_a_good_answer():
    pong, (head,), url = await call(lambda number: answer(seal.sealed(KEY, number, ANSWER)))
    assert (pong.node_id, pong.run, pong.ready) == ("7", 3, True)
    assert head.startswith("GET /mon/r/mon/cluster/ping?url=")
    number, _, _ = head.partition("luster-Auth: ")[2].partition(":")
    assert seal.of_call(KEY, number, url.rstrip("/")) in head


LIES = {
    "another key": (
        lambda number: answer(seal.sealed(seal.key_of("x"), number, ANSWER)), "not sealed",
    ),
    "an old answer": (lambda _: answer(seal.sealed(KEY, "0" * 32, ANSWER)), "not sealed"),
    "no seal": (lambda _: answer(ANSWER), "not sealed"),
    "a seal of nothing": (lambda number: answer(seal.sealed(KEY, number, {})), "wrong answer: time"),
    "no JSON": (lambda _: answer(b"<html>"), "no JSON"),
    "a list": (lambda _: answer([1]), "no JSON object"),
    "no end": (lambda _: answer(b"x" * 100_000), "wrong answer: an answer of more than 16384 bytes"),
    "another service": (lambda _: answer(b"<html>", "404 Not Found"), "status 404"),
    "a refusal": (
        lambda _: answer({"message": "not a node of this cluster"}, "403 Forbidden"),
        "status 403: not a node of this cluster",
    ),
    "a redirect": (
        lambda _: b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        "status 302",
    ),
    "a cut": (lambda _: None, "the connection was closed"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
async def test_lies(name):
    says, words = LIES[name]
    with pytest.raises(PeerError, match=words):
        await call(says)


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{"]
)
async def test_who_waits_decides_for_how_long(said):
    waiting = []

    def says(_):
        reactor.callLater(0, waiting[0].cancel)
        return said

    with pytest.raises(CancelledError):
        await call(says, waiting)


async def test_a_connection_that_was_kept_too_long_is_tried_again_with_another_number():
    numbers = []

    def says(number):
        numbers.append(number)
        return answer(seal.sealed(KEY, number, ANSWER)) if len(numbers) > 1 else None

    pong, _, _ = await call(says)
    assert pong.node_id == "7"
    assert len(set(numbers)) == 2


async def test_nobody_there():
    peers = Peers(reactor=reactor, names=Names(), key=KEY)
    with pytest.raises(PeerError, match="no connection"):
        await peers.ping("http://127.0.0.1:1")
    await peers.close()


def test_a_call_and_its_answer():
    number = seal.new_number()
    credentials = seal.of_call(KEY, number, URL)
    assert seal.number_of_call(KEY, credentials, URL) == number
    answer = seal.sealed(KEY, number, ANSWER)
    assert seal.is_sealed(KEY, number, answer)
    assert Pong.read(answer).document["node_id"] == "7"


def test_the_secret_key_itself_is_not_the_key():
    assert b"a" * 16 not in KEY
    assert KEY != OTHER
    assert len(KEY) == 32


@pytest.mark.parametrize("url", ["http://other:8080", "", URL + "/", "\ud800", "http://n\x00de"])
def test_a_call_to_another_url(url):
    credentials = seal.of_call(KEY, seal.new_number(), URL)
    assert seal.number_of_call(KEY, credentials, url) is None


def test_a_number_is_good_for_one_call():
    used = seal.Used()
    numbers = [seal.new_number() for _ in range(seal._REMEMBERED)]
    assert all(used.first(one) for one in numbers)
    assert not any(used.first(one) for one in numbers)
    assert used.first(seal.new_number())
    assert len(used._seen) == len(numbers)


@given(st.text(max_size=120), st.text(max_size=40))
def test_what_anybody_sends_is_no_call(text, url):
    assert seal.number_of_call(KEY, text, url) is None


@given(st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_seal_of_another_cluster(number):
    assert seal.number_of_call(KEY, seal.of_call(OTHER, number, URL), URL) is None
    assert not seal.is_sealed(KEY, number, seal.sealed(OTHER, number, ANSWER))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ANSWER)), JSON)
def test_a_changed_answer(name, value):
    number = seal.new_number()
    answer = seal.sealed(KEY, number, ANSWER)
    if value != ANSWER[name] or type(value) is not type(ANSWER[name]):
        assert not seal.is_sealed(KEY, number, {**answer, name: value})
    assert not seal.is_sealed(KEY, seal.new_number(), answer)
    assert not seal.is_sealed(KEY, number, {**answer, seal.SEAL: value})


@given(st.sampled_from(sorted(ANSWER)), JSON)
def test_any_answer_is_read_or_refused(name, value):
    wanted = type(ANSWER[name])
    if type(value) is wanted or (name == "time" and type(value) is int):
        assert Pong.read({**ANSWER, name: value}) is not None
    else:
        with pytest.raises(PeerError, match=f"wrong answer: {name}"):
            Pong.read({**ANSWER, name: value})
    with pytest.raises(PeerError):
        Pong.read({key: one for key, one in ANSWER.items() if key != name})
