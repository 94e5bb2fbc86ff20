"""A program on a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl


def on_terminal(
    line, environment, *, columns=100, keys=(), until=None, last=signal.SIGINT, seconds=300
):
    """Run a command line to its end; its status, and everything that appears on the terminal.

    Each of ``keys`` is a text and what is typed behind it. When what has appeared fulfils
    ``until``, the program gets the signal ``last``.
    """
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        line, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    seen = 0
    shown, deadline, typed = b"", time.monotonic() + seconds, list(keys)
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 0.2)[0]:
                continue
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
            while typed and (at := shown.find(typed[0][0], seen)) >= 0:
                seen = at + len(typed[0][0])
                os.write(master, typed.pop(0)[1])
            if until is not None and until(shown.decode(errors="replace")):
                process.send_signal(last)
                until = None
    finally:
        process.kill()
        status = process.wait(300)
        os.close(master)
    return status, shown.decode()
