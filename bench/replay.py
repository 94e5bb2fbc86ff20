"""A Livestatus site that costs nothing: it answers every request from memory.

Each distinct request is asked once at the core behind it; its bytes are replayed from then on.
So what is measured with it is the client. A site may be ``latency`` seconds away, and a site
without a core accepts connections and never answers. ``GET bench_seen`` tells, as a JSON list,
which requests came since it was asked last. ``GET bench_minute`` lets a minute pass, in which a
fifth of all services are checked: they have another time, another number in their output, and one
in a hundred of them another state.

    python -m bench.replay --latency 0.05 --site LISTEN=CORE --site LISTEN= …

LISTEN is the path of a Unix socket, CORE as well or ``tcp:HOST:PORT``. With ``--live`` nothing is
replayed: each request is asked at the core. With ``--unable-to-wait`` it does not say that it is a
Naemon, so that nobody takes it for a core that can wait. Prints ``ready`` when all sites listen.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

HEADER = 16
NAEMON, OTHER = b"-naemon", b"-others"
"""What the version of Livestatus says, and what it says of a core that cannot wait."""
BACKLOG = 256
SEEN = b"GET bench_seen"
MINUTE = b"GET bench_minute"
INTERVAL = 5
"""Minutes between two checks of a service."""
CHANGES = 100
"""Checks of which one finds another state."""


def framed(body: bytes) -> bytes:
    """``body`` behind the fixed header of a success."""
    return b"200 %11d\n" % len(body) + body


def read_exactly(connection: socket.socket, count: int) -> bytearray:
    """``count`` bytes; raises ``EOFError`` when the other side closes before."""
    content = bytearray(count)
    view = memoryview(content)
    position = 0
    while position < count:
        got = connection.recv_into(view[position:])
        if not got:
            raise EOFError(f"closed after {position} of {count} bytes")
        position += got
    return content


def read_answer(connection: socket.socket) -> tuple[bytearray, bytearray]:
    """Header and body of one fixed16 answer."""
    header = read_exactly(connection, HEADER)
    return header, read_exactly(connection, int(header[4:15]))


def connect(address: str) -> socket.socket:
    """A connection to ``unix:PATH``, a path alone or ``tcp:HOST:PORT``."""
    if address.startswith("tcp:"):
        host, _, port = address.removeprefix("tcp:").rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), 10)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address.removeprefix("unix:"))
    return connection


class Core:
    """What the core behind has answered so far; shared by all sites that stand before it.

    ``live``: nothing is kept. ``waits``: it is a core that can wait.
    """

    def __init__(self, address: str, *, live: bool = False, waits: bool = True) -> None:
        self.address = address
        self.live = live
        self.waits = waits
        self.known: dict[bytes, bytes] = {}
        self.lock = threading.Lock()
        self.minutes = 0

    def minute(self) -> None:
        """Let a minute pass."""
        self.minutes += 1
        for request, answer in self.known.items():
            if request.startswith(b"GET services\n") and b"\nColumns: " in request:
                self.known[request] = minute_later(request, answer, self.minutes)

    def answer(self, request: bytes) -> bytes:
        """The answer to ``request``, with its header, from memory if it was asked before."""
        if self.live:
            return self.ask(request)
        known = self.known.get(request)
        if known is not None:
            return known
        with self.lock:
            if request not in self.known:
                answer = self.ask(request)
                if not answer.startswith(b"200"):
                    return answer
                self.known[request] = answer
            return self.known[request]

    def ask(self, request: bytes) -> bytes:
        """The answer of the core itself."""
        if not request.startswith(b"GET "):
            raise EOFError(f"not passed on: {request[:50]!r}")
        with connect(self.address) as connection:
            connection.sendall(request)
            header, body = read_answer(connection)
        if not self.waits and request.startswith(b"GET status\n"):
            body = body.replace(NAEMON, OTHER)
        return bytes(header + body)


def minute_later(request: bytes, answer: bytes, minute: int) -> bytes:
    """What a core answers when those were checked that have their turn in this minute."""
    columns = next(line for line in request.decode().split("\n") if line.startswith("Columns: "))
    at = {name: place for place, name in enumerate(columns.split()[1:])}
    rows = json.loads(answer[HEADER:])
    for number in range(minute % INTERVAL, len(rows), INTERVAL):
        row = rows[number]
        if "last_check" in at:
            row[at["last_check"]] += 60 * INTERVAL
        for name in {"plugin_output", "perf_data"} & at.keys():
            row[at[name]] = re.sub(r"\d(?=\D*\Z)", str(minute % 10), row[at[name]])
        if "state" in at and (number // INTERVAL + minute) % CHANGES == 0:
            row[at["state"]] ^= 1
    lines = (json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows)
    return framed(("[" + ",\n".join(lines) + "]\n").encode())


class ReplaySite:
    """One listening socket; every connection is served by a thread of its own."""

    def __init__(self, path: str, core: Core | None, latency: float) -> None:
        self.core = core
        self.latency = latency
        self.seen: list[str] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(BACKLOG)

    def accept(self) -> None:
        """Serve connections for ever."""
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection until it is closed."""
        waiting = b""
        with connection, suppress(OSError, EOFError):
            while True:
                while b"\n\n" not in waiting:
                    data = connection.recv(65536)
                    if not data:
                        return
                    waiting += data
                request, _, waiting = waiting.partition(b"\n\n")
                request += b"\n\n"
                if request.startswith(SEEN):
                    seen, self.seen = self.seen, []
                    connection.sendall(framed(json.dumps(seen).encode()))
                    continue
                if request.startswith(MINUTE) and self.core is not None:
                    self.core.minute()
                    connection.sendall(framed(b"[]"))
                    continue
                self.seen.append(request.decode(errors="replace"))
                if self.core is None:
                    continue
                answer = self.core.answer(request)
                if self.latency:
                    time.sleep(self.latency)
                connection.sendall(answer)
                if b"\nKeepAlive: on" not in request:
                    return


def main() -> None:
    parser = argparse.ArgumentParser(description="replay the answers of Livestatus cores")
    parser.add_argument("--site", action="append", default=[], metavar="LISTEN=CORE")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--live", action="store_true", help="ask the core each time")
    parser.add_argument("--unable-to-wait", action="store_true", help="be no Naemon")
    options = parser.parse_args()
    cores: dict[str, Core] = {}
    for entry in options.site:
        path, _, core_path = entry.partition("=")
        Path(path).unlink(missing_ok=True)
        core = None
        if core_path:
            made = Core(core_path, live=options.live, waits=not options.unable_to_wait)
            core = cores.setdefault(core_path, made)
        site = ReplaySite(path, core, options.latency)
        threading.Thread(target=site.accept, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
