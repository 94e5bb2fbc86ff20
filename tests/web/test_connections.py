"""Connections that are left, that end, or that stand still."""

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock, deferLater

from monrest.base.errors import BadRequest
from monrest.web.limits import HEAD_SECONDS, Pace
from tests.web.wire import get, one


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


async def test_http_one_zero_ends_the_connection(serve):
    client = await serve().connect()
    client.send(get("/hosts", version="1.0"))
    await client.until(lambda wire: wire.closed)
    assert client.data.endswith(b'\r\n\r\n{"path":"/hosts"}\n')


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


def test_a_pause_of_the_process_is_nobodys_fault():
    clock, received, late = Clock(), [0], []
    pace = Pace(clock, 100, 30.0)
    pace.begin(lambda: received[0], lambda: late.append(clock.seconds()))
    clock.advance(300)
    assert late == []
    clock.advance(30)
    assert late == [330]


async def test_the_head_of_a_request_may_go_on_behind_a_pause(serve):
    clock = Clock()
    served = serve(clock=clock)
    client = await served.connect()
    whole = get("/hosts")
    client.send(whole[:20])
    while not any(channel._head_due for channel in served.room.site.channels):
        await one(await served.connect(), get("/fine"))
    clock.advance(HEAD_SECONDS + 20)
    assert not client.data
    assert (await one(client, whole[20:]))[0] == 200
