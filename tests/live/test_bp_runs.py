"""Business processes that are calculated by themselves, and what reaches the core."""

import sys

from harness.daemon import site
from harness.expect import refused
from harness.processes import SHOP, alive, core, create, patch, refreshed
from harness.waiting import until

__all__ = ["core"]


def test_what_was_acknowledged_is_there_after_a_kill(made, core):
    daemon = made([site("s1", core)], sections={"bp": {"refresh_interval": 0}})
    daemon.start()
    with daemon.client() as client:
        alive(client, SHOP)
        before = refreshed(client, 1)
    daemon.stop(9)
    daemon.start()
    with daemon.client() as client:
        assert client.rows("/mon/bp/1") == before


def test_live_ones_are_calculated_by_themselves(made, core):
    daemon = made([site("s1", core)])
    daemon.start()
    with daemon.client() as client:
        alive(client, SHOP)
        create(client, {"name": "draft", "nodes": [{"label": "a", "function": "fixed(0)"}]})
    daemon.stop()
    daemon.start()
    with daemon.client() as client:
        found = until(
            lambda: (one := client.rows("/mon/bp/1"))["last_check"] and one,
            "the process is calculated after the start",
        )
        assert found["status"] == 2
        assert client.rows("/mon/bp/2")["last_check"] == 0
        figures = client.rows("/mon/stats")
        assert figures["business_process_total"] == 1
        assert figures["business_process_worker_total"] == 1
        assert figures["business_process_last_update"] >= found["last_check"]
        assert 0 < figures["business_process_duration_seconds"] < 60
        assert client.request("DELETE", "/mon/bp/1").status == 200
        after = client.rows("/mon/metrics")
        assert after["business_process_total"] == 0
        assert after["business_process_last_update"] == figures["business_process_last_update"]


def test_a_dead_site_is_told_and_waited_for(made, core, slow):
    daemon = made(
        [site("s1", core), site("s2", slow, timeout=2)],
        sections={"bp": {"refresh_interval": 0}},
    )
    daemon.start()
    with daemon.client() as client:
        alive(client, {"nodes": [{"label": "a", "function": "status('web02', 'http')"}]})
        assert refreshed(client, 1)["affected_peers"] == ["s1"]
        alive(client, {"nodes": [{"label": "a", "function": "status('leaf01')"}]})
        slow.close()
        response = client.post_json("/mon/bp/1/refresh", {})
        assert response.status == 200
        assert response.headers["x-mon-failed-sites"]
        assert response.json["data"]["status"] == 1


def test_read_only_for_all(made, core):
    daemon = made([site("s1", core)], sections={"bp": {"read_only": True}})
    daemon.start()
    with daemon.client() as client:
        refused(client.post_json("/mon/bp", SHOP), 403, "read-only", "bp.read_only")
        assert client.rows("/mon/bp") == []


def test_flags_of_nodes_reach_the_core(made, core):
    daemon = made(
        [site("s1", core)],
        sections={"bp": {"refresh_interval": 0, "sync_downtime_ack_state": 2}},
    )
    daemon.start()
    nodes = [
        {"label": "Shop", "function": "worst()", "depends": ["f"]},
        {
            "id": "f",
            "label": "Front ends",
            "function": "worst()",
            "depends": ["w"],
            "create_obj": 1,
        },
        {"id": "w", "label": "w", "function": "status('web01', 'http')"},
    ]

    def flags():
        rows = core.ask(
            "GET services\nColumns: description acknowledged\nFilter: host_name = Web Shop"
        )
        return dict(rows)

    with daemon.client() as client:
        alive(client, {"name": "Web Shop", "nodes": nodes})
        assert refreshed(client, 1)["nodes"][1]["acknowledged"] == 1
        until(lambda: flags() == {"Shop": 1, "Front ends": 1}, "both are acknowledged")
        (comment, *_) = core.ask(
            "GET comments\nColumns: author comment\nFilter: host_name = Web Shop\n"
            "Filter: service_description = Front ends"
        )
        assert comment == ["(mon)", "automatic acknowledgment, all child nodes are acknowledged."]
        assert (
            patch(client, 1, {"nodes": {"2": {"function": "status('web02', 'http')"}}}).status
            == 200
        )
        refreshed(client, 1)
        until(lambda: flags() == {"Shop": 0, "Front ends": 0}, "the acknowledgements are gone")


