"""Lines about events: how late they come, and what a client and an event cost."""

from __future__ import annotations

import resource
import select
import socket
import statistics
import time
from collections.abc import Iterator

from bench.clients import TIMEOUT, BrokenRunError, Http, Livestatus
from bench.hooks import results
from bench.lines import NO_LOGS
from bench.processes import Daemon, Processes, cpu_seconds
from bench.report import Line, milliseconds

CLIENTS = 5000
SINGLE = 20
TOLD = 10
BURST = 167
ATTEMPTS = 3
"""Until a bad state is a hard one it is told so many times."""
PATH = "/events?types=state&columns=plugin_output&format=ndjson"
READ = 1 << 18
LATEST = 1.5
"""Seconds after which an event of a core that cannot wait must be there."""
LOOKED = 5
"""Seconds in which the questions to such a core are counted."""
ASKED = ("log", "hosts", "services", "comments", "downtimes")


class Listeners:
    """Many connections on one stream."""

    def __init__(self, http: Http, count: int) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = min(hard, max(soft, 2 * count + 200))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        self.poll = select.epoll()
        self.connections: dict[int, socket.socket] = {}
        for _ in range(count):
            connection = http.connect()
            connection.sendall(http.request(PATH))
            connection.setblocking(False)
            self.connections[connection.fileno()] = connection
            self.poll.register(connection.fileno(), select.EPOLLIN)

    def _read(self, what: str) -> Iterator[tuple[int, bytes]]:
        end = time.perf_counter() + TIMEOUT
        while time.perf_counter() < end:
            for number, _ in self.poll.poll(1, 1000):
                data = self.connections[number].recv(READ)
                if not data:
                    raise BrokenRunError("events: a stream has ended")
                yield number, data
        raise BrokenRunError(f"events: {what} did not reach everybody")

    def begin(self) -> None:
        """Wait until each of them gets what happens from now on."""
        waiting = set(self.connections)
        for number, data in self._read("a heartbeat"):
            if b"heartbeat" in data:
                waiting.discard(number)
                if not waiting:
                    return

    def wait(self, text: bytes, times: int = 1) -> float:
        """Read until each has got ``text`` so many times; the seconds."""
        began, left = time.perf_counter(), len(self.connections) * times
        # One read may end in the middle of the text.
        tails = dict.fromkeys(self.connections, b"")
        for number, data in self._read(text.decode()):
            data = tails[number] + data
            left -= data.count(text)
            tails[number] = data[1 - len(text) :]
            if not left:
                break
        return time.perf_counter() - began

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
        self.poll.close()


def streams(daemon: Daemon, core: str) -> Iterator[Line]:
    """One client's delay; delay, memory and processor time of many."""
    http, pid = daemon.http(), daemon.process.pid
    rows = http.body("/csv/services?columns=host_name,description&headers=0").decode()
    names = [(host, name) for host, _, name in (row.partition(";") for row in rows.splitlines())]
    listener = Listeners(http, 1)
    listener.begin()
    delay = statistics.median(_delays(core, names[:1], listener, SINGLE, "single"))
    listener.close()
    yield _late("an event: from the command to a client", delay)
    before = daemon.proportional()
    crowd = Listeners(http, CLIENTS)
    crowd.begin()
    held = (daemon.proportional() - before) / CLIENTS
    yield Line(
        what=f"a client of a stream ({CLIENTS} of them): memory",
        ours=f"{held / 1024:.1f} KiB",
        limit="-",
        ratio=f"{held / 1024:.1f} KiB",
        target="<= 32 KiB",
        met=held <= 32 * 1024,
    )
    busy = cpu_seconds(pid)
    delay = statistics.median(_delays(core, names[:1], crowd, TOLD, "told"))
    each = (cpu_seconds(pid) - busy) / (TOLD * (ATTEMPTS + 1) * CLIENTS)
    yield _late(f"an event: from the command to the last of {CLIENTS} clients", delay)
    raw = _bare(CLIENTS)
    yield Line(
        what=f"an event to each of {CLIENTS} clients: processor time of one",
        ours=f"{each * 1e6:.1f} µs",
        limit=f"{raw * 1e6:.1f} µs bare sends",
        ratio=f"{each / raw:.1f}x",
        target="<= 2x",
        met=each <= 2 * raw,
    )
    yield from _burst(daemon, core, names[:BURST], crowd)
    crowd.close()


