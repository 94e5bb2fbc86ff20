"""API keys on the wire: made, used, revoked, and kept over a kill -9."""

import base64
import signal
import stat

import pytest
from harness.expect import refused
from harness.waiting import until

KEYS = "/mon/api_keys"
HOSTS = "authorized_for_all_hosts"
ROLES = {"auth.roles": {"admin": ["admin"], "all_hosts": ["olga"]}}


@pytest.fixture(scope="module")
def keyed(shared):
    """A daemon without cores and without a password file."""
    return shared.daemon([], sections=ROLES).start()


def new(client, **asked):
    """Make a key; its document."""
    response = client.post_json(KEYS, asked)
    assert response.status == 200, response
    return response.json


def using(daemon, key):
    """A client that has nothing but a key."""
    client = daemon.client(None)
    client.key = key["private_key"]
    return client


def test_from_the_cradle_to_the_grave(keyed):
    with keyed.client() as admin, keyed.client("olga") as olga:
        response = olga.post_json(KEYS, {"comment": "cron", "roles": [HOSTS]})
        assert response.headers["cache-control"] == "no-store"
        key = response.json
        assert set(key) == {"message", "file", "hashed_key", "private_key"}
        with using(keyed, key) as script:
            who = script.rows("/mon/whoami")
            assert (who["id"], who["auth_src"], who["roles"]) == ("olga", "api_key", [HOSTS])
        # Another worker may have seen it.
        until(lambda: "last_from" in olga.rows(KEYS)[0], "its use is noted")
        (row,) = olga.rows(KEYS)
        assert (row["user"], row["comment"], row["roles"]) == ("olga", "cron", [HOSTS])
        assert row["last_from"] == "127.0.0.1"
        assert "superuser" not in row
        path = f"{KEYS}/{key['hashed_key']}"
        assert admin.rows(path) == row
        with using(keyed, key) as script:
            assert script.get("/mon").status == 200
            response = olga.request("DELETE", path)
            assert (response.status, response.json) == (
                200,
                {"message": "successfully removed 1 api key."},
            )
            refused(script.get("/mon"), 403, "wrong authentication key")
        refused(olga.request("DELETE", path), 404, "no such api key")
        refused(admin.get(path), 404, "no such api key")
        assert olga.rows(KEYS) == []


def test_a_form_and_a_repeated_role(keyed):
    with keyed.client() as admin:
        pairs = [("roles", HOSTS), ("roles", "authorized_for_all_services"), ("username", "form")]
        response = admin.post_form(KEYS, pairs)
        assert response.status == 200, response
        (row,) = admin.rows(KEYS, {"user": "form"})
        assert len(row["roles"]) == 2


def test_keys_can_be_switched_off_while_the_daemon_runs(keyed):
    with keyed.client() as admin:
        key = new(admin)
        keyed.sections["auth"]["api_keys_enabled"] = False
        keyed.reload()
        with using(keyed, key) as client:
            until(lambda: client.get("/mon").status == 403, "the key is refused")
        refused(admin.post_json(KEYS, {}), 400, "api keys are disabled")
        keyed.sections["auth"]["api_keys_enabled"] = True
        keyed.reload()


def test_there_are_no_passwords_without_a_file(keyed):
    with keyed.client(None) as client:
        client.key = None
        pair = base64.b64encode(b"admin:x").decode()
        response = client.get("/mon/whoami", headers={"Authorization": f"Basic {pair}"})
        refused(response, 401, "login required", "htpasswd_file")
        assert response.headers["www-authenticate"] == 'Bearer realm="mon"'
        response = client.post_form("/mon/login", {"login": "admin", "password": "x"})
        refused(response, 400, "login is not available")


def test_keys_and_their_use_outlive_a_stop_and_a_kill_and_are_written_nowhere(made):
    daemon = made([], sections=ROLES).start()
    with daemon.client() as admin:
        keys = [new(admin, username=f"user{number}") for number in range(20)]
        gone = keys.pop()
        assert admin.request("DELETE", f"{KEYS}/{gone['hashed_key']}").status == 200
        with using(daemon, keys[0]) as client:
            client.rows("/mon")
            client.get(f"/nope?{keys[0]['private_key']}"[:20])
    wrong = {"private_key": "f" * 64 + "_1"}
    with using(daemon, wrong) as client:
        refused(client.get("/mon"), 403, "wrong authentication key")
    daemon.stop()
    daemon.start()
    with daemon.client() as admin:
        (row,) = admin.rows(KEYS, {"user": "user0"})
        assert row["last_used"] >= row["created"]
        assert row["last_from"] == "127.0.0.1"
        late = new(admin, username="late")
    daemon.stop(signal.SIGKILL)
    daemon.start()
    for key, user in ((late, "late"), *((key, f"user{at}") for at, key in enumerate(keys))):
        with using(daemon, key) as client:
            assert client.rows("/mon/whoami")["id"] == user
    with using(daemon, gone) as client:
        refused(client.get("/mon"), 403, "wrong authentication key")
    daemon.stop()
    written = {path: path.read_bytes() for path in daemon.folder.rglob("*") if path.is_file()}
    assert any(late["hashed_key"].encode() in content for content in written.values())
    for path, content in written.items():
        for key in (*keys, gone, late, wrong):
            assert key["private_key"].encode() not in content, path
    for action in ("key create", "key delete", "key refused"):
        assert action in daemon.log
    for path in (*(daemon.folder / "var").glob("*.sqlite*"), daemon.folder / "secret.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
