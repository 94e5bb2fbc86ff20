"""The little grammars of the configuration: site addresses, listening endpoints, databases.

They are checked here without Twisted and without drivers, so that ``monrest check-config`` starts
quickly and the daemon refuses a bad string by its key and not by a traceback.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from attrs import frozen

AddressKind: TypeAlias = Literal["unix", "tcp", "tls", "http", "https"]

HIGHEST_PORT = 65535
_HOST_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:/\s]+):(?P<port>[0-9]{1,5})\Z")
_URL = re.compile(
    r"https?://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[A-Za-z0-9._~-]+)*/(?P<app>[A-Za-z][A-Za-z0-9_-]*)/?\Z",
    re.ASCII,
)
_PORTS = {"http": 80, "https": 443}

ADDRESS_FORMS = "unix:PATH, tcp:HOST:PORT, tls:HOST:PORT or http(s)://HOST/mon"


@frozen(kw_only=True)
class Address:
    """The address of a site; its fields depend on ``kind``.

    ``path`` for unix, ``host`` (without brackets) and ``port`` for the others, ``url`` (without a
    slash at its end) and ``app``, its last segment, for http and https.
    """

    kind: AddressKind
    path: str = ""
    host: str = ""
    port: int = 0
    url: str = ""
    app: str = ""

    @property
    def federated(self) -> bool:
        """Whether another instance is there and not a core."""
        return self.kind in ("http", "https")

    @property
    def encrypted(self) -> bool:
        """Whether it is reached over TLS."""
        return self.kind in ("tls", "https")

    @property
    def local(self) -> bool:
        """Whether the site selection ``LOCAL`` means this site."""
        return self.kind == "unix"


def parse_address(text: str) -> Address:
    """Read a site address; raise ValueError saying which forms there are."""
    kind, _, rest = text.partition(":")
    if kind == "unix" and rest.startswith("/") and rest.isprintable():
        return Address(kind="unix", path=rest)
    if kind in ("tcp", "tls") and (match := _HOST_PORT.match(rest)):
        port = int(match["port"])
        if 0 < port <= HIGHEST_PORT:
            host = match["host"].strip("[]")
            return Address(kind="tcp" if kind == "tcp" else "tls", host=host, port=port)
    if kind in ("http", "https") and (match := _URL.match(text)):
        port = int(match["port"] or _PORTS[kind])
        if 0 < port <= HIGHEST_PORT:
            return Address(
                kind="http" if kind == "http" else "https",
                host=match["host"].strip("[]"),
                port=port,
                url=text.rstrip("/"),
                app=match["app"],
            )
    raise ValueError(f"expected {ADDRESS_FORMS}, got {text!r}")


_LISTEN_KEYS: dict[str, frozenset[str]] = {
    "tcp": frozenset({"port", "interface", "backlog"}),
    "tcp6": frozenset({"port", "interface", "backlog"}),
    "ssl": frozenset({
        "port", "interface", "backlog", "privateKey", "certKey", "extraCertChain", "sslmethod",
        "dhParameters",
    }),
    "unix": frozenset({"address", "mode", "backlog", "lockfile"}),
    "systemd": frozenset({"domain", "index", "name"}),
}  # fmt: skip
_POSITIONAL = {"tcp": "port", "tcp6": "port", "ssl": "port", "unix": "address"}
LISTEN_FORMS = "an endpoint such as tcp:8080:interface=127.0.0.1, ssl:…, unix:… or systemd:…"


@frozen(kw_only=True)
class Listener:
    """A listening endpoint string taken apart; ``arguments`` by Twisted's names for them."""

    kind: str
    arguments: dict[str, str]

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """(argument, path) of the files that must be readable before listening."""
        return tuple(
            (key, self.arguments[key])
            for key in ("privateKey", "certKey", "extraCertChain", "dhParameters")
            if key in self.arguments
        )


def parse_listener(text: str) -> Listener:
    r"""Read a Twisted server endpoint string (``\`` escapes the next character).

    Raise ValueError saying what is wrong with it.
    """
    kind, *parts = _split(text)
    keys = _LISTEN_KEYS.get(kind)
    if keys is None:
        raise ValueError(f"expected {LISTEN_FORMS}, got {text!r}")
    arguments: dict[str, str] = {}
    for position, part in enumerate(parts):
        key, equals, value = part.partition("=")
        if not equals and position == 0 and kind in _POSITIONAL:
            key, value = _POSITIONAL[kind], part
        if key not in keys:
            raise ValueError(f"{kind} endpoints have no argument {key!r}")
        arguments[key] = value
    _check_arguments(kind, arguments)
    return Listener(kind=kind, arguments=arguments)


def _split(text: str) -> list[str]:
    parts, current, characters = [], "", iter(text)
    for character in characters:
        if character == "\\":
            current += next(characters, "")
        elif character == ":":
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def _check_arguments(kind: str, arguments: dict[str, str]) -> None:
    if kind in ("tcp", "tcp6", "ssl"):
        port = arguments.get("port", "")
        if not (port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT):
            raise ValueError(f"{kind} endpoints need a port from 0 to {HIGHEST_PORT}")
    if kind == "ssl" and "privateKey" not in arguments:
        raise ValueError("ssl endpoints need privateKey=FILE (and certKey=FILE)")
    if kind == "unix":
        if not arguments.get("address", "").startswith("/"):
            raise ValueError("unix endpoints need an absolute path")
        if not re.fullmatch(r"[0-7]{3,4}", arguments.get("mode", "660")):
            raise ValueError("mode of a unix endpoint must be octal, such as 660")
    if kind == "systemd":
        if arguments.get("domain") not in ("INET", "INET6", "UNIX"):
            raise ValueError("systemd endpoints need domain=INET, INET6 or UNIX")
        if ("index" in arguments) == ("name" in arguments):
            raise ValueError("systemd endpoints need either index=N or name=NAME")


_DATABASE_FORMS = "sqlite:////path/to/file or postgresql+psycopg://user@host/database"
_SQLITE = "sqlite:///"
_POSTGRES = "postgresql+psycopg"
_NEARLY = ("postgres", "postgresql", "postgresql+psycopg2", "postgresql+asyncpg", "psycopg")


def database_problem(url: str) -> str:
    """Return what was expected of a database's URL, empty for a good one.

    The URL may have a password in it and is never repeated.
    """
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        path = url.removeprefix(_SQLITE)
        if path == url or not path.startswith("/"):
            return "expected an absolute path, written with four slashes: sqlite:////path/to/file"
        if "?" in path or "#" in path:
            return "expected a path without ? and #"
        return "expected the path of a file, not of a directory" if path.endswith("/") else ""
    if scheme in _NEARLY:
        return f"expected {_POSTGRES}://… instead of {scheme}://…"
    if scheme != _POSTGRES:
        return f"expected {_DATABASE_FORMS}"
    if "#" in url:
        return "expected no # (in a password: %23)"
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        if not url.partition("?")[2]:
            return "expected a port from 1 to 65535, and passwords with @ : / ? # as %40 and so on"
        return "expected options as ?name=value&name=value"
    if port == 0:
        return "expected a port from 1 to 65535"
    if not parts.path.strip("/") and "dbname" not in options:
        return f"expected the name of a database at its end: {_POSTGRES}://user@host/database"
    return ""
