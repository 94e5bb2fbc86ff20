"""The program that ends a command with its daemon, as real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monrest.base import minder

LONG = 600.0


class Minded:
    """A minder whose daemon is the test; ``pids`` are written by the command, one a line."""

    def __init__(self, folder, command, seconds=LONG, lock="lock"):
        self.file = folder / "pids"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", minder.__file__),
                *(str(folder / lock), str(minder.now() + seconds)),
                *("/bin/sh", "-c", command.format(pids=self.file)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def pids(self, count):
        """The processes of the command, when there are as many."""
        while True:
            lines = self.file.read_text().splitlines() if self.file.exists() else []
            if len(lines) >= count:
                return [int(one) for one in lines]
            time.sleep(0.01)

    def renew(self, seconds):
        self.process.stdin.write(f"{minder.now() + seconds}\n".encode())
        self.process.stdin.flush()

    def result(self):
        """Status, output and errors at the end, which the test waits for with an open input."""
        with self.process as process:
            status = process.wait(300)
            return status, process.stdout.read().decode(), process.stderr.read().decode()


@pytest.fixture
def mind(tmp_path):
    """A function that starts one; nothing is left of it at the end."""
    started = []

    def start(command, **more):
        started.append(Minded(tmp_path, command, **more))
        return started[-1]

    yield start
    for one in started:
        with contextlib.suppress(OSError):
            one.process.stdin.close()
        one.process.wait(300)
        one.process.stdout.close()
        one.process.stderr.close()


def lives(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


FAMILY = (
    # A child, one in a session of its own whose parent has ended, and one that does not listen.
    "echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; "
    "(setsid sh -c 'echo $$ >> {pids}; sleep 600' &) ; "
    "(trap '' TERM; sh -c 'echo $$ >> {pids}; while :; do sleep 1; done' &) ; wait"
)


@pytest.mark.parametrize(
    ("command", "status", "output"),
    [
        ("echo one; exit 3", 3, "one\n"),
        ("kill -9 $$", 137, ""),
        ("cat; echo no input", 0, "no input\n"),
        ("exec /no/such/program 2>/dev/null", 127, ""),
    ],
)
def test_it_is_as_if_it_were_not_there(mind, command, status, output):
    assert mind(command).result() == (status, output, "")


def test_a_daemon_that_died(mind):
    one = mind(FAMILY)
    pids = one.pids(4)
    assert all(map(lives, pids))
    one.process.stdin.close()
    assert one.process.wait(300) == 1
    assert not any(map(lives, pids))
    assert one.process.stderr.read().endswith(b"it was ended: the daemon ended\n")


def test_a_daemon_that_is_paused_or_cut_off(mind):
    one = mind(FAMILY, seconds=4.0)
    status, _, errors = one.result()
    assert status == 1
    assert errors.endswith("it was ended: the daemon could not say that it lives\n")
    assert not any(map(lives, one.pids(1)))


def test_a_daemon_that_goes_on(mind, tmp_path):
    one = mind(
        "until test -e go; do sleep 0.05; done; echo done".replace("go", f"{tmp_path}/go"),
        seconds=4.0,
    )
    for _ in range(4):
        one.renew(LONG)
    one.renew(0.1)  # an older one that comes late takes nothing back
    over = minder.now() + 4.5
    while minder.now() < over:
        time.sleep(0.05)
    (tmp_path / "go").touch()
    assert one.result() == (0, "done\n", "")


def test_it_is_asked_to_end(mind):
    one = mind(FAMILY)
    pids = one.pids(4)
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(300) == 143
    assert not any(map(lives, pids))


def test_a_minder_that_is_killed_takes_the_command_with_it(mind):
    one = mind("echo $$ >> {pids}; exec sleep 600")
    (pid,) = one.pids(1)
    one.process.kill()
    one.process.wait(300)
    while lives(pid):
        time.sleep(0.01)


def test_what_the_command_leaves_behind_on_purpose_stays(mind):
    one = mind("setsid sleep 600 >/dev/null 2>&1 & echo $! >> {pids}")
    assert one.result() == (0, "", "")
    (pid,) = one.pids(1)
    assert lives(pid)
    os.kill(pid, signal.SIGKILL)


def test_one_at_a_time(mind, monkeypatch):
    first = mind("echo $$ >> {pids}; sleep 600")
    first.pids(1)
    second = mind("echo second", seconds=1.0)
    assert second.result() == (1, "", "another command still runs on this machine\n")
    third = mind("echo third")
    first.process.stdin.close()
    assert third.result() == (0, "third\n", "")


def test_a_lease_that_is_over_begins_nothing(mind):
    late = mind("echo hello", seconds=-1.0)
    assert late.result() == (
        1, "", "it was not begun: the daemon could not say that it lives\n",
    )  # fmt: skip
