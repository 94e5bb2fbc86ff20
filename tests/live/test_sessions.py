"""Sessions on the wire: cookie, token, logout, lifetimes, kill -9."""

import hashlib
import signal
from pathlib import Path

import pytest
from harness.client import Client
from harness.daemon import sha
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


@pytest.fixture
def passwords(tmp_path):
    """The configuration of a daemon with three passwords."""
    path = tmp_path / "htpasswd"
    users = {"olga": PASSWORD, "admin": "admin", "ann": "ann"}
    path.write_text("".join(f"{user}:{sha(word)}\n" for user, word in users.items()))
    return {"htpasswd_file": str(path), "lock_after_failed_logins": 3}


@pytest.fixture
def daemon(made, passwords):
    """A daemon without cores."""
    return made([], sections={"auth": passwords}).start()


@pytest.fixture
def browse():
    """A function that makes a browser at a daemon."""
    browsers = []

    def make(daemon):
        browsers.append(Browser(daemon.port))
        return browsers[-1]

    yield make
    for browser in browsers:
        browser.close()


def test_from_login_to_logout(daemon, browse):
    olga = browse(daemon)
    refused(olga.get("/mon/whoami"), 401, "login required")
    response = olga.login()
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


def test_a_json_login(daemon, browse):
    olga = browse(daemon)
    response = olga.post_json("/mon/login", {"username": "olga", "password": PASSWORD})
    assert response.json["user"] == "olga"


def test_changes_need_the_token(daemon, browse):
    olga, ann = browse(daemon), browse(daemon)
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
    olga = browse(daemon)
    olga.login()
    response = olga.get("/mon/whoami", headers={"X-Mon-Auth-Key": "wrong"})
    refused(response, 403, "wrong authentication key")
    # A request with a key needs no token, whatever cookie a browser adds.
    headers = {"X-Mon-Auth-Key": daemon.key, "X-Mon-Auth-User": "ann"}
    assert olga.request("POST", "/mon/api_keys", headers=headers).status == 200
    assert "set-cookie" not in olga.get("/mon", headers=headers).headers


def test_lifetimes(made, passwords, browse):
    """An idle session ends although nobody removes it; so does one that is always in use."""
    short = {**passwords, "session_idle": 2.0, "session_lifetime": 6.0}
    daemon = made([], sections={"auth": short}).start()
    idle, used = browse(daemon), browse(daemon)
    idle.login()
    used.login()
    alive = []

    def both_are_over():
        alive.append(used.get("/mon").status)
        return alive[-1] == 401

    until(both_are_over, "the lifetime is over")
    assert len(alive) > 10
    assert set(alive[:-1]) == {200}
    refused(idle.get("/mon"), 401, "session is not valid")
    with daemon.client() as admin:
        assert admin.rows("/mon/sessions") == []


def test_sessions_outlive_the_daemon(daemon, browse):
    olga = browse(daemon)
    olga.login()
    assert olga.get("/mon").status == 200
    daemon.stop(signal.SIGKILL)
    daemon.start()
    assert olga.get("/mon").status == 200
    assert olga.change().status == 200


def test_a_reload_keeps_sessions_and_reads_the_passwords(daemon, browse, passwords):
    """The session of who is not in the password file any more ends with that."""
    olga, ann = browse(daemon), browse(daemon)
    olga.login()
    Path(passwords["htpasswd_file"]).write_text(f"ann:{sha('new')}\n")
    until(lambda: ann.login("ann", "new").status == 200, "the new password counts")
    daemon.sections["auth"]["cookie_domain"] = "example.org"
    daemon.reload()
    until(
        lambda: "Domain=example.org" in ann.login("ann", "new").headers["set-cookie"],
        "the configuration is in force",
    )
    assert ann.get("/mon").status == 200
    refused(olga.get("/mon"), 401, "session is not valid")
    assert olga.login().status == 401


def test_no_password_file(made, browse):
    daemon = made([], sections={}).start()
    refused(browse(daemon).login(), 400, "login is not available")


def test_pages_of_other_sites(daemon, browse):
    olga = browse(daemon)
    refused(olga.login(headers={"Sec-Fetch-Site": "cross-site"}), 403, "CSRF Security Alert")
    refused(olga.get("/mon/whoami"), 401, "login required")


def test_a_trusted_proxy_tells_that_it_speaks_tls(made, passwords, browse):
    daemon = made([], sections={"auth": {**passwords, "trusted_proxies": []}}).start()
    forwarded = {"X-Forwarded-Proto": "https"}
    assert "Secure" not in browse(daemon).login(headers=forwarded).headers["set-cookie"]
    daemon = made([], sections={"auth": {**passwords, "trusted_proxies": ["127.0.0.1"]}}).start()
    assert browse(daemon).login(headers=forwarded).headers["set-cookie"].endswith("; Secure")
