"""What Prometheus reads over a real socket, judged by its own program."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.client import Client
from harness.daemon import WORKERS, site
from harness.waiting import until
from prometheus_client.parser import text_string_to_metric_families as parse

from monrest.base.meters import METERS
from monrest.base.metrics import FIGURES

TEXT = {"Accept": "text/plain"}


def read(client):
    answer = client.get("/mon/metrics", headers=TEXT)
    assert answer.status == 200, answer
    return answer.text


def samples(text):
    return {
        (one.name, *sorted(one.labels.items())): one.value
        for family in parse(text)
        for one in family.samples
    }


def promtool(*arguments, text=None):
    if shutil.which("promtool") is None:
        assert "MONREST_CI" not in os.environ, "promtool is missing"
        pytest.skip("promtool (Debian's prometheus) is not installed")
    done = subprocess.run(
        ["promtool", *arguments], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_requests_are_counted_by_endpoint(made, embedded):
    daemon = made([site("s1", embedded)]).start()
    with daemon.client() as admin:
        for path in ("/hosts/web01", "/csv/hosts/db01", "/sites/s1/hosts/db02", "/hosts/no one"):
            assert admin.get(path.replace(" ", "%20")).status == 200
        assert admin.get("/hosts?nothing[x]=1").status == 400
        for nr in range(3):
            assert admin.get(f"/no/such/{nr}{'x' * 60_000}").status == 404
        with daemon.client(root="") as beside:
            assert beside.get("/nonsense").status == 404
            assert beside.get("/", headers={"Accept": "text/html"}).status == 200
        for path in ("", "/"):
            assert admin.get(path).status == 200
        assert admin.request("POST", "/services/totals").status == 200
        text = read(admin)
        found = samples(text)
    promtool("check", "metrics", text=text)

    def count(method, route, status):
        labels = (("method", method), ("route", route), ("status", str(status)))
        return found.get(("monrest_http_requests_total", *labels))

    assert count("GET", "/hosts/<name>", 200) == 4
    assert count("GET", "/hosts", 400) == 1
    assert count("GET", "other", 404) == 4
    assert count("GET", "other", 200) == 1
    assert count("GET", "/", 200) == 2
    assert len(text) < 60_000, "no made-up path is kept"
    assert count("POST", "/services/totals", 200) == 1
    name = "monrest_http_request_duration_seconds"
    labels = (("method", "GET"), ("route", "/hosts/<name>"))
    assert found[(f"{name}_count", *labels)] == 4
    assert 0 < found[(f"{name}_sum", *labels)] < 600
    assert found[(f"{name}_bucket", ("le", "+Inf"), *labels)] == 4
    assert found[("monrest_http_connections",)] == 1
    assert found[("monrest_site_up", ("site", "s1"))] == 1
    assert found[("monrest_site_query_duration_seconds_count", ("site", "s1"))] >= 5
    assert found[("monrest_workers",)] == WORKERS
    assert found[("process_resident_memory_bytes",)] > 1e7
    families = {one.name.removeprefix("monrest_") for one in parse(text)}
    missing = {one.name.removesuffix("_total") for one in METERS} - families
    assert missing <= {"logcache_lag_seconds", "logcache_lines"}, missing


def test_objects_are_counted_by_state(client):
    """Of each kind of core, also of one that writes numbers as texts."""
    for kind in ("hosts", "services"):
        totals, found = client.rows(f"/{kind}/totals"), samples(read(client))
        counted = {}
        for (metric, *labels), value in found.items():
            if metric == f"monrest_{kind}":
                state = dict(labels)["state"]
                counted[state] = counted.get(state, 0) + value
        assert sum(counted.values()) == totals["total"]
        assert counted.get("pending", 0) == totals["pending"]


def test_beside_the_root_it_is_text_for_all(made, embedded):
    daemon = made([site("s1", embedded)]).start()
    with Client(daemon.port, daemon.key, root="") as client:
        for accept in ("*/*", "text/plain"):
            answer = client.get("/metrics", headers={"Accept": accept})
            assert (answer.status, answer.type) == (200, "text/plain")
            assert "monrest_site_up" in answer.text
        as_json = client.get("/metrics", headers={"Accept": "application/json"})
        assert as_json.json["sessions_total"] == 0
    with Client(daemon.port, None, None, root="") as stranger:
        assert stranger.get("/metrics").status == 401


def test_a_site_that_is_down_and_what_waits(made, embedded, tmp_path):
    daemon = made(
        [site("s1", embedded), site("gone", f"unix:{tmp_path}/nothing")],
        sections={"logcache": {"update_interval": 5}},
    ).start(connected=("s1",))
    with daemon.client() as admin:
        assert admin.get("/hosts?columns=name").headers["x-mon-failed-sites"] == "gone"
        until(lambda: "monrest_logcache_lines{" in read(admin), "the log cache was updated")
        found = samples(read(admin))
        started = admin.get("/hosts?background=1").json["job_id"]
        until(lambda: not admin.rows(f"/mon/jobs/{started}")["is_running"], "the job is done")
    assert found[("monrest_site_up", ("site", "gone"))] == 0
    assert found[("monrest_site_up", ("site", "s1"))] == 1
    assert found[("monrest_logcache_lines", ("site", "s1"))] > 0
    assert 0 <= found[("monrest_logcache_lag_seconds", ("site", "s1"))] < 600
    assert found[("monrest_jobs", ("state", "running"))] == 0


def test_workers_are_summed(made, embedded):
    daemon = made([site("s1", embedded)], sections={"server": {"workers": 2}}).start()
    for _ in range(6):
        with daemon.client() as client:
            assert client.get("/hosts/web01?columns=name").status == 200
    with daemon.client() as first, daemon.client() as second, daemon.client() as third:
        for client in (first, second, third):
            found = samples(read(client))
            assert found[("monrest_workers",)] == 2
            labels = (("method", "GET"), ("route", "/hosts/<name>"), ("status", "200"))
            assert found[("monrest_http_requests_total", *labels)] == 6


def test_the_guide_names_all():
    page = Path("docs/guide/metrics.md").read_text()
    names = [
        *(one.name if one.name.startswith("process_") else f"monrest_{one.name}" for one in METERS),
        *(f"mon_{one.name.removesuffix('_total')}" for one in FIGURES),
    ]
    assert [name for name in names if f"`{name}`" not in page] == []
