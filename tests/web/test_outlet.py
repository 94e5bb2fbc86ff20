"""Bodies without an end over real sockets (docs/spec/http.md, "Slow clients")."""

import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from monrest.base.values import Endless
from tests.web.wire import get, unchunked

MUCH = 40_000_000
"""Bytes that no system takes for a client that does not read."""


class Stream:
    """An answer whose outlet a test writes to; ``closed`` fires when it is over."""

    def __init__(self, served):
        self.outlet, self.begun, self.closed, self.over = None, Deferred(), Deferred(), Deferred()
        self.room = 0
        served.room.answers["/stream"] = Endless(content_type="text/plain", run=self.run)

    async def run(self, outlet):
        self.outlet = outlet
        outlet.on_room(self.count)
        self.begun.callback(None)
        try:
            await self.over
        finally:
            self.closed.callback(None)

    def count(self):
        self.room += 1

    async def until(self, condition):
        """Let the reactor turn until ``condition``."""
        for _ in range(20_000):
            if condition():
                return
            await deferLater(reactor, 0.001)
        raise AssertionError("it never came")


async def opened(serve, *more, server=(), **request):
    served = serve(**dict(server))
    stream = Stream(served)
    client = await served.connect()
    client.send(get("/stream", *more, **request))
    await stream.begun
    return served, stream, client


def body_of(client):
    """What came after the head, in its chunks or not."""
    head, _, rest = bytes(client.data).partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return rest
    whole, _ = unchunked(rest + b"0\r\n\r\n")
    return whole


@pytest_twisted.ensureDeferred
async def test_the_first_bytes_come_behind_the_head_and_all_in_their_order(serve):
    _, stream, client = await opened(serve)
    stream.outlet.write(b"at once;")
    await stream.until(lambda: stream.room)
    for number in range(100):
        stream.outlet.write(b"%d;" % number)
    expected = b"at once;" + b"".join(b"%d;" % number for number in range(100))
    await client.until(lambda wire: body_of(wire) == expected)
    assert client.data.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest_twisted.ensureDeferred
async def test_what_is_told_is_plain_ascii_where_all_json_is(serve):
    _, stream, client = await opened(serve, server={"ascii_json": True})
    stream.outlet.write('data: "Größe"\n\n'.encode())
    await stream.until(lambda: stream.room)
    stream.outlet.write('data: "€"\n\n'.encode())
    expected = rb'data: "Gr\u00f6\u00dfe"' + b"\n\n" + rb'data: "\u20ac"' + b"\n\n"
    await client.until(lambda wire: body_of(wire) == expected)


@pytest_twisted.ensureDeferred
async def test_a_client_of_http_1_0_gets_no_chunks(serve):
    _, stream, client = await opened(serve, version="1.0")
    await stream.until(lambda: stream.room)
    stream.outlet.write(b"plain")
    stream.over.callback(None)
    await client.lost
    assert b"chunked" not in client.data
    assert body_of(client) == b"plain"


@pytest_twisted.ensureDeferred
async def test_a_client_that_reads_again_has_lost_nothing(serve):
    _, stream, client = await opened(serve)
    await stream.until(lambda: stream.room)
    client.transport.pauseProducing()
    written = 0
    while not stream.outlet.paused:
        stream.outlet.write(b"%08d" % written * 4000)
        written += 1
        assert written * 32_000 < MUCH, "the client is never paused"
    stream.outlet.write(b"the end")
    told = stream.room
    client.transport.resumeProducing()
    expected = b"".join(b"%08d" % number * 4000 for number in range(written)) + b"the end"
    await client.until(lambda wire: len(wire.data) >= len(expected))
    await client.until(lambda wire: body_of(wire) == expected)
    await stream.until(lambda: stream.room > told)
    assert not stream.outlet.paused


@pytest_twisted.ensureDeferred
async def test_the_stream_of_a_client_that_goes_is_over(serve):
    _, stream, client = await opened(serve)
    await stream.until(lambda: stream.room)
    stream.outlet.write(b"one")
    await client.until(lambda wire: body_of(wire) == b"one")
    client.transport.abortConnection()
    await stream.closed
    stream.outlet.write(b"nobody reads this")
    assert body_of(client) == b"one"


@pytest_twisted.ensureDeferred
async def test_the_access_log_knows_how_much_was_sent(serve):
    served, stream, client = await opened(serve, "Connection: close")
    lines = []
    served.room.site.access_line = lambda fields, _seconds, _name: lines.append(fields)
    await stream.until(lambda: stream.room)
    for _ in range(10):
        stream.outlet.write(b"x" * 10)
    stream.over.callback(None)
    await client.lost
    assert body_of(client) == b"x" * 100
    assert [line["bytes"] for line in lines] == [100]
