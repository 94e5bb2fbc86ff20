"""Jobs by whoever may ask: sessions, keys, passwords, sockets; and what is written down of them."""

import base64
import json
import socket
import sqlite3

import pytest
from harness.client import Client
from harness.daemon import sha, site
from harness.expect import refused
from harness.jobs import ended
from harness.lying import LyingSite
from harness.waiting import until

PASSWORD = "correct horse battery"


class As(Client):
    """A client that sends these headers and nothing else."""

    def __init__(self, port, **headers):
        super().__init__(port, None, None)
        self.sent = {name.replace("_", "-"): value for name, value in headers.items()}

    def credentials(self):
        return dict(self.sent)


@pytest.fixture(scope="module")
def held(embedded, shared):
    """A core that can be held."""
    return shared.keep(LyingSite(shared.folder() / "held", embedded.socket))


@pytest.fixture(scope="module")
def guarded(held, shared):
    """A daemon that runs one job at once, with passwords, in front of it."""
    folder = shared.folder()
    (folder / "htpasswd").write_text(f"olga:{sha(PASSWORD)}\n")
    daemon = shared.daemon(
        [site("slow", held)],
        sections={"auth": {"htpasswd_file": str(folder / "htpasswd")}, "jobs": {"concurrent": 1}},
        folder=folder,
    )
    daemon.local = folder / "local"
    daemon.sections["server"]["listen"].append(f"unix:{daemon.local}")
    daemon.write_config()
    return daemon.start()


def begun(client, method, path, **more):
    """Start a job; its id."""
    response = client.request(method, path, **more)
    assert response.status == 200, response
    return response.json["job_id"]


def logged_in(daemon):
    """olga in a browser: her cookie, and her token."""
    with As(daemon.port) as nobody:
        answer = nobody.post_form("/mon/login", [("login", "olga"), ("password", PASSWORD)])
    assert answer.status == 200, answer
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return As(daemon.port, Cookie=cookie), answer.json["csrf_token"]


def key_for(admin, **given):
    """A new key: the key and its id."""
    answer = admin.post_json("/mon/api_keys", given)
    assert answer.status == 200, answer
    return answer.json["private_key"], answer.json["hashed_key"]


def test_a_session_needs_its_token_for_what_changes(guarded):
    olga, token = logged_in(guarded)
    path = "/hosts/web01/cmd/add_host_comment"
    form = [("comment_data", "of olga"), ("background", "1")]
    with olga:
        refused(olga.post_form(path, form), 403, "CSRF")
        assert olga.rows("/mon/jobs") == []
        answer = olga.post_form(path, [*form, ("CSRFtoken", token)])
        row = ended(olga, answer.json["job_id"])
        assert (row["cmd"], row["user"]) == (f"POST {path}", "olga")
        assert olga.get(row["forward"].removeprefix("/mon/r")).status in (200, 403)
        number = begun(olga, "GET", "/hosts?columns=name&background=1")
        assert ended(olga, number)["rc"] == 0
        assert olga.get(f"/mon/jobs/{number}/output").json == olga.rows("/hosts?columns=name")


@pytest.mark.parametrize("how", ["the key is revoked", "the user is locked"])
def test_who_may_not_any_more_has_nothing_begun(guarded, held, how):
    done = len(held.commands)
    with guarded.client() as admin:
        answer = admin.post_json("/mon/api_keys", {"comment": "x", "username": "olga"})
        key, number = answer.json["private_key"], answer.json["hashed_key"]
        held.lie(None, "services")
        held.hold()
        running = begun(admin, "GET", "/services?background=1")
        assert held.waiting.wait(300)
        with As(guarded.port, X_Mon_Auth_Key=key) as olga:
            # Over the same connection, and so to the same one of several workers.
            olga.connection, admin.connection = admin.connection, None
            form = {"body": "comment_data=late&background=1",
                    "headers": {"Content-Type": "application/x-www-form-urlencoded"}}  # fmt: skip
            waiting = begun(olga, "POST", "/hosts/web01/cmd/add_host_comment", **form)
        if how == "the key is revoked":
            assert admin.request("DELETE", f"/mon/api_keys/{number}").status == 200
        else:
            assert admin.post_form("/mon/users/olga/cmd/lock", []).status == 200
        until(lambda: admin.rows(f"/mon/jobs/{waiting}")["time"] > 1, "it has waited")
        held.release()
        row = ended(admin, waiting)
        assert row["stderr"].startswith("it was not begun when its turn came: ")
        assert (row["rc"], row["show_output"]) == (1, 0)
        assert len(held.commands) == done
        assert ended(admin, running)["rc"] == 0
        assert admin.post_form("/mon/users/olga/cmd/unlock", []).status == 200


