"""A kill at any instant leaves all old or all new files, and loses nothing acknowledged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks
from tests.objectconfig.staging.editing import FILES, number

ROOT = Path(__file__).resolve().parents[3]


def run(script, *arguments):
    """Run a script of this folder to its end; what it printed, as numbers."""
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return [int(word) for word in ran.stdout.split()]


def test_a_save_killed_at_any_instant_is_all_or_nothing(tmp_path):
    old, new = run("kills.py", tmp_path / "site", "save")
    assert old > 15
    assert new > 5


def test_a_recovery_killed_at_any_instant_is_completed_by_the_next(tmp_path):
    old, new = run("kills.py", tmp_path / "site", "recovery")
    assert old > 100
    assert new > 30


class Editing:
    """``editing.py`` as a process; ``seen`` is the highest number of each kind acknowledged."""

    def __init__(self, url, var_dir, site, name):
        self.name = name
        self.seen = {"edited": -1, "saved": -1}
        script = Path(__file__).with_name("editing.py")
        self.process = forks.start(
            [sys.executable, script, url, var_dir, site.folder, name], program=forks.SCRIPT
        )

    def note(self, line):
        if line.endswith("\n"):
            kind, value = line.split()
            self.seen[kind] = int(value)

    def read(self, lines):
        for _ in range(lines):
            line = self.process.stdout.readline()
            assert line, "it ended by itself"
            self.note(line)

    def kill(self):
        self.process.kill()
        for line in self.process.stdout.read().splitlines(keepends=True):
            self.note(line)
        self.process.end()


@pytest.fixture
def editing(database_url, site, tmp_path):
    """A function that starts a process that edits and saves; none outlives the test."""
    running = []

    def start(name, var_dir="var"):
        running.append(Editing(database_url, tmp_path / var_dir, site, name))
        return running[-1]

    (tmp_path / "var").mkdir()
    yield start
    for one in running:
        if one.process.returncode is None:
            one.kill()


def on_disk(site, name):
    """The numbers in both files of a user, as they are on disk."""
    found = []
    for file in FILES:
        path = Path(site.path(f"{name}-{file}"))
        words = path.read_text().split() if path.exists() else ["_number", "-1"]
        found.append(int(words[words.index("_number") + 1]))
    return found


async def check(daemon, site, process):
    first, second = on_disk(site, process.name)
    assert first == second
    assert first >= process.seen["saved"]
    hosts = [(await daemon.host(f"{process.name}-{file}", process.name)) for file in FILES]
    assert number(hosts[0]) == number(hosts[1]) >= process.seen["edited"]
    names = await daemon.names(process.name)
    for value in range(0, process.seen["edited"] + 1, 3):
        assert names.count(f"{process.name}-{value}") == 1
    view = await daemon.view(process.name)
    assert view.conflicts == ()


async def test_two_daemons_and_a_kill_of_one_lose_nothing(editing, started, site, tmp_path):
    (tmp_path / "other").mkdir()
    victim, other = editing("ann"), editing("bob", "other")
    for process in (victim, other):
        process.read(8)
    victim.kill()
    other.read(6)
    other.kill()
    await started("other").stop()  # it recovers what was killed over there
    daemon = started()
    for process in (victim, other):
        await check(daemon, site, process)
        await daemon.save(process.name)
        assert on_disk(site, process.name)[0] >= process.seen["edited"]
