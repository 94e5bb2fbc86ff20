"""API keys on the wire: made, used, revoked, and kept over a kill -9."""

import signal
import stat

import pytest
from harness.expect import refused
from harness.waiting import until

KEYS = "/mon/api_keys"
HOSTS = "authorized_for_all_hosts"


@pytest.fixture
def keyed(made):
    """A daemon without cores."""
    return made([], sections={"auth.roles": {"admin": ["admin"], "all_hosts": ["olga"]}}).start()


def new(client, **asked):
    """Make a key; its document."""
    response = client.post_json(KEYS, asked)
    assert response.status == 200, response
    return response.json


def using(daemon, key, user=None):
    """A client that has nothing but a key."""
    client = daemon.client(user)
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
        assert admin.rows(KEYS) == []


def test_a_form_and_a_repeated_role(keyed):
    with keyed.client() as admin:
        pairs = [("roles", HOSTS), ("roles", "authorized_for_all_services"), ("username", "olga")]
        response = admin.post_form(KEYS, pairs)
        assert response.status == 200, response
        (row,) = admin.rows(KEYS)
        assert (row["user"], len(row["roles"])) == ("olga", 2)


def test_a_superuser_key_acts_for_whom_it_is_told(keyed):
    with keyed.client() as admin:
        key, forced = new(admin, superuser=True), new(admin, superuser=1, force_user="olga")
    for one, user, who in (
        (key, "olga", "olga"),
        (key, "bob", "bob"),
        (key, None, "(api)"),
        (forced, "bob", "olga"),
        (forced, None, "olga"),
    ):
        with using(keyed, one, user) as client:
            assert client.rows("/mon/whoami")["id"] == who


def test_a_key_cannot_be_widened(keyed):
    with keyed.client() as admin:
        narrow = new(admin, roles=[HOSTS])
    with using(keyed, narrow) as client:
        child = new(client)
        for asked in ({"superuser": 1}, {"username": "admin"}, {"username": "olga"}):
            refused(client.post_json(KEYS, asked), 403, "no permission to create api keys")
        refused(client.post_json(KEYS, {"superuser": 1, "force_user": "admin"}), 403)
    with using(keyed, child, "admin") as client:
        assert client.rows("/mon/whoami")["roles"] == [HOSTS]
        refused(client.get("/commands"), 403, "not authorized")


def test_keys_outlive_a_kill(keyed):
    with keyed.client() as admin:
        keys = [new(admin, username=f"user{number}") for number in range(20)]
        gone = keys.pop()
        assert admin.request("DELETE", f"{KEYS}/{gone['hashed_key']}").status == 200
    keyed.stop(signal.SIGKILL)
    keyed.start()
    for number, key in enumerate(keys):
        with using(keyed, key) as client:
            assert client.rows("/mon/whoami")["id"] == f"user{number}"
    with using(keyed, gone) as client:
        refused(client.get("/mon"), 403, "wrong authentication key")


def test_the_last_use_outlives_a_stop(keyed):
    with keyed.client() as admin:
        key = new(admin)
        with using(keyed, key) as client:
            client.rows("/mon")
    keyed.stop()
    keyed.start()
    with keyed.client() as admin:
        (row,) = admin.rows(KEYS)
        assert row["last_used"] >= row["created"]
        assert row["last_from"] == "127.0.0.1"


def test_no_key_is_written_anywhere(keyed):
    with keyed.client() as admin:
        key = new(admin, comment="x")
        with using(keyed, key) as client:
            client.rows("/mon")
            client.get(f"/nope?{key['private_key']}"[:20])
        wrong = "f" * 64 + "_1"
        with using(keyed, {"private_key": wrong}) as client:
            refused(client.get("/mon"), 403, "wrong authentication key")
        admin.request("DELETE", f"{KEYS}/{key['hashed_key']}")
    keyed.stop()
    written = [path for path in keyed.folder.rglob("*") if path.is_file()]
    assert any(key["hashed_key"].encode() in path.read_bytes() for path in written)
    for path in written:
        content = path.read_bytes()
        assert key["private_key"].encode() not in content, path
        assert wrong.encode() not in content, path
    log = keyed.log
    for action in ("key create", "key delete", "key refused"):
        assert action in log
    for path in (*(keyed.folder / "var").glob("*.sqlite*"), keyed.folder / "secret.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_keys_can_be_switched_off_while_the_daemon_runs(keyed):
    with keyed.client() as admin:
        key = new(admin)
        keyed.sections["auth"]["api_keys_enabled"] = False
        keyed.reload()
        with using(keyed, key) as client:
            until(lambda: client.get("/mon").status == 403, "the key is refused")
        refused(admin.post_json(KEYS, {}), 400, "api keys are disabled")
