"""What a daemon imports at its start, which is what an idle one has in memory."""

from __future__ import annotations

import os
import subprocess
import sys

SEEN = """
import os, signal, sys
from twisted.internet import reactor
from twisted.scripts import twistd

started = os.getpid()
at_fork = set()
os.register_at_fork(after_in_child=lambda: at_fork.update(sys.modules))

def seen(*_):
    later = set(sys.modules) - at_fork if os.getpid() != started else set(sys.modules)
    # In one piece: other processes write their log into the same pipe.
    os.write(1, (" ".join(["seen", *sorted(later)]) + "\\n").encode())
    # A worker that ended would begin anew.
    os.kill(started, signal.SIGTERM)

from monrest.daemon.service import Daemon
start = Daemon.startService
def start_and_look(self):
    start(self)
    # After everything that begins when the reactor does.
    self.reactor.callWhenRunning(seen)
Daemon.startService = start_and_look
sys.argv = ["twistd", "--nodaemon", "--pidfile=", "monrest", "--config", sys.argv[1]]
twistd.run()
"""

WHEN_NEEDED = {
    "alembic", "email.policy", "jinja2", "mako", "markdown_it", "nh3", "passlib",
    "prometheus_client", "psycopg", "pygments", "reportlab", "sqlalchemy.dialects.postgresql",
    "sqlalchemy.orm", "twisted.mail", "wcwidth", "xlsxwriter",
}  # fmt: skip


def started(tmp_path, workers):
    """The modules that each process had which served, one set for each."""
    config = tmp_path / "monrest.toml"
    config.write_text(
        f"""
        [server]
        listen = ["tcp:0:interface=127.0.0.1"]
        var_dir = "{tmp_path}/var"
        workers = {workers}
        """
    )
    process = subprocess.run(
        [sys.executable, "-c", SEEN, str(config)],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [line.split() for line in process.stdout.splitlines() if "seen" in line.split()]
    assert lines, process.stdout + process.stderr
    return [set(line[line.index("seen") + 1 :]) for line in lines]


def test_what_most_daemons_never_need_is_not_imported_at_the_start(tmp_path):
    for start in ("the first", "the second"):
        [modules] = started(tmp_path, 1)
        assert "monrest.daemon.families" in modules
        assert modules & WHEN_NEEDED == set(), start


def test_a_worker_imports_nothing_that_its_parent_has_not_imported(tmp_path):
    for modules in started(tmp_path, 2):
        assert modules == set()
