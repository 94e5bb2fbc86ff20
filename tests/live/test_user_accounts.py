"""Accounts on the wire: /mon/users, locks by failures, guesses at the same time."""

import base64
import contextlib
import threading

import pytest
from harness.client import Client
from harness.daemon import sha, site
from harness.expect import refused
from harness.waiting import until


@pytest.fixture
def daemon(made, embedded, tmp_path):
    """A daemon with the embedded core and two passwords, not started."""
    path = tmp_path / "htpasswd"
    path.write_text(f"olga:{sha('olga')}\npetra:{sha('petra')}\nbroken s3cret line\n")
    sections = {"auth": {"htpasswd_file": str(path), "lock_after_failed_logins": 3}}
    return made([site("s1", embedded)], sections=sections)


def anonymous(daemon):
    return Client(daemon.port, None, None)


def login(daemon, user, password):
    with anonymous(daemon) as client:
        return client.post_form("/mon/login", {"login": user, "password": password})


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_users(daemon):
    daemon.start()
    with daemon.client() as admin, daemon.client("olga") as olga:
        found = {row["id"]: row for row in admin.rows("/mon/users")}
        assert {"admin", "olga", "petra"} <= set(found)
        assert set(found) >= set(admin.values("/contacts", "name"))
        assert found["olga"]["groups"] == ["webteam"]
        assert found["olga"]["email"] == "olga@example.org"
        assert found["petra"]["email"] is None
        assert admin.rows("/mon/users/olga") == found["olga"]
        assert olga.rows("/mon/users") == [found["olga"]]
        assert olga.rows("/mon/users/olga") == found["olga"]
        refused(olga.get("/mon/users/petra"), 404, "no such user")
        assert login(daemon, "petra", "petra").status == 200
        (petra,) = admin.rows("/mon/users", {"has_mon_profile": "1"})
        assert (petra["id"], petra["locked"]) == ("petra", False)
        assert petra["last_login"] > 1_700_000_000
        lines = admin.get("/csv/mon/users", {"columns": "id,locked"}).text.splitlines()
        assert lines[0] == "#id;locked"
    assert "line 3 is left out" in daemon.log
    assert "s3cret" not in daemon.log


def test_wrong_passwords_lock_out_passwords_and_nothing_else(daemon):
    daemon.start()
    for password in ("a", "b", "c"):
        refused(login(daemon, "petra", password), 401, "login failed")
    # Nobody can tell the right one from a wrong one, or from that of a name that is none.
    found = login(daemon, "petra", "petra")
    refused(found, 401, "login failed")
    assert found.json == login(daemon, "nobody at all", "x").json
    with daemon.client() as admin, daemon.client("petra") as petra, anonymous(daemon) as nobody:
        refused(nobody.get("/mon", headers=basic("petra", "petra")), 401, "login required")
        assert petra.get("/mon").status == 200
        assert admin.rows("/mon/users/petra")["locked"] is False
        assert admin.request("POST", "/mon/users/petra/cmd/unlock").json == {
            "code": 200,
            "message": "ok - user has been unlocked",
        }
        assert nobody.get("/mon", headers=basic("petra", "petra")).status == 200
        assert login(daemon, "petra", "petra").status == 200
        assert admin.request("POST", "/mon/users/petra/cmd/lock").status == 200
        refused(petra.get("/mon"), 403, "account is locked")
        refused(nobody.get("/mon", headers=basic("petra", "petra")), 403, "account is locked")
        refused(login(daemon, "petra", "petra"), 403, "account is locked")
        assert admin.request("POST", "/mon/users/petra/cmd/unlock").status == 200
    for action in ("login failed", "user lock", "user unlock", "login"):
        assert action in daemon.log


def test_strangers_are_not_stored(daemon):
    daemon.start()
    answers = [login(daemon, f"stranger{number}", "x") for number in range(3)]
    refused(login(daemon, "olga", "x"), 401, "login failed")
    for answer in answers:
        refused(answer, 401, "login failed")
        assert "olga" not in answer.text
    with daemon.client() as admin:
        names = {row["id"] for row in admin.rows("/mon/users")}
        assert not [name for name in names if name.startswith("stranger")]
        until(
            lambda: admin.values("/mon/users", "id", has_mon_profile="1") == ["olga"],
            "only who exists has a profile",
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_flood_of_guesses_does_not_hold_up_others(daemon, workers):
    """Guessing in parallel is refused in the end, and requests with keys are served meanwhile."""
    daemon.sections["server"]["workers"] = workers
    daemon.write_config()
    daemon.start()
    statuses = []

    def guess(number):
        # Who still waits at the end is cut off with the daemon.
        with contextlib.suppress(OSError), anonymous(daemon) as client:
            answer = client.post_form("/mon/login", {"login": f"u{number}", "password": "x"})
            statuses.append(answer.status)
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1

    threads = [threading.Thread(target=guess, args=(number,), daemon=True) for number in range(70)]
    for thread in threads:
        thread.start()
    with daemon.client() as admin:
        until(lambda: 429 in statuses, "some are refused")
        assert admin.get("/hosts").status == 200
    assert set(statuses) <= {401, 429}
