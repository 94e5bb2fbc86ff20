"""Background jobs: started, followed, and their result printed."""

import json

import pytest

from monrest.cli import jobs
from monrest.cli.main import main
from tests.table import each

STARTED = (200, {"success": True, "job_id": "7f", "message": "started", "result_url": "/x"})
JOB = "/mon/r/mon/jobs/7f"


class Steps:
    """An answer for each request, in order."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, _seen):
        return self.answers.pop(0)


@pytest.fixture
def slept(monkeypatch):
    slept = []
    monkeypatch.setattr("monrest.cli.jobs._wait", slept.append)
    return slept


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("monrest.cli.jobs._on_terminal", lambda: True)


def test_a_job_is_followed_to_its_result(fake, monrest, slept):
    again = (302, b"", {"Location": JOB})
    fake.answers["/mon/r/csv/services"] = STARTED
    fake.answers[f"{JOB}/output"] = Steps(again, again, (200, b"a;b\n"))
    ran = monrest("r", "--csv", "--background", "-m", "GET", "/services?limit=1")
    assert (ran.status, ran.out, ran.err) == (0, "a;b\n", "")
    assert [seen.target for seen in fake.seen] == [
        "/mon/r/csv/services?limit=1&background=1",
        *[f"{JOB}/output"] * 3,
    ]
    assert len(slept) == 2


def test_a_job_on_a_terminal_is_asked_less_and_less_often(fake, monrest, slept, terminal):
    states = [(200, {"is_running": 1})] * 9
    fake.answers["/mon/r/x"] = STARTED
    fake.answers[JOB] = Steps(*states, (200, {"is_running": 0}))
    fake.answers[f"{JOB}/output"] = (200, b"done")
    assert monrest("r", "--background", "/x").out == "done"
    assert slept == sorted(slept)
    assert slept[0] < slept[1] < slept[-2] == slept[-1] == 2


def test_parameters_go_with_it(fake, monrest, slept):
    fake.answers["/mon/r/cmd"] = STARTED
    fake.answers[f"{JOB}/output"] = (200, {"n": 5})
    ran = monrest("r", "--background", "-d", "cmd=x", "/cmd", "-w", "n:1", "-o", "{n}")
    assert (ran.status, ran.out) == (1, "5|'n'=5;1;;;\n")
    assert (fake.seen[0].method, fake.seen[0].json) == ("POST", {"cmd": "x"})
    assert fake.seen[0].target == "/mon/r/cmd?background=1"
    assert slept == []


def test_quiet_on_a_terminal(fake, monrest, slept, terminal):
    fake.answers["/mon/r/x"] = STARTED
    fake.answers[f"{JOB}/output"] = (200, b"done")
    assert monrest("r", "-q", "--background", "/x").err == ""
    assert [seen.target for seen in fake.seen][1:] == [f"{JOB}/output"]


@pytest.mark.parametrize("seen_from", ["terminal", "elsewhere"])
def test_a_job_that_fails(fake, monrest, slept, request, seen_from):
    if seen_from == "terminal":
        request.getfixturevalue("terminal")
    failed = {"code": 500, "message": "background job failed"}
    fake.answers["/mon/r/x"] = STARTED
    fake.answers[JOB] = (200, {"is_running": 0})
    fake.answers[f"{JOB}/output"] = (500, failed)
    ran = monrest("r", "--background", "/x")
    assert (ran.status, json.loads(ran.out)) == (1, failed)


def test_a_job_that_is_gone(fake, monrest, slept, terminal):
    fake.answers["/mon/r/x"] = STARTED
    fake.answers[JOB] = (404, {"code": 404, "message": "no such job"})
    ran = monrest("r", "--background", "/x")
    assert (ran.status, json.loads(ran.out)["message"]) == (1, "no such job")


def test_a_daemon_without_jobs(fake, monrest):
    refused = {"code": 400, "message": "background=1 is not available"}
    fake.answers["/mon/r/x"] = (400, refused)
    ran = monrest("r", "--background", "/x")
    assert (ran.status, json.loads(ran.out)) == (1, refused)


@each("body", [b"[]", b"{}", b'{"job_id": ""}', b"x", b'{"job_id": [1]}'])
def test_an_answer_without_a_job(fake, monrest, body):
    fake.answers["/mon/r/x"] = (200, body)
    ran = monrest("r", "--background", "/x")
    assert (ran.status, ran.out) == (1, "")
    assert "expected an answer with a job_id" in ran.err


def test_a_job_id_cannot_lead_elsewhere(fake, monrest, slept):
    fake.answers["/mon/r/x"] = (200, {"job_id": "../api_keys?x=", "result_url": "http://evil/"})
    ran = monrest("r", "--background", "/x")
    assert ran.status == 1
    assert fake.seen[1].target == "/mon/r/mon/jobs/..%2Fapi_keys%3Fx%3D/output"


def test_interrupted_while_following(fake, capfd, monkeypatch, tmp_path):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("monrest.cli.jobs._wait", interrupted)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    fake.answers["/mon/r/x"] = STARTED
    fake.answers[f"{JOB}/output"] = (302, b"")
    assert main(["r", "--url", fake.url, "--background", "/x"]) == 130
    told = capfd.readouterr().err
    assert "the job continues; its result: monrest r /mon/jobs/7f/output" in told


def test_a_daemon_that_goes_while_a_job_is_followed(fake, monrest, slept):
    def gone(_seen):
        raise OSError("ends the connection")

    fake.answers["/mon/r/x"] = STARTED
    fake.answers[f"{JOB}/output"] = gone
    ran = monrest("r", "--background", "/x")
    assert (ran.status, ran.out) == (1, "")
    assert "the job may continue; when the daemon is back: monrest r /mon/jobs/7f/output" in ran.err
    assert "cannot reach" in ran.err


BARS = {
    (0, -1, ""): f"[{' ' * 24}]   0%",
    (100, 0, "done"): f"[{'#' * 24}] 100% 0:00 done",
    (25.4, 3700, "a\nb"): f"[{'#' * 6}{' ' * 18}]  25% 1:01:40 a b",
    (-5, "x", None): f"[{' ' * 24}]   0%",
    (1000, "61", "x"): f"[{'#' * 24}] 100% 1:01 x",
    (None, None, 5): f"[{' ' * 24}]   0% 5",
    ("nan", "inf", ""): f"[{' ' * 24}]   0%",
}


@each("state", BARS)
def test_bars(state):
    percent, remaining, message = state
    line = jobs.bar({"percent": percent, "remaining": remaining, "message": message})
    assert line == BARS[state]


def test_a_bar_of_nothing():
    assert jobs.bar({}) == f"[{' ' * 24}]   0%"
