"""Background jobs of a real daemon: every method and format, followers, cancels, kills, stops."""

import gzip
import os
import signal
import subprocess
import sys
import time

import pytest
from harness.client import Client, InFlight, segment
from harness.command import MAIN
from harness.daemon import site
from harness.expect import ODD, refused
from harness.jobs import background, ended
from harness.waiting import until

from tests.forks import REPOSITORY
from tests.table import each

SAME_FOR_ALL_CORES = "a job is a request that somebody waits for elsewhere"


BEGUN = "0 of 1 sites have answered"

FIELDS = {
    *("cmd", "end", "forward", "host_id", "host_name", "id", "is_running", "message", "percent"),
    *("perl_res", "pid", "rc", "remaining", "show_output", "start", "stderr", "stdout", "time"),
    "user",
}


def result(client, number):
    """The result of a job, which comes within one wait."""
    return client.get(f"/mon/jobs/{number}/output")


def test_the_path_of_the_result_can_be_opened_as_it_is_shown(client):
    started = client.get("/hosts?columns=name&background=1").json
    record = ended(client, started["job_id"])
    with Client(client.port, client.key, root="") as plain:
        for path in (started["result_url"], record["forward"]):
            assert plain.rows(path) == client.rows("/hosts?columns=name")


@each("prefix", ["", "/wrapped_json", "/csv", "/text", "/sites/s1", "/sites/s1/csv"])
@each(
    "path",
    [
        "/hosts",
        "/services?columns=host_name,description&sort=-description&limit=3",
        "/hosts/totals",
        "/hosts?pretty=1&headers=0",
        "/hosts/nosuch*",
        "/index",
    ],
)
def test_the_result_is_the_answer(client, path, prefix):
    direct = client.get(f"{prefix}{path}")
    number = background(client, f"{prefix}{path}")
    found = result(client, number)
    assert (found.status, found.headers["content-type"]) == (200, direct.headers["content-type"])
    assert found.body == direct.body


def test_excel_errors_and_headers_are_kept(client):
    book = result(client, background(client, "/xls/hosts"))
    assert book.body[:2] == b"PK"
    assert book.headers["content-disposition"] == 'attachment; filename="rest.xlsx"'
    assert len(book.body) == int(book.headers["content-length"])
    for path, status in (("/hosts?nosuch=1", 400), ("/csv/hosts?limit=x", 400)):
        direct, number = client.get(path), background(client, path)
        found = result(client, number)
        assert (found.status, found.body) == (direct.status, direct.body) == (status, direct.body)
        row = ended(client, number)
        assert (row["rc"], row["show_output"]) == (1, 1)
        assert row["stderr"]


def test_what_would_be_refused_is_refused_at_once(client, olga):
    refused(client.get("/nosuch?background=1"), 404)
    refused(olga.get("/commands?background=1"), 403, "admin")
    refused(client.request("DELETE", "/hosts?background=1"), 405)
    refused(client.post_json("/mon/api_keys?background=1", {"comment": "x"}), 400, "background")
    refused(client.get("/mon/jobs/1/output?background=1"), 400, "background")


def test_a_result_shows_what_its_owner_may_see(client, olga):
    direct = olga.rows("/hosts?columns=name")
    number = background(olga, "/hosts?columns=name")
    assert result(olga, number).json == direct
    assert len(direct) < len(client.rows("/hosts"))


def test_other_users_jobs_do_not_exist(client, olga):
    number = background(client, "/hosts")
    ended(client, number)
    for path in (f"/mon/jobs/{number}", f"/mon/jobs/{number}/output"):
        refused(olga.get(path), 404, "no such job")
    refused(olga.request("DELETE", f"/mon/jobs/{number}"), 404, "no such job")
    assert int(number) not in [row["id"] for row in olga.rows("/mon/jobs")]
    hers = background(olga, "/hosts")
    ended(client, hers)
    assert result(client, hers).body == olga.get("/hosts").body
    assert {row["user"] for row in olga.rows("/mon/jobs")} == {"olga"}