def test_a_restricted_key_does_not_get_what_was_made_with_more(guarded):
    with guarded.client() as admin:
        narrow, _ = key_for(admin, comment="narrow", roles=["authorized_for_system_information"])
        number = begun(admin, "GET", "/hosts?background=1")
        ended(admin, number)
        with As(guarded.port, X_Mon_Auth_Key=narrow) as less:
            for path in ("", "/output"):
                refused(less.get(f"/mon/jobs/{number}{path}"), 404, "no such job")
            refused(less.request("DELETE", f"/mon/jobs/{number}"), 404, "no such job")
            mine = begun(less, "GET", "/hosts?background=1")
            ended(less, mine)
            direct = less.rows("/hosts")
            assert less.get(f"/mon/jobs/{mine}/output").json == direct
            # Custom variables are for those who may see the configuration.
            assert not any("_SIZE" in row for row in direct)
            assert any("_SIZE" in row for row in admin.rows("/hosts"))
            refused(less.get("/commands?background=1"), 403)


def test_the_secret_key_asks_as_the_user_that_it_names(guarded):
    with guarded.client("olga") as olga, guarded.client() as admin:
        number = begun(olga, "GET", "/hosts?background=1&columns=name")
        assert ended(olga, number)["user"] == "olga"
        found = admin.get(f"/mon/jobs/{number}/output").json
        assert found == olga.rows("/hosts?columns=name")
        assert len(found) < len(admin.rows("/hosts"))


def test_over_a_unix_socket(guarded):
    def ask(text):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(guarded.local))
            connection.sendall(f"{text}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
        return received.partition(b"\r\n\r\n")[2]

    number = json.loads(ask("GET /mon/r/csv/hosts?columns=name&background=1 HTTP/1.1"))["job_id"]
    with guarded.client() as admin:
        assert ended(admin, number)["user"] == "(cli)"
        direct = admin.get("/csv/hosts?columns=name").body
    assert ask(f"GET /mon/r/mon/jobs/{number}/output HTTP/1.1") == direct


def test_nothing_secret_is_written_down(guarded):
    olga, token = logged_in(guarded)
    basic = base64.b64encode(f"olga:{PASSWORD}".encode()).decode()
    custom, bearer = "c0mmun1ty-w0rd", "t0ken-of-a-filter"
    with olga, As(guarded.port, Authorization=f"Basic {basic}") as plain, guarded.client() as admin:
        key, _ = key_for(admin, comment="mine")
        numbers = [
            begun(olga, "GET", f"/hosts?background=1&CSRFtoken={token}"),
            begun(
                olga,
                "POST",
                f"/hosts?background=1&CSRFtoken={token}",
                body=f"_PASSWORD={custom}",
                headers={"Content-Type": "application/x-www-form-urlencoded"},
            ),
            begun(plain, "GET", f"/hosts?background=1&_SNMPCOMMUNITY={custom}&token={bearer}"),
            begun(As(guarded.port, X_Mon_Auth_Key=key), "GET", "/hosts?background=1&columns=name"),
        ]
        rows = [ended(admin, number) for number in numbers]
        assert rows[2]["cmd"] == "GET /hosts?_SNMPCOMMUNITY=***&token=***"
    with sqlite3.connect(guarded.folder / "var" / "monrest.sqlite") as database:
        kept = repr(database.execute("SELECT * FROM jobs").fetchall())
    assert "GET /hosts" in kept
    guarded.stop()  # with which all lines are written
    for secret in (token, PASSWORD, basic, key, guarded.key, custom):
        assert secret not in kept
        assert secret not in guarded.log


@pytest.mark.parametrize(
    ("path", "table", "message", "percent"),
    [
        ("/services", "services", "1 of 2 sites have answered", 40),
        ("/services/availability?timeperiod=lastmonth", "log",
         "reading the log of good: ", 50),
    ],
)  # fmt: skip
def test_progress_over_sites(made, slow, embedded, path, table, message, percent):
    daemon = made([site("slow", slow), site("good", embedded)])
    daemon.sections["logcache"] = {"enabled": False}
    daemon.write_config()
    daemon.start()
    with daemon.client() as client:
        slow.lie(None, table)
        slow.hold()
        number = begun(client, "GET", f"{path}{'&' if '?' in path else '?'}background=1")
        row = until(
            lambda: (row := client.rows(f"/mon/jobs/{number}"))["percent"] >= percent and row,
            "one site has answered",
        )
        assert row["percent"] == percent
        assert row["message"].startswith(message)
        assert row["remaining"] >= 0
        slow.release()
        row = ended(client, number)
        assert (row["percent"], row["remaining"], row["rc"]) == (100, -1, 0)
