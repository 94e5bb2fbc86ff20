"""Listening, and what a start needs of the file system: folders, sockets, words for errors."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from OpenSSL.crypto import Error as KeyFileError
from OpenSSL.SSL import Error as TlsError
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory
from twisted.python.failure import Failure

from monrest.config import parse_listener


class StartError(Exception):
    """The daemon cannot start; the text says what is in the way."""


def bind(reactor: Any, text: str, factory: IProtocolFactory) -> IListeningPort:
    """Listen at the endpoint string ``text``; StartError names what is wrong with it."""
    results: list[IListeningPort | Failure] = []
    prepare_socket_folder(text)
    try:
        serverFromString(reactor, text).listen(factory).addBoth(results.append)
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
        raise StartError(f"cannot listen on {text}: {told(result.value)}")
    return result


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

    When that is impossible, listening says so with the name of the socket.
    """
    given = parse_listener(listener)
    if given.kind == "unix":
        with suppress(OSError):
            Path(given.arguments["address"]).parent.mkdir(mode=0o755, exist_ok=True)


def told(error: BaseException | None) -> str:
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
