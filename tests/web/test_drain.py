"""The end of connections while requests arrive."""

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from tests.web.wire import get


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
