"""A web room on a real port, and a client that keeps what it received."""

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol

from tests.web.room import KEY

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
        return done.addTimeout(300, reactor)

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


async def one(client, request):
    before = len(client.replies())
    client.send(request)
    await client.until(lambda wire: len(wire.replies()) > before or wire.closed)
    return client.replies()[before]
