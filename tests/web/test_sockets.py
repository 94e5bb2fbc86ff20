"""What only a real connection shows: limits, pipelining, slow readers, gzip, drain."""

import gzip
import json
import socket

import pytest
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol

from monrest.concurrency import Threads
from monrest.config import ServerConfig
from monrest.values import Column, Document, Rows

from .conftest import KEY, Room, rows

SIGNED = f"X-Mon-Auth-Key: {KEY}\r\nX-Mon-Auth-User: ann\r\n"


class Wire(Protocol):
    """A client that keeps what it received; ``until`` waits for a condition on it."""

    def __init__(self):
        self.data, self.closed, self.waiting, self.lost = bytearray(), False, [], Deferred()

    def dataReceived(self, data):
        self.data += data
        self.look()

    def connectionLost(self, reason):
        self.closed = True
        self.look()
        self.lost.callback(None)

    def until(self, condition):
        done = Deferred()
        self.waiting.append((condition, done))
        self.look()
        return done.addTimeout(20, reactor)

    def look(self):
        for entry in tuple(self.waiting):
            condition, done = entry
            if condition(self):
                self.waiting.remove(entry)
                done.callback(self)

    def send(self, data):
        self.transport.write(data if isinstance(data, bytes) else data.encode())

    def replies(self):
        """The complete replies received so far as (status, headers, body)."""
        found, rest = [], bytes(self.data)
        while rest:
            head, blank, rest = rest.partition(b"\r\n\r\n")
            if not blank:
                break
            lines = head.decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:])
            if headers.get("transfer-encoding") == "chunked":
                body, rest = unchunked(rest)
                if body is None:
                    break
            else:
                length = int(headers.get("content-length", 0))
                if len(rest) < length:
                    break
                body, rest = rest[:length], rest[length:]
            found.append((int(lines[0].split()[1]), headers, body))
        return found


def unchunked(data):
    body = b""
    while True:
        size, blank, data = data.partition(b"\r\n")
        if not blank:
            return None, b""
        length = int(size, 16)
        if len(data) < length + 2:
            return None, b""
        body, data = body + data[:length], data[length + 2 :]
        if length == 0:
            return body, data


def get(path, *more, version="1.1", method="GET"):
    extra = "".join(f"{line}\r\n" for line in more)
    return f"{method} /mon/r{path} HTTP/{version}\r\nHost: x\r\n{SIGNED}{extra}\r\n"


class Served:
    """A room on a real port."""

    def __init__(self, room, port):
        self.room, self.port = room, port
        self.number = port.getHost().port
        self.clients = []

    async def connect(self):
        endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", self.number)
        client = await connectProtocol(endpoint, Wire())
        self.clients.append(client)
        return client

    async def close(self):
        for client in self.clients:
            if not client.closed:
                client.transport.abortConnection()
                await client.lost
        await self.port.stopListening()
        if self.room.site.channels:
            await self.room.site.drain(5)


@pytest.fixture
def serve():
    """Make rooms on real ports; at the end nothing of them is left."""
    import pytest_twisted

    made = []

    def serve(**server):
        threads = Threads(reactor, 1, "test")
        threads.startService()
        room = Room(reactor, server=ServerConfig(**server), threads=threads)
        served = Served(room, reactor.listenTCP(0, room.site, interface="127.0.0.1"))
        made.append(served)
        return served

    yield serve

    async def close():
        for served in made:
            await served.close()
            await served.room.threads.stopService()

    pytest_twisted.blockon(Deferred.fromCoroutine(close()))


async def one(client, request):
    before = len(client.replies())
    client.send(request)
    await client.until(lambda wire: len(wire.replies()) > before or wire.closed)
    return client.replies()[before]


# ------------------------------------------------------------------ connections


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
    await cancelled.addTimeout(20, reactor)


# ------------------------------------------------------------------ refused early


