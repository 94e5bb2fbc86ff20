"""The tools of this suite: the recorder notices injected lines, the lying site lies."""

import contextlib
import signal
import socket
import subprocess
import sys
from pathlib import Path

from harness.lying import DEEDS, LyingSite
from harness.recorder import problems
from harness.waiting import until

from tests.forks import REPOSITORY
from tests.table import each

GOOD = (
    b"GET hosts\nResponseHeader: fixed16\nKeepAlive: on\nOutputFormat: json\n"
    b"Columns: name state\nFilter: name ~~ ^web\nFilter: notes =\nFilter: groups >= linux\n"
    b"Or: 2\nNegate:\nStats: state = 1\nStats: sum state\nStatsAnd: 2\nSort: name asc\nLimit: 5"
)


def test_the_recorder_knows_the_template():
    assert problems(GOOD) == []


@each(
    "line",
    [
        b"COMMAND [1] DISABLE_NOTIFICATIONS",
        b"GET services",
        b"Localtime: 5",
        b"Columns: name",
        b"Limit: -1",
        b"Limit: 5 x",
        b"Filter: name",
        b"Filter: na me = x",
        b"Filter: name = x\r",
        b"Filter: name = \x00",
        b"Filter: name = \xff",
        b"WaitObject: web01",
        b"OutputFormat: python",
        b" Limit: 5",
    ],
)
def test_the_recorder_notices_other_lines(line):
    assert problems(GOOD + b"\n" + line)


def test_the_recorder_wants_a_get():
    assert problems(b"COMMAND [1] DISABLE_NOTIFICATIONS")
    assert problems(b"")


COMMAND = b"COMMAND [1700000000] LOG;x; y \\n \xc3\xa9"


def test_the_recorder_knows_commands():
    assert problems(COMMAND) == []
    assert problems(COMMAND + b"\nResponseHeader: fixed16\nKeepAlive: on") == []


@each(
    "request_",
    [
        COMMAND + b"\nCOMMAND [1700000000] LOG;y",
        COMMAND + b"\nKeepAlive: on",
        COMMAND + b"\nResponseHeader: fixed16",
        COMMAND + b"\nKeepAlive: on\nResponseHeader: fixed16",
        COMMAND + b"\n" + GOOD,
        COMMAND + b"\r",
        COMMAND + b"\x00",
        COMMAND + b"\xff",
        b" " + COMMAND,
        COMMAND.replace(b"[1700000000] ", b""),
        COMMAND.replace(b"1700000000", b"now"),
        COMMAND.replace(b"LOG", b"log"),
        COMMAND.replace(b"LOG", b"LOG "),
        GOOD + b"\n" + COMMAND,
    ],
)
def test_the_recorder_notices_other_commands(request_):
    assert problems(request_)


def answer(path, first=10.0):
    """What comes back for a query: all of an honest answer, else what came before a pause.

    ``first`` is how long to wait for the first byte, in seconds.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(first)
        connection.connect(str(path))
        connection.sendall(b"GET hosts\nColumns: name state\n\n")
        received = b""
        with contextlib.suppress(OSError):
            while chunk := connection.recv(65536):
                received += chunk
                connection.settimeout(0.1)
                if received[3:15].strip().isdigit() and len(received) >= 40:
                    break
        return received


def test_the_lying_site_lies_and_is_honest_again(core, tmp_path, lab):
    site = lab.keep(LyingSite(tmp_path / "liar", core.socket))
    honest = answer(site.path)
    assert honest.startswith(b"200 ")
    assert b'["web01", 0]' in honest
    for deed in DEEDS:
        site.lie(deed, "hosts")
        assert answer(site.path, first=0.2 if deed == "silent" else 10.0) != honest, deed
    site.lie("silent", "services")
    assert len(answer(site.path)) == len(honest)


STARTS = """
import signal, sys, time
sys.path.insert(0, "tests/live")
from tests.forks import start
signal.signal(signal.SIGINT, signal.SIG_IGN)
script = "setsid sleep 600 & echo child $!; exec sleep 600"
found = start(["sh", "-c", script], sys.stdout)
print("started", found.pid, flush=True)
time.sleep(600)
"""


def test_a_process_ends_with_the_one_that_started_it():
    """Also the child of a child that went into a session of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTS], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        pids = dict(process.stdout.readline().split() for _ in range(2))
        status = Path(f"/proc/{pids['started']}/status").read_text()
        process.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids.values()), "they are gone")
    assert int(status.split("SigIgn:")[1].split()[0], 16) >> (signal.SIGINT - 1) & 1 == 0
