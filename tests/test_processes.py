"""Processes of a daemon: a new start in its own place, the service manager, what workers share."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.workers import MARKS, Workers, ended, marks
from monrest.config import Config, ServerConfig
from monrest.daemon.restart import AGAIN, Restart, initial
from monrest.daemon.supervisor import Worker, processes
from monrest.daemon.systemd import Notifier, monotonic_microseconds, watchdog_interval
from tests.forks import REPOSITORY, SCRIPT, ran

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


def run(folder, *arguments, program=SCRIPT, more="{}", **environment):
    """The exit status of the program, and the lines that it has printed."""
    (folder / "program.py").write_text(PROGRAM.format(pidfile="own.pid", more=more))
    (folder / "own.pid").write_text("1")
    status, said = ran(
        [sys.executable, "program.py", *arguments],
        program=program,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
    )
    return status, said.splitlines()


def test_the_same_again(tmp_path):
    status, (first, second) = run(tmp_path, "a b", "--c")
    assert first == second
    assert first.endswith(f"{os.path.realpath(tmp_path)} a b --c")
    assert status == 7
    assert not (tmp_path / "own.pid").exists()


def test_passed_sockets_need_who_passed_them(tmp_path):
    # No fork: it is asked for what the process began with.
    status, lines = run(tmp_path, program="", LISTEN_FDS="1")
    assert (status, len(lines)) == (AGAIN, 1)


def test_rights_that_were_given_up_cannot_be_had_again(tmp_path):
    assert run(tmp_path, more="{'uid': -1}")[0] == AGAIN


def test_what_is_not_there_any_more_cannot_start(tmp_path):
    assert run(tmp_path, more="{'arguments': ('/nonexistent',)}")[0] == AGAIN


def test_the_first_environment(monkeypatch):
    monkeypatch.delenv("PATH")
    assert b"PATH" in initial()
    assert Restart().folder == str(Path.cwd())


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A notify socket: (what NOTIFY_SOCKET says, a function that reads the next message)."""
    if request.param == "path":
        name = bound = str(tmp_path / "notify")
    else:
        name, bound = f"@monrest-{os.getpid()}", f"\0monrest-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(bound)
        receiver.setblocking(False)
        yield name, lambda: receiver.recv(4096).decode()


def test_messages(manager):
    name, read = manager
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": name})
    notifier.ready()
    assert read() == "READY=1"
    notifier.stopping()
    assert read() == "STOPPING=1"
    notifier.status("3 sites")
    assert read() == "STATUS=3 sites"
    notifier.watchdog()
    assert read() == "WATCHDOG=1"


def test_reloading_carries_the_time_in_the_same_message(manager):
    name, read = manager
    before = monotonic_microseconds()
    Notifier(name).reloading()
    first, second = read().split("\n")
    assert first == "RELOADING=1"
    key, _, value = second.partition("=")
    assert key == "MONOTONIC_USEC"
    assert before <= int(value) <= monotonic_microseconds()


def test_without_a_manager_nothing_happens():
    notifier = Notifier.from_environment({})
    notifier.ready()
    assert notifier.address == ""


def test_a_manager_that_is_gone_is_no_failure(tmp_path):
    Notifier(str(tmp_path / "none")).ready()


@pytest.mark.parametrize(
    ("environment", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_interval_is_half_of_what_is_allowed(environment, interval):
    assert watchdog_interval(environment) == interval


def crew(count):
    memory = marks(count)
    return memory, [Workers(count, number, memory=memory) for number in range(1, count + 1)]


@given(st.integers(1, 9), st.data())
def test_a_mark_of_one_worker_is_seen_by_all_and_is_no_other_mark(count, data):
    _, workers = crew(count)
    before = {mark: workers[0].state(mark) for mark in MARKS}
    mark = data.draw(st.sampled_from(MARKS))
    data.draw(st.sampled_from(workers)).changed(mark)
    for one in workers:
        assert {name for name in MARKS if one.state(name) != before[name]} == {mark}


@given(st.integers(1, 9), st.integers(0, 100))
def test_parts_are_a_whole_where_it_is_large_enough_and_one_at_least(count, whole):
    shares = [one.share(whole) for one in crew(count)[1]]
    assert sum(shares) == max(whole, count)
    assert min(shares) >= 1
    assert max(shares) - min(shares) <= 1


def test_who_has_fewest_connections_is_the_lightest_and_the_dead_have_none():
    memory, (one, two) = crew(2)
    one.count_connections(3)
    two.count_connections(2)
    assert (one.lightest(), two.lightest()) == (False, True)
    assert (one.lightest(1), two.lightest(1)) == (False, True)
    assert (one.lightest(2), two.lightest(2)) == (False, False)
    ended(memory, 2, 2)
    assert one.lightest()
    assert Workers().lightest(100)


def test_a_message_comes_to_who_hears_its_topic_and_one_that_fails_ends_nothing(stray_failures):
    stray_failures.append(TypeError)
    heard = []
    one = Workers(2, 1)
    one.hear("job ended", heard.append)
    one.heard("nobody's", [1])
    one.heard("job ended", [1, 2])
    one.heard("job ended", [7])
    assert heard == [7]


def test_none_configured_is_one_worker_for_each_processor(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    counts = [processes(Config(server=ServerConfig(workers=count))) for count in (0, 1, 4)]
    assert counts == [3, 1, 4]


def test_a_worker_that_dies_again_and_again_begins_the_later():
    worker, now, pauses = Worker(1), 1000.0, []
    for _ in range(8):
        worker.begin(1, None, now)
        pauses.append(worker.over(now + 1))
        assert worker.due == now + 1 + pauses[-1]
        now = worker.due
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30]
    # One that was well for a minute begins at once.
    worker.begin(1, None, now)
    assert worker.over(now + 60) == 0
