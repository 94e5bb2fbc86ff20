"""Connections that are kept, pipelined, or left."""

import json

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from monrest.base.errors import BadRequest
from monrest.base.values import Document
from tests.web.wire import get, one


async def test_keep_alive(serve):
    client = await serve().connect()
    for number in range(3):
        status, headers, body = await one(client, get(f"/x{number}"))
        assert (status, json.loads(body)) == (200, {"path": f"/x{number}"})
        assert "connection" not in headers
    assert not client.closed


async def test_pipelined_requests_are_answered_in_order(serve):
    served = serve()
    gate = Deferred()

    async def slow(_):
        await gate
        return Document(value="slow")

    served.room.answers["/slow"] = slow
    client = await served.connect()
    arrived = served.room.arrival()
    client.send(get("/slow") + get("/fast") + get("/last", "Connection: close"))
    await arrived
    assert client.data == b""
    gate.callback(None)
    await client.until(lambda wire: wire.closed)
    bodies = [json.loads(body) for _, _, body in client.replies()]
    assert bodies == ["slow", {"path": "/fast"}, {"path": "/last"}]


async def test_http_one_zero_ends_the_connection(serve):
    client = await serve().connect()
    client.send(get("/hosts", version="1.0"))
    await client.until(lambda wire: wire.closed)
    assert client.data.endswith(b'\r\n\r\n{"path":"/hosts"}\n')


async def test_a_client_that_leaves_cancels_its_request(serve):
    served, cancelled = serve(), Deferred()

    async def hang(_):
        try:
            await Deferred()
        except CancelledError:
            cancelled.callback(None)
            raise

    served.room.answers["/hosts"] = hang
    client = await served.connect()
    arrived = served.room.arrival()
    client.send(get("/hosts"))
    await arrived
    client.transport.abortConnection()
    await cancelled.addTimeout(300, reactor)


async def test_a_client_that_leaves_while_its_problems_are_written(serve):
    """Many problems are written in a thread, for which then no request waits any more."""
    served, going = serve(), Deferred()
    writing, run = Deferred(), served.room.threads.run

    async def refuse(_):
        await going
        raise BadRequest("wrong", "all of them", extra={"problems": [{}] * 1000})

    def held(function):
        writing.callback(None)
        return Deferred()

    served.room.answers["/hosts"] = refuse
    client = await served.connect()
    arrived = served.room.arrival()
    client.send(get("/hosts"))
    await arrived
    await deferLater(reactor, 0, lambda: None)  # the request waits by now
    served.room.threads.run = held
    going.callback(None)
    await writing
    served.room.threads.run = run
    (channel,) = served.room.site.channels
    client.transport.abortConnection()
    while channel in served.room.site.channels:
        await deferLater(reactor, 0.01, lambda: None)
