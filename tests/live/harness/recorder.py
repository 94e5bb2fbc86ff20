"""A proxy between the daemon and a core that keeps every request and checks its lines."""

import contextlib
import re
import socket
import threading
from pathlib import Path

NAME = r"[a-z][a-z0-9_]*"
OPERATOR = r"(?:=|!=|~|!~|=~|!=~|~~|!~~|<|>|<=|>=|!<|!>|!<=|!>=)"
LINES = [
    re.compile(pattern)
    for pattern in (
        r"ResponseHeader: fixed16",
        r"KeepAlive: on",
        r"OutputFormat: (?:json|csv|wrapped_json)",
        r"Backends:(?: [A-Za-z0-9_.:-]+)+",
        r"Separators: 10 1 2 3",
        r"ColumnHeaders: (?:on|off)",
        rf"Columns:(?: {NAME})+",
        rf"Filter: {NAME} {OPERATOR}(?: .*)?",
        rf"Stats: (?:{NAME} {OPERATOR}(?: .*)?|(?:sum|min|max) {NAME})",
        r"(?:And|Or|StatsAnd|StatsOr): [0-9]+",
        r"(?:Negate|StatsNegate):.{0,2}",
        rf"Sort: {NAME}(?: [^ ]+)? (?:asc|desc)",
        r"(?:Limit|Offset): [0-9]+",
        r"AuthUser: .+",
        r"WaitTrigger: log",
        r"WaitTimeout: [1-9][0-9]{0,4}",
    )
]
FIRST = re.compile(rf"GET {NAME}")
COMMAND = re.compile(r"COMMAND \[[0-9]{10}\] (?P<name>[A-Z][A-Z0-9_]+)(?:;.*)?")
BELOW_COMMAND = ([], ["ResponseHeader: fixed16", "KeepAlive: on"])
"""Nothing for a Naemon, which would take it for the next request; these two for an Icinga 2."""
BELOW_LMD_COMMAND = ["ResponseHeader: fixed16", "OutputFormat: wrapped_json"]
"""Below its site."""


COUNTER = (
    r"(?:connections|forks|host_checks|livecheck_overflows|livechecks|log_messages|neb_callbacks"
    r"|requests|service_checks)(?:_rate)?"
)
VALUES = r"(?:[a-z0-9_]+_)?custom_variable_values"


def harms(lines):
    """The lines of a GET that a real core refuses or does not survive, or that make it read all."""
    table = lines[0].removeprefix("GET ")
    only_read = re.compile(COUNTER if table == "status" else VALUES)
    grouped = any(line.startswith("Stats:") for line in lines)
    found = [lines[0]] if table == "statehist" else []
    since = re.compile(r"Filter: time (?:=|>|>=) [0-9]+")
    if table == "log" and not any(since.fullmatch(line) for line in lines):
        found.append("GET log without a lower bound on time")
    for line in lines[1:]:
        word, _, rest = line.partition(":")
        names = rest.split(" ")[1:] if word == "Columns" and grouped else rest.split(" ")[1:3]
        if word in ("Filter", "Stats", "Sort") or (word == "Columns" and grouped):
            found += [line for name in names if only_read.fullmatch(name)]
    return found


def problems(request):
    """What is wrong with one request (bytes up to its blank line), as a list of texts."""
    try:
        text = request.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"not UTF-8: {error}"]
    lines = text.split("\n")
    if COMMAND.fullmatch(lines[0]):
        below = lines[1:]
        to_lmd = below[:1] and below[0].startswith("Backends: ") and below[1:] == BELOW_LMD_COMMAND
        found = [] if to_lmd or below in BELOW_COMMAND else [f"below a command: {below!r}"]
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in lines[0]):
            found.append(f"control character in {lines[0]!r}")
        return found
    found = [] if FIRST.fullmatch(lines[0]) else [f"first line {lines[0]!r}"]
    found += [f"harmful: {line!r}" for line in harms(lines)]
    if len([line for line in lines if line.startswith("Columns:")]) > 1:
        found.append("several Columns lines")
    if "WaitTrigger: log" in lines and not lines[-1].startswith("WaitTimeout: "):
        found.append("waits for ever")
    if "WaitTrigger: log" in lines and lines[0] == "GET log":
        found.append("holds the lock of the log while it waits")
    for line in lines[1:]:
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in line):
            found.append(f"control character in {line!r}")
        elif not any(pattern.fullmatch(line) for pattern in LINES):
            found.append(f"unexpected line {line!r}")
    return found


class Recorder:
    """Listens on ``path`` and passes everything on to the core at ``target``."""

    def __init__(self, path, target):
        self.path = Path(path)
        self.target = Path(target)
        self.requests = []
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def address(self):
        return f"unix:{self.path}"

    def close(self):
        """Stop listening; connections end with their partners."""
        self.listener.close()
        self.path.unlink(missing_ok=True)

    def since(self, mark):
        """The requests recorded after ``mark`` (a length of the list seen before)."""
        with self.lock:
            return self.requests[mark:]

    def mark(self):
        with self.lock:
            return len(self.requests)

    def accept(self):
        while True:
            try:
                client, _address = self.listener.accept()
            except OSError:
                return
            try:
                core = self.connect()
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.forward, args=(client, core), daemon=True).start()
            threading.Thread(target=self.backward, args=(core, client), daemon=True).start()

    def connect(self):
        core = socket.socket(socket.AF_UNIX)
        core.connect(str(self.target))
        return core

    def passes(self, request, client):
        """Whether the core gets a request; a method that says no answers the client itself."""
        return True

    def forward(self, client, core):
        waiting = b""
        try:
            while chunk := client.recv(65536):
                waiting += chunk
                *complete, waiting = waiting.split(b"\n\n")
                with self.lock:
                    self.requests += complete
                for request in complete:
                    if self.passes(request, client):
                        core.sendall(request + b"\n\n")
        except OSError:
            pass
        if waiting:
            with self.lock:
                self.requests.append(waiting)
        # What the core still says goes to the client: an LMD answers when nothing more can come.
        with contextlib.suppress(OSError):
            core.shutdown(socket.SHUT_WR)

    def backward(self, core, client):
        try:
            while chunk := core.recv(262144):
                client.sendall(chunk)
        except OSError:
            pass
        half_close(client)


def half_close(connection):
    """Say that nothing more comes; a peer that has gone already is fine."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
