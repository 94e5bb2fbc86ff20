"""What is wholly in the log cache is told although its site is down, with the site marked."""

import time
from urllib.parse import quote

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

DAY = 86400


@pytest.fixture(scope="module")
def span():
    """A day of the invented history, and the parameters that mean it."""
    start = int(time.time()) - 2 * DAY
    return start, start + DAY


@pytest.fixture(scope="module")
def lines(span):
    return {"time[gte]": str(span[0]), "time[lt]": str(span[1])}


@pytest.fixture(scope="module")
def report(span):
    return {"start": str(span[0]), "end": str(span[1]), "backtrack": "1"}


def questions(lines, report, host):
    """Paths and parameters that need nothing but the log of that day."""
    group = {"columns": "type,class,count(*),max(time)"}
    return [
        ("/logs", lines),
        ("/logs", {**lines, "limit": "7"}),
        ("/logs", {**lines, "limit": "7", "sort": "-message", "offset": "2"}),
        ("/logs", {**lines, "q": f"host = '{host}' and message ~~ alert"}),
        ("/logs", {**lines, **group}),
        ("/logs", {**lines, "columns": "count(*)"}),
        ("/alerts", {**lines, "state[ne]": "0"}),
        ("/notifications", lines),
        (f"/hosts/{quote(host)}/alerts", lines),
        (f"/hosts/{host[:2]}*/notifications", lines),
        ("/hosts/availability", report),
        ("/services/availability", report),
        ("/services/availability", {**report, "type": "both"}),
        (f"/hosts/{quote(host)}/availability", report),
        ("/services/availability", {**report, "host_name": host}),
        ("/hosts/availability", {**report, "q": f"name ~ ^{host[:2]}"}),
        ("/hosts/outages", report),
        ("/services/outages", {**report, "withdowntimes": "0"}),
        (f"/hosts/{quote(host)}/outages", {**report, "type": "both"}),
        ("/services/outages", {**report, "columns": "count(*),class"}),
    ]


@pytest.fixture(scope="module")
def told(shared, lines, report):
    """A daemon with two sites, of which ``b`` was killed, and what that told before."""
    cores = [shared.core(objects=None, arguments=("--history", "3")) for _ in range(2)]
    sections = {"logcache": {"update_interval": 1.0, "first_import": 3.5 * DAY}}
    sites = [site(key, core) for key, core in zip("ab", cores, strict=True)]
    daemon = shared.daemon(sites, sections=sections).start()
    with daemon.client() as client:
        until(
            lambda: {one["status"] for one in client.rows("/mon/logcache/stats")} == {"OK"},
            "all is imported",
        )
        host = client.rows("/sites/b/hosts", {"columns": "name", "limit": "1"})[0]["name"]
        asked = [(f"/sites/b{path}", query) for path, query in questions(lines, report, host)]
        answers = [client.rows(path, query) for path, query in asked]
        cores[1].process.kill()
        until(lambda: not client.rows("/sites")[1]["connected"], "the core is missed")
    return daemon, list(zip(asked, answers, strict=True))


def check(told):
    daemon, answers = told
    with daemon.client() as client:
        for (path, query), before in answers:
            response = client.get(path, query)
            assert response.status == 200, (path, query, response)
            assert response.json == before, (path, query)
            assert response.headers["x-mon-failed-sites"] == "b"
        assert [question for question, before in answers if not before] == []
        (path, query), before = answers[0]
        wrapped = client.get(f"/wrapped_json{path}", query).json
        assert wrapped["data"] == before
        assert [one["peer_key"] for one in wrapped["meta"]["failed_sites"]] == ["b"]


def test_the_same_as_before(told):
    check(told)


def test_what_only_the_core_knows(told, lines, report):
    daemon, _ = told
    start = lines["time[gte]"]
    with daemon.client() as client:
        for path, query in (
            ("/logs", {}),
            ("/logs", {"time[gte]": start}),
            ("/logs", {**lines, "logcache": "0"}),
            ("/logs", {**lines, "columns": "message,current_host_state"}),
            ("/logs", {"time[lt]": lines["time[lt]"]}),
            ("/hosts/availability", {}),
            ("/hosts/availability", {"start": start}),
            ("/hosts/availability", {**report, "logcache": "0"}),
            ("/hosts/availability", {**report, "backtrack": "300"}),
            ("/hosts/availability", {**report, "hostgroup": "all"}),
            ("/hosts/availability", {**report, "alias": "x"}),
            ("/hosts/availability", {**report, "host": "nobody wrote about it"}),
            ("/hosts/nope/availability", report),
            ("/hostgroups/all/availability", report),
            ("/hosts/availability", {**report, "rpttimeperiod": "24x7"}),
        ):
            refused(client.get(f"/sites/b{path}", query), 502, "no backend available", "b: ")
    with daemon.client("olga") as olga:
        refused(olga.get("/sites/b/logs", lines), 502, "no backend available")
        refused(olga.get("/sites/b/hosts/availability", report), 502)


def test_a_daemon_that_never_met_the_core(told):
    daemon, _ = told
    daemon.stop()
    daemon.start(connected={"a"})
    check(told)


@pytest.fixture
def client(told):
    with told[0].client() as client:
        yield client


def of_sites(client, query):
    """Which sites have lines in the answer, and how many of each."""
    counted = {**query, "columns": "peer_key,count(*)"}
    response = client.get("/logs", counted)
    assert response.status == 200, response
    assert response.headers["x-mon-failed-sites"] == "b"
    groups = {row["peer_key"]: row["count(*)"] for row in response.json}
    rows = client.get("/logs", {**query, "columns": "peer_key,time"})
    assert rows.headers["x-mon-failed-sites"] == "b"
    each = [row["peer_key"] for row in rows.json]
    assert groups == {key: each.count(key) for key in set(each)}
    return sorted(groups)


def test_one_of_several_sites_is_down(client, lines):
    start = int(lines["time[gte]"])
    old = {"time[gte]": str(start - 2 * DAY), "time[lt]": str(start - DAY)}
    half = {"time[gte]": str(start - 2 * DAY), "time[lt]": lines["time[lt]"]}
    recent = {"time[gte]": str(start), "time[lt]": str(int(time.time()) + 60)}
    found = {
        "wholly cached": of_sites(client, lines),
        "begins before the cache": of_sites(client, half),
        "ends behind the cache": of_sites(client, recent),
        "no end": of_sites(client, {"time[gte]": str(start)}),
        "not from the cache": of_sites(client, {**lines, "logcache": "0"}),
    }
    assert found.pop("wholly cached") == ["a", "b"]
    assert set(map(tuple, found.values())) == {("a",)}, found
    # The site that lives is asked beside what the cache has.
    assert client.get("/logs", {**old, "backends": "a"}).status == 200
    for query in (half, recent, {**lines, "logcache": "0"}):
        refused(client.get("/logs", {**query, "backends": "b"}), 502, "no backend available", "b: ")
    alone = client.get("/logs", {**lines, "backends": "b"})
    assert (alone.status, alone.headers["x-mon-failed-sites"]) == (200, "b")
    assert len(alone.json) > 0
