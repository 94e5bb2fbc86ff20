"""Sessions and users on the wire: cookie, token, logout, kill -9; /mon/users; guesses at a time."""

import contextlib
import hashlib
import signal
import threading

import pytest
from harness.client import Client
from harness.daemon import sha, site
from harness.expect import refused
from harness.waiting import until

PASSWORD = "pässword; with = and &"


class Browser(Client):
    """A client that keeps its cookie and sends nothing else."""

    def __init__(self, port):
        super().__init__(port, None, None)
        self.cookie = self.token = ""

    def credentials(self):
        return {"Cookie": self.cookie} if self.cookie else {}

    def login(self, user="olga", password=PASSWORD, **more):
        response = self.post_form("/mon/login", {"login": user, "password": password}, **more)
        if response.status == 200:
            self.cookie = response.headers["set-cookie"].partition(";")[0]
            self.token = response.json["csrf_token"]
        return response

    def change(self, path="/mon/api_keys", **given):
        return self.post_form(path, {"CSRFtoken": self.token, **given})


@pytest.fixture(scope="module")
def daemon(shared, embedded):
    """A daemon with the embedded core, four passwords and a broken line of the password file."""
    path = shared.folder() / "htpasswd"
    users = {"olga": PASSWORD, "admin": "admin", "ann": "ann", "petra": "petra"}
    lines = [f"{user}:{sha(word)}\n" for user, word in users.items()]
    path.write_text("".join([*lines, "broken s3cret line\n"]))
    sections = {"auth": {"htpasswd_file": str(path), "lock_after_failed_logins": 3}}
    daemon = shared.daemon([site("s1", embedded)], sections=sections)
    daemon.passwords = path
    return daemon.start()


@pytest.fixture
def browse(daemon):
    """A function that makes a browser."""
    with contextlib.ExitStack() as browsers:
        yield lambda: browsers.enter_context(Browser(daemon.port))


def test_from_login_to_logout(daemon, browse):
    olga = browse()
    refused(olga.get("/mon/whoami"), 401, "login required")
    response = olga.login(headers={"X-Forwarded-Proto": "http"})
    assert response.status == 200
    cookie = response.headers["set-cookie"]
    assert cookie.partition(";")[2] == " Path=/mon; HttpOnly; SameSite=Lax"
    assert response.headers["cache-control"] == "no-store"
    who = olga.rows("/mon/whoami")
    assert (who["id"], who["auth_src"], who["has_mon_profile"]) == ("olga", "cookie", True)
    (row,) = olga.rows("/mon/sessions")
    assert (row["username"], row["address"]) == ("olga", "127.0.0.1")
    value = olga.cookie.partition("=")[2]
    assert row["hashed_key"] == hashlib.sha256(value.encode()).hexdigest()
    assert olga.rows(f"/mon/sessions/{row['hashed_key']}") == row
    kept = olga.cookie
    response = olga.change("/mon/logout")
    assert response.status == 200
    assert response.headers["set-cookie"].startswith("mon_auth=; ")
    olga.cookie = kept
    refused(olga.get("/mon/whoami"), 401, "session is not valid")
    log = daemon.log
    for secret in (value, olga.token, PASSWORD, "p\\xc3"):
        assert secret not in log
    for action in ("login", "logout"):
        assert f"action={action} user=olga" in log


def test_a_json_login(browse):
    response = browse().post_json("/mon/login", {"username": "olga", "password": PASSWORD})
    assert response.json["user"] == "olga"


