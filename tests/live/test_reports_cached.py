"""Reports and first imports of a daemon whose cores have days of log."""

import signal
import time
from datetime import datetime
from itertools import product

import pytest
from harness.cores import Icinga2Core
from harness.daemon import site
from harness.expect import refused
from harness.jobs import background, ended
from harness.lying import LyingSite
from harness.waiting import until

from tests.examples import some
from tests.table import each

DAY = 86400
DAYS = 8


def write_archives(core, now):
    """Files of the last days as an Icinga 2 leaves them, one for each day, states in front."""
    folder = core.folder / "log/compat/archives"
    folder.mkdir(parents=True)
    for day in range(DAYS, 0, -1):
        start = now - day * DAY
        lines = [(start, "LOG ROTATION: DAILY"), (start, "LOG VERSION: 2.0")]
        for host in ("web01", "web02", "db01"):
            lines.append(
                (start, f"CURRENT HOST STATE: {host};{'UP' if day % 2 else 'DOWN'};HARD;1;")
            )
            for at in range(600, DAY, 3600):
                word = ("UP", "DOWN")[at // 3600 * (day + len(host)) % 3 % 2]
                hard = ("HARD", "SOFT")[at // 3600 % 5 == 0]
                lines.append((start + at, f"HOST ALERT: {host};{word};{hard};1;a; b"))
                state = ("OK", "WARNING", "CRITICAL", "UNKNOWN")[at // 3600 * day % 4]
                lines.append((start + at, f"SERVICE ALERT: {host};ping;{state};HARD;1;x"))
            lines.append((start + 40000, f"HOST DOWNTIME ALERT: {host};STARTED; y"))
            lines.append((start + 50000, f"HOST DOWNTIME ALERT: {host};STOPPED; y"))
        lines.sort(key=lambda line: line[0])
        name = datetime.fromtimestamp(start).strftime("icinga-%m-%d-%Y-%H.log")
        (folder / name).write_text("".join(f"[{at}] {text}\n" for at, text in lines))


class WithArchives(Icinga2Core):
    def start(self):
        write_archives(self, int(time.time()))
        super().start()


@pytest.fixture(scope="module")
def history(shared):
    """The same of an embedded core, for what is the same for all cores."""
    core = shared.core(arguments=("--history", str(DAYS)))
    return shared.keep(LyingSite(shared.folder() / "live", core.socket))


def behind(lab, liar, **logcache):
    """A daemon that imports all of the log, not started."""
    logcache = {"update_interval": 86400.0, "first_import": 20 * DAY, **logcache}
    return lab.daemon([site("s1", liar)], sections={"logcache": logcache})


KINDS = [
    "embedded",
    "embedded and compacted",
    pytest.param("icinga2 and compacted", marks=pytest.mark.icinga2),
]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def liar(kind, history, shared):
    """A core with days of log, whose answers can be held back."""
    if "icinga2" not in kind:
        return history
    core = shared.core(WithArchives)
    return shared.keep(LyingSite(shared.folder() / "live", core.socket))


@pytest.fixture(scope="module")
def cached(kind, liar, shared):
    """A daemon with all of it in the cache; or with the older half compacted."""
    more = {"compact_after": 3 * DAY} if "compacted" in kind else {}
    daemon = behind(shared, liar, **more)
    with daemon.start().client() as client:
        job = background(client, "/mon/logcache/update", "POST")
        assert ended(client, job)["rc"] == 0
        query = {"time[gte]": "-8d", "time[lt]": "-1m", "columns": "time,lineno,message"}
        told = client.rows("/logs", {**query, "logcache": "0"})
        assert client.rows("/logs", query) == told
    yield daemon
    liar.lie(None)
    liar.release()


REPORTS = [
    ("/hosts/availability", {"type": "both"}),
    ("/hosts/availability", {"includesoftstates": "1", "backtrack": "0"}),
    ("/hosts/availability", {"assumestatesduringnotrunning": "0"}),
    ("/hosts/web01/availability", {}),
    ("/services/db01/ping/availability", {}),
    ("/hosts/outages", {"type": "both"}),
    ("/hosts/outages", {"type": "both", "withdowntimes": "0"}),
    ("/hostgroups/web/outages", {"includesoftstates": "1"}),
]


# Each has a midnight, at which a core writes down all states, at any time of the day.
SPANS = [(7.3, 0.0), (5.1, 2.2), (1.3, 0.2)]


@each(("path", "query", "days", "user"), [
    (*report, days, user)
    for report, days, user in some(product(REPORTS, SPANS, ["admin", "olga"]))
])  # fmt: skip
def test_the_same_with_and_without(cached, path, query, days, user):
    now = int(time.time())
    first, last = days
    span = {"start": str(now - int(first * DAY)), "end": str(now - 2 - int(last * DAY))}
    with cached.client(user) as client:
        found = client.get(path, {**query, **span})
        told = client.get(path, {**query, **span, "logcache": "0"})
    assert (found.status, found.json) == (told.status, told.json)
    if path == "/hosts/availability" and user == "admin":
        assert any(row.get("time_up") for row in found.json)


def test_the_core_need_not_read_what_is_cached(cached, liar):
    now = int(time.time())
    span = {"start": str(now - 50 * 3600), "end": str(now - DAY), "backtrack": "0"}
    with cached.client() as client:
        expected = client.rows("/hosts/availability", span)
        liar.lie("closed at once", "log")
        try:
            assert client.rows("/hosts/availability", span) == expected
            refused(client.get("/hosts/availability", {**span, "logcache": "0"}), 502)
        finally:
            liar.lie(None)
        cached.wait_connected({"s1"})


def test_while_the_database_is_away(cached):
    """A cache that is gone changes nothing, and is used again when it is back."""
    query = {"time[gte]": "-3d", "time[lt]": "-1h"}
    span = {"start": "-3d", "end": "-1h", "columns": "host,time_down"}
    file = cached.folder / "var" / "monrest.sqlite"
    away = file.with_name("away")
    with cached.client() as client:
        lines, rows = client.rows("/logs", query), client.rows("/hosts/availability", span)
        assert lines
        file.rename(away)
        try:
            assert len(client.rows("/logs", query)) == len(lines)
            assert len(client.rows("/hosts/availability", span)) == len(rows)
        finally:
            away.rename(file)
        assert len(client.rows("/logs", query)) == len(lines)


@pytest.fixture
def impatient(history, lab):
    """A daemon without a cache, and with less time for a request than any other test needs."""
    sections = {"server": {"request_timeout": 4.0}, "logcache": {"enabled": False}}
    return lab.daemon([site("s1", history)], sections=sections).start()


def test_a_job_has_more_time_than_a_request(impatient, history):
    """A core that takes longer for its log than a request may last; and how far the job is."""
    with impatient.client() as client:
        path = "/hosts/availability?start=-4d&columns=host"
        history.lie(None, "log")
        history.hold()
        refused(client.get(path, timeout=20), 504, "log was not read in 3.2 s")
        number = background(client, path)
        until(lambda: client.rows(f"/mon/jobs/{number}")["time"] > 5, "5 seconds are over")
        assert client.rows(f"/mon/jobs/{number}")["is_running"] == 1
        history.release()
        row = ended(client, number)
        assert (row["rc"], row["percent"]) == (0, 100)
        assert client.get(f"/mon/jobs/{number}/output").json


def test_a_report_is_canceled(cached, liar):
    with cached.client() as client:
        liar.lie(None, "log")
        liar.hold()
        number = background(client, "/hosts/availability?start=-4d&logcache=0")
        assert liar.waiting.wait(300)
        assert client.request("DELETE", f"/mon/jobs/{number}").json["message"] == "canceled job"
        row = client.rows(f"/mon/jobs/{number}")
        assert (row["is_running"], row["message"]) == (0, "canceled")
        liar.release()
        assert client.rows("/hosts/availability", {"start": "-4d"})


@pytest.fixture
def fresh(history, lab):
    """A daemon that has imported nothing yet, before a core that does not tell its log."""
    history.lie(None, "log")
    history.hold()
    yield behind(lab, history)
    history.release()
    history.lie(None)


def test_a_first_import_as_a_job(fresh, history):
    with fresh.start().client() as client:
        assert history.waiting.wait(300)
        number = background(client, "/mon/logcache/update", "POST")
        # The daemon itself is at it.
        row = until(
            lambda: (row := client.rows(f"/mon/jobs/{number}"))["message"] and row,
            "it says how far",
        )
        assert row["message"] == "s1: another process imports its lines"
        assert 0 <= row["percent"] < 50
        (stats,) = client.rows("/mon/logcache/stats")
        assert stats["status"].startswith("running update since")
        # Others get their answer at once.
        answer = client.request("POST", "/mon/logcache/update")
        assert answer.json["errors"] == ["s1: an update is running already"]
        history.release()
        assert ended(client, number)["rc"] == 0
        result = client.get(f"/mon/jobs/{number}/output").json
        assert (result["code"], result["errors"]) == (200, [])
        (stats,) = client.rows("/mon/logcache/stats")
        assert (stats["status"], stats["mode"]) == ("OK", "")
        assert stats["items"] > 100


def test_a_first_import_that_is_canceled_and_killed(fresh, history):
    with fresh.start().client() as client:
        number = background(client, "/mon/logcache/update", "POST")
        assert history.waiting.wait(300)
        assert client.request("DELETE", f"/mon/jobs/{number}").json["message"] == "canceled job"
    fresh.stop(signal.SIGKILL)
    history.release()
    fresh.start()
    with fresh.client() as client:
        number = background(client, "/mon/logcache/update", "POST")
        # The killed process holds the site for half a minute.
        assert ended(client, number)["rc"] == 0
        (stats,) = client.rows("/mon/logcache/stats")
        assert (stats["status"], stats["mode"]) == ("OK", "")
        query = {"time[gte]": "-8d", "columns": "time,lineno,message", "time[lt]": "-10m"}
        found = client.rows("/logs", query)
        assert found == client.rows("/logs", {**query, "logcache": "0"})
        assert len(found) > 100