def without_waiting(processes: Processes) -> Iterator[Line]:
    """The delay of an event where a core cannot wait, and how often such a core is asked."""
    core = processes.core("polled", 20, 100)
    sockets = processes.replay("polling", {"core": core}, live=True, waits=False)
    daemon = Daemon(processes, "asking", sockets, extra=NO_LOGS)
    site = Livestatus(sockets["core"])
    http = daemon.http()
    host, name = (
        http.body("/csv/services?columns=host_name,description&headers=0&limit=1")
        .decode()
        .strip()
        .split(";")
    )
    site.all_seen()
    time.sleep(LOOKED)
    alone = len(site.all_seen(*ASKED)) / LOOKED
    listener = Listeners(http, 1)
    listener.begin()
    delay = max(_delays(core, [(host, name)], listener, TOLD, "polled"))
    site.all_seen()
    time.sleep(LOOKED)
    asked = len(site.all_seen(*ASKED)) / LOOKED
    listener.close()
    yield Line(
        what="an event of a core that cannot wait: the latest of some",
        ours=milliseconds(delay),
        limit="-",
        ratio=milliseconds(delay),
        target=f"<= {milliseconds(LATEST)}",
        met=delay <= LATEST,
    )
    yield Line(
        what="questions for events to a core that cannot wait, in a second",
        ours=f"{asked:.1f}, {alone:.1f} when nobody listens",
        limit="-",
        ratio=f"{asked:.1f}",
        target="<= 2, 0",
        met=asked <= 2 and not alone,
    )


def _late(what: str, delay: float) -> Line:
    return Line(
        what=what,
        ours=milliseconds(delay),
        limit="-",
        ratio=milliseconds(delay),
        target="<= 100 ms",
        met=delay <= 0.1,
    )


def _delays(
    core: str, one: list[tuple[str, str]], listeners: Listeners, count: int, word: str
) -> list[float]:
    """Have a service break and recover so often; the seconds until all knew of each recovery."""
    delays = []
    # It may be in a bad state already, of which nothing more would be told.
    results(core, one, 0, "calm.")
    for number in range(count):
        bad, well = f"{word} {number} bad.", f"{word} {number} well."
        results(core, one, 2, bad)
        listeners.wait(bad.encode(), ATTEMPTS)
        began = time.perf_counter()
        results(core, one, 0, well)
        listeners.wait(well.encode())
        delays.append(time.perf_counter() - began)
    return delays


def _burst(
    daemon: Daemon, core: str, some: list[tuple[str, str]], crowd: Listeners
) -> Iterator[Line]:
    """Many alerts at once to all of many clients."""
    alerts = ATTEMPTS * len(some)
    results(core, some, 0, "calm.")
    busy, began = cpu_seconds(daemon.process.pid), time.perf_counter()
    results(core, some, 1, "burst.")
    crowd.wait(b"burst.", alerts)
    took = time.perf_counter() - began
    used = cpu_seconds(daemon.process.pid) - busy
    yield Line(
        what=f"{alerts} alerts at once to each of {CLIENTS} clients: all arrive",
        ours=f"{took:.1f} s, {used:.1f} s of processor time",
        limit="-",
        ratio=f"{used / alerts / CLIENTS * 1e6:.2f} µs each",
        target="<= 10 s",
        met=took <= 10,
    )


def _bare(count: int) -> float:
    """The processor time of sending an event's bytes over one of so many TCP connections."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=count)
    pairs = []
    for _ in range(count):
        far = socket.create_connection(listening.getsockname())
        near, _ = listening.accept()
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pairs.append((near, far))
    data, used = b"x" * 300, 0.0
    for _ in range(TOLD):
        began = time.thread_time()
        for near, _ in pairs:
            near.send(data)
        used += time.thread_time() - began
        for _, far in pairs:
            far.recv(1000)
    for pair in pairs:
        for one in pair:
            one.close()
    listening.close()
    return used / (TOLD * count)
