"""A daemon without its database: what it still answers, what it says of itself, how it starts."""

import os
import signal
import sqlite3

import pytest
from harness.daemon import sha, site
from harness.expect import refused
from harness.waiting import until

GRACE = 12.0
READS = [
    *("/hosts?columns=name", "/services/totals", "/hosts/web01", "/csv/services", "/sites"),
    *("/comments", "/alerts?time[gte]=-1d", "/hosts/web01/availability?type=hosts", "/"),
]


@pytest.fixture
def daemon(lab, line_url, embedded):
    """A daemon that is not started yet."""
    sections = {"database": {"url": line_url}, "auth": {"grace": GRACE}}
    return with_passwords(lab.daemon([site("s1", embedded)], sections=sections))


def with_passwords(daemon):
    """Let admin log in with the password sesame."""
    (daemon.folder / "htpasswd").write_text(f"admin:{sha('sesame')}\n")
    daemon.sections["auth"]["htpasswd_file"] = str(daemon.folder / "htpasswd")
    daemon.write_config()
    return daemon


def key_client(daemon):
    """A client with a new API key of the administrator."""
    with daemon.client() as admin:
        key = admin.post_json("/mon/api_keys", {}).json["private_key"]
    client = daemon.client(None)
    client.key = key
    return client


def session_client(daemon):
    """A client with a new session."""
    client = daemon.client(None)
    client.key = None
    answer = client.post_form("/mon/login", [("login", "admin"), ("password", "sesame")])
    cookie = answer.headers["set-cookie"].partition(";")[0]
    more = {"Cookie": cookie, "X-Mon-CSRF-Token": answer.json["csrf_token"]}
    client.credentials = lambda: more
    return client


def ready(client):
    return client.get("/mon/ready").status


COMMAND = ("/hosts/web01/cmd/disable_host_check", [("test_only", "1")])


def test_reading_goes_on_without_postgresql(daemon, line):
    """For keys and sessions until the grace is over, for the secret key for ever."""
    daemon.start()
    with (
        daemon.client() as admin,
        key_client(daemon) as keyed,
        session_client(daemon) as logged_in,
        key_client(daemon) as unused,
    ):
        for client in (admin, keyed, logged_in):
            assert client.get(READS[0]).status == client.post_form(*COMMAND).status == 200
        line.drop()
        until(lambda: ready(admin) == 503, "it says that it is not ready")
        refused(admin.get("/mon/ready"), 503, "NO DATABASE", "did not answer in time")
        # The database was asked about them at most 5 s before that.
        assert keyed.get(READS[0]).status == logged_in.get(READS[0]).status == 200
        # Whoever was not known before is not known now.
        refused(unused.get(READS[0]), 503)
        for client in (keyed, logged_in):
            until(
                lambda client=client: client.post_form(*COMMAND).status == 503,
                "what is not sure any more changes nothing",
            )
        until(
            lambda: keyed.get(READS[0]).status == logged_in.get(READS[0]).status == 503,
            "the grace is over",
            seconds=300,
        )
        for path in READS:
            assert admin.get(path).status == 200, path
        refused(admin.get("/mon/broadcasts"), 503, "cannot read")
        line.mend()
        until(lambda: ready(admin) == 200, "it is ready again")
        for client in (keyed, logged_in, unused):
            until(lambda client=client: client.get(READS[0]).status == 200, "keys work again")
            assert client.post_form(*COMMAND).status == 200
    assert "Traceback" not in daemon.log


def test_what_was_revoked_stays_revoked_without_postgresql(daemon, line):
    daemon.start()
    with daemon.client() as admin, key_client(daemon) as keyed, session_client(daemon) as logged_in:
        assert keyed.get(READS[0]).status == logged_in.get(READS[0]).status == 200
        number = admin.rows("/mon/api_keys")[0]["hashed_key"]
        assert admin.request("DELETE", f"/mon/api_keys/{number}").status == 200
        assert logged_in.post_form("/mon/logout", []).status == 200
        line.drop()
        for _ in range(3):
            assert keyed.get(READS[0]).status in (403, 503)
            assert logged_in.get(READS[0]).status in (401, 503)


def test_a_start_waits_for_postgresql(daemon, line):
    """And does not listen before; what it says when it waits is in the log."""
    line.drop()
    daemon.spawn()
    until(lambda: "waiting for the database, " in daemon.log, "it says that it waits")
    assert "listening on" not in daemon.log
    line.mend()
    until(daemon.answers, "it answers")
    with daemon.client() as admin:
        assert ready(admin) == 200
    assert "the database is there" in daemon.log


def test_reading_goes_on_with_a_file_that_is_broken(made, embedded):
    daemon = made([site("s1", embedded)]).start()
    file = daemon.folder / "var" / "monrest.sqlite"
    with daemon.client() as admin:
        assert ready(admin) == 200
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        good = file.read_bytes()
        with file.open("r+b") as broken:
            broken.write(os.urandom(len(good)))
        until(lambda: ready(admin) == 503, "it says that it is not ready")
        refused(admin.get("/mon/ready"), 503, "NO DATABASE", "cannot be used")
        for path in READS:
            assert admin.get(path).status == 200, path
        refused(admin.get("/mon/broadcasts"), 503)
    assert daemon.stop() in (0, -signal.SIGTERM)
    assert "Traceback" not in daemon.log
