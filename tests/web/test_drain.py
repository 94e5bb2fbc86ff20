"""The end of connections while requests run."""

import json

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from tests.web.room import rows
from tests.web.wire import get, one


async def test_drain_closes_idle_connections_at_once(serve):
    served = serve()
    client = await served.connect()
    await one(client, get("/hosts"))
    await served.room.site.drain(20)
    await client.lost
    assert not served.room.site.channels


async def test_drain_without_connections(serve):
    await serve().room.site.drain(20)


async def test_drain_lets_running_requests_finish(serve):
    served, gate = serve(), Deferred()

    async def slow(_):
        await gate
        return rows(20_000)

    served.room.answers["/slow"] = slow
    client = await served.connect()
    arrived = served.room.arrival()
    client.send(get("/slow") + get("/never"))
    await arrived
    drained = served.room.site.drain(20)
    assert not drained.called
    gate.callback(None)
    await drained
    await client.lost
    ((status, headers, body),) = client.replies()
    assert (status, headers["connection"]) == (200, "close")
    assert len(json.loads(body)) == 20_000
    assert len(served.room.seen) == 1


async def test_drain_waits_for_a_request_that_is_still_arriving(serve):
    served = serve()
    client = await served.connect()
    request = get("/hosts", "Content-Length: 3", method="POST")
    client.send(request)
    channel = await Deferred.fromCoroutine(first_busy(served.room.site))
    drained = served.room.site.drain(20)
    assert not drained.called
    assert channel in served.room.site.channels
    client.send("a=1")
    await drained
    await client.lost
    ((status, headers, _),) = client.replies()
    assert (status, headers["connection"]) == (200, "close")


async def first_busy(site):
    while True:
        for channel in site.channels:
            if channel.requests and channel.requests[0].content is not None:
                return channel
        turn = Deferred()
        reactor.callLater(0, turn.callback, None)
        await turn


async def test_drain_has_a_limit(serve):
    served = serve()

    async def hang(_):
        await Deferred()

    served.room.answers["/hosts"] = hang
    client = await served.connect()
    arrived = served.room.arrival()
    client.send(get("/hosts"))
    await arrived
    await served.room.site.drain(0.05)
    await client.lost
    assert client.data == b""
