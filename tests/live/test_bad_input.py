"""Input that is odd or huge: an answer or a clear 4xx, never 5xx, and the daemon lives."""

import json
import socket
from itertools import product
from urllib.parse import quote

import pytest
from harness.client import raw, raw_status
from harness.daemon import site
from harness.expect import ODD, refused

from tests.examples import some
from tests.table import each

COLUMNS = [
    *("name", "name[ne]", "name[gt]", "name[lte]", "alias[gte]", "state", "state[gt]", "state[ne]"),
    *("groups", "groups[ne]", "groups[gte]", "groups[notin]", "_WORKER", "_WORKER[gt]", "pl"),
    *("pl[lt]", "latency", "latency[gte]", "custom_variables", "acknowledged", "peer_key"),
    *("services_with_state", "services_with_state[gte]", "comments[gte]", "check_options"),
    *("custom_variables[gte]", "last_check", "last_check[gt]", "peer_name[gt]", "comments_info"),
]


@each(("column", "value"), some(product(COLUMNS, ODD)))
def test_odd_values_in_filters(client, clean, column, value):
    response = client.get("/hosts", {column: value, "columns": "name"})
    assert response.status in (200, 400), response
    if response.status == 400:
        refused(response, 400, column.partition("[")[0])


@pytest.mark.parametrize("path", ["/hosts/{}", "/services/{}/x", "/services/x/{}", "/comments/{}"])
def test_odd_values_in_paths(client, clean, path):
    for value in ODD:
        response = client.get(path.format(quote(value, safe="")) + "?columns=name")
        assert response.status in (200, 400), (value, response)
        if response.status == 400:
            refused(response)
        elif path == "/hosts/{}":
            assert response.json == [], value


def test_long_values(client, clean):
    for name in ("name", "name[ne]", "groups[gte]", "_WORKER", "alias[gte]"):
        response = client.post_form("/hosts", {name: "x" * 70_000, "columns": "name"})
        assert response.status in (200, 400), (name, response)
        if response.status == 400:
            refused(response, 400, name.partition("[")[0])


def test_long_regular_expressions_are_refused(client):
    refused(client.post_form("/hosts", {"name[regex]": "x" * 70_000}), 400, "name")
    refused(client.post_form("/hosts", {"q": f'name ~ "{"x" * 2000}"'}), 400)
    refused(client.get(f"/services/{'(x' * 1000}*/ping"), 400)


def test_expensive_regular_expressions_are_quick(client):
    for pattern in ("^(a+)+$", "(.*)*x", "(a|aa)+$", "((((.*)*)*)*)*y"):
        response = client.get("/hosts", {"alias[regex]": pattern, "columns": "name"})
        assert response.status in (200, 400)


def test_many_of_everything(client, clean):
    many = "&".join("name[ne]=x" for _ in range(1500))
    response = client.post_form("/hosts", [("name[ne]", f"x{n}") for n in range(1500)])
    assert response.status in (200, 400)
    refused(client.post_form("/hosts", {"q": " or ".join(["name = x"] * 1001)}), 400, "q")
    refused(client.post_form("/hosts", {"q": "name = " + "x" * 70_000}), 400, "q")
    refused(client.post_form("/hosts", {"columns": ",".join(["name"] * 501)}), 400, "columns")
    refused(client.get("/hosts", {"columns": "upper(" * 21 + "name" + ")" * 21}), 400)
    assert client.get(f"/hosts?{many}&columns=name").status in (200, 400)
    assert client.post_form("/hosts", {"sort": ",".join(["name"] * 5000)}).status in (200, 400)
    assert client.post_form("/hosts", {"columns": "a*" * 20_000}).status in (200, 400)
    assert client.post_form("/hosts", {"columns": "(" * 20_000}).status in (200, 400)
    assert client.post_form("/hosts", {"q": "(" * 50_000}).status == 400


@pytest.mark.parametrize("size", [20_000, 60_000, 120_000])
def test_long_urls_are_read(daemon, size):
    filler = "=" + "x" * size
    status, body = raw_status(
        daemon.port, f"/mon/r/hosts/web01?columns=name&{filler}".encode(), daemon.key
    )
    assert (status, body) == (200, b'[{"name":"web01"}]\n')


@pytest.mark.parametrize("size", [140_000, 1_000_000])
def test_longer_urls_are_refused_and_the_daemon_lives(daemon, client, size):
    target = b"/mon/r/hosts?name=" + b"x" * size
    status, _body = raw_status(daemon.port, target, daemon.key)
    assert status in (None, 400, 413, 414, 431)
    assert client.rows("/hosts/web01?columns=name") == [{"name": "web01"}]


@each(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,
        b"GET\r\n\r\n",
        b"GET /mon/r/hosts\r\n\r\n",
        b"GET /mon/r/hosts HTTP/9.9\r\n\r\n",
        b"GET mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET http://x/mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET ? HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /mon/r/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /mon/r/hosts HTTP/1.1\r\nbroken header\r\n\r\n",
        b"GET /mon/r/hosts HTTP/1.1\r\nContent-Length: nope\r\n\r\n",
        b"GET /mon/r/hosts HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /mon/r/hosts HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST /mon/r/hosts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /mon/r/hosts HTTP/1.1\r\n" + b"X-A: b\r\n" * 2000 + b"\r\n",
        b"GET /mon/r/hosts HTTP/1.1\r\nX-A: " + b"y" * 300_000 + b"\r\n\r\n",
    ],
)
def test_broken_http_never_kills(daemon, client, data):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            received = connection.recv(65536)
        except ConnectionError:
            received = b""
    assert not received.startswith((b"HTTP/1.1 5", b"HTTP/1.0 5")), received
    assert client.rows("/hosts/web01?columns=name") == [{"name": "web01"}]


@pytest.fixture(scope="module")
def narrow(embedded, shared):
    """A daemon that takes bodies of 64 KiB only."""
    return shared.daemon([site("s1", embedded)], sections={"server": {"max_body": 65536}}).start()


def test_bodies_over_the_limit(narrow):
    head = (
        f"POST /mon/r/hosts HTTP/1.1\r\nHost: x\r\nX-Mon-Auth-Key: {narrow.key}\r\n"
        "X-Mon-Auth-User: admin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Connection: close\r\n"
    ).encode()
    body = b"name=" + b"x" * 200_000
    declared = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunks = b"".join(b"%x\r\n%s\r\n" % (1000, body[:1000]) for _ in range(200)) + b"0\r\n\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    for request in (declared, chunked):
        received = raw(narrow.port, request)
        start, _blank, answer = received.partition(b"\r\n\r\n")
        assert start.startswith(b"HTTP/1.1 413"), received
        assert set(json.loads(answer)) == {"code", "failed", "message", "description"}
    with narrow.client() as client:
        assert client.post_form("/hosts", {"name": "web01", "columns": "name"}).status == 200
