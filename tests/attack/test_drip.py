"""Clients that send and read drop by drop, over real connections; the time is moved, not slept."""

import json
import socket
from functools import partial

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater

from tests.web.conftest import serve
from tests.web.room import rows
from tests.web.wire import get, one

__all__ = ["serve"]


@pytest.fixture
def clock():
    return Clock()


async def settled(clock, condition):
    """Let the reactor turn until ``condition`` is true; no time passes on ``clock``."""
    done = Deferred()

    def look():
        clock.advance(0)
        if condition():
            done.callback(None)
        else:
            reactor.callLater(0.001, look)

    look()
    await done.addTimeout(300, reactor)


def timed_out(client):
    """The connection ended with this answer: too slow."""
    ((status, headers, body),) = client.replies()
    document = json.loads(body)
    assert (status, document["code"], document["failed"]) == (408, 408, True)
    assert headers["connection"] == "close"
    return document["description"]


async def test_a_head_has_thirty_seconds(serve, clock):
    served = serve(clock=clock)
    client = await served.connect()
    for letter in "GET /mon/r/hosts HTTP/1.1\r\nX-A: b"[:29]:
        client.send(letter)
        await settled(
            clock, lambda: all(channel._head_due for channel in served.room.site.channels)
        )
        clock.advance(1)
    assert not client.data
    clock.advance(1.5)
    await client.until(lambda wire: wire.replies())
    assert timed_out(client) == "expected the head of the request within 30 seconds"
    client.transport.loseConnection()
    await client.lost
    assert served.room.seen == []


async def test_each_head_has_its_own_thirty_seconds(serve, clock):
    served = serve(clock=clock)
    client = await served.connect()
    for _ in range(4):
        client.send(get("/hosts")[:40])
        await settled(
            clock, lambda: any(channel._head_due for channel in served.room.site.channels)
        )
        clock.advance(29)
        assert (await one(client, get("/hosts")[40:]))[0] == 200
        clock.advance(29)
    # What was sent behind a request is a head of its own, whose time begins with its turn.
    assert (await one(client, get("/hosts") + "GET /mon"))[0] == 200
    clock.advance(31)
    await client.until(lambda wire: len(wire.replies()) == 6)
    assert client.replies()[-1][0] == 408


@pytest.mark.parametrize("kind", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
async def test_a_body_that_drips_ends(serve, clock, kind):
    served = serve(clock=clock)
    client = await served.connect()
    client.send(get("/hosts", kind, method="POST"))
    await settled(clock, lambda: any(channel.requests for channel in served.room.site.channels))
    for _ in range(15):
        client.send("1\r\na\r\n" if "chunked" in kind else "a")
        clock.advance(1.9)
    assert not client.data
    clock.advance(1.9)
    await client.until(lambda wire: wire.replies())
    assert timed_out(client) == "expected at least 15000 bytes of the body in 30 seconds"
    assert served.room.seen == []
    assert served.room.site.intake.held == 0


async def test_a_slow_line_may_send_a_long_body(serve, clock):
    served = serve(clock=clock)
    client = await served.connect()
    client.send(get("/hosts", "Content-Length: 90000", method="POST"))
    (channel,) = served.room.site.channels
    for sent in range(6000, 90_001, 6000):
        assert not client.data
        client.send("a" * 6000)
        await settled(clock, partial(lambda sent: channel._received >= sent, sent))
        clock.advance(10)
    await client.until(lambda wire: wire.replies())
    assert client.replies()[0][0] == 200


def reader(served, path):
    """A client with small buffers that reads when it is told to."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", served.number))
    connection.sendall(get(path).encode())
    connection.setblocking(False)
    return connection


async def behind(served, clock):
    """Wait until the daemon waits for its only client; the channel."""
    await settled(clock, lambda: any(one._waitingForTransport for one in served.room.site.channels))
    (channel,) = served.room.site.channels
    return channel


def drained(connection, most):
    """Read up to ``most`` bytes that are there."""
    try:
        return len(connection.recv(most))
    except BlockingIOError:
        return 0


async def test_a_reader_that_drips_is_cut_off(serve, clock):
    served = serve(clock=clock)
    served.room.answers["/hosts"] = rows(20_000, "x" * 1000)
    with reader(served, "/hosts") as connection:
        await behind(served, clock)
        for _ in range(29):
            drained(connection, 1)
            clock.advance(2)
        assert served.room.site.channels
        for _ in range(4):  # one that is late by more than a second is no fault of the reader
            clock.advance(1)
        await settled(clock, lambda: not served.room.site.channels)


async def test_a_slow_line_may_read_a_long_answer(serve, clock):
    served = serve(clock=clock)
    served.room.answers["/hosts"] = rows(20_000, "x" * 1000)
    with reader(served, "/hosts") as connection:
        channel = await behind(served, clock)
        start = channel.taken()
        for _ in range(300):
            left = 1000
            while left > 0:
                left -= drained(connection, left)
                await deferLater(reactor, 0)
            clock.advance(1)
        assert channel.taken() - start > 250_000
        assert served.room.site.channels == {channel}


async def test_a_small_answer_may_be_read_at_leisure(serve, clock):
    served = serve(clock=clock)
    served.room.answers["/hosts"] = rows(400)
    with reader(served, "/hosts") as connection:
        await settled(clock, lambda: any(one._written for one in served.room.site.channels))
        received = 0
        for _ in range(70):
            received += drained(connection, 1000)
            await deferLater(reactor, 0)
            clock.advance(1)
        while received < 46_000:
            received += drained(connection, 1000)
            await deferLater(reactor, 0)
        assert received >= 46_000
