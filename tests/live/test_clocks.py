"""A daemon whose clock is put back and forth by an hour while it runs: only dates change."""

import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from email.utils import parsedate_to_datetime

import pytest
from harness.client import Client
from harness.daemon import sha, site
from harness.dates import DatedDaemon
from harness.lying import LyingSite
from harness.waiting import until

HOUR = 3600
SOON = 30.0
"""Seconds in which something has to happen that would take an hour by a clock that was set."""

DOWNTIMES = "/mon/recurring_downtimes"


class DeafSite(LyingSite):
    """A core that takes commands and does nothing while it is ``deaf``."""

    deaf = False

    def obey(self, connection, line):
        if not self.deaf:
            return super().obey(connection, line)
        self.commands.append(line)
        return True


@pytest.fixture(scope="module")
def liar(embedded, shared):
    return shared.keep(DeafSite(shared.folder() / "live", embedded.socket))


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    """What the daemon tells systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(tmp_path_factory.mktemp("systemd") / "notify"))
        notified.settimeout(SOON)
        yield notified


@pytest.fixture(scope="module")
def running(liar, signs, shared):
    folder = shared.folder()
    names = ("ann", "back", "forth")
    (folder / "htpasswd").write_text("".join(f"{name}:{sha(name)}\n" for name in names))
    daemon = shared.daemon(
        [site("s1", liar)],
        sections={
            "auth": {"htpasswd_file": str(folder / "htpasswd"), "session_idle": 5400.0},
            "logcache": {"update_interval": 1.0, "first_import": 3600},
        },
        folder=folder,
        kind=DatedDaemon,
    )
    return daemon.start(NOTIFY_SOCKET=signs.getsockname(), WATCHDOG_USEC="400000")


@pytest.fixture(params=[-HOUR, HOUR], ids=["back", "forth"])
def jump(request, running):
    """Sets the clock when it is called; right again at the end."""
    running.set_clock(0)
    yield lambda: running.set_clock(request.param)
    running.set_clock(0)


@pytest.fixture
def daemon(running):
    """With the right clock at first."""
    running.set_clock(0)
    yield running
    running.set_clock(0)


def change(daemon, statement, *values):
    """Do what another daemon on the same database would do."""
    with closing(sqlite3.connect(daemon.folder / "var" / "monrest.sqlite", timeout=20)) as base:
        done = base.execute(statement, values).rowcount
        base.commit()
    return done


def find(daemon, query, *values):
    with closing(sqlite3.connect(daemon.folder / "var" / "monrest.sqlite", timeout=20)) as base:
        return base.execute(query, values).fetchall()


def test_a_key_that_another_daemon_deleted_stops_at_once(daemon, jump):
    with daemon.client() as admin:
        key = admin.post_form("/mon/api_keys", {"comment": "jump"}).json["private_key"]
    with Client(daemon.port, key, None) as client:
        assert client.get("/mon/whoami").status == 200
        jump()
        assert client.get("/mon/whoami").status == 200
        assert change(daemon, "DELETE FROM api_keys WHERE comment = 'jump'") == 1
        until(lambda: client.get("/mon/whoami").status != 200, "it is refused", seconds=SOON)


def test_a_user_whom_another_daemon_locked_is_refused_at_once(daemon, jump, request):
    user = request.node.callspec.id
    with Browser(daemon.port) as client:
        assert client.login(user).status == 200
        jump()
        assert change(daemon, "UPDATE users SET locked = 1 WHERE name = ?", user) == 1
        until(lambda: client.get("/mon/whoami").status != 200, "refused", seconds=SOON)


class Browser(Client):
    """A client that keeps its cookie."""

    def __init__(self, port):
        super().__init__(port, None, None)
        self.cookie = ""

    def credentials(self):
        return {"Cookie": self.cookie} if self.cookie else {}

    def login(self, user):
        response = self.post_form("/mon/login", {"login": user, "password": user})
        self.cookie = response.headers.get("set-cookie", "").partition(";")[0]
        return response


def test_a_session_that_another_daemon_ended_ends_at_once(daemon, jump):
    with Browser(daemon.port) as client:
        client.login("ann")
        assert client.get("/mon/whoami").status == 200
        jump()
        client.get("/mon/whoami")
        change(daemon, "DELETE FROM sessions WHERE username = 'ann'")
        until(lambda: client.get("/mon/whoami").status == 401, "it is refused", seconds=SOON)


def test_a_session_ends_by_date(daemon):
    """It was not used for longer than it may be, as far as anybody can tell."""
    with Browser(daemon.port) as client:
        client.login("ann")
        daemon.set_clock(-HOUR)
        assert client.get("/mon/whoami").status == 200
        daemon.set_clock(HOUR)
        assert client.get("/mon/whoami").status == 200
        daemon.set_clock(3 * HOUR)
        assert client.get("/mon/whoami").status == 401


def test_the_log_cache_goes_on(daemon, jump):
    def updated():
        (row,) = admin.rows("/mon/logcache/stats")
        return row["last_update"]

    with daemon.client() as admin:
        before = until(updated, "it has begun")
        jump()
        until(lambda: abs(updated() - before) > HOUR / 2, "it goes on", seconds=SOON)


def test_waiting_for_an_effect_ends(daemon, jump, liar):
    path, given = "/hosts/web01/cmd/disable_host_notifications", {"wait": "4"}
    liar.deaf = True
    try:
        with daemon.client() as admin, ThreadPoolExecutor(1) as pool:
            count = len(liar.commands)
            answer = pool.submit(admin.post_form, path, given)
            until(lambda: len(liar.commands) > count, "the core was told")
            jump()
            assert "not seen within 4 seconds" in answer.result(SOON).text
    finally:
        liar.deaf = False


def test_a_request_ends_in_time(daemon, jump, liar):
    liar.lie(None, "services")
    liar.hold()
    try:
        with daemon.client() as admin, ThreadPoolExecutor(1) as pool:
            job = admin.get("/services?background=1").json["job_id"]
            answer = pool.submit(admin.get, f"/mon/jobs/{job}/output?wait=3")
            assert liar.waiting.wait(SOON)
            jump()
            assert answer.result(SOON).status == 302
            assert admin.rows(f"/mon/jobs/{job}")["is_running"] == 1
            assert admin.request("DELETE", f"/mon/jobs/{job}").status == 200
    finally:
        liar.release()


def test_systemd_gets_its_signs(jump, signs):
    jump()
    # What was sent before may still be read: more than there is room for.
    for _ in range(20):
        while "WATCHDOG=1" not in signs.recv(4096).decode():
            pass


def daily(at):
    when = datetime.fromtimestamp(at)
    return [{"type": "day", "minute": when.minute, "hour": str(when.hour)}]


def recurring(client, at, comment):
    """A downtime of every day at that time; its number."""
    answer = client.post_json(
        DOWNTIMES, {"host": "web01", "target": "host", "schedule": daily(at), "comment": comment}
    )
    assert answer.status == 200, answer
    return answer.json["file"]


def times(daemon, number):
    """When it came."""
    query = "SELECT at FROM downtime_occurrences WHERE downtime = ? ORDER BY at"
    return [at for (at,) in find(daemon, query, number)]


def came(daemon, number):
    until(lambda: times(daemon, number), "it has come", seconds=SOON)


def next_minute(seconds):
    return int(time.time() + seconds) // 60 * 60 + 60


def test_what_comes_at_a_date_comes_once(daemon):
    """When the clock jumps over it, back, and over it again."""
    at = next_minute(1200)
    with daemon.client() as admin:
        first = recurring(admin, at, "first")
        daemon.set_clock(HOUR)
        came(daemon, first)
        daemon.set_clock(0)
        second = recurring(admin, at + 60, "second")
        daemon.set_clock(HOUR)
        came(daemon, second)
        assert times(daemon, first) == [at]
        assert times(daemon, second) == [at + 60]
        assert len(admin.rows("/downtimes", {"comment": "first"})) == 1


def test_what_was_over_by_a_wrong_clock_comes_by_the_right_one(daemon):
    at = next_minute(1200)
    daemon.set_clock(HOUR)
    with daemon.client() as admin:
        number = recurring(admin, at, "wrong")
        daemon.set_clock(at - 3 - time.time())
        came(daemon, number)
        assert times(daemon, number) == [at]


def test_a_report_comes_once(daemon):
    at = next_minute(1200)
    record = {
        "template": "report_from_url.tt",
        "params": {"url": "/mon/r/sites?columns=id"},
        "name": "jump",
        "send_types": daily(at),
    }
    runs = "SELECT at, open FROM report_runs"
    with daemon.client() as admin:
        answer = admin.post_json("/mon/reports", record)
        assert answer.status == 200, answer
        daemon.set_clock(HOUR)
        until(lambda: find(daemon, runs) == [(at, 0)], "it is made", seconds=SOON)
        daemon.set_clock(0)
        again = recurring(admin, at + 120, "after it")
        daemon.set_clock(HOUR)
        came(daemon, again)
        assert find(daemon, runs) == [(at, 0)]


def test_what_is_shown_is_the_date(daemon):
    """The clock of HTTP, of the log and of the instance."""
    daemon.set_clock(-HOUR)
    expected = time.time() - HOUR
    with daemon.client() as admin:
        response = admin.get("/mon?columns=localtime")
    shown = parsedate_to_datetime(response.headers["date"])
    assert abs(shown.timestamp() - expected) < 60
    assert abs(response.json["localtime"] - expected) < 60
    number = response.headers["x-request-id"]

    def line():
        return next((one for one in daemon.log.splitlines() if number in one), None)

    written = datetime.fromisoformat(until(line, "it is in the log").partition(" ")[0])
    assert abs(written.timestamp() - expected) < 60
