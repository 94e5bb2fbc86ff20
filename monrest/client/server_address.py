"""The URL of a daemon: ``unix:PATH[:ROOT]``, ``http://HOST[:PORT][ROOT]`` and ``https://``."""

from __future__ import annotations

from typing import Literal, NamedTuple
from urllib.parse import urlsplit

ROOT = "/mon/r"
_FORMS = "unix:PATH, http://HOST:PORT or https://HOST:PORT, with or without a root such as /mon/r"
_LOOPBACK = frozenset({"localhost", "::1"})


class ServerAddress(NamedTuple):
    """``path`` is a Unix socket's; ``host`` and ``port`` (0: the scheme's own) those of http(s).

    ``root`` starts with a slash and ends without.
    """

    scheme: Literal["unix", "http", "https"]
    root: str = ROOT
    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def app(self) -> str:
        """The word of the front end's own paths and headers: ``mon`` of ``/mon/r``."""
        return self.root.split("/")[-2]

    @property
    def local(self) -> bool:
        """Whether the other side is this machine, where compression is only work."""
        return self.scheme == "unix" or self.host in _LOOPBACK or self.host.startswith("127.")

    @property
    def authority(self) -> str:
        """Host and port as HTTP says them; of a Unix socket any host does."""
        if self.scheme == "unix":
            return "localhost"
        return self._at(self.host if self.host.isascii() else self.host.encode("idna").decode())

    @property
    def origin(self) -> str:
        """What stands in front of a path in a URL."""
        return f"{'https' if self.scheme == 'https' else 'http'}://{self.authority}"

    @property
    def connect_port(self) -> int:
        """The port, also where it is the scheme's own."""
        return self.port or (443 if self.scheme == "https" else 80)

    def _at(self, host: str) -> str:
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{self.port}" if self.port else host

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix:{self.path}" + (f":{self.root}" if self.root != ROOT else "")
        return f"{self.scheme}://{self._at(self.host)}{self.root}"


def parse(text: str) -> ServerAddress:
    """Read a URL; raise ValueError saying which forms there are."""
    scheme, _, rest = text.partition(":")
    if scheme == "unix" and rest.startswith("/") and rest.isprintable():
        path, colon, root = rest.partition(":/")
        return ServerAddress("unix", root=_root(text, f"/{root}" if colon else ""), path=path)
    if scheme in ("http", "https") and text.isprintable():
        try:
            parts = urlsplit(text)
            port = parts.port or 0
        except ValueError:
            raise _wrong(text) from None
        if parts.hostname and not (parts.query or parts.fragment or parts.username):
            return ServerAddress(
                "http" if scheme == "http" else "https",
                root=_root(text, parts.path),
                host=parts.hostname,
                port=port,
            )
    raise _wrong(text)


def _root(text: str, path: str) -> str:
    path = path.rstrip("/")
    if not path:
        return ROOT
    segments = path.split("/")
    if len(segments) < 3 or segments[-1] != "r" or not segments[-2]:
        raise _wrong(text)
    return path


def _wrong(text: str) -> ValueError:
    return ValueError(f"expected {_FORMS}, got {text!r}")
