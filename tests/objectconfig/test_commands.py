"""Commands of the configuration as real processes: output, status, limits, what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from monrest.base.processes import MOST_OUTPUT
from monrest.objectconfig.site_commands import CommandResult, run


async def result(command, seconds=20.0, **environment):
    return await run(reactor, command, environment, seconds)


ENDED = [
    ("echo one; echo two >&2; echo three", 0, "one\ntwo\nthree\n"),
    ("exit 3", 3, ""),
    ("printf 'no newline'", 0, "no newline"),
    ("printf 'gr\\303\\274n \\377'", 0, "grün \ufffd"),
    ("cat; echo end of input", 0, "end of input\n"),
    ("kill -KILL $$", 137, "ended by signal 9"),
    ("echo half; kill -SEGV $$", 139, "half\nended by signal 11"),
    ('echo "$WHO"', 0, "ann & 'ben'\n"),
    ("pwd", 0, "/\n"),
]


async def test_status_and_output():
    for command, status, output in ENDED:
        found = await result(command, WHO="ann & 'ben'")
        assert found == CommandResult(status=status, output=output), command
        assert found.failed == (status != 0)
    assert (await result("/no/such/program")).status == 127


async def test_variables_of_the_daemon_itself_are_kept_from_it(monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("PLAIN", "text")
    found = await result("env")
    assert "PLAIN=text" in found.output
    assert "NOTIFY_SOCKET" not in found.output
    assert "secret" not in found.output


async def test_more_output_than_is_kept_is_read_and_counted():
    found = await result(f"head -c {MOST_OUTPUT + 1234} /dev/zero | tr '\\0' x; exit 5")
    assert found.status == 5
    assert found.output == "x" * MOST_OUTPUT + "\n[1234 more bytes of output left out]"


async def test_the_status_of_a_time_limit_of_its_own_is_no_time_limit_of_ours():
    found = await result("timeout 0.05 sleep 600")
    assert (found.status, found.timed_out, found.output) == (124, False, "")


async def test_without_any_time_left_a_command_is_ended_at_once():
    assert (await result("sleep 600", 0.0)).timed_out


async def test_what_helps_a_command_that_takes_too_long_is_told():
    found = await run(reactor, "sleep 600", {}, 0.1, hint="start it later")
    assert found.output == "ended after 0.1 seconds, the time limit; start it later"


async def test_a_command_that_takes_too_long_ends_with_everything_it_started(tmp_path):
    pids = tmp_path / "pids"
    found = await result(
        # The third does not listen, and the command itself ends at once.
        f"echo begun; echo $$ >> {pids}; (echo $BASHPID; exec sleep 600) & echo $! >> {pids}; "
        f"(trap '' TERM; exec sleep 600) & echo $! >> {pids}; wait",
        5.0,
    )
    assert found.timed_out
    assert found.failed
    assert found.output.startswith("begun\n")
    assert found.output.endswith("ended after 5 seconds, the time limit")
    numbers = pids.read_text().split()
    assert len(numbers) == 3
    for number in numbers:
        await gone(int(number))


async def test_a_command_that_does_not_want_to_end_is_ended():
    found = await result("trap '' TERM; sleep 600", 3)
    assert found.timed_out
    assert found.status == 128 + signal.SIGKILL


async def test_success_does_not_wait_for_what_runs_on_and_lets_it_live(tmp_path):
    pid = tmp_path / "pid"
    found = await result(f"sleep 600 & echo $! > {pid}; echo started")
    number = int(pid.read_text())
    try:
        assert (found.status, found.output) == (0, "started\n")
        os.kill(number, 0)
    finally:
        os.kill(number, signal.SIGKILL)


async def test_a_command_ends_with_the_daemon(tmp_path):
    pids = tmp_path / "pids"
    program = (
        "import sys\nfrom twisted.internet import reactor\n"
        "from monrest.base.processes import run, shell\n"
        "run(reactor, shell(sys.argv[1]), {}, 600.0)\nreactor.run()\n"
    )
    command = f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait"
    daemon = subprocess.Popen([sys.executable, "-c", program, command])
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    daemon.kill()
    daemon.wait()
    for number in pids.read_text().split():
        await gone(int(number))


async def test_a_program_that_cannot_be_started(monkeypatch):
    monkeypatch.setenv("PATH", "/no/such/folder")
    found = await result("true")
    assert found.failed


async def until(condition):
    """Turn the reactor until ``condition``; the test's own time limit ends it else."""
    while not condition():
        await deferLater(reactor, 0.01)


async def gone(number):
    """Turn the reactor until a process is no more, or dead and not yet fetched."""

    def dead():
        try:
            return ") Z" in Path(f"/proc/{number}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            # The second one: the process ended between the opening and the reading.
            return True

    waiting: Deferred[None] = Deferred.fromCoroutine(until(dead))
    await waiting.addTimeout(10, reactor)
