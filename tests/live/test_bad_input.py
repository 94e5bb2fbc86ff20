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


@pytest.fixture(scope="module")
def narrow(embedded, shared):
    """A daemon that takes bodies of 64 KiB only."""
    return shared.daemon([site("s1", embedded)], sections={"server": {"max_body": 65536}}).start()


def head(path, *lines, method="GET", host="Host: x"):
    """The head of a request that ends its connection."""
    first = f"{method} /mon/r{path} HTTP/1.1"
    return "\r\n".join([first, *([host] if host else []), *lines, "Connection: close", "", ""])


def test_urls_have_a_limit(daemon):
    path = b"/mon/r/hosts/web01?columns=name&="
    longest = path + b"x" * (131_072 - len(path))
    status, body = raw_status(daemon.port, longest, daemon.key)
    assert (status, body) == (200, b'[{"name":"web01"}]\n')
    status, body = raw_status(daemon.port, longest + b"x", daemon.key)
    assert (status, json.loads(body)["message"]) == (400, "URL too long")


@each(
    ("data", "code", "message"),
    [
        ("GET /mon/r/" + "x" * 3_000_000, 400, "URL too long"),
        (head("/hosts", "X-Long: " + "x" * 140_000), 400, "header too long"),
        (head("/hosts", *[f"X-Many-{n}: {n}" for n in range(600)]), 400, "bad request"),
        (head("/hosts", *[f"X-Big-{n}: {'x' * 10_000}" for n in range(30)]), 400, "bad request"),
        (head("/ho sts"), 400, "bad request"),
        (b"GE\xff /mon/r/ HTTP/1.1\r\n\r\n", 400, "bad request"),
        ("GET /mon/r/ HTTP/3\r\n\r\n", 400, "bad request"),
        ("nonsense\r\n\r\n" + head("/hosts"), 400, "bad request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "no TLS here"),
        (head("/hosts", "no header"), 400, "bad request"),
        (head("/hosts", host=""), 400, "bad request"),
        (head("/hosts", "Host: y"), 400, "bad request"),
        (head("/hosts", "Transfer-Encoding: identity"), 501, "unknown transfer coding"),
        (head("/hosts", "Transfer-Encoding: gzip, chunked"), 501, "unknown transfer coding"),
        (head("/hosts", "Content-Length: " + "9" * 5000), 400, "bad request"),
        (head("/hosts", "Content-Length: x"), 400, "bad request"),
        (head("/hosts", "Content-Length: -5"), 400, "bad request"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_never_becomes_a_request(narrow, data, code, message):
    received = raw(narrow.port, data if isinstance(data, bytes) else data.encode())
    start, _blank, answer = received.partition(b"\r\n\r\n")
    lines = start.decode().lower().split("\r\n")
    assert lines[0].split()[1] == str(code), received
    assert {"connection: close", "cache-control: no-store"} <= set(lines)
    assert "content-type: application/json; charset=utf-8" in lines
    document = json.loads(answer)
    assert set(document) == {"code", "failed", "message", "description"}
    assert (document["code"], document["failed"], document["message"]) == (code, True, message)


@each(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /mon/r/hosts\r\n\r\n",
        b"GET mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET http://x/mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET ? HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /mon/r/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"POST /mon/r/hosts HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST /mon/r/hosts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_broken_http_never_kills(narrow, data):
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            received = connection.recv(65536)
        except ConnectionError:
            received = b""
    assert not received.startswith((b"HTTP/1.1 5", b"HTTP/1.0 5")), received
    with narrow.client() as client:
        assert client.rows("/hosts/web01?columns=name") == [{"name": "web01"}]


def test_bodies_over_the_limit(narrow):
    start = (
        f"POST /mon/r/hosts HTTP/1.1\r\nHost: x\r\nX-Mon-Auth-Key: {narrow.key}\r\n"
        "X-Mon-Auth-User: admin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Connection: close\r\n"
    ).encode()
    body = b"name=" + b"x" * 200_000
    declared = start + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunks = b"".join(b"%x\r\n%s\r\n" % (1000, body[:1000]) for _ in range(200)) + b"0\r\n\r\n"
    chunked = start + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    waiting = start + b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n"
    for request in (declared, chunked, waiting):
        received = raw(narrow.port, request)
        first, _blank, answer = received.partition(b"\r\n\r\n")
        assert first.startswith(b"HTTP/1.1 413"), received
        assert json.loads(answer)["message"] == "request body too long"
    with narrow.client() as client:
        assert client.post_form("/hosts", {"name": "web01", "columns": "name"}).status == 200