def test_changes_need_the_token(browse):
    olga, ann = browse(), browse()
    olga.login()
    ann.login("ann", "ann")
    path, json = "/mon/api_keys", {"Content-Type": "application/json"}
    refused(olga.post_form(path, {}), 403, "CSRF Security Alert")
    refused(olga.post_form(path, {"CSRFtoken": ann.token}), 403, "CSRF Security Alert")
    refused(olga.request("POST", path), 403, "CSRF")
    refused(olga.request("PUT", path), 403, "CSRF")
    refused(olga.request("DELETE", f"{path}/{'0' * 64}"), 403, "CSRF")
    refused(olga.request("POST", path, body="{}", headers=json), 403, "CSRF")
    refused(olga.request("POST", path, headers={"X-Forwarded-For": "127.0.0.1"}), 403, "CSRF")
    assert olga.rows(path) == []
    for given in (
        {
            "body": f"token={olga.token}",
            "headers": {"Content-Type": "application/x-www-form-urlencoded"},
        },
        {"body": f'{{"CSRFtoken":"{olga.token}"}}', "headers": json},
        {"headers": {"X-Mon-CSRF-Token": olga.token}},
    ):
        assert olga.request("POST", path, **given).status == 200
    assert olga.request("POST", f"{path}?CSRFtoken={olga.token}").status == 200
    assert len(olga.rows(path)) == 4


def test_a_key_decides_beside_a_cookie(daemon, browse):
    olga = browse()
    olga.login()
    response = olga.get("/mon/whoami", headers={"X-Mon-Auth-Key": "wrong"})
    refused(response, 403, "wrong authentication key")
    # A request with a key needs no token, with any cookie that a browser adds.
    headers = {"X-Mon-Auth-Key": daemon.key, "X-Mon-Auth-User": "ann"}
    assert olga.request("POST", "/mon/api_keys", headers=headers).status == 200
    assert "set-cookie" not in olga.get("/mon", headers=headers).headers


def test_pages_of_other_sites(browse):
    olga = browse()
    refused(olga.login(headers={"Sec-Fetch-Site": "cross-site"}), 403, "CSRF Security Alert")
    refused(olga.get("/mon/whoami"), 401, "login required")


def test_users(daemon, browse):
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
        assert browse().login("petra", "petra").status == 200
        (petra,) = admin.rows("/mon/users", {"has_mon_profile": "1", "id": "petra"})
        assert petra["locked"] is False
        assert petra["last_login"] > 1_700_000_000
        lines = admin.get("/csv/mon/users", {"columns": "id,locked"}).text.splitlines()
        assert lines[0] == "#id;locked"
    assert "line 5 is left out" in daemon.log
    assert "s3cret" not in daemon.log


def test_sessions_outlive_the_daemon(daemon, browse):
    olga = browse()
    olga.login()
    assert olga.get("/mon").status == 200
    daemon.stop(signal.SIGKILL)
    daemon.start()
    assert olga.get("/mon").status == 200
    assert olga.change().status == 200


def test_a_reload_keeps_sessions_and_reads_passwords_and_proxies(daemon, browse):
    """The session of who is not in the password file any more ends with that."""
    olga, ann = browse(), browse()
    olga.login()
    daemon.passwords.write_text(f"ann:{sha('new')}\n")
    until(lambda: ann.login("ann", "new").status == 200, "the new password counts")
    forwarded = {"X-Forwarded-Proto": "https"}
    # The local proxy is trusted unless the configuration says otherwise.
    assert ann.login("ann", "new", headers=forwarded).headers["set-cookie"].endswith("; Secure")
    daemon.sections["auth"] |= {"cookie_domain": "example.org", "trusted_proxies": []}
    daemon.reload()
    until(
        lambda: "Domain=example.org" in ann.login("ann", "new").headers["set-cookie"],
        "the configuration is in force",
    )
    assert "Secure" not in ann.login("ann", "new", headers=forwarded).headers["set-cookie"]
    assert ann.get("/mon").status == 200
    refused(olga.get("/mon"), 401, "session is not valid")
    assert olga.login().status == 401


def test_a_flood_of_guesses_does_not_hold_up_others(made, embedded, tmp_path):
    """Guessing in parallel is refused in the end, and requests with keys are served meanwhile."""
    (tmp_path / "htpasswd").write_text(f"olga:{sha('olga')}\n")
    sections = {"auth": {"htpasswd_file": str(tmp_path / "htpasswd")}, "server": {"workers": 2}}
    daemon = made([site("s1", embedded)], sections=sections).start()
    statuses = []

    def guess(number):
        # Who still waits at the end is cut off with the daemon.
        with contextlib.suppress(OSError), Browser(daemon.port) as client:
            answer = client.login(f"u{number}", "x")
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
