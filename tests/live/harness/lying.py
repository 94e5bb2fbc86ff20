"""A site that answers like the core behind it until it is told to misbehave."""

import contextlib
import json
import socket
import struct
import threading

from .cores import ask, connect
from .listener import UnixListener


def told(path, line):
    """Send one command line to the core at ``path``; what it says about it, nothing if it obeys."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        connection.sendall(line.encode() + b"\n\n")
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while chunk := connection.recv(65536):
            said += chunk
        return said


def framed(body, *, status=200, length=None):
    """``body`` below a fixed16 header, which may lie about its length."""
    size = len(body) if length is None else length
    return b"%3d %11d\n" % (status, size) + body


def wrong_columns(rows):
    """Every row one value short."""
    return [row[:-1] for row in rows]


class LyingSite(UnixListener):
    """Listens on ``path``; answers come from the core at ``target``, bent by ``deed``.

    ``deed`` is None (honest) or a name of ``DEEDS`` or ``TYPED``. ``tables`` limits it to these tables, so
    that a probe of the status table can still look healthy. ``hold`` keeps answers back until
    ``release`` is called; ``waiting`` is set when one is kept.

    Commands are passed on as they come and kept in ``commands``. With ``"COMMAND"`` among the
    tables the deed is done instead of accepting one, after ``patience`` that are accepted.
    ``claims``: table to names of objects that it says to have, and has not.
    """

    def __init__(self, path, target):
        self.target = target
        self.deed = None
        self.tables = None
        self.patience = 0
        self.claims = {}
        self.commands = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()
        self.ended = threading.Event()
        super().__init__(path)

    def close(self):
        """Release everything for the end of a test."""
        self.ended.set()
        self.gate.set()
        self.die()

    def hold(self):
        """Keep the answers of the chosen tables back from now on."""
        self.waiting.clear()
        self.gate.clear()

    def release(self):
        self.gate.set()

    def lie(self, deed, *tables):
        """Misbehave as ``deed`` says, for all tables or only for these."""
        self.tables = tables or None
        self.deed = deed

    def serve(self, connection):
        received = b""
        while True:
            while b"\n\n" not in received:
                chunk = connection.recv(65536)
                if not chunk:
                    return
                received += chunk
            request, _blank, received = received.partition(b"\n\n")
            if not self.answer(connection, request.decode()):
                return

    def answer(self, connection, request):
        """Answer one request; false when the connection is to be closed."""
        lines = request.split("\n")
        if lines[0].startswith("COMMAND "):
            return self.obey(connection, lines[0])
        table = lines[0].removeprefix("GET ")
        chosen = self.tables is None or table in self.tables
        if chosen and not self.gate.is_set():
            self.waiting.set()
            self.gate.wait(300)
        # Read once: a deed that is set while the core answers is for later requests.
        deed = self.deed if chosen else None
        if deed == "silent":
            self.ended.wait(300)
            return False
        kept = [
            line
            for line in lines
            if not line.startswith(("KeepAlive:", "OutputFormat:", "ResponseHeader:"))
        ]
        rows = ask(connect(self.target), "\n".join(kept))
        if "Columns: name" in kept:
            rows += [[name] for name in self.claims.get(table, ())]
        if deed is not None:
            return (DEEDS | TYPED)[deed](self, connection, rows)
        connection.sendall(framed(json.dumps(rows).encode()))
        return True

    def obey(self, connection, line):
        """Pass a command on or misbehave; what the core says about it goes back."""
        if self.tables is not None and "COMMAND" in self.tables:
            if not self.gate.is_set():
                self.waiting.set()
                self.gate.wait(300)
            if self.deed is not None and not self.patience:
                if self.deed == "silent" or DEEDS[self.deed](self, connection, [[1]]):
                    self.ended.wait(300)
                return False
            self.patience = max(0, self.patience - 1)
        self.commands.append(line)
        connection.sendall(told(self.target, line))
        return True


def reset(connection):
    """Close so that the other side sees a reset where the transport knows one."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    return False


def send(*pieces, close=True):
    """A deed that sends these pieces (bytes, or a function of the rows) and perhaps closes."""

    def deed(_site, connection, rows):
        for piece in pieces:
            connection.sendall(piece(rows) if callable(piece) else piece)
        return reset(connection) if close else True

    return deed


def drip(site, connection, rows):
    """Send one byte at a time, for ever."""
    for byte in framed(json.dumps(rows).encode() * 1000):
        connection.sendall(bytes([byte]))
        if site.ended.wait(0.05) or site.deed != "drip":
            return False
    return False


def body(rows):
    """The honest body."""
    return json.dumps(rows).encode()


DEEDS = {
    "length too long": send(lambda rows: framed(body(rows), length=len(body(rows)) + 10)),
    "length too long and open": send(
        lambda rows: framed(body(rows), length=len(body(rows)) + 10), close=False
    ),
    "length too short": send(
        lambda rows: framed(body(rows), length=len(body(rows)) - 5), close=False
    ),
    "length absurd": send(b"200 99999999999\n[[", close=False),
    "truncated body": send(lambda rows: framed(body(rows))[:-7]),
    "truncated header": send(b"200    "),
    "no header": send(b"Invalid GET request, missing table name\n"),
    "letters in the header": send(b"2OO abcdefghijk\n[]"),
    "negative length": send(b"200         -12\n[]"),
    "invalid json": send(lambda rows: framed(body(rows)[:-1] + b"x"), close=False),
    "not a list": send(framed(b'{"rows": 1}\n'), close=False),
    "rows are no lists": send(framed(b'["a", "b"]\n'), close=False),
    "empty body": send(framed(b""), close=False),
    "column missing": send(lambda rows: framed(body(wrong_columns(rows))), close=False),
    "column too many": send(lambda rows: framed(body([[*row, 1] for row in rows])), close=False),
    "one row short": send(
        lambda rows: framed(body([*rows[:-1], *wrong_columns(rows[-1:])])), close=False
    ),
    "status 400": send(framed(b"bad request\n", status=400), close=False),
    "status 452": send(framed(b"Error: no\n\n" + b"stack\n" * 900, status=452), close=False),
    "status 500": send(framed(b"", status=500)),
    "closed at once": send(),
    "closed after the header": send(lambda rows: framed(body(rows))[:16]),
    "drip": drip,
    "silent": send(),
}
"""Name of a misdeed to what is done instead of answering (``silent`` never gets that far)."""

WRONG = {
    "text": "text",
    "number": 7,
    "float": 1e300,
    "null": None,
    "true": True,
    "list": ["a", 1, ["b"]],
    "empty list": [],
    "list of lists": [["a"], [1, 2]],
    "object": {"A": "b", "B": [1]},
}
"""Values that are of the wrong type for nearly every column."""

TYPED = {
    name: send(lambda rows, wrong=wrong: framed(body([[wrong] * len(row) for row in rows])),
               close=False)
    for name, wrong in WRONG.items()
}  # fmt: skip
"""Lies in every value of an answer that has the right form; nothing has to fail for them."""

FAST = [name for name in DEEDS if name not in ("drip", "silent", "length too long and open",
                                               "length absurd")]  # fmt: skip
"""The misdeeds that show at once; the others only end by the site's time-out."""
