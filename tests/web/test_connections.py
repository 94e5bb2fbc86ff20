"""Connections that are left, or end with their answer."""

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from monrest.base.errors import BadRequest
from tests.web.wire import get


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
