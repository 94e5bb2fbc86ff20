"""Who is asking, on the wire: forged and repeated headers, proxies, passwords, Unix sockets."""

import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from harness.client import raw
from harness.waiting import until

from tests.table import each

HTPASSWD = (
    "olga:{SHA}"
    + base64.b64encode(
        bytes.fromhex(
            "d033e22ae348aeb5660fc2140aec35850c4da997"  # "admin"
        )
    ).decode()
)


@pytest.fixture(scope="module")
def guarded(shared):
    """A daemon without cores, with passwords, a trusted proxy and a Unix socket for all."""
    folder = shared.folder()
    (folder / "htpasswd").write_text(HTPASSWD + "\n")
    daemon = shared.daemon(
        [],
        sections={
            "auth": {
                "htpasswd_file": str(folder / "htpasswd"),
                "remote_user_header": "X-Remote-User",
                "trusted_proxies": ["127.0.0.2"],
            }
        },
        folder=folder,
    )
    # All users may come to it: a folder of pytest's is closed again by each run that begins.
    open_folder = Path(tempfile.mkdtemp(prefix="monrest-http-"))
    open_folder.chmod(0o755)
    shared.ends.callback(shutil.rmtree, open_folder)
    daemon.local = open_folder / "http"
    daemon.sections["server"]["listen"].append(f"unix:{daemon.local}:mode=666")
    daemon.write_config()
    return daemon.start()


def access_line(daemon, headers):
    """What the log says of the request with this answer; the lines before it are there as well."""
    name = f"request_id={headers['X-Request-Id']} "

    def found():
        return [line for line in daemon.log.splitlines() if " access " in line and name in line]

    until(found, "the request is in the log")
    return found()[0]


