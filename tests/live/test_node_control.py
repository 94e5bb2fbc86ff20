"""Node-control over the API: fields, gatherers, operations as jobs, flags, logs, deaths."""

import os
import signal
from pathlib import Path

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

PATH = "/mon/node-control/nodes"
EMPTY = {
    "cleaning": 0, "cleaning_failed": 0, "cm_fqdn": None, "cpu_cores": None, "cpu_perc": None,
    "dist_available_versions": [], "dist_cleanable": [], "dist_disk_free": None,
    "dist_disk_total": None, "dist_site": "", "dist_status": {}, "dist_version": "",
    "dist_versions": [], "facts": {}, "gathering": 0, "installing": 0, "installing_failed": 0,
    "last_error": "", "last_error_ts": 0, "last_gather_runtime": 0, "last_job": "", "logs": [],
    "machine_type": "", "memfree": None, "memtotal": None, "os_name": "", "os_sec_updating": 0,
    "os_security": [], "os_updates": [], "os_updating": 0, "os_version": "", "run_all": 0,
    "section": "Default", "updating": 0, "updating_failed": 0,
}  # fmt: skip


@pytest.fixture
def run(made, embedded, tmp_path):
    """A function that starts a daemon with the node ``far`` doing these commands."""

    def start(more=None, **commands):
        node = {"site": "far", **commands}
        daemon = made(
            [
                site("near", embedded),
                site("far", "tcp:127.0.0.1:1", section="Else"),
                site("other", "tcp:127.0.0.1:1"),
            ],
            sections={"nodecontrol": {"nodes": [node], "gather_timeout": 20, **(more or {})}},
        )
        return daemon.start(connected={"near"})

    return start


def do(client, operation, key="far"):
    answer = client.request("POST", f"{PATH}/{key}/cmd/{operation}")
    assert answer.status == 200, answer
    assert answer.json["success"] is True
    return answer.json["job_id"]


def result(client, job):
    answer = client.get(f"/mon/jobs/{job}/output?wait=30")
    assert answer.status != 302, answer
    return answer


def far(client):
    return client.rows(PATH, {"peer_key": "far"})[0]


def test_nodes_that_were_never_asked(run):
    daemon = run(host_name="far.example.org")
    with daemon.client() as admin:
        rows = admin.rows(PATH)
        assert rows == admin.rows("/mon/nc/nodes")
        assert [row["peer_key"] for row in rows] == ["near", "far"]
        assert rows[1] == {
            **EMPTY, "section": "Else", "host_name": "far.example.org", "peer_key": "far",
            "peer_name": "FAR", "peer_type": "livestatus",
        }  # fmt: skip
        assert rows[0]["host_name"] == os.uname().nodename
        assert admin.rows(PATH, {"columns": "peer_key", "section": "Else"}) == [{"peer_key": "far"}]
        refused(admin.get(f"{PATH}/far/logs/install"), 404, "no such log")
        for path, status, words in (
            ("far/cmd/install", 400, "the operation cannot be done"),
            ("far/cmd/gather", 400, "the node cannot be asked"),
            ("far/cmd/format", 404, "no such operation"),
            ("other/cmd/gather", 404, "no such node"),
            ("nobody/cmd/gather", 404, "no such node"),
            ("near/cmd/gather?what=x", 400, "unknown parameter"),
        ):
            refused(admin.request("POST", f"{PATH}/{path}"), status, words)
    with daemon.client("olga") as olga:
        for answer in (olga.get(PATH), olga.request("POST", f"{PATH}/near/cmd/gather")):
            refused(answer, 403, "not authorized")


def test_switched_off(run):
    with run({"enabled": False}).client() as admin:
        for path in (PATH, "/mon/nc/nodes", f"{PATH}/far/logs/install"):
            refused(admin.get(path), 404, f"unknown rest path: {path}")


def test_this_host(run):
    with run().client() as admin:
        assert result(admin, do(admin, "gather", "near")).json["peer_key"] == "near"
        row = admin.rows(PATH)[0]
        assert row["cpu_cores"] == len(os.sched_getaffinity(0))
        assert 0 <= row["cpu_perc"] <= 100
        assert 0 < row["memfree"] <= row["memtotal"]
        total = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
        assert row["memtotal"] == total
        assert 0 < row["dist_disk_free"] < row["dist_disk_total"]
        assert row["dist_status"] == {"core": 0, "monrest": 0, "OVERALL": 0}
        assert row["dist_versions"] == [row["dist_version"]] == [admin.rows("/mon")["mon_version"]]
        assert row["os_name"]
        assert row["cm_fqdn"]
        assert set(row["os_security"]) <= set(row["os_updates"])
        assert row["facts"]["kernel"] == os.uname().release
        assert row["last_gather_runtime"] > 0
        assert row["gathering"] == 0


