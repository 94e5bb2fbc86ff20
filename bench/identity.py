"""Lines about who asks and what he commands: API keys, and a thousand commands in one request."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from statistics import median
from urllib.parse import quote

import orjson

from bench.clients import TIMEOUT, BrokenRunError, Http
from bench.lines import Bench, in_turns
from bench.processes import ROOT, Daemon
from bench.report import Line, milliseconds, times

COMMANDS = 1000
_BARRIER = (
    b"GET status\nColumns: program_start\nLimit: 1\nResponseHeader: fixed16\nKeepAlive: on\n\n"
)


def api_key(bench: Bench) -> Iterator[Line]:
    """One host by name with an API key, against the same with the secret key."""
    path = f"/hosts/{quote(bench.host, safe='')}"
    secret = bench.daemon.http()
    made = orjson.loads(secret.body("/mon/api_keys", b"comment=bench"))
    key = Http(bench.daemon.port, {"X-Mon-Auth-Key": made["private_key"]}, ROOT)

    def hundred(client: Http) -> Callable[[], float]:
        return lambda: median(client.seconds(path) for _ in range(100))

    for client in (key, secret):
        hundred(client)()
    ours, limit = in_turns(hundred(key), hundred(secret), 25)
    yield times("one host by name with an API key", ours, limit, 1.15, beside=" secret key")


def bulk(daemon: Daemon, core: str) -> Iterator[Line]:
    """A thousand comments in one request, against the same lines on the core's own socket."""
    http = daemon.http()
    hosts = orjson.loads(http.body("/hosts?columns=name&sort=name"))
    names = [hosts[number % len(hosts)]["name"] for number in range(COMMANDS)]
    runs = 0

    def ours() -> float:
        nonlocal runs
        runs += 1
        entries = [
            {"cmd": "add_host_comment", "host": name, "comment_data": f"{runs}.{number}"}
            for number, name in enumerate(names)
        ]
        started = time.perf_counter()
        answer = orjson.loads(http.body("/cmd", orjson.dumps(entries), json=True))
        seconds = time.perf_counter() - started
        if [one["code"] for one in answer] != [200] * COMMANDS:
            raise BrokenRunError(f"bulk: {answer!r:.300}")
        return seconds

    def limit() -> float:
        now = int(time.time())
        lines = [
            f"COMMAND [{now}] ADD_HOST_COMMENT;{name};1;admin;raw {number}\n\n".encode()
            for number, name in enumerate(names)
        ]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(core)
            started = time.perf_counter()
            connection.sendall(b"".join(lines) + _BARRIER)
            answer = connection.recv(16)
            seconds = time.perf_counter() - started
        if not answer.startswith(b"200"):
            raise BrokenRunError(f"commands on the core's socket: {answer!r}")
        return seconds

    took, raw = in_turns(ours, limit, 7)
    seen = len(orjson.loads(http.body("/comments?columns=id&comment[regex]=^[0-9]")))
    if seen < COMMANDS * runs:
        raise BrokenRunError(f"bulk: {seen} of {COMMANDS * runs} comments are there")
    yield Line(
        what=f"{COMMANDS} commands in one request",
        ours=milliseconds(took),
        limit=milliseconds(raw) + " raw lines on the core's socket",
        ratio=f"{took / raw:.1f}x",
        target="<= 2 s",
        met=took <= 2,
    )
