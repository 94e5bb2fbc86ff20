"""Starting in one's own place: the same arguments, folder and process number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from monrest.daemon.restart import AGAIN, Restart, initial

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAM = """
import os, sys
from monrest.daemon.restart import Restart
print(os.getpid(), os.getcwd(), *sys.argv[1:], flush=True)
again = Restart(pidfile="{pidfile}", **{more})
if os.environ.get("ROUND") == "2":
    sys.exit(7)
os.environ["ROUND"] = "2"
os.chdir("/")
again()
"""


def run(folder, *arguments, more="{}", **environment):
    program = folder / "program.py"
    program.write_text(PROGRAM.format(pidfile="own.pid", more=more))
    (folder / "own.pid").write_text("1")
    return subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_same_again(tmp_path):
    done = run(tmp_path, "a b", "--c")
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.endswith(f"{os.path.realpath(tmp_path)} a b --c")
    assert done.returncode == 7, done.stderr
    assert not (tmp_path / "own.pid").exists()


def test_passed_sockets_need_who_passed_them(tmp_path):
    done = run(tmp_path, LISTEN_FDS="1")
    assert len(done.stdout.splitlines()) == 1
    assert done.returncode == AGAIN


def test_rights_that_were_given_up_cannot_be_had_again(tmp_path):
    assert run(tmp_path, more="{'uid': -1}").returncode == AGAIN


def test_what_is_not_there_any_more_cannot_start(tmp_path):
    assert run(tmp_path, more="{'arguments': ('/nonexistent',)}").returncode == AGAIN


def test_the_first_environment(monkeypatch):
    monkeypatch.delenv("PATH")
    assert b"PATH" in initial()
    assert Restart().folder == str(Path.cwd())
