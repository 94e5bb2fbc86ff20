"""The service manager's protocol, over real datagram sockets."""

import os
import socket

import pytest

from monrest.daemon.systemd import Notifier, monotonic_microseconds, watchdog_interval


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