def explained(reply, code):
    status, headers, body = reply
    document = json.loads(body)
    assert (status, document["code"]) == (code, code)
    assert set(document) == {"code", "message", "description"}
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    return document["message"]


async def test_urls_up_to_the_limit_are_read(serve):
    served = serve()
    client = await served.connect()
    path = "/hosts?q=" + "x" * (131072 - len("/mon/r/hosts?q="))
    status, _, _ = await one(client, get(path))
    assert status == 200
    assert len(served.room.seen[0].parameters[0][1]) > 131000
    assert explained(await one(client, get(path + "y")), 400) == "URL too long"
    assert not client.closed


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ("GET /mon/r/" + "x" * 140_000 + " HTTP/1.1\r\n\r\n", 400, "URL too long"),
        ("GET /mon/r/" + "x" * 3_000_000, 400, "URL too long"),
        (get("/hosts", "X-Long: " + "x" * 140_000), 400, "header too long"),
        (get("/hosts", *[f"X-Many-{n}: {n}" for n in range(600)]), 400, "bad request"),
        (get("/hosts", *[f"X-Big-{n}: {'x' * 10_000}" for n in range(30)]), 400, "bad request"),
        ("GET /mon/r/ho sts HTTP/1.1\r\n\r\n", 400, "bad request"),
        (b"GET /mon/r/\xff HTTP/1.1\r\n\r\n", 400, "bad request"),
        ("GET /mon/r/ HTTP/3\r\n\r\n", 400, "bad request"),
        ("nonsense\r\n\r\n", 400, "bad request"),
        (get("/hosts", "no header"), 400, "bad request"),
        (get("/hosts", "Content-Length: x", method="POST"), 400, "bad request"),
        (get("/hosts", "Content-Length: 33554433", method="POST"), 413, "request body too long"),
        (
            get("/hosts", "Content-Length: 99999999999", "Expect: 100-continue", method="POST"),
            413,
            "request body too long",
        ),
    ],
)
async def test_what_never_becomes_a_request(serve, request_, code, message):
    served = serve()
    client = await served.connect()
    client.send(request_)
    await client.until(lambda wire: wire.replies() or wire.closed)
    (reply,) = client.replies()
    assert explained(reply, code) == message
    assert reply[1]["connection"] == "close"
    client.transport.loseConnection()
    await client.until(lambda wire: wire.closed)
    assert served.room.seen == []


async def test_what_follows_a_refusal_is_ignored(serve):
    served = serve()
    client = await served.connect()
    client.send("nonsense\r\n\r\n" + get("/hosts"))
    await client.until(lambda wire: wire.replies())
    client.send(get("/hosts"))
    client.transport.loseWriteConnection()
    await client.until(lambda wire: wire.closed)
    assert len(client.replies()) == 1
    assert served.room.seen == []


async def test_bodies_over_the_limit(serve):
    served = serve(max_body=5000)
    client = await served.connect()
    body = "a=" + "x" * 4998
    posted = get("/hosts", f"Content-Length: {len(body)}", method="POST") + body
    assert (await one(client, posted))[0] == 200
    chunks = "1000\r\n" + "x" * 4096 + "\r\n"
    chunked = get("/hosts", "Transfer-Encoding: chunked", method="POST") + chunks * 3 + "0\r\n\r\n"
    assert explained(await one(client, chunked), 413) == "request body too long"
    assert (await one(client, get("/hosts")))[0] == 200
    assert len(served.room.seen) == 2


async def test_a_chunked_body(serve):
    served = serve()
    client = await served.connect()
    request = get("/hosts", "Transfer-Encoding: chunked", method="POST")
    client.send(request + "3\r\na=1\r\n")
    client.send("4\r\n&b=2\r\n0\r\n\r\n")
    await client.until(lambda wire: wire.replies())
    assert served.room.seen[0].parameters == (("a", "1"), ("b", "2"))


# ------------------------------------------------------------------ bodies of answers


