"""Clients that cost as little as possible: blocking sockets, no parsing beyond the frame."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Mapping

import orjson

from bench.replay import read_answer

TIMEOUT = 60
READ = 1 << 20
END_OF_CHUNKS = b"\r\n0\r\n\r\n"


class BrokenRunError(Exception):
    """Something answered wrongly, so that a measurement means nothing."""


def length_of(head: bytes) -> int | None:
    """Content-Length of a response head; None for a chunked one."""
    for line in head.lower().split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return None


def unchunked(body: bytes) -> bytes:
    """The content of a chunked body."""
    content: list[bytes] = []
    position = 0
    while True:
        end = body.index(b"\r\n", position)
        size = int(body[position:end].split(b";")[0], 16)
        if not size:
            return b"".join(content)
        content.append(body[end + 2 : end + 2 + size])
        position = end + 2 + size + 2


class Http:
    """One keep-alive HTTP connection."""

    def __init__(self, port: int, headers: Mapping[str, str], prefix: str = "") -> None:
        self.port = port
        self.prefix = prefix
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.head = f"Host: 127.0.0.1\r\n{lines}\r\n"
        self.connection = self.connect()

    def connect(self) -> socket.socket:
        """A further connection to the same server."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def request(self, path: str, form: bytes | None = None, *, json: bool = False) -> bytes:
        """The bytes that ask for ``path``, or post ``form`` (or JSON) to it."""
        if form is None:
            return f"GET {self.prefix}{path} HTTP/1.1\r\n{self.head}".encode()
        kind = "application/json" if json else "application/x-www-form-urlencoded"
        about = f"Content-Type: {kind}\r\nContent-Length: {len(form)}\r\n"
        return f"POST {self.prefix}{path} HTTP/1.1\r\n{about}{self.head}".encode() + form

    def fetch(
        self, path: str, form: bytes | None = None, *, json: bool = False
    ) -> tuple[float, bytes, bytes]:
        """Ask for ``path``: seconds until the last byte, response head, body as it came."""
        request = self.request(path, form, json=json)
        started = time.perf_counter()
        self.connection.sendall(request)
        data = self.connection.recv(READ)
        while b"\r\n\r\n" not in data:
            more = self.connection.recv(READ)
            if not more:
                raise BrokenRunError(f"{path}: connection closed")
            data += more
        head, _, first = data.partition(b"\r\n\r\n")
        wanted = length_of(head)
        parts, size, tail = [first], len(first), first[-7:]
        while size < wanted if wanted is not None else not (b"\r\n" + tail).endswith(END_OF_CHUNKS):
            more = self.connection.recv(READ)
            if not more:
                raise BrokenRunError(f"{path}: connection closed after {size} bytes")
            parts.append(more)
            size += len(more)
            tail = (tail + more[-7:])[-7:]
        seconds = time.perf_counter() - started
        return seconds, head, b"".join(parts)

    def body(self, path: str, form: bytes | None = None, *, json: bool = False) -> bytes:
        """The content of ``path``; raises ``BrokenRunError`` unless the status is 200."""
        _, head, raw = self.fetch(path, form, json=json)
        content = raw if length_of(head) is not None else unchunked(raw)
        status = head.split(None, 2)[1]
        if status != b"200":
            raise BrokenRunError(f"{path}: status {status.decode()}: {content[:300].decode()}")
        return content

    def length(self, path: str) -> tuple[float, int]:
        """Seconds and bytes of an answer that is not kept, headers and frames included."""
        started, size, tail = time.perf_counter(), 0, b""
        self.connection.settimeout(10 * TIMEOUT)
        self.connection.sendall(self.request(path).replace(b"Host:", b"Connection: close\r\nHost:"))
        status = b""
        while data := self.connection.recv(READ):
            status = status or data[:12]
            size += len(data)
            tail = (tail + data[-7:])[-7:]
        if status != b"HTTP/1.1 200" or not tail.rstrip().endswith((b"]", b"0")):
            raise BrokenRunError(f"{path}: {status!r}, {size} bytes, {tail!r} at the end")
        return time.perf_counter() - started, size

    def seconds(self, path: str) -> float:
        """How long the answer to ``path`` takes; raises ``BrokenRunError`` unless it is a 200."""
        seconds, head, raw = self.fetch(path)
        if not head.startswith(b"HTTP/1.1 200"):
            raise BrokenRunError(f"{path}: {head[:40]!r} {raw[:300]!r}")
        return seconds


class Livestatus:
    """One keep-alive connection to a site, read by blocking calls."""

    def __init__(self, path: str) -> None:
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(TIMEOUT)
        self.connection.connect(path)

    def body(self, request: str) -> bytearray:
        """The body of the answer; raises ``BrokenRunError`` unless its status is 200."""
        self.connection.sendall(request.encode())
        header, body = read_answer(self.connection)
        if not header.startswith(b"200"):
            raise BrokenRunError(f"{header!r} {body[:300]!r} for {request!r}")
        return body

    def seen(self, *tables: str) -> list[str]:
        """The distinct requests for ``tables`` that the site got since the last call."""
        return list(dict.fromkeys(self.all_seen(*tables)))

    def all_seen(self, *tables: str) -> list[str]:
        """All requests for ``tables`` that the site got since the last call."""
        requests = json.loads(self.body("GET bench_seen\nKeepAlive: on\n\n"))
        wanted = tuple(f"GET {table}\n" for table in tables)
        return [text for text in requests if text.startswith(wanted)]

    def minute(self) -> None:
        """Let a minute pass at the site, in which it checks some of its services."""
        self.body("GET bench_minute\nKeepAlive: on\n\n")

    def seconds(self, requests: list[str]) -> float:
        """How long reading and parsing the answers takes (switch the garbage collector off)."""
        started = time.perf_counter()
        for request in requests:
            orjson.loads(self.body(request))
        return time.perf_counter() - started

    def straight_seconds(self, request: str) -> float:
        """How long the straight way to an answer takes in one process: read, parse, name, write."""
        columns = next(line for line in request.split("\n") if line.startswith("Columns: "))
        names = columns.split()[1:]
        started = time.perf_counter()
        rows = orjson.loads(self.body(request))
        orjson.dumps([dict(zip(names, row, strict=True)) for row in rows])
        return time.perf_counter() - started


def requests_per_second(http: Http, path: str, clients: int, duration: float) -> float:
    """Requests per second of ``clients`` connections that each ask again once answered."""
    request = http.request(path)
    connections = [http.connect() for _ in range(clients)]
    waiting = [b""] * clients
    done = 0
    with selectors.EpollSelector() as selector:
        for number, connection in enumerate(connections):
            selector.register(connection, selectors.EVENT_READ, number)
            connection.sendall(request)
        started = time.perf_counter()
        until = started + duration
        while time.perf_counter() < until:
            for key, _ in selector.select(1):
                connection = connections[key.data]
                data = waiting[key.data] + connection.recv(READ)
                if complete(data):
                    done += 1
                    data = b""
                    connection.sendall(request)
                waiting[key.data] = data
        seconds = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return done / seconds


def complete(data: bytes) -> bool:
    """Whether ``data`` is a whole response; raises ``BrokenRunError`` unless its status is 200."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        if not data:
            raise BrokenRunError("connection closed")
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise BrokenRunError(f"{head[:40]!r} {body[:300]!r}")
    wanted = length_of(head)
    return len(body) >= wanted if wanted is not None else body.endswith(b"0\r\n\r\n")