def test_a_function_that_hangs_holds_up_no_other(made, core, tmp_path):
    """The process is told of, keeps what it has, and the others go on."""
    folder, gate = tmp_path / "functions", tmp_path / "go"
    folder.mkdir()
    (folder / "own.py").write_text(
        "import os, time\n"
        "def slow_function(context, process, node, args, children, livedata):\n"
        f"    while not os.path.exists({str(gate)!r}):\n"
        "        time.sleep(0.05)\n"
        "    return 1, 'at last'\n"
    )
    daemon = made(
        [site("s1", core)],
        sections={"bp": {"refresh_interval": 0, "functions_dir": str(folder)}},
    )
    nodes = [{"label": "a", "function": "custom('slow_function')"}]
    with daemon.start().client() as client:
        alive(client, {"name": "hung", "nodes": nodes})
        alive(client, {"name": "well", "nodes": [{"label": "a", "function": "fixed(0)"}]})
        response = client.post_json("/mon/bp/1/refresh", {})
        refused(response, 500, "calculation failed", "not done within")
        refused(
            client.post_json("/mon/bp/1/refresh", {}), 500, "calculation failed", "not returned"
        )
        assert refreshed(client, 2)["status"] == 0
        assert client.rows("/mon/bp/1")["last_check"] == 0
        gate.touch()
        found = until(
            lambda: (one := client.post_json("/mon/bp/1/refresh", {})).status == 200 and one.json,
            "it has returned",
        )
        assert found["data"]["status_text"] == "at last"


def test_downtimes_of_nodes_come_and_go_in_the_core(made, core):
    """A downtime of all children is one of the service, once; without it it is deleted."""
    daemon = made(
        [site("s1", core)],
        sections={"bp": {"refresh_interval": 0, "sync_downtime_ack_state": 2}},
    )
    ours = "GET downtimes\nColumns: service_description comment\nFilter: author = (mon)"
    nodes = [
        {"label": "Shop", "function": "worst()", "depends": ["w"]},
        {"id": "w", "label": "w", "function": "status('web02')"},
    ]
    text = "automatic downtime, all child nodes are in downtime."
    with daemon.start().client() as client:
        alive(client, {"name": "Web Shop", "nodes": nodes})
        assert refreshed(client, 1)["nodes"][0]["scheduled_downtime_depth"] == 1
        until(lambda: core.ask(ours) == [["Shop", text]], "the service is in a downtime")
        refreshed(client, 1)
        change = {"nodes": {"1": {"function": "status('db01')"}}}
        assert core.ask(ours) == [["Shop", text]]
        assert patch(client, 1, change).status == 200
        refreshed(client, 1)
        until(lambda: core.ask(ours) == [], "it is gone")


def test_a_command_may_forbid_a_change_and_one_learns_of_it(core, made, tmp_path):
    script = tmp_path / "look.py"
    script.write_text(
        "import json, os, sys\n"
        "word = json.load(open(os.environ['MON_BP_FILE']))['rankDir']\n"
        f"with open({str(tmp_path / 'seen')!r}, 'a') as log:\n"
        "    print(os.environ['MON_BP_ID'], os.environ['MON_BP_STAGE'], word, file=log)\n"
        "if word == 'LR':\n"
        "    sys.exit('not in this house')\n"
    )
    command = f"{sys.executable} {script}"
    daemon = made(
        [site("s1", core)],
        sections={"bp": {"refresh_interval": 0, "pre_save_cmd": command, "post_save_cmd": command}},
    )
    with daemon.start().client() as client:
        alive(client, SHOP)
        refused(patch(client, 1, {"rankDir": "LR"}), 409, "refused", "not in this house")
        assert client.rows("/mon/bp/1")["rankDir"] == "TB"
    lines = (tmp_path / "seen").read_text().splitlines()
    assert lines == ["1 pre TB", "1 post TB", "1 pre LR"]


def test_results_as_files(core, made, tmp_path):
    """In the form in which a core takes them from its folder of check results."""
    folder = tmp_path / "spool"
    folder.mkdir()
    named = {"name": "web01", "nodes": [{"label": "http", "function": "fixed(1, 'a\\nb')"}]}
    daemon = made(
        [site("s1", core)],
        sections={"bp": {"refresh_interval": 0, "spool_dir": str(folder)}},
    )
    with daemon.start().client() as client:
        alive(client, named)
        assert client.post_json("/mon/bp/1/refresh", {}).status == 200
    (path,) = [one for one in folder.iterdir() if one.suffix != ".ok"]
    assert {one.name for one in folder.iterdir()} == {path.name, f"{path.name}.ok"}
    assert path.name.startswith("c")
    assert len(path.name) >= 7
    header, host, service = path.read_text().split("\n\n")
    assert "file_time=" in header
    assert "host_name=web01\ncheck_type=1\n" in host
    assert "output=OK - business process calculation of 1 nodes" in host
    assert "host_name=web01\nservice_description=http\ncheck_type=1\n" in service
    assert service.endswith("exited_ok=1\nreturn_code=1\noutput=a\\nb\n")
