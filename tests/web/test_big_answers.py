"""Large answers: slow readers, gzip, answers that break, clients that leave, and what they held."""

import gc
import gzip
import json
import socket
import weakref

import pytest
from attrs import evolve
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.web.http_headers import Headers

from monrest.base.answer_file import AnswerFiles
from monrest.base.concurrency import Threads
from monrest.base.values import Column, Rows
from monrest.render.formats import RenderOptions
from monrest.web.respond import Responder
from tests.fakes.sites import outcome
from tests.web.room import rows
from tests.web.wire import get, one


async def test_big_answers_come_whole_and_in_pieces(serve):
    served = serve()
    client = await served.connect()
    for accept in ("identity", "gzip;q=0.5, identity"):
        served.room.answers["/hosts"] = rows(20_000)
        status, headers, body = await one(client, get("/hosts", f"Accept-Encoding: {accept}"))
        assert (status, headers["content-length"]) == (200, str(len(body)))
        packed = headers.get("content-encoding") == "gzip"
        assert packed is accept.startswith("gzip")
        found = json.loads(gzip.decompress(body) if packed else body)
        assert [row["id"] for row in found] == list(range(20_000))
    assert not client.closed


async def test_a_reader_that_waits_gets_the_rest_when_it_reads_again(serve):
    """Meanwhile its answer is in a file, of which a few pieces wait in memory."""
    served = serve()
    served.room.answers["/hosts"] = rows(20_000, "x" * 1000)
    client = await served.connect()
    client.transport.getHandle().setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.send(get("/hosts"))
    await client.until(lambda wire: wire.data)
    client.transport.pauseProducing()
    (channel,) = served.room.site.channels
    paused = Deferred()

    def look(before):
        if channel._waitingForTransport and channel.taken() == before:
            paused.callback(None)
        else:
            reactor.callLater(0.02, look, channel.taken())

    look(-1)
    await paused.addTimeout(300, reactor)
    transport = channel.transport
    waiting = len(transport.dataBuffer) + sum(map(len, transport._tempDataBuffer))
    assert waiting < 1 << 18
    client.transport.resumeProducing()
    await client.until(lambda wire: wire.data.endswith(b"]\n"))
    assert len(json.loads(client.replies()[0][2])) == 20_000


class Kept(list):
    """Rows whose end can be seen."""


async def test_a_client_that_leaves_takes_its_answer_along(serve):
    """Nothing of it waits for a collection of garbage."""
    served, kept = serve(), []

    async def many(_):
        answer = rows(60_000, "x" * 1000)
        answer = evolve(answer, rows=Kept(answer.rows))
        kept.append(weakref.ref(answer.rows))
        return answer

    served.room.answers["/hosts"] = many
    client = await served.connect()
    gc.disable()
    try:
        client.send(get("/hosts"))
        await client.until(lambda wire: len(wire.data) > 100_000)
        assert kept[0]() is not None
        client.transport.abortConnection()
        await client.lost
        assert (await one(await served.connect(), get("/fine")))[0] == 200
        assert kept[0]() is None
    finally:
        gc.enable()


async def test_a_large_answer_that_breaks_is_an_error(serve, stray_failures):
    """Nothing is sent before all of it is made."""
    stray_failures.append(ZeroDivisionError)
    served = serve()

    def breaks(row):
        return {} if row[0] < 10_000 else 1 / 0

    answer = rows(20_000)
    served.room.answers["/hosts"] = Rows(columns=answer.columns, rows=answer.rows, expand=breaks)
    client = await served.connect()
    status, _, body = await one(client, get("/hosts"))
    assert (status, json.loads(body)["code"]) == (500, 500)


class Client:
    """A request of somebody who leaves before anything of the answer is sent."""

    method, code, channel = b"GET", 200, None

    def __init__(self):
        self.requestHeaders, self.responseHeaders = Headers(), Headers()

    def answered(self):
        pass

    def registerProducer(self, producer, streaming):
        pass


class Busy:
    """Threads that have other things to do."""

    stoppable = Threads.stoppable

    def run(self, _function):
        return Deferred()


@pytest.mark.parametrize("format", ["json", "xls"])
def test_who_leaves_before_the_answer_begins(tmp_path, format):
    clock, gone = Clock(), []
    responder = Responder(clock, Busy(), AnswerFiles(tmp_path))
    data = [[number, "x" * 10] for number in range(11_000)]
    answer = Rows(columns=(Column("id"), Column("text")), rows=data, gone=lambda: gone.append(1))
    work = responder.answer(Client(), answer, RenderOptions(format=format))
    sending = Deferred.fromCoroutine(work)
    found = outcome(sending)
    assert found == gone == []
    sending.cancel()
    assert found[0].check(CancelledError)
    assert gone