def test_a_command_of_a_node(run, tmp_path):
    told = tmp_path / "told"
    facts = '{"cm_fqdn": "far", "os_updates": ["b", "a"], "own": {"x": 1}, "cpu_perc": 12.5}'
    daemon = run(gather=f"echo $MON_GATHER $MON_NODE > {told}; echo noise >&2; echo '{facts}'")
    with daemon.client() as admin:
        assert result(admin, do(admin, "gather")).status == 200
        assert told.read_text() == "facts far\n"
        row = far(admin)
        assert (row["cm_fqdn"], row["os_updates"], row["cpu_perc"]) == ("far", ["a", "b"], 12.5)
        assert row["facts"]["own"] == {"x": 1}
        assert (row["last_error"], row["last_error_ts"]) == ("", 0)


FAILING = [
    ("echo no route >&2; exit 255", "exit status 255: no route"),
    ("echo hello", "expected a JSON object"),
    ("echo '[]'", "expected a JSON object"),
    ("echo '{\"cpu_perc\": 101}'", "cpu_perc: expected a number from 0 to 100"),
    ('echo \'{"dist_status": {"a": 2}}\'', "dist_status: expected an object of 0 and 1"),
    ("echo '{\"os_updates\": [1]}'", "os_updates: expected a list of texts"),
    ("head -c 2000000 /dev/zero", "expected at most"),
    ("kill -9 $$", "exit status 137"),
]
"""Commands that gather, and the error of each."""

ENDLESS = [
    (command, "took too long") for command in ("sleep 600", "sleep 600 & sleep 600 & wait", "yes")
]


@pytest.mark.parametrize(("failing", "seconds"), [(FAILING, 300), (ENDLESS, 2)])
def test_gatherers_that_fail(made, failing, seconds):
    nodes = [
        {"site": f"n{at}", "gather": command, "host_name": f"n{at}"}
        for at, (command, _) in enumerate(failing)
    ]
    sites = [site(one["site"], "tcp:127.0.0.1:1") for one in nodes]
    daemon = made(sites, sections={"nodecontrol": {"nodes": nodes, "gather_timeout": seconds}})
    with daemon.start(connected=()).client() as admin:
        jobs = [do(admin, "gather", one["site"]) for one in nodes]
        answers = [result(admin, job) for job in jobs]
        rows = {row["peer_key"]: row for row in admin.rows(PATH)}
    for at, ((command, words), answer) in enumerate(zip(failing, answers, strict=True)):
        assert answer.status == 502, command
        assert words in answer.json["description"], command
        row = rows[f"n{at}"]
        assert words in row["last_error"], command
        assert row["last_error_ts"] > 0
        assert (row["last_gather_runtime"], row["gathering"], row["facts"]) == (0, 0, {})


def test_operations(run):
    daemon = run(
        gather='echo \'{"dist_version": "2"}\'',
        install="echo one; echo two >&2",
        update="echo '[WARNING] disk'",
        cleanup="echo bad luck; exit 3",
        os_update="echo $MON_OPERATION of $MON_NODE",
    )
    with daemon.client() as admin:
        job = do(admin, "install")
        answer = result(admin, job)
        assert answer.status == 200
        assert answer.json["logs"][0]["output"] == "one\ntwo\n"
        row = far(admin)
        assert (row["installing"], row["installing_failed"], row["last_job"]) == (0, 0, int(job))
        assert row["dist_version"] == "2"
        assert result(admin, do(admin, "update")).status == 200
        assert far(admin)["updating_failed"] == 2
        answer = result(admin, do(admin, "cleanup"))
        assert (answer.status, answer.json["description"]) == (502, "cleanup failed")
        row = far(admin)
        assert (row["cleaning_failed"], row["last_error"]) == (1, "cleanup: bad luck")
        assert {one["name"]: one["failed"] for one in row["logs"]} == {
            "cleanup": 1, "install": 0, "update": 2,
        }  # fmt: skip
        log = admin.rows(f"{PATH}/far/logs/cleanup")
        assert (log["output"], log["failed"], log["name"]) == ("bad luck\n", 1, "cleanup")
        assert log["time"] == row["logs"][0]["time"] > 0
        result(admin, do(admin, "os_update"))
        assert admin.rows(f"{PATH}/far/logs/os_update")["output"] == "os_update of far\n"
        answer = result(admin, do(admin, "run_all"))
        assert [one["name"] for one in answer.json["logs"]] == ["install", "update", "cleanup"]
        assert admin.get(f"/mon/jobs/{job}").json["rc"] == 0


