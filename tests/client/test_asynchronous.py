"""The client for Twisted before a daemon that says nothing: time-outs and cancelled requests."""

import asyncio

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.testing import MemoryReactorClock, StringTransport

from monrest.client import AsyncClient, AsyncioClient, OverloadedError, UnreachableError


class Silent:
    """A reactor whose connections are made, and on which nobody ever answers."""

    def __init__(self):
        self.reactor = MemoryReactorClock()
        self.client = AsyncClient("unix:/socket", timeout=30, reactor=self.reactor)
        self.transports = []

    def ask(self, path="/hosts"):
        asked = Deferred.fromCoroutine(self.client.get(path))
        self.accept()
        return asked

    def accept(self):
        for _, factory, *_ in self.reactor.unixClients[len(self.transports) :]:
            protocol = factory.buildProtocol(None)
            self.transports.append(StringTransport())
            protocol.makeConnection(self.transports[-1])
            self.protocol = protocol

    def pass_time(self, seconds):
        for _ in range(seconds * 10):
            self.reactor.advance(0.1)
            self.accept()


@pytest.fixture
def silent():
    return Silent()


def test_who_does_not_answer_in_time_is_asked_once(silent):
    asked = silent.ask()
    assert silent.transports[0].value().startswith(b"GET /mon/r/hosts ")
    silent.pass_time(120)
    error = failure_of(asked)
    assert isinstance(error, UnreachableError)
    assert str(error).endswith("no answer in time")
    assert len(silent.transports) == 1


def test_a_cancelled_request_is_not_sent_again(silent):
    asked = silent.ask()
    asked.cancel()
    assert isinstance(failure_of(asked), CancelledError)
    silent.pass_time(5)
    assert len(silent.transports) == 1
    assert silent.transports[0].disconnecting


def test_a_request_that_is_cancelled_in_its_answer_is_ended(silent):
    asked = silent.ask()
    silent.protocol.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1,")
    asked.cancel()
    assert isinstance(failure_of(asked), CancelledError)
    assert silent.transports[0].disconnecting


def failure_of(asked):
    """The error with which a request ended, which it must have."""
    found = []
    asked.addErrback(lambda failure: found.append(failure.value))
    (error,) = found
    return error


def test_a_client_for_twisted_names_the_one_for_asyncio(silent):
    with pytest.raises(TypeError, match="with asyncio use AsyncioClient"):
        asyncio.run(silent.client.get("/hosts"))
    assert silent.reactor.unixClients == []


class Server:
    """A Unix socket before clients of asyncio; ``answers`` are what it says, one a connection."""

    def __init__(self, path, *answers):
        self.path, self.answers, self.seen, self.left = str(path), list(answers), [], 0

    async def served(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.seen.append(head.decode().splitlines())
        if self.answers:
            writer.write(self.answers.pop(0))
            await writer.drain()
        if not self.seen[-1][0].startswith("GET /mon/r/cut"):
            await reader.read()
        self.left += 1
        writer.close()

    def run(self, use, **arguments):
        async def main():
            server = await asyncio.start_unix_server(self.served, self.path)
            async with server, AsyncioClient(f"unix:{self.path}", **arguments) as client:
                found = await use(client)
                while self.left < len(self.seen) - 1:
                    await asyncio.sleep(0)
                return found

        return asyncio.run(asyncio.wait_for(main(), 60))


def test_what_asyncio_sends_is_as_it_was_meant(tmp_path):
    server = Server(tmp_path / "s", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
    found = server.run(
        lambda client: client.get("/services/web01/Disk%20%2F?q=a~'b'"),
        key="k_1",
        user="j\u00fcrgen",
    )
    assert found == []
    ((line, *headers),) = server.seen
    assert line == "GET /mon/r/services/web01/Disk%20%2F?q=a~'b' HTTP/1.1"
    assert {"X-Mon-Auth-Key: k_1", "X-Mon-Auth-User: j\u00fcrgen"} <= set(headers)


def test_asyncio_is_told_of_silence_and_of_cuts(tmp_path):
    async def silent(client):
        with pytest.raises(UnreachableError, match="no answer in time"):
            await client.get("/hosts")

    server = Server(tmp_path / "s")
    server.run(silent, timeout=0.05)
    assert len(server.seen) == 1

    async def cut(client):
        with pytest.raises(UnreachableError, match="the answer broke off: "):
            await client.get("/cut")

    Server(tmp_path / "t", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[").run(cut, retries=0)


def test_asyncio_sends_a_change_once_and_what_reads_again(tmp_path):
    unavailable = (
        b"HTTP/1.1 503 x\r\nContent-Length: 0\r\nRetry-After: 0\r\nConnection: close\r\n\r\n"
    )

    async def refused(client):
        with pytest.raises(OverloadedError):
            await client.post("/cmd", {"cmd": "x"})
        with pytest.raises(OverloadedError):
            await client.get("/hosts")

    server = Server(tmp_path / "s", *[unavailable] * 4)
    server.run(refused)
    assert [seen[0].split()[0] for seen in server.seen] == ["POST", "GET", "GET", "GET"]


def test_a_cancelled_task_of_asyncio_ends_its_request(tmp_path):
    server = Server(tmp_path / "s")

    async def leave(client):
        asked = asyncio.ensure_future(client.get("/hosts"))
        while not server.seen:
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        while not server.left:
            await asyncio.sleep(0)

    server.run(leave)
    assert len(server.seen) == 1