async def test_big_answers_come_whole_and_in_pieces(serve):
    served = serve()
    client = await served.connect()
    for accept in ("identity", "gzip;q=0.5, identity"):
        served.room.answers["/hosts"] = rows(20_000)
        status, headers, body = await one(client, get("/hosts", f"Accept-Encoding: {accept}"))
        assert (status, headers["transfer-encoding"]) == (200, "chunked")
        packed = headers.get("content-encoding") == "gzip"
        assert packed is accept.startswith("gzip")
        found = json.loads(gzip.decompress(body) if packed else body)
        assert [row["id"] for row in found] == list(range(20_000))
    assert not client.closed


@pytest.mark.parametrize(
    ("accept", "size", "packed"),
    [
        ("gzip", 100, True),
        ("*", 100, True),
        ("gzip;q=0", 100, False),
        ("identity", 100, False),
        ("gzip", 1, False),
    ],
)
async def test_gzip_of_small_answers(serve, accept, size, packed):
    served = serve()
    served.room.answers["/hosts"] = rows(size)
    client = await served.connect()
    _, headers, body = await one(client, get("/hosts", f"Accept-Encoding: {accept}"))
    assert headers["vary"] == "accept-encoding"
    assert headers["content-length"] == str(len(body))
    assert (headers.get("content-encoding") == "gzip") is packed
    assert len(json.loads(gzip.decompress(body) if packed else body)) == size


async def test_a_reader_that_waits_stops_the_work(serve):
    """Only what fits into the buffers is made while nobody reads."""
    served, made = serve(), []

    def count(row):
        made.append(row[0])
        return {}

    columns = (Column("id"), Column("text"))
    data = [[number, "x" * 1000] for number in range(20_000)]
    served.room.answers["/hosts"] = Rows(columns=columns, rows=data, expand=count)
    client = await served.connect()
    client.transport.getHandle().setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.send(get("/hosts"))
    await client.until(lambda wire: wire.data)
    client.transport.pauseProducing()
    (channel,) = served.room.site.channels
    paused = Deferred()

    def look(before):
        if channel._waitingForTransport and len(made) == before:
            paused.callback(None)
        else:
            reactor.callLater(0.02, look, len(made))

    look(-1)
    await paused.addTimeout(20, reactor)
    assert 0 < len(made) < 15_000
    client.transport.resumeProducing()
    await client.until(lambda wire: wire.data.endswith(b"\r\n0\r\n\r\n"))
    assert len(made) == 20_000
    assert len(json.loads(client.replies()[0][2])) == 20_000


async def test_a_client_that_leaves_in_the_middle(serve):
    served = serve()
    served.room.answers["/hosts"] = rows(60_000, "x" * 1000)
    client = await served.connect()
    client.send(get("/hosts"))
    await client.until(lambda wire: len(wire.data) > 100_000)
    client.transport.abortConnection()
    await client.lost
    other = await served.connect()
    assert (await one(other, get("/fine")))[0] == 200
    assert len(served.room.site.channels) == 1


async def test_a_body_that_breaks_is_not_taken_for_whole(serve, stray_failures):
    stray_failures.append(ZeroDivisionError)
    served = serve()

    def breaks(row):
        return {} if row[0] < 10_000 else 1 / 0

    answer = rows(20_000)
    served.room.answers["/hosts"] = Rows(columns=answer.columns, rows=answer.rows, expand=breaks)
    client = await served.connect()
    client.send(get("/hosts"))
    await client.until(lambda wire: wire.closed)
    assert client.data.startswith(b"HTTP/1.1 200")
    assert client.replies() == []


async def test_head_of_a_big_answer_sends_nothing(serve):
    served = serve()
    served.room.answers["/hosts"] = rows(20_000)
    client = await served.connect()
    client.send(get("/hosts", method="HEAD") + get("/next", "Connection: close"))
    await client.until(lambda wire: wire.closed)
    assert client.data.count(b"HTTP/1.1 200") == 2
    assert b'"id"' not in client.data


# ------------------------------------------------------------------ drain


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