@pytest.fixture
def gate(tmp_path):
    """A file that a command waits for, at most for a minute, and the command."""
    path = tmp_path / "go"
    begun = tmp_path / "begun"
    command = (
        f"echo started; touch {begun}; for i in $(seq 600); do test -e {path} && exit 0; "
        "sleep 0.1; done; exit 9"
    )
    return path, begun, command


def test_one_at_a_time_and_flags_meanwhile(run, gate):
    go, begun, command = gate
    daemon = run(install=command, update="true")
    with daemon.client() as admin:
        job = do(admin, "run_all")
        until(begun.exists, "it has begun")
        row = far(admin)
        assert (row["run_all"], row["installing"], row["updating"]) == (1, 1, 0)
        for operation in ("install", "update", "run_all"):
            refused(
                admin.request("POST", f"{PATH}/far/cmd/{operation}"),
                409, "another operation is running",
            )  # fmt: skip
        until(lambda: "started" in admin.rows(f"/mon/jobs/{job}")["message"], "progress is told")
        go.touch()
        assert result(admin, job).status == 200
        row = far(admin)
        assert (row["run_all"], row["installing"], row["updating"]) == (0, 0, 0)


def test_a_canceled_one_is_ended(run, gate):
    _, begun, command = gate
    daemon = run(install=command)
    with daemon.client() as admin:
        job = do(admin, "install")
        until(begun.exists, "it has begun")
        assert admin.request("DELETE", f"/mon/jobs/{job}").json["message"] == "canceled job"
        until(lambda: far(admin)["installing"] == 0, "the flag is gone")
        row = far(admin)
        assert (row["installing_failed"], row["last_error"]) == (1, "install: canceled")
        assert admin.rows(f"{PATH}/far/logs/install")["output"] == "started\n\ncanceled"


def test_one_whose_daemon_was_killed(run, gate):
    go, begun, command = gate
    daemon = run(install=command)
    with daemon.client() as admin:
        job = do(admin, "install")
        until(begun.exists, "it has begun")
        assert far(admin)["installing"] == 1
    daemon.stop(signal.SIGKILL)
    go.touch()
    daemon.start(connected={"near"})
    with daemon.client() as admin:
        row = far(admin)
        assert (row["installing"], row["installing_failed"], row["last_job"]) == (0, 1, int(job))
        assert "ended unexpectedly" in row["last_error"]
        assert result(admin, do(admin, "install")).status == 200
        assert far(admin)["installing_failed"] == 0


def test_facts_are_gathered_when_asked_and_never_at_start(made, embedded, tmp_path):
    """One look at the packages is enough for all sites of this host, and none is taken at start."""
    calls = tmp_path / "calls"
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "apt-get"
    program.write_text(
        f"#!/bin/sh\necho $(date +%H:%M) $* >> {calls}\necho 'Inst a (1 Debian:12)'\n"
    )
    program.chmod(0o755)
    sites = [site(key, embedded) for key in ("one", "two", "three")]
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    daemon = made(sites)
    daemon.start(PATH=path)
    with daemon.client() as admin:
        assert [row["last_gather_runtime"] for row in admin.rows(PATH)] == [0, 0, 0]
        assert not calls.exists()
        assert result(admin, do(admin, "gather", "two")).status == 200
        (line,) = calls.read_text().splitlines()
        assert line.partition(" ")[2] == "-s -o Debug::NoLocking=true upgrade"
        assert admin.rows(PATH)[1]["os_updates"] == ["a"]
    daemon.stop()
    daemon.sections["nodecontrol"] = {"gather_schedule": "* * * * *"}
    daemon.write_config()
    daemon.start(PATH=path)
    assert len(calls.read_text().splitlines()) == 1
    with daemon.client() as admin:
        until(
            lambda: all(row["os_updates"] == ["a"] for row in admin.rows(PATH)),
            "its time has come", pause=0.5,
        )  # fmt: skip
    # It may have come more than once by now.
    minutes = [line.split()[0] for line in calls.read_text().splitlines()[1:]]
    assert len(minutes) == len(set(minutes)) > 0


def test_limits_and_stops(run, gate):
    _, begun, command = gate
    daemon = run({"command_timeout": 1}, install=command, update=command)
    with daemon.client() as admin:
        answer = result(admin, do(admin, "install"))
        assert answer.status == 502
        assert "took too long" in far(admin)["last_error"]
    begun.unlink()
    daemon.sections["nodecontrol"]["command_timeout"] = 600
    daemon.sections["server"]["drain_timeout"] = 0
    daemon.write_config()
    daemon.stop()
    daemon.start(connected={"near"})
    with daemon.client() as admin:
        do(admin, "update")
        until(begun.exists, "it has begun")
    assert daemon.stop() in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    daemon.start(connected={"near"})
    with daemon.client() as admin:
        row = far(admin)
        assert (row["updating"], row["updating_failed"]) == (0, 1)
