"""A list of 10,000 commands, right or wrong, holds the reactor for 50 milliseconds of processor time at most."""

from __future__ import annotations

import pytest
from harness.cores import EmbeddedCore
from harness.daemon import site

from tests.attack.watching import MOST_HELD, TRIES, Watched

NUMBER = 10_000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    core = EmbeddedCore(tmp_path_factory.mktemp("core"), objects=None, arguments=("--hosts", "50"))
    daemon = Watched(
        tmp_path_factory.mktemp("daemon"),
        [site("s1", f"unix:{core.socket}", timeout=300.0)],
        sections={"server": {"request_timeout": 300.0}},
    )
    try:
        core.start()
        yield daemon.start()
    finally:
        daemon.stop()
        core.stop()


@pytest.mark.parametrize("parameters", ["?test_only=1", "", "?wait=1"])
def test_many_commands_do_not_hold_the_reactor(daemon, parameters):
    held = []
    with daemon.client() as boss:
        hosts = boss.values("/hosts", "name")
        boss.close()  # the next connection has the longer timeout
        entries = [
            {
                "cmd": "add_host_comment",
                "host": hosts[number % len(hosts)],
                "comment_data": f"number {number}",
            }
            for number in range(NUMBER)
        ]
        for _ in range(TRIES):
            daemon.forget()
            answer = boss.post_json(f"/cmd{parameters}", entries, timeout=300)
            assert (answer.status, len(answer.json)) == (200, NUMBER)
            held.append(daemon.held)
            if held[-1] <= MOST_HELD:
                break
    assert min(held) <= MOST_HELD, held


WRONG = [
    {"cmd": "add_host_comment", "host": f"none {at}", "comment_data": "x"} for at in range(NUMBER)
]


def test_many_problems_do_not_hold_the_reactor(daemon):
    held = []
    with daemon.client() as boss:
        boss.close()
        for _ in range(TRIES):
            daemon.forget()
            answer = boss.post_json("/cmd", WRONG, timeout=300)
            assert (answer.status, len(answer.json["problems"])) == (400, NUMBER)
            held.append(daemon.held)
            if held[-1] <= MOST_HELD:
                break
    assert min(held) <= MOST_HELD, held