def test_all_fields(client):
    before = int(time.time())
    number = background(client, "/hosts?columns=name&limit=1")
    row = ended(client, number)
    assert set(row) == FIELDS
    assert row["id"] == int(number)
    assert row["cmd"] == "GET /hosts?columns=name&limit=1"
    assert before <= row["start"] <= row["end"] <= time.time()
    assert (row["percent"], row["remaining"], row["rc"], row["pid"]) == (100, -1, 0, None)
    assert (row["user"], row["show_output"]) == ("admin", 1)
    assert row["stdout"].encode() == result(client, number).body
    listed = client.rows("/mon/jobs", {"id": number})
    assert listed == [row]
    assert client.rows(
        "/mon/jobs", {"rc": "0", "is_running": "0", "columns": "id", "id": number}
    ) == [{"id": int(number)}]
    arabic = number.translate({ord("0") + digit: 0x660 + digit for digit in range(10)})
    for name in (f"0{number}", f"{number} ", arabic):
        refused(client.get(f"/mon/jobs/{segment(name)}"), 404, "no such job")


HOSTILE = ["0", "-1", "01", "1.0", "9" * 19, "9" * 400, "1e3", "0x1", "..", "1%00"]


@each("name", [*ODD, *HOSTILE])
def test_hostile_ids(client, name):
    for path in ("", "/output"):
        response = client.get(f"/mon/jobs/{segment(name)}{path}")
        assert response.status == 404, response


def test_commands_with_a_body_in_the_background(client, daemon, clean):
    comment = "by a job"
    response = client.post_form(
        "/hosts/web01/cmd/add_host_comment?background=1",
        [("comment_data", comment), ("wait", "5")],
    )
    assert response.status == 200, response
    number = response.json["job_id"]
    found = result(client, number)
    assert found.status == 200, found
    (row,) = client.rows("/comments", {"comment": comment, "columns": "host_name,id"})
    assert row["host_name"] == "web01"
    # The core is that of other tests as well.
    gone = {"comment_id": row["id"], "wait": "5"}
    assert client.post_form("/hosts/web01/cmd/del_comment", gone).status == 200
    many = client.post_json(
        "/cmd?background=1",
        [{"cmd": "del_all_host_comments", "host": "nosuch"}],
    )
    assert result(client, many.json["job_id"]).status == 400
    for action in ("job start", "job end"):
        assert f'audit action="{action}" user=admin' in daemon.log
    assert client.rows(f"/mon/jobs/{number}")["cmd"] == "POST /hosts/web01/cmd/add_host_comment"


def test_the_client_follows(daemon, client):
    direct = client.get("/csv/hosts?columns=name,state")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "r", "--background", "--csv",
         "/hosts?columns=name,state"],
        cwd=REPOSITORY, capture_output=True, check=False, timeout=300,
        env={**os.environ, "MONREST_URL": f"http://127.0.0.1:{daemon.port}",
             "MONREST_KEY": daemon.key, "MONREST_USER": "admin"},
    )  # fmt: skip
    assert done.returncode == 0, done
    assert done.stdout == direct.body


def held(daemon, client, slow, path="/services"):
    """A job whose core does not answer."""
    slow.lie(None, "services")
    slow.hold()
    number = background(client, path)
    assert slow.waiting.wait(300)
    until(lambda: client.rows(f"/mon/jobs/{number}")["message"] == BEGUN, "it has begun")
    return number


def test_a_running_job(made, slow):
    daemon = made([site("slow", slow)], sections={"server": {"request_timeout": 7}}).start()
    with daemon.client() as client:
        number = held(daemon, client, slow)
        path = f"/mon/jobs/{number}/output"
        row = client.rows(f"/mon/jobs/{number}")
        assert (row["is_running"], row["end"], row["rc"]) == (1, 0, None)
        assert row["pid"] in daemon.pids()
        again = client.get(f"{path}?wait=0")
        assert (again.status, again.headers["location"]) == (302, f"/mon/r{path}?wait=0")
        began = time.monotonic()
        again = client.get(path)  # waits, but not longer than a request may take
        assert (again.status, again.headers["location"]) == (302, f"/mon/r{path}")
        assert time.monotonic() - began >= 1
        refused(client.get(f"{path}?wait=x"), 400, "wait")
        follower = InFlight(daemon, path)
        # It runs for longer than a request may.
        until(lambda: client.rows(f"/mon/jobs/{number}")["time"] > 8, "8 seconds are over")
        slow.release()
        assert follower.result().status in (200, 302)
        assert len(result(client, number).json) == 11


