"""A program that has imported everything and becomes, by forking, what a test wants to start.

Importing the daemon takes twenty times as long as starting it. This process imports it once, without a
reactor and without threads, and forks for each request that comes over its control socket. The
child looks like a fresh interpreter: command line, environment, folder, standard streams, signals.

A request is JSON with ``argv``, ``cwd``, ``env`` and ``program``: what of the command line is called
(``module:function``, or ``script`` for the file that is its first argument); empty, it is executed.
With it come the file descriptors of the three standard streams and of a socket that gets the
number of the new process and later its exit status. When the control socket is closed, everything
that was started is killed, with all that it has started itself.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

LONGEST = 262144
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
NOT_IMPORTED = "monrest.store.migrations.env"
"""What Alembic runs."""

FURTHER = (
    "encodings.idna", "psycopg", "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite.pysqlite",
    "twisted.application.app", "twisted.internet.epollreactor", "twisted.scripts.twistd", "werkzeug.routing",
    "werkzeug.test", "werkzeug.wrappers",
)  # fmt: skip
"""What a daemon imports only when it starts, but for Klein, which would install a reactor."""


def imported():
    """Import everything."""
    import monrest

    for module in pkgutil.walk_packages(monrest.__path__, "monrest."):
        if module.name != NOT_IMPORTED:
            importlib.import_module(module.name)
    for name in FURTHER:
        importlib.import_module(name)
    watch = runpy.run_path(str(Path(__file__).with_name("doors.py")))["watch"]
    watch()
    assert "twisted.internet.reactor" not in sys.modules
    gc.collect()
    gc.freeze()


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def serve(control):
    """Fork for each request; None at the end, and in a child what it has to do."""
    prctl(SET_CHILD_SUBREAPER, 1)
    awake, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(awake, select.POLLIN)
    own = os.getpid()
    while True:
        ready = {at for at, _ in poll.poll()}
        if awake.fileno() in ready:
            awake.recv(4096)
            reap(running)
        if control.fileno() not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, LONGEST, 4)
        if not message:
            end()
            return None
        *streams, status = descriptors
        status = socket.socket(fileno=status)
        if not (pid := os.fork()):
            for one in (control, awake, wake, status, *running.values()):
                one.close()
            become(own, streams)
            return json.loads(message)
        running[pid] = status
        for one in streams:
            os.close(one)
        with suppress(OSError):
            status.send(str(pid).encode())


def reap(running):
    """Tell of each process that has ended; others are those that nobody waited for."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            if told := running.pop(pid, None):
                with suppress(OSError):
                    told.send(str(os.waitstatus_to_exitcode(status)).encode())
                told.close()


def end():
    """Kill everything below this process."""
    signal.set_wakeup_fd(-1)
    mine = Path(f"/proc/self/task/{os.getpid()}/children")
    while children := mine.read_text().split():
        for child in map(int, children):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        reap({})
        time.sleep(0.001)


def become(parent, streams):
    """Be a process of its own that has just begun and dies with its parent."""
    os.setsid()
    prctl(SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for at, one in enumerate(streams):
        os.dup2(one, at)
        os.close(one)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # It begins in a shell's background or not: a test may interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(program, argv, cwd, env):
    """Do what a request wants; its exit status."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    if not program:
        os.execvp(argv[0], argv)
    sys.orig_argv[:] = argv
    sys.argv[:] = argv[1:] if program == "script" else [argv[1], *argv[3:]]
    if "COVERAGE_PROCESS_CONFIG" in env:
        write_down_coverage()
    try:
        if program == "script":
            runpy.run_path(argv[1], run_name="__main__")
            return 0
        module, _, function = program.partition(":")
        return getattr(importlib.import_module(module), function)() or 0
    except SystemExit as error:
        if isinstance(error.code, str):
            raise
        return error.code or 0


def leave(status):
    """End as an interpreter does, but for its modules: taken apart, they would be copied first."""
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def write_down_coverage():
    """Keep what was measured when twistd ends itself by a signal."""
    import coverage
    from twisted.application import app

    leave = app._exitWithSignal

    def leaving(number):
        coverage.Coverage.current().save()
        leave(number)

    app._exitWithSignal = leaving


if __name__ == "__main__":
    sys.path[0] = ""
    imported()
    if wanted := serve(socket.socket(fileno=int(sys.argv[1]))):
        leave(run(**wanted))
