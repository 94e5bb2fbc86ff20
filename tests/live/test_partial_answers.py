"""An answer without all of its sites says so in its body, and the client does not take it for whole."""

import io
import json
import subprocess
import sys

import openpyxl
import pytest
from harness.command import MAIN
from harness.daemon import site
from harness.federated import far_site, superuser_key
from harness.waiting import until

NAMES = ["db01", "leaf01", "pend01", "router1", "web01", "web02"]


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    sites = [site("good", embedded), site("gone", "unix:/nowhere/live")]
    return shared.daemon(sites).start(connected=["good"])


@pytest.fixture(scope="module")
def client(daemon):
    with daemon.client() as client:
        yield client


def get(client, path):
    response = client.get(path)
    assert response.status == 200, response
    assert response.headers["x-mon-failed-sites"] == "gone"
    return response


def test_each_format_says_it(client):
    path = "hosts?columns=name&sort=name"
    assert get(client, f"/{path}").json == [{"name": name} for name in NAMES]
    wrapped = get(client, f"/wrapped_json/{path}").json
    assert wrapped["meta"]["failed_sites"] == [
        {"peer_key": "gone", "peer_name": "GONE", "reason": "no such socket", "timed_out": False}
    ]
    lines = get(client, f"/csv/{path}").text.splitlines()
    assert lines == ["#name", *NAMES, "# failed sites: gone (no such socket)"]
    assert (
        get(client, f"/text/{path}").text.splitlines()[-1] == "failed sites: gone (no such socket)"
    )
    book = openpyxl.load_workbook(io.BytesIO(get(client, f"/xls/{path}").body))
    assert [row[0] for row in book["data"].values] == ["name", *NAMES]
    assert list(book["failed sites"].values)[1:] == [("gone", "GONE", "no such socket")]


def test_a_job_keeps_it(client):
    number = client.rows("/csv/hosts?columns=name&sort=name&background=1")["job_id"]
    until(lambda: client.rows(f"/mon/jobs/{number}")["end"], "the job is done")
    lines = get(client, f"/mon/jobs/{number}/output").text.splitlines()
    assert lines == ["#name", *NAMES, "# failed sites: gone (no such socket)"]


def monrest(daemon, *words):
    url = f"http://127.0.0.1:{daemon.port}"
    command = [sys.executable, "-c", MAIN, "r", "--url", url, "--key", daemon.key, "-A", "admin"]
    ran = subprocess.run([*command, *words], capture_output=True, timeout=300, check=False)
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


def test_the_client_does_not_take_it_for_whole(daemon):
    told = "monrest: the answer is incomplete, no answer from gone\n"
    status, out, err = monrest(daemon, "/hosts/totals")
    assert (status, json.loads(out)["total"], err) == (0, 6, told)
    check = ("-c", "total:100", "-o", "{STATUS}: {total}", "--perffilter", "total", "/hosts/totals")
    assert monrest(daemon, *check)[:2] == (3, "UNKNOWN - incomplete, no answer from gone\n")
    assert monrest(daemon, "--partial-ok", *check)[:2] == (0, "OK: 6|'total'=6;;100;;\n")
    assert monrest(daemon, "-b", "good", *check)[:2] == (0, "OK: 6|'total'=6;;100;;\n")


def test_another_instance_passes_it_on(daemon, made):
    near = made([far_site("f", daemon, superuser_key(daemon))]).start(connected=["f-good"])
    with near.client() as client:
        until(lambda: len(client.rows("/sites")) == 2, "both sites of the other side are known")
        response = client.get("/csv/hosts?columns=name&sort=name&headers=0")
        assert response.headers["x-mon-failed-sites"] == "f-gone"
        assert response.text.splitlines() == NAMES
        text = client.get("/csv/hosts?columns=name&sort=name").text
        assert text.splitlines()[-1].startswith("# failed sites: f-gone (down on the other side")