def ask(daemon, headers=(), *, source="127.0.0.1", path="/mon/whoami"):
    """One request with exactly these headers, as pairs, from this local address."""
    lines = [f"GET /mon/r{path} HTTP/1.1", "Host: test", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    data = "\r\n".join([*lines, "", ""]).encode("latin-1")
    with socket.create_connection(
        ("127.0.0.1", daemon.port), timeout=30, source_address=(source, 0)
    ) as connection:
        connection.sendall(data)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, dict(answer.getheaders()), json.loads(answer.read())


def basic(user, password):
    return ("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())


@each(
    "forged",
    [
        [("X-Remote-User", "admin")],
        [("X-Remote-User", "admin"), ("X-Forwarded-For", "127.0.0.2")],
        [("X-Forwarded-For", "127.0.0.2, 127.0.0.2"), ("X-Real-IP", "127.0.0.2")],
        [("X-Remote-User", "admin"), ("Forwarded", "for=127.0.0.2")],
        [("X-Mon-Auth-User", "admin")],
        [("Remote-User", "admin"), ("X-Mon-Auth-User", "(cli)")],
        [("Cookie", "mon_auth=" + "0" * 64 + "_1")],
        [("Cookie", "mon_auth=../../etc/passwd")],
    ],
)
def test_forged_headers_name_no_user(guarded, forged):
    status, headers, document = ask(guarded, forged)
    assert status == 401
    assert set(document) == {"code", "failed", "message", "description"}
    line = access_line(guarded, headers)
    assert " user=- " in line
    assert " client=127.0.0.1 " in line
    assert "admin" not in line


@each(
    "pair",
    [
        ("X-Mon-Auth-User", "X-Mon-Auth-User"),
        ("X-Mon-Auth-User", "x-mon-auth-user"),
    ],
)
def test_repeated_users_are_refused(guarded, pair):
    """The one that a proxy looked at may not be the one that counts here."""
    key = ("X-Mon-Auth-Key", guarded.key)
    for users in (("olga", "admin"), ("admin", "olga")):
        status, _, document = ask(guarded, [key, *zip(pair, users, strict=True)])
        assert (status, document["message"]) == (400, "repeated header")


def test_repeated_keys_are_refused(guarded):
    user = ("X-Mon-Auth-User", "admin")
    for keys in (("wrong", guarded.key), (guarded.key, "wrong"), (guarded.key, guarded.key)):
        status, _, document = ask(guarded, [user, *(("X-Mon-Auth-Key", key) for key in keys)])
        assert (status, document["message"]) == (400, "repeated header")
    status, _, _ = ask(guarded, [basic("olga", "admin"), basic("olga", "admin")])
    assert status == 400


def test_a_repeated_remote_user_is_refused(guarded):
    users = [("X-Remote-User", "olga"), ("X-Remote-User", "admin")]
    assert ask(guarded, users, source="127.0.0.2")[0] == 400


@each("key", ["{0},{0}", "{0} {0}", "{0};", '"{0}"', "\t{0}\u00a0"])
def test_keys_with_something_beside_them(guarded, key):
    headers = [("X-Mon-Auth-Key", key.format(guarded.key)), ("X-Mon-Auth-User", "admin")]
    assert ask(guarded, headers)[0] == 403


def test_folded_headers_do_not_hide_a_user(guarded):
    data = (
        "GET /mon/r/mon/whoami HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
        f"X-Mon-Auth-Key: {guarded.key}\r\nX-Mon-Auth-User: olga\r\n X-Mon-Auth-User: admin\r\n\r\n"
    )
    received = raw(guarded.port, data.encode())
    assert b'"id":"admin"' not in received
    assert b"authorized_for_admin" not in received


def test_a_trusted_proxy_names_the_user_and_the_client(guarded):
    headers = [("X-Remote-User", "admin"), ("X-Forwarded-For", "10.1.1.1, 192.0.2.7")]
    status, answered, who = ask(guarded, headers, source="127.0.0.2")
    assert (status, who["id"], who["auth_src"]) == (200, "admin", "basic auth")
    assert "authorized_for_admin" in who["roles"]
    line = access_line(guarded, answered)
    assert " user=admin " in line
    assert " client=192.0.2.7 " in line
    # Without a name it says nothing about who is asking.
    assert ask(guarded, [("X-Forwarded-For", "192.0.2.7")], source="127.0.0.2")[0] == 401


def test_passwords(guarded):
    status, _, who = ask(guarded, [basic("olga", "admin")])
    assert (status, who["id"], who["auth_src"]) == (200, "olga", "basic auth")
    status, headers, document = ask(guarded, [basic("olga", "wrong-Secret")])
    assert (status, document["message"]) == (401, "login required")
    assert headers["WWW-Authenticate"].startswith("Basic ")
    access_line(guarded, headers)
    assert "login failed" in guarded.log
    assert "wrong-Secret" not in guarded.log
    beside = [basic("olga", "admin"), ("X-Mon-Auth-Key", guarded.key), ("X-Mon-Auth-User", "admin")]
    status, _, who = ask(guarded, beside)
    assert (status, who["id"], who["auth_src"]) == (200, "admin", "secret_key")


ASK_LOCALLY = """
import http.client, os, socket, sys
os.setgid({uid}); os.setuid({uid})
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect({path!r})
connection.request("GET", "/mon/r/mon/whoami", headers={headers!r})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""


def locally(daemon, uid, **headers):
    """Ask over the Unix socket as a user of this machine."""
    code = ASK_LOCALLY.format(uid=uid, path=str(daemon.local), headers=headers)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, _, body = done.stdout.partition(" ")
    return int(status), json.loads(body)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can ask as another user")
def test_a_unix_socket_knows_who_is_there(guarded):
    status, who = locally(guarded, 0)
    assert (status, who["id"], who["auth_src"]) == (200, "(cli)", "cli")
    assert "authorized_for_admin" in who["roles"]
    status, who = locally(guarded, 0, **{"X-Mon-Auth-User": "olga"})
    assert (status, who["id"], who["roles"]) == (200, "olga", [])
    for headers in ({}, {"X-Mon-Auth-User": "admin"}, {"X-Remote-User": "admin"}):
        assert locally(guarded, 65534, **headers)[0] == 401
    # A proxy that runs as root speaks for others.
    assert locally(guarded, 0, **{"X-Forwarded-For": "192.0.2.7"})[0] == 401


def test_the_errors_tell_no_secret(guarded):
    refusals = [
        ask(guarded, [("X-Mon-Auth-Key", "s3cret"), ("X-Mon-Auth-User", "admin")]),
        ask(guarded, [basic("olga", "s3cret")]),
        ask(guarded, [("Cookie", "mon_auth=s3cret")]),
    ]
    for status, headers, document in refusals:
        assert status in (401, 403)
        assert "s3cret" not in json.dumps(document)
        access_line(guarded, headers)
    assert "s3cret" not in guarded.log
