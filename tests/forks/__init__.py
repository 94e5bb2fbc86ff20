"""Starting processes: forked from one that has imported everything, or executed below it.

Whatever is started ends with the test run, however that ends.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from .server import LONGEST

REPOSITORY = Path(__file__).resolve().parents[2]
TWISTD = "twisted.scripts.twistd:run"
DEMO = "monrest.demo.__main__:main"
CLIENT = "monrest.cli.main:main"
SCRIPT = "script"
"""A file of Python, the first of the arguments."""


class Process:
    """A process that was started here, with the words of ``subprocess.Popen``."""

    stdin = stdout = None

    def __init__(self, status):
        self._status = status
        self.returncode = None
        self.pid = int(status.recv(64) or b"0")
        assert self.pid, "the fork server is gone"

    def poll(self):
        """The exit status, None while it runs."""
        return self._exit(0.0)

    def wait(self, timeout=None):
        """Wait for the exit status."""
        if self._exit(timeout) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self.returncode

    def _exit(self, timeout):
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                said = self._status.recv(64)
            except (BlockingIOError, TimeoutError):
                return None
            # Nothing is said when the fork server was killed, and all its children with it.
            self.returncode = int(said) if said else -9
            self._status.close()
        return self.returncode

    def send_signal(self, number):
        """Send a signal unless it has ended, which may not be known yet."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self):
        """Ask it to end."""
        self.send_signal(15)

    def kill(self):
        """End it."""
        self.send_signal(9)

    def stopped(self):
        """Wait until SIGSTOP has stopped it."""
        state = Path(f"/proc/{self.pid}/stat")
        while state.read_text().rpartition(") ")[2][0] != "T":
            time.sleep(0.001)

    def end(self):
        """Make sure that it is gone."""
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                stream.close()


def start(argv, output=None, *, program="", cwd=REPOSITORY, env=None):
    """Start a command line; ``program`` says what a fork calls, without one it is executed.

    ``output``: a file that gets all that is printed; None: the process has ``stdin`` and ``stdout``.
    """
    request = {
        "program": program,
        "argv": [str(one) for one in argv],
        "cwd": str(cwd),
        "env": dict(os.environ if env is None else env),
    }
    message = json.dumps(request).encode()
    assert len(message) < LONGEST
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if output is not None:
        with far, Path(os.devnull).open() as nothing:
            streams = [nothing.fileno(), output.fileno(), output.fileno()]
            socket.send_fds(_server(), [message], [*streams, far.fileno()])
        return Process(near)
    (read, write), (heard, said) = os.pipe(), os.pipe()
    with far, os.fdopen(read), os.fdopen(said, "w"):
        socket.send_fds(_server(), [message], [read, said, 2, far.fileno()])
    process = Process(near)
    process.stdin, process.stdout = os.fdopen(write, "w"), os.fdopen(heard)
    return process


def ran(argv, *, program="", seconds=300, **more):
    """Start a command line, wait, and give its exit status and all that it has printed."""
    with tempfile.TemporaryFile() as output:
        process = start(argv, output, program=program, **more)
        try:
            status = process.wait(seconds)
        finally:
            process.kill()
        output.seek(0)
        return status, output.read().decode()


@functools.cache
def _server():
    """The control socket of this process's fork server."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far:
        program = Path(__file__).with_name("server.py")
        server = subprocess.Popen(
            [sys.executable, str(program), str(far.fileno())],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[far.fileno()],
        )

    def end():
        near.close()
        server.wait(300)

    atexit.register(end)
    return near
