"""A scripted site behind a real Unix or TCP socket."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.protocol import Factory, Protocol

from tests.fakes.livestatus.script import Script


class _Served(Protocol):
    def __init__(self, site):
        self.site = site
        self.buffer = b""
        self.calls = []
        self.mute = False

    def connectionMade(self):
        self.site.connections.append(self)
        self.site.accepted += 1

    def dataReceived(self, data):
        self.buffer += data
        # A greeting of TLS is no request, whatever bytes are in it by chance.
        while b"\n\n" in self.buffer and not self.buffer.startswith(b"\x16"):
            request, self.buffer = self.buffer.split(b"\n\n", 1)
            self.site.script.answer(self, request)

    def connectionLost(self, reason):
        self.site.connections.remove(self)
        for call in self.calls:
            if call.active():
                call.cancel()
        self.site.check_empty()

    def write(self, data):
        self.transport.write(data)

    def close(self):
        self.transport.loseConnection()

    def reset(self):
        self.transport.abortConnection()

    def later(self, seconds, function):
        self.calls.append(self.site.reactor.callLater(seconds, function))


@define(eq=False)
class ServedSite:
    """A listening site: ``address`` for the configuration, ``connections`` that are open now."""

    reactor: object
    script: Script
    address: str = ""
    port: object = None
    connections: list = field(factory=list)
    accepted: int = 0
    _empty: Deferred | None = None

    def factory(self):
        factory = Factory()
        factory.noisy = False
        factory.buildProtocol = lambda _address: _Served(self)
        return factory

    def check_empty(self):
        if self._empty is not None and not self.connections:
            done, self._empty = self._empty, None
            done.callback(None)

    def when_empty(self):
        """Fires when no client is connected any more."""
        if not self.connections:
            return succeed(None)
        self._empty = Deferred()
        return self._empty

    async def stop(self):
        """Stop listening and drop everybody."""
        if self.port is not None:
            port, self.port = self.port, None
            await port.stopListening()
        for connection in list(self.connections):
            connection.transport.abortConnection()
        await self.when_empty()


def serve_unix(reactor, path, script):
    site = ServedSite(reactor, script, f"unix:{path}")
    Path(path).unlink(missing_ok=True)
    site.port = reactor.listenUNIX(str(path), site.factory(), wantPID=0)
    return site


def serve_tcp(reactor, script, context=None):
    """On a free port; inside TLS with a context factory."""
    site = ServedSite(reactor, script)
    if context is None:
        site.port = reactor.listenTCP(0, site.factory(), interface="127.0.0.1")
    else:
        site.port = reactor.listenSSL(0, site.factory(), context, interface="127.0.0.1")
    kind = "tcp" if context is None else "tls"
    site.address = f"{kind}:127.0.0.1:{site.port.getHost().port}"
    return site
