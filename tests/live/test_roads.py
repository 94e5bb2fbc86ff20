"""The roads of docs/architecture.md: the files that it names are those that a running daemon enters."""

from __future__ import annotations

import re
import signal
import sys

import pytest
from harness.client import Client
from harness.demo import Demo
from harness.waiting import until

from tests.forks import REPOSITORY

PAGE = (REPOSITORY / "docs/architecture.md").read_text()
JSON = {"Content-Type": "application/json"}
ROUNDS = 10
ROADS = {
    "One GET": (
        ("GET", "/services?columns=host_name,state&state[ne]=0&limit=1{n}"),
        ("GET", "/xls/services?sort=upper(host_name)&limit=9{n}"),
    ),
    "One command": (
        (
            "POST",
            "/hosts/web01/cmd/schedule_host_downtime"
            "?start_time=now&end_time=%2B60m&comment_data=update&wait=1",
        ),
    ),
    "One save": (
        ("PATCH", "/hosts/web01/config", '{{"notes": "staged {n}"}}'),
        ("POST", "/config/objects?:TYPE=host&:FILE=new/{n}.cfg&host_name=new-{n}"),
        ("POST", "/config/save"),
    ),
}


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    """A function that sends requests to a demo and returns the files of the package that they entered."""
    folder = tmp_path_factory.mktemp("roads")
    target = folder / "entered"
    program = REPOSITORY / "tests/live/harness/roads.py"
    options = ("--nodaemon", "--pidfile=", "monrest", "--demo", "--port", "0")
    demo = Demo(folder, "", [sys.executable, str(program), str(target), *options])

    def files(client, method, path, body=None):
        for changed in demo.scratch.glob("*/objects/*.cfg"):
            changed.write_text(f"{changed.read_text()}# changed by another program\n")
        target.unlink(missing_ok=True)
        demo.process.send_signal(signal.SIGUSR1)
        assert client.request(method, path, body=body, headers=JSON).status == 200
        demo.process.send_signal(signal.SIGUSR2)
        until(target.exists, "the files that were entered are written")
        return set(target.read_text().split())

    def entered(requests, n):
        return set().union(
            *(
                files(client, method, *(text.format(n=n) for text in texts))
                for method, *texts in requests
            )
        )

    try:
        _, port, key = demo.found()
        with Client(port, key) as client:
            until(
                lambda: client.rows("/sites")[0]["connected"] == 1, "the demo's core is connected"
            )
            yield entered
    finally:
        demo.stop()


def named_files(title):
    """The files that a section of the page names."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return set(re.findall(r"`(monrest/[\w/]+\.py)`", section))


@pytest.mark.parametrize("title", ROADS)
def test_the_files_of_a_road_are_those_that_are_entered(entered, title):
    """All that are named are entered, and of the rooms that are named no other files are."""
    common = named_files("What every road passes")
    named = common | named_files(title)
    known = set(named)
    for before in list(ROADS)[: list(ROADS).index(title)]:
        known |= named_files(before)
    rooms = {name.split("/")[1] for name in known} - {"base"}
    found = None
    # What services do from time to time is no part of the road: it is not entered in each round.
    for n in range(ROUNDS):
        files = entered(ROADS[title], n)
        assert sorted(named - files) == []
        found = files if found is None else found & files
        others = sorted(name for name in found - known if name.split("/")[1] in rooms)
        if n and not others:
            break
    assert others == []
