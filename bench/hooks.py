"""Lines about webhooks: a burst of alerts on its way to a receiver."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson

from bench.clients import TIMEOUT, BrokenRunError
from bench.processes import Daemon, cpu_seconds
from bench.report import Line, milliseconds

BURST = 1000


def burst(daemon: Daemon, core: str) -> Iterator[Line]:
    """The processor time of a message, beside a bare POST of Python's own client.

    And how long it takes when one message is not answered, beside when all are.
    """
    ids: list[str] = []
    silent: list[tuple[str, str]] = []
    go = threading.Event()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            data = orjson.loads(body)["data"] if silent else {}
            if (data.get("host_name"), data.get("service_description")) in silent:
                go.wait(TIMEOUT)
                return
            ids.append(self.headers["webhook-id"] or "")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Receiver)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    http = daemon.http()
    record = {
        "name": "bench",
        "url": url,
        "filter": "types=state&state_type=HARD&plugin_output[regex]=^burst",
    }
    number = orjson.loads(http.body("/mon/webhooks", orjson.dumps(record), json=True))["id"]
    # The core must not find out by itself what it is told here.
    http.body("/system/cmd/stop_executing_svc_checks", b"{}", json=True)
    rows = orjson.loads(http.body("/services?columns=host_name,description&state=0&sort=host_name"))
    names = [(one["host_name"], one["description"]) for one in rows[: BURST // 2]]
    time.sleep(3)
    results(core, names, 2, "burst first")
    _until(ids, len(names))
    ids.clear()
    before = cpu_seconds(daemon.process.pid)
    began = time.perf_counter()
    for state in (0, 2):
        results(core, names, state, f"burst {state}")
    _until(ids, 2 * len(names))
    took = time.perf_counter() - began
    ours = (cpu_seconds(daemon.process.pid) - before) / (2 * len(names))
    if len(set(ids)) != 2 * len(names):
        raise BrokenRunError(f"webhook {number}: {len(set(ids))} of {2 * len(names)} messages")
    ids.clear()
    silent.append(names[0])
    began = time.perf_counter()
    for state in (0, 2):
        results(core, names, state, f"burst {state}")
    _until(ids, 2 * (len(names) - 1))
    beside = time.perf_counter() - began
    go.set()
    silent.clear()
    raw = _bare(server.server_address[1])
    server.shutdown()
    yield Line(
        what=f"{BURST} alerts through a webhook: processor time of each ({took:.1f} s in all)",
        ours=milliseconds(ours),
        limit=milliseconds(raw) + " bare POST",
        ratio=f"{ours / raw:.1f}x",
        target="<= 20x",
        met=ours <= 20 * raw,
    )
    yield Line(
        what=f"{BURST} alerts through a webhook while one message is not answered",
        ours=f"{beside:.1f} s",
        limit=f"{took:.1f} s when all are",
        ratio=f"{beside / took:.1f}x",
        target="<= 2x",
        met=beside <= 2 * took,
    )


def results(core: str, names: list[tuple[str, str]], state: int, text: str) -> None:
    """Send passive results of services; three of a bad state, so that it is a hard one."""
    now = int(time.time())
    lines = [
        f"COMMAND [{now}] PROCESS_SERVICE_CHECK_RESULT;{host};{name};{state};{text}\n\n".encode()
        for host, name in names
        for _ in range(3 if state else 1)
    ]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(core)
        connection.sendall(b"".join(lines))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def _until(ids: list[str], count: int) -> None:
    end = time.monotonic() + TIMEOUT
    while len(ids) < count:
        if time.monotonic() > end:
            raise BrokenRunError(f"webhook: {len(ids)} of {count} messages arrived")
        time.sleep(0.01)


def _bare(port: int) -> float:
    body, began = b"x" * 500, time.process_time()
    for _ in range(200):
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        connection.request("POST", "/", body)
        connection.getresponse().read()
        connection.close()
    return (time.process_time() - began) / 200
