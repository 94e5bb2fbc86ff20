"""Listening, and what a start needs of the file system: folders, sockets, words for errors.

A socket is bound by the process that starts: the daemon, or the parent of several workers. Workers
accept at the sockets of their parent, one connection a turn, so that each gets its share.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field
from OpenSSL.crypto import Error as KeyFileError
from OpenSSL.SSL import Error as TlsError
from twisted.internet import tcp, unix
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from monrest.base.workers import Workers
from monrest.config import parse_listener

_QUEUE = 1024
"""Connections that may wait until they are accepted.

With Twisted's 50 it took 60 seconds until 5,000 clients that came at once were connected: a system
whose queue is full has them try again after a second.
"""

_COURTESY = 0.005
"""Seconds for which a connection is left to a worker that has fewer, and may be busy."""
_LARGE = 8
"""Connections as which large work counts that a worker has in hand."""


class StartError(Exception):
    """The daemon cannot start; the text says what is in the way."""


def bind(reactor: Any, text: str, factory: IProtocolFactory) -> IListeningPort:
    """Listen at the endpoint string ``text``; StartError names what is wrong with it."""
    results: list[IListeningPort | Failure] = []
    prepare_socket_folder(text)
    given = parse_listener(text)
    queue = "" if given.kind == "systemd" or "backlog" in given.arguments else f":backlog={_QUEUE}"
    try:
        serverFromString(reactor, text + queue).listen(factory).addBoth(results.append)
    except IndexError:
        raise StartError(f"{text}: no such socket was passed by systemd") from None
    except (KeyFileError, TlsError):
        raise StartError(f"{text}: expected a private key and its certificate") from None
    except (ValueError, OSError) as error:
        raise StartError(f"{text}: {error}") from None
    result = results[0]
    if isinstance(result, Failure):
        if result.check(IndexError):
            raise StartError(f"{text}: no such socket was passed by systemd")
        raise StartError(f"cannot listen on {text}: {error_text(result.value)}")
    return result


class _SharedPort(tcp.Port):
    """A bound socket at which other processes accept as well."""

    numberAccepts = property(lambda _: 1, lambda _, __: None)
    """One a turn: a worker that accepts all that wait would have all the work."""
    _workers = Workers()
    _laden: Callable[[], bool] = staticmethod(lambda: False)

    def among(self, workers: Workers, laden: Callable[[], bool]) -> None:
        """Leave connections to the others of these that have fewer."""
        self._workers, self._laden = workers, laden

    def doRead(self) -> None:
        """Accept a connection, or leave it for a moment to a worker that has fewer."""
        if self._workers.lightest(_LARGE if self._laden() else 0):
            super().doRead()
        else:
            self.stopReading()
            reactor: Any = self.reactor
            reactor.callLater(_COURTESY, self._take)

    def _take(self) -> None:
        if self.connected and not self.disconnecting:
            super().doRead()
            self.startReading()


class _SharedUnixPort(_SharedPort, unix.Port):
    """The same for a Unix socket, whose file, mode and queue are those that its maker gave it."""

    _shouldShutdown = False

    def startListening(self) -> None:
        """Accept at the socket as it is."""
        # As the base class does, but for what would change the file and the queue.
        self.factory.doStart()  # type: ignore[union-attr]  # there is one
        self.connected = True
        bound: Any = self._preexistingSocket
        self.socket, self._preexistingSocket = bound, None
        self.fileno = bound.fileno  # type: ignore[method-assign]  # as the base class has it
        self.startReading()

    def connectionLost(self, reason: Failure) -> None:
        """Close the descriptor, and leave the file to its maker."""
        tcp.Port.connectionLost(self, reason)


@define(eq=False)
class _Adopting:
    """Stands for ``reactor`` where an endpoint listens: it takes a ``bound`` socket instead."""

    reactor: Any
    workers: Workers
    bound: socket.socket
    laden: Callable[[], bool]

    def listenTCP(self, _port: int, factory: Any, **_more: Any) -> IListeningPort:
        return self.adopt(factory)

    def listenSSL(
        self, _port: int, factory: Any, contextFactory: Any, **_more: Any
    ) -> IListeningPort:
        return self.adopt(TLSMemoryBIOFactory(contextFactory, False, factory))

    def listenUNIX(self, _path: str, factory: Any, **_more: Any) -> IListeningPort:
        return self.adopt(factory)

    def adopt(self, factory: Any) -> IListeningPort:
        """Accept at the socket."""
        number, family = self.bound.fileno(), self.bound.family
        if family == socket.AF_UNIX:
            port: Any = _SharedUnixPort._fromListeningDescriptor(self.reactor, number, factory)
        else:
            port = _SharedPort._fromListeningDescriptor(self.reactor, number, family, factory)
        port.among(self.workers, self.laden)
        port.startListening()
        result: IListeningPort = port
        return result


@define(eq=False)
class Listeners:
    """The sockets of a daemon by its endpoint strings ``texts``.

    ``bound`` are the sockets of a parent, in the same order; without them they are made here.
    ``laden``: this worker has a large answer in hand.
    """

    reactor: Any
    texts: Sequence[str]
    workers: Workers
    bound: Sequence[socket.socket] = ()
    laden: Callable[[], bool] = lambda: False
    ports: list[IListeningPort] = field(factory=list, init=False)

    def open(self, factory: IProtocolFactory) -> None:
        """Listen everywhere; StartError."""
        self.workers.count_connections(0)
        for at, text in enumerate(self.texts):
            if self.bound:
                self.ports.append(self._adopt(text, self.bound[at], factory))
                # The port has a copy: no client may wait at a socket at which no process accepts.
                self.bound[at].close()
            else:
                self.ports.append(bind(self.reactor, text, factory))

    def renew(self, factory: IProtocolFactory) -> None:
        """Read keys and certificates again, for connections that come from now on; StartError.

        A client that has connected meanwhile is accepted: the socket stays the same.
        """
        # They may be closed by now.
        for at, (text, port) in enumerate(zip(self.texts, self.ports, strict=False)):
            if parse_listener(text).kind == "ssl":
                bound: Any = port
                self.ports[at] = self._adopt(text, bound.socket, factory)
                let_go(port)

    def _adopt(self, text: str, bound: socket.socket, factory: IProtocolFactory) -> IListeningPort:
        """Listen as the endpoint string says, at a socket that was bound for it before."""
        adopting = _Adopting(self.reactor, self.workers, bound, self.laden)
        if parse_listener(text).kind == "systemd":
            return adopting.adopt(factory)
        return bind(adopting, text, factory)

    def addresses(self) -> list[str]:
        """Spell where connections are accepted."""
        return [spelled(port.getHost()) for port in self.ports]

    def close(self) -> Deferred[Any]:
        """Accept no more; fires when all is closed."""
        ports, self.ports = self.ports, []
        return DeferredList(
            [maybeDeferred(port.stopListening) for port in ports], consumeErrors=True
        )


def let_go(port: Any) -> None:
    """Close the descriptor of a port and leave the socket to others who have it as well."""
    port.stopReading()
    port.socket.close()


def release(port: Any) -> None:
    """Close a socket that others accept at, and take away the file that was made for it."""
    let_go(port)
    if isinstance(port, unix.Port):
        with suppress(OSError):
            os.unlink(port._bindPath)  # noqa: PTH108  bytes
        if port.lockFile is not None:
            port.lockFile.unlock()


def prepare_var_dir(folder: Path) -> None:
    """Make the folder of the daemon's state with mode 0700; StartError when that fails."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"server.var_dir: {folder}: {error.strerror}") from None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise StartError(f"server.var_dir: {folder}: Permission denied")


def prepare_socket_folder(listener: str) -> None:
    """Make the folder of a Unix socket, such as ``/run/monrest`` after a boot.

    When that is impossible, listening fails with the name of the socket.
    """
    given = parse_listener(listener)
    if given.kind == "unix":
        with suppress(OSError):
            Path(given.arguments["address"]).parent.mkdir(mode=0o755, exist_ok=True)


def error_text(error: BaseException | None) -> str:
    """Spell an error for people."""
    if isinstance(error, CannotListenError):
        reason = getattr(error.socketError, "strerror", None) or str(error.socketError)
        where = f"{error.interface}:{error.port}" if error.interface else str(error.port)
        return f"{where}: {reason}"
    return str(error)


def spelled(address: IAddress) -> str:
    """Spell where a port listens."""
    if isinstance(address, IPv4Address):
        return f"{address.host}:{address.port}"
    if isinstance(address, IPv6Address):
        return f"[{address.host}]:{address.port}"
    if isinstance(address, UNIXAddress):
        return f"unix:{(address.name or b'').decode(errors='replace')}"
    return str(address)