def test_cancel(made, slow):
    daemon = made([site("slow", slow)]).start()
    with daemon.client() as client:
        number = held(daemon, client, slow)
        follower = InFlight(daemon, f"/mon/jobs/{number}/output")
        response = client.request("DELETE", f"/mon/jobs/{number}")
        assert (response.status, response.json["message"]) == (200, "canceled job")
        row = client.rows(f"/mon/jobs/{number}")
        assert (row["is_running"], row["rc"], row["show_output"]) == (0, 1, 0)
        assert (row["message"], row["stderr"]) == ("canceled", "canceled by admin")
        failed = {
            "code": 500,
            "failed": True,
            "message": "background job failed",
            "description": "canceled by admin",
        }
        assert follower.result().json == failed
        response = client.request("DELETE", f"/mon/jobs/{number}")
        assert (response.status, response.json["message"]) == (200, "removed job")
        refused(client.get(f"/mon/jobs/{number}"), 404)


def test_a_full_queue(made, slow):
    # Workers divide the queue.
    sections = {"server": {"workers": 1}, "jobs": {"concurrent": 1, "queue": 4}}
    daemon = made([site("slow", slow)], sections=sections).start()
    with daemon.client() as client, daemon.client("olga") as olga:
        held(daemon, client, slow)
        waiting = [background(client, "/hosts") for _ in range(2)]
        mine = client.get("/hosts?background=1")
        refused(mine, 429, "too many background jobs", "2 of yours")
        assert int(mine.headers["retry-after"]) > 0
        hers = [background(olga, "/hosts?limit=1") for _ in range(2)]
        refused(olga.get("/hosts?background=1"), 429)
        assert {row["message"] for row in olga.rows("/mon/jobs")} == {"waits for its turn"}
        assert client.request("DELETE", f"/mon/jobs/{waiting[0]}").json["message"] == "canceled job"
        slow.release()
        for number in (waiting[1], *hers):
            assert result(client, number).status == 200


def test_kill(made, slow):
    daemon = made([site("slow", slow)], sections={"jobs": {"concurrent": 1}}).start()
    with daemon.client() as client:
        running = held(daemon, client, slow)
        waiting = background(client, "/hosts")
    daemon.kill()
    slow.release()
    daemon.start()
    with daemon.client() as client:
        for number, word in ((running, "that ran it"), (waiting, "before it began")):
            row = client.rows(f"/mon/jobs/{number}")
            assert (row["is_running"], row["rc"], row["pid"]) == (0, 1, None)
            assert "ended unexpectedly" in row["stderr"]
            assert word in row["stderr"]
            assert result(client, number).json["description"] == row["stderr"]
        assert result(client, background(client, "/hosts")).status == 200


def test_stop(made, slow):
    daemon = made(
        [site("slow", slow)],
        sections={"server": {"drain_timeout": 1}, "jobs": {"concurrent": 1}},
    ).start()
    with daemon.client() as client:
        running = held(daemon, client, slow)
        waiting = background(client, "/hosts")
        follower = InFlight(daemon, f"/mon/jobs/{running}/output")
        time.sleep(0.2)
        assert daemon.stop(seconds=20) in (0, -signal.SIGTERM)
        assert follower.result().status in (302, 500)
    assert "Traceback" not in daemon.log
    slow.release()
    daemon.start()
    with daemon.client() as client:
        assert client.rows(f"/mon/jobs/{running}")["stderr"] == "the daemon was stopped"
        row = client.rows(f"/mon/jobs/{waiting}")
        assert row["stderr"] == "the daemon was stopped before the job began"


def test_a_client_that_leaves_does_not_end_its_job(made, slow):
    daemon = made([site("slow", slow)]).start()
    with daemon.client() as client:
        number = held(daemon, client, slow)
        with daemon.client() as other, pytest.raises(OSError):
            other.get(f"/mon/jobs/{number}/output", timeout=0.3)
        slow.release()
        assert len(result(client, number).json) == 11


def test_many_jobs(client):
    numbers = [background(client, "/hosts?columns=name") for _ in range(100)]
    assert len(set(numbers)) == 100
    assert numbers == sorted(numbers, key=int)
    direct = client.get("/hosts?columns=name").body
    for number in numbers[::40]:
        assert result(client, number).body == direct
    until(lambda: client.rows("/mon/jobs", {"is_running": "1"}) == [], "all ended")
    rows = {row["id"]: row["rc"] for row in client.rows("/mon/jobs?columns=id,rc")}
    assert {rows[int(number)] for number in numbers} == {0}


def test_a_result_by_head_and_packed(client):
    path = f"/mon/jobs/{background(client, '/services')}/output"
    whole = client.get(path)
    head = client.request("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.body))
    packed = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == whole.body
