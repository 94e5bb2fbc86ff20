"""The guard in front of a core of the command line: requests pass, commands only where allowed."""

import pytest
from harness.given import Given, GivenCore


@pytest.fixture
def behind(embedded, tmp_path):
    """A function that puts a guard in front of the embedded core."""
    cores = []

    def make(**more):
        folder = tmp_path / str(len(cores))
        folder.mkdir()
        cores.append(GivenCore(folder, Given(embedded.address, **more)))
        cores[-1].start()
        return cores[-1]

    yield make
    for core in cores:
        core.stop()


def comments(core):
    return {row[0] for row in core.ask("GET comments\nColumns: comment")}


def test_requests_pass_and_commands_do_not(behind):
    core = behind()
    assert core.name == "embedded"
    assert core.holds_the_suite
    core.command("ADD_HOST_COMMENT;web01;1;admin;kept", "DISABLE_NOTIFICATIONS")
    assert "kept" not in comments(core)
    assert core.guard.kept == ["ADD_HOST_COMMENT;web01;1;admin;kept", "DISABLE_NOTIFICATIONS"]
    assert core.ask("GET status\nColumns: enable_notifications") == [[1]]


def test_commands_on_hosts_that_match(behind):
    core = behind(commands="1", hosts="^web")
    allowed = ["ADD_HOST_COMMENT;web02;1;admin;guarded", "ADD_SVC_COMMENT;web02;ping;1;admin;of it"]
    refused = [
        "ADD_HOST_COMMENT;db01;1;admin;web",
        "ADD_HOST_COMMENT;web;1;admin;no such host",
        "DISABLE_NOTIFICATIONS",
        "DISABLE_HOSTGROUP_HOST_CHECKS;web",
        "RESTART_PROCESS",
        "DEL_HOST_COMMENT;x",
    ]
    core.command(*allowed, *refused)
    assert {"guarded", "of it"} <= comments(core)
    numbers = core.ask("GET comments\nColumns: id\nFilter: author = olga")
    foreign = [f"DEL_SVC_COMMENT;{number}" for (number,) in numbers]
    assert foreign
    core.command(*foreign)
    assert core.guard.kept == [*refused, *foreign]
    for text, kind in (("guarded", "HOST"), ("of it", "SVC")):
        ((number,),) = core.ask(f"GET comments\nColumns: id\nFilter: comment = {text}")
        core.command(f"DEL_{kind}_COMMENT;{number}")
    assert not {"guarded", "of it"} & comments(core)


def test_nobody_is_shut_down(behind):
    core = behind(commands="all")
    core.command("SHUTDOWN_PROCESS", "SHUTDOWN_PROGRAM;")
    assert core.guard.kept == ["SHUTDOWN_PROCESS", "SHUTDOWN_PROGRAM;"]


def test_commands_want_to_be_told_where():
    with pytest.raises(ValueError, match="HOSTS"):
        Given("unix:/x", commands="1")
    with pytest.raises(ValueError, match="unix:PATH or tcp:HOST:PORT"):
        Given("/run/live").connect()
