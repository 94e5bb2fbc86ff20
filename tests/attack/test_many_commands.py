"""A list of 10,000 commands, right or wrong, holds the reactor for 50 milliseconds of processor time at most."""

import pytest
from harness.daemon import site

from tests.attack.watching import MOST_HELD, TRIES, Watched

NUMBER = 10_000


@pytest.fixture(scope="module")
def daemon(shared):
    core = shared.core(objects=None, arguments=("--hosts", "50"))
    sections = {"server": {"request_timeout": 300.0}}
    sites = [site("s1", core, timeout=300.0)]
    return shared.daemon(sites, sections=sections, kind=Watched).start()


@pytest.mark.parametrize("parameters", ["?test_only=1", "?wait=1"])
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
