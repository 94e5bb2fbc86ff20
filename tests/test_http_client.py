"""The HTTP client over sockets of this machine: limits, time-outs, and what goes wrong, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.endpoints import (
    HostnameEndpoint,
    SSL4ServerEndpoint,
    TCP4ServerEndpoint,
    UNIXClientEndpoint,
    UNIXServerEndpoint,
    wrapClientTLS,
)
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import PrivateCertificate
from twisted.internet.task import Clock

from monrest.base.connecting import NotConnectedError, client_tls
from monrest.base.http_client import (
    BadAnswerError,
    BrokenOffError,
    HttpClient,
    LateError,
    in_time,
)
from tests.fakes.certificates import Authority

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


class Speaker(Protocol):
    """Says ``factory.says`` to every request, a function is called with this instead."""

    def connectionMade(self):
        self.received = b""
        self.lost = Deferred()
        self.factory.made.append(self)

    def dataReceived(self, data):
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end or (b"Content-Length: 4" in head and len(body) < 4):
            return
        self.factory.requests.append(self.received)
        self.received = b""
        if callable(self.factory.says):
            self.factory.says(self)
        else:
            self.transport.write(self.factory.says)
        asked, self.factory.asked = self.factory.asked, Deferred()
        asked.callback(self)

    def connectionLost(self, reason):
        self.lost.callback(None)


class World:
    """A server and clients of one ``kind``: plain, tls or unix; time passes with ``clock``."""

    def __init__(self, directory, kind="plain"):
        self.directory, self.kind, self.clock = directory, kind, Clock()
        self.factory = Factory.forProtocol(Speaker)
        self.factory.noisy = False
        self.factory.made, self.factory.requests, self.factory.asked = [], [], Deferred()
        self.clients = []

    async def start(self):
        if self.kind == "unix":
            server = UNIXServerEndpoint(reactor, str(self.directory / "s"))
        elif self.kind == "tls":
            self.authority = Authority(self.directory)
            pem = b"".join(Path(one).read_bytes() for one in self.authority.sign("127.0.0.1"))
            context = PrivateCertificate.loadPEM(pem).options()
            server = SSL4ServerEndpoint(reactor, 0, context, interface="127.0.0.1")
        else:
            server = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        self.port = await server.listen(self.factory)
        return self

    def client(self, **more):
        if self.kind == "unix":
            endpoint = UNIXClientEndpoint(reactor, str(self.directory / "s"))
        else:
            endpoint = HostnameEndpoint(reactor, "127.0.0.1", self.port.getHost().port)
        if self.kind == "tls":
            authority = more.pop("authority", self.authority)
            endpoint = wrapClientTLS(client_tls("127.0.0.1", ca_file=authority.ca_file), endpoint)
        client = HttpClient(reactor=self.clock, endpoint=lambda _: endpoint, **more)
        self.clients.append(client)
        return client

    async def stop(self):
        for one in self.clients:
            await one.close()
        for one in self.factory.made:
            if not one.lost.called:
                one.transport.abortConnection()
                await one.lost
        await maybeDeferred(self.port.stopListening)


@pytest.fixture
def worlds(tmp_path):
    made = []

    async def make(kind="plain"):
        made.append(await World(tmp_path, kind).start())
        return made[-1]

    yield make
    for one in made:
        pytest_twisted.blockon(Deferred.fromCoroutine(one.stop()))


async def got(client, path="/", body=None, **more):
    """The status and body of an answer, or the error instead of one."""
    try:
        method = "GET" if body is None else "POST"
        answer = await client.ask(method, f"http://other.example{path}", {"X-A": "ö"}, body, **more)
        return answer.status, await answer.read()
    except Exception as error:
        return error


def said_and_closed(*pieces):
    def says(speaker):
        for one in pieces:
            speaker.transport.write(one)
        speaker.transport.loseConnection()

    return says


def endless(begin, piece):
    """Goes on as long as the other side takes it."""

    class Producer:
        def __init__(self, transport):
            self.transport, self.sent = transport, 0
            transport.write(begin)
            transport.registerProducer(self, streaming=False)

        def resumeProducing(self):
            self.sent += len(piece)
            self.transport.write(piece)

        def stopProducing(self):
            """It is over."""

    def says(speaker):
        speaker.producer = Producer(speaker.transport)

    return says


HEAD = b"HTTP/1.1 200 OK\r\n"
CUT = "the connection was closed before the answer was complete"
ANSWERS = {
    "a length": (OK, (200, b"[]")),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (200, b"abc")),
    "an end of the connection": (said_and_closed(HEAD, b"\r\nabc"), (200, b"abc")),
    "no body": (b"HTTP/1.1 204 X\r\n\r\n", (204, b"")),
    "a redirect": (
        b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", (302, b""),
    ),
    "something before it": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (200, b"[]")),
    "a long body": (HEAD + b"\r\n" + b"x" * 1001, (BadAnswerError, "an answer of more than 1000 bytes")),
    "an endless body": (
        endless(HEAD + b"\r\n", b"x" * 5000), (BadAnswerError, "an answer of more than 1000 bytes"),
    ),
    "an announced body": (
        HEAD + b"Content-Length: 1001\r\n\r\n", (BadAnswerError, "an answer of more than 1000 bytes"),
    ),
    "an endless head": (
        endless(HEAD, b"X-A: 1\r\n" * 100), (BadAnswerError, "an answer of more than 65536 bytes"),
    ),
    "endless beginnings": (
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
        (BadAnswerError, "an answer of more than 65536 bytes"),
    ),
    "another language": (b"220 mail.example.org ESMTP\r\n", (BadAnswerError, "not an answer of HTTP")),
    "another coding": (
        HEAD + b"Transfer-Encoding: x\r\n\r\n", (BadAnswerError, "not an answer of HTTP"),
    ),
    "a wrong chunk": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", (BadAnswerError, "not an answer of HTTP"),
    ),
    "nothing": (said_and_closed(), (BrokenOffError, CUT)),
    "a part of a head": (said_and_closed(HEAD, b"X-A: 1\r\n"), (BrokenOffError, CUT)),
    "a part of a body": (
        said_and_closed(HEAD, b"Content-Length: 9\r\n\r\n["), (BrokenOffError, CUT),
    ),
    "a reset": (lambda speaker: speaker.transport.abortConnection(), (BrokenOffError, CUT)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["plain", "tls", "unix"])
async def test_what_answers_mean(worlds, kind):
    world = await worlds(kind)
    client = world.client(largest=1000)
    wrong = []
    for name, (says, expected) in ANSWERS.items():
        world.factory.says = says
        found = await got(client)
        if isinstance(found, Exception):
            assert found.connected
            found = (type(found), found.reason)
        if found != expected:
            wrong.append((name, found))
    assert wrong == []
    world.clock.advance(1.1)
    for one, name in zip(world.factory.made, ANSWERS, strict=True):  # none stays open
        # A server of Twisted does not look whether its client is there while TLS keeps it waiting.
        if (kind, name) != ("tls", "an endless body"):
            await one.lost


async def test_whether_an_answer_had_begun(worlds):
    world = await worlds()
    client = world.client()
    for name, answered in (
        ("nothing", False),
        ("a part of a head", False),
        ("a part of a body", True),
    ):
        world.factory.says = ANSWERS[name][0]
        assert (await got(client)).answered is answered


async def test_what_is_sent(worlds):
    world = await worlds()
    world.factory.says = OK
    await got(world.client(), "/a%20b?c=d", b"body")
    (request,) = world.factory.requests
    lines = request.decode().split("\r\n")
    assert lines[0] == "POST /a%20b?c=d HTTP/1.1"
    assert {"Host: other.example", "X-A: ö", "Content-Length: 4", "Connection: close"} <= set(lines)
    assert lines[-1] == "body"


async def test_no_server_is_there(worlds, tmp_path):
    for kind, words in (("plain", "connection refused"), ("unix", "no such socket")):
        world = await worlds(kind)
        client = world.client()
        await world.port.stopListening()
        error = await got(client)
        assert (type(error), error.reason, error.momentary) == (NotConnectedError, words, True)
        assert not error.connected


async def test_a_certificate_of_an_unknown_authority(worlds, tmp_path):
    world = await worlds("tls")
    error = await got(world.client(authority=Authority(tmp_path, "other")))
    assert (type(error), error.reason) == (NotConnectedError, "TLS: certificate verify failed")
    assert error.connected
    assert world.factory.requests == []


async def test_another_protocol_than_tls(worlds, tmp_path):
    plain = await worlds()
    plain.kind, plain.authority = "tls", Authority(tmp_path)
    plain.factory.protocol = type("Greeter", (Speaker,), {"dataReceived": lambda self, _: (
        self.transport.write(b"220 mail.example.org ESMTP\r\n")
    )})  # fmt: skip
    error = await got(plain.client())
    assert type(error) is NotConnectedError
    assert error.reason.startswith("TLS: ")


async def test_a_head_that_takes_too_long(worlds):
    world = await worlds()
    world.factory.says = lambda speaker: speaker.transport.write(HEAD)
    asked = world.factory.asked
    work = in_time(world.client().ask("GET", "http://x/", {}), 7, world.clock)
    speaker = await asked
    world.clock.advance(6.9)
    assert not work.called
    world.clock.advance(0.2)
    with pytest.raises(LateError, match="timed out after 7 s"):
        await work
    await speaker.lost


async def test_silence_in_a_body(worlds):
    world = await worlds()
    world.factory.says = HEAD + b"Content-Length: 9\r\n\r\n["
    answer = await world.client().ask("GET", "http://x/", {})
    assert await answer.piece(7) == b"["
    piece = Deferred.fromCoroutine(answer.piece(7))
    world.clock.advance(6.9)
    (speaker,) = world.factory.made
    speaker.transport.write(b"1")
    assert await piece == b"1"
    piece = Deferred.fromCoroutine(answer.piece(7))
    world.clock.advance(7.1)
    with pytest.raises(LateError, match="timed out after 7 s"):
        await piece
    await speaker.lost


async def test_a_slow_reader_pauses_the_other_side(worlds):
    world = await worlds()
    world.factory.says = endless(HEAD + b"\r\n", b"x" * 65536)
    answer = await world.client().ask("GET", "http://x/", {})
    (speaker,) = world.factory.made
    sent = -1
    while sent != speaker.producer.sent:
        sent = speaker.producer.sent
        await pause(0.2)
    assert sent < 100 << 20
    read = 0
    while read <= sent:
        read += len(await answer.piece())
    answer.close()
    await speaker.lost


async def pause(seconds):
    done = Deferred()
    reactor.callLater(seconds, done.callback, None)
    await done


@pytest.mark.parametrize("said", [b"", HEAD + b"Content-Length: 9\r\n\r\n["])
async def test_who_is_cancelled_closes_the_connection(worlds, said):
    world = await worlds()
    world.factory.says = said
    asked = world.factory.asked
    work = Deferred.fromCoroutine(got(world.client(keep=1), kept=True))
    speaker = await asked
    if said:
        await pause(0.05)
    work.cancel()
    assert isinstance(await work, CancelledError)
    await speaker.lost


async def test_who_is_cancelled_while_it_connects_sends_nothing(worlds):
    world = await worlds()
    work = Deferred.fromCoroutine(got(world.client()))
    work.cancel()
    assert isinstance(await work, CancelledError)
    assert world.factory.requests == []


async def test_kept_connections(worlds):
    world = await worlds()
    world.factory.says = OK
    client = world.client(keep=1)
    for _ in range(3):
        assert await got(client, kept=True) == (200, b"[]")
    assert len(world.factory.made) == 1
    # What changes something has one of its own.
    assert await got(client, body=b"body") == (200, b"[]")
    assert len(world.factory.made) == 2
    # One that is closed instead of an answer is not asked twice.
    world.factory.says = said_and_closed()
    assert not (await got(client, kept=True)).answered
    assert len(world.factory.requests) == 5
    # One that is not used is closed.
    world.factory.says = OK
    await got(client, kept=True)
    world.clock.advance(61)
    await world.factory.made[-1].lost


async def test_a_head_counts_for_itself_on_a_kept_connection(worlds):
    world = await worlds()
    client = world.client(keep=1)
    world.factory.says = b"HTTP/1.1 200 OK\r\nX-A: %s\r\nContent-Length: 2\r\n\r\n[]" % (
        b"a" * 15000
    )
    for _ in range(10):
        assert await got(client, kept=True) == (200, b"[]")
    world.factory.says = endless(HEAD, b"X-A: 1\r\n" * 100)
    assert (await got(client, kept=True)).reason == "an answer of more than 65536 bytes"
    assert len(world.factory.made) == 1


async def test_a_connection_that_the_other_side_does_not_let_end(worlds):
    world = await worlds()
    # Nothing of this body is ever taken, so that a polite end would wait for it.
    world.factory.says = lambda speaker: None
    world.factory.protocol = type("Deaf", (Speaker,), {
        "connectionMade": lambda self: (Speaker.connectionMade(self), self.transport.pauseProducing(),
                                        self.transport.write(OK))
    })  # fmt: skip
    assert await got(world.client(), body=b"x" * (50 << 20)) == (200, b"[]")
    (speaker,) = world.factory.made
    await pause(0.1)
    assert not speaker.lost.called
    assert len(world.clock.getDelayedCalls()) == 1
    world.clock.advance(1.1)
    speaker.transport.resumeProducing()
    await speaker.lost
    assert world.clock.getDelayedCalls() == []
