"""Requests and answers as HTTP: methods, bodies, paths, headers, gzip (1, 2, 14)."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.client import raw, raw_status
from harness.daemon import site
from harness.expect import HOSTS, refused

from tests.table import each

WEB01 = [{"name": "web01"}]
JSON = {"Content-Type": "application/json"}


@each(
    "path",
    [
        "/hosts/web01?columns=name",
        "/hosts/web01/?columns=name",
        "//hosts/web01//?columns=name",
        "/v1/hosts/web01?columns=name",
        "/v1/json/hosts/web01?columns=name",
        "/json/hosts/web01?columns=name",
        "/json/json/hosts/web01?columns=name",
        "/csv/json/hosts/web01?columns=name",
        "/host/web01?columns=name",
        "/sites/s1/hosts/web01?columns=name",
        "/site/s1/hosts/web01?columns=name",
        "/backend/s1/hosts/web01?columns=name",
        "/backends/s1/hosts/web01?columns=name",
        "/json/sites/s1/json/hosts/web01?columns=name",
        "/sites/s1%2Cs1/hosts/web01?columns=name",
        "/sites/ALL/hosts/web01?columns=name",
        "/sites/LOCAL/hosts/web01?columns=name",
        "///v1//hosts/web01//?columns=name",
        "/v1/csv/json/hosts/web01?columns=name",
        "/sites/s1%2C%20s1%20,s1/hosts/web01?columns=name",
        "/sites/,/hosts/web01?columns=name",
        "/sites/s1/csv/sites/s1/json/hosts/web01?columns=name",
        "/hosts?&columns=name&name=web01",
        "/hosts?columns=name&name=web01&",
        "/hosts?&&columns=name&&name=web01&q=",
        "/hosts?columns=name&name=web01&limit=&offset=&sort=&backends=",
        "/hosts?columns=name&name=web%301",
        "/hosts?%63olumns=name&%6eame=web01",
        "/hosts?columns=name&name[~]=web01",
        "/hosts?columns=name&name%5B~%5D=web01",
        "/hosts?columns=name&name[%3D]=web01",
    ],
)
def test_tolerated_spellings(client, path):
    assert client.rows(path) == WEB01


@each(
    "path",
    [
        *("/HOSTS", "/%68osts", "/nope", "/hosts/web01/nope", "/csv", "/csv/", "/json"),
        *("/json/v1/hosts", "/v2/hosts", "/hosts/a/b/c", "/mon/nope", "/sites/s1", "/hosts//web01"),
        *(
            "/v1x/hosts",
            "/CSV/hosts",
            "/%63sv/hosts",
            "/hosts/csv/x",
            "/sites//hosts",
            "/json//hosts",
        ),
        *(
            "/sites/a",
            "/services/web01/ping/nope",
            "/v1/v1/hosts",
            "/../etc/passwd",
            "/hosts/../hosts/x/y",
        ),
    ],
)
def test_unknown_paths(client, path):
    refused(client.get(path), 404, "unknown rest path")


def test_what_a_path_chooses(client):
    assert client.get("/csv/text/hosts/web01?columns=name").text.startswith("+-")
    assert client.get("/human/hosts/web01?columns=name").text.startswith("+-")
    assert client.get("/v1/csv/hosts/web01?columns=name").text == "#name\nweb01\n"
    assert client.get("/wrapped_json/xls/hosts").body.startswith(b"PK")
    assert client.values("/sites/s1/sites", "id") == client.values("/sites/", "id") == ["s1"]
    assert client.rows(f"/hosts/{'a' * 100_000}") == client.rows("/hosts/a%2Fb%20c+d") == []


def test_root_needs_no_slash(client):
    assert client.request("GET", "").json == client.rows("/") == client.rows("/index")


def test_outside_of_the_root(daemon):
    with daemon.client(root="") as client:
        refused(client.get("/"), 404)
        refused(client.get("/mon"), 404)
        refused(client.get("/mon/x"), 404)


@each("method", ["PATCH", "DELETE", "TRACE", "BREW"])
@each("path", ["/hosts", "/hosts/web01", "/hosts/totals", "/index"])
def test_wrong_methods(client, method, path):
    response = client.request(method, path)
    refused(response, 405, "available methods")
    assert {"GET", "POST"} & set(response.headers["allow"].replace(" ", "").split(","))


def test_methods_of_unknown_paths(client):
    for method in ("GET", "POST", "DELETE", "OPTIONS", "BREW"):
        refused(client.request(method, "/nope"), 404)


def test_options(client):
    response = client.request("OPTIONS", "/hosts")
    assert response.status in (200, 204)
    assert {"GET", "POST", "HEAD", "OPTIONS"} <= set(
        response.headers["allow"].replace(" ", "").split(",")
    )


@pytest.mark.parametrize("path", ["/hosts", "/hosts/totals", "/csv/hosts?columns=name", "/nope"])
def test_head_is_get_without_a_body(client, path):
    get = client.get(path)
    head = client.request("HEAD", path)
    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert client.rows("/hosts/web01", {"columns": "name"}) == WEB01


def test_post_and_put_as_get(client):
    pairs = {"columns": "name", "name": "web01"}
    assert client.post_form("/hosts", pairs).json == WEB01
    assert client.post_json("/hosts", pairs).json == WEB01
    body = json.dumps(pairs)
    assert client.request("PUT", "/hosts", body=body, headers=JSON).json == WEB01
    assert client.request("POST", "/hosts/web01?columns=name").json == WEB01
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    body = "columns=name&name=web01"
    assert client.request("POST", "/hosts", body=body, headers=form).json == WEB01


def test_multipart(client):
    body = multipart(("columns", "name"), ("q", 'name = "web01" and alias ~ "ü"'))
    headers = {"Content-Type": MULTIPART}
    assert client.request("POST", "/hosts", body=body, headers=headers).json == WEB01


def test_url_and_body_are_mixed(client):
    response = client.post_form("/hosts?columns=name", {"columns": "state", "name": "web02"})
    assert response.json == [{"name": "web02", "state": 1}]
    response = client.post_json("/hosts?columns=name&name=db01", {"name": "web02"})
    assert response.json == [{"name": "web02"}]
    response = client.post_json("/hosts?name=web02", {"columns": ["name", "state"], "limit": 5})
    assert response.json == [{"name": "web02", "state": 1}]
    response = client.post_json("/hosts", {"columns": "name", "q": None, "name": "web01"})
    assert response.json == WEB01


def test_body_on_get(client):
    body = json.dumps({"columns": "name", "name": "web01"})
    assert client.request("GET", "/hosts", body=body, headers=JSON).json == WEB01


def test_a_long_q(client):
    q = " or ".join(f'name = "nothing{number}"' for number in range(900)) + ' or name = "web01"'
    asked = {"q": q, "columns": "name"}
    assert client.post_form("/hosts", asked).json == client.rows("/hosts", asked) == WEB01


def multipart(*pairs):
    parts = "".join(
        f'--xyz\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    )
    return f"{parts}--xyz--\r\n".encode()


FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=xyz"
WRONG_JSON = [
    *(
        '{"a":',
        '{"a": nope}',
        '["a"',
        '"a"',
        "1",
        "null",
        "{} x",
        "x {}",
        '{"a": 1,,}',
        '{"a": NaN}',
    ),
    *("[" * 99_999, '{"a": "' + "\\" * 99_999, '{"a' + '"\\"' * 50_000, "{" + "," * 99_999),
    *("{" + "#" * 100_000, b'{"name": "\xff"}'),
]
ANOTHER_TYPE = "got json request data but content type is not application/json"


@each(
    ("body", "kind", "words"),
    [
        *((body, "application/json", "failed to parse json data argument") for body in WRONG_JSON),
        ('["name"]', "application/json", "json"),
        ('{"name": {"a": 1}}', "application/json", "name"),
        *((' {"a": 1}\n', kind, ANOTHER_TYPE) for kind in (FORM, "text/plain", "text/json", None)),
        ('[{"cmd": "x"}]', "multipart/form-data", ANOTHER_TYPE),
        ("a=1", "text/plain", "unsupported content type"),
        (b"name=\xff", FORM, "UTF-8"),
        ("name=%FF", FORM, "UTF-8"),
        ("--xyz\r\nbroken", MULTIPART, ""),
        ("x", "multipart/form-data", ""),
        ("x", "multipart/form-data; boundary=", ""),
        (multipart(("a", "1")), "multipart/form-data; boundary=other", ""),
        (multipart(("a", "1"))[:-6], MULTIPART, ""),
        (multipart(("a", "1")).replace(b"1", b"\xff"), MULTIPART, ""),
        (multipart(*[("a", "1")] * 10_001), MULTIPART, ""),
        (
            json.dumps({f"a{at}": 1 for at in range(20_001)}),
            "application/json",
            "too many parameters",
        ),
        (json.dumps({"a": [1] * 20_001}), "application/json", "too many parameters"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_wrong_bodies(client, body, kind, words):
    headers = {"Content-Type": kind} if kind else {}
    refused(client.request("POST", "/hosts", body=body, headers=headers), 400, words)


def test_relaxed_json(client):
    body = '{"columns": "name", # all\n "name": "web01",}'
    assert client.request("POST", "/hosts", body=body, headers=JSON).json == WEB01


def test_standard_headers(client):
    response = client.get("/hosts/web01", {"columns": "name"})
    assert response.headers["content-type"].replace(" ", "") == "application/json;charset=utf-8"
    assert response.headers["cache-control"] == "private, no-cache"
    assert response.headers["x-request-id"]
    assert "twisted" not in response.headers.get("server", "").lower()
    assert response.body == b'[{"name":"web01"}]\n'
    assert "x-mon-failed-sites" not in response.headers


def test_request_id_comes_back(client):
    headers = {"X-Request-Id": "abc-123_45.6"}
    assert client.get("/hosts", headers=headers).headers["x-request-id"] == "abc-123_45.6"
    other = client.get("/nope", headers=headers)
    assert other.headers["x-request-id"] == "abc-123_45.6"
    assert other.headers["cache-control"] == "no-store"
    first, second = (client.get("/hosts").headers["x-request-id"] for _ in range(2))
    assert first != second


@each(
    ("given", "taken"),
    [("abc-123", True), ("x" * 128, True), ("!~", True), ("x" * 129, False), ("a b", False),
     ("ü", False), ("", False)],
)  # fmt: skip
def test_which_request_ids_are_taken(client, given, taken):
    response = client.get("/nope", headers={"X-Request-Id": given})
    assert (response.headers["x-request-id"] == given) is taken


@pytest.mark.parametrize(
    ("accept", "packed"),
    [("gzip", True), ("gzip;q=1.0", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False)],
)
def test_gzip(client, accept, packed):
    plain = client.get("/services/web01/*")
    response = client.get("/services/web01/*", headers={"Accept-Encoding": accept})
    assert len(plain.body) > 2048
    assert (response.headers.get("content-encoding") == "gzip") is packed
    assert "accept-encoding" in response.headers["vary"].lower()
    body = gzip.decompress(response.body) if packed else response.body
    assert len(json.loads(body)) == 4


def test_utf8_goes_in_and_out(client):
    response = client.get("/hosts", {"columns": "alias", "alias": "Web 01 · ü"})
    assert response.json == [{"alias": "Web 01 · ü"}]
    assert "·" in response.text


def test_raw_utf8_in_a_url(daemon):
    target = "/mon/r/hosts?columns=alias&alias=Web%2001%20·%20ü".encode()
    status, body = raw_status(daemon.port, target, daemon.key)
    assert (status, json.loads(body)) == (200, [{"alias": "Web 01 · ü"}])


def test_json_in_plain_ascii(made, embedded):
    daemon = made([site("s1", embedded)], sections={"server": {"ascii_json": True}}).start()
    with daemon.client() as client:
        query = {"columns": "alias", "alias": "Web 01 · ü"}
        found = [{"alias": "Web 01 · ü"}]
        for path, headers in (("/hosts", {}), ("/hosts", {"Accept-Encoding": "gzip"})):
            response = client.get(path, query, headers=headers)
            assert response.body.isascii() or headers
            assert response.json == found
        wrapped = client.get("/wrapped_json/hosts", query)
        assert wrapped.body.isascii()
        assert wrapped.json["data"] == found
        failed = client.get("/hosts", {"größe": "1"})
        assert failed.body.isascii()
        refused(failed, 400, "größe")
        started = client.get("/hosts", {**query, "background": "1"}).json
        kept = client.get(f"/mon/jobs/{started['job_id']}/output")
        assert kept.body.isascii()
        assert kept.json == found
        description = client.get("/openapi.json")
        assert description.body.isascii()
        assert "ü" in json.dumps(description.json, ensure_ascii=False)
        assert "ü" in client.get("/csv/hosts", query).text


def test_pipelined_requests_are_answered_in_order(daemon):
    def one(name, connection):
        return (
            f"GET /mon/r/hosts/{name}?columns=name HTTP/1.1\r\nHost: x\r\n"
            f"X-Mon-Auth-Key: {daemon.key}\r\nX-Mon-Auth-User: admin\r\n"
            f"Connection: {connection}\r\n\r\n"
        ).encode()

    received = raw(daemon.port, one("web01", "keep-alive") + one("web02", "close"))
    assert received.count(b"HTTP/1.1 200") == 2
    assert received.index(b'"web01"') < received.index(b'"web02"')


def test_http_one_zero(daemon):
    request = (
        "GET /mon/r/hosts/web01?columns=name HTTP/1.0\r\n"
        f"X-Mon-Auth-Key: {daemon.key}\r\nX-Mon-Auth-User: admin\r\n\r\n"
    )
    assert raw(daemon.port, request.encode()).endswith(b'[{"name":"web01"}]\n')


def test_chunked_body(daemon):
    request = (
        "POST /mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        f"X-Mon-Auth-Key: {daemon.key}\r\nX-Mon-Auth-User: admin\r\n\r\n"
        '10\r\n{"columns":"name\r\n11\r\n","name":"web01"}\r\n0\r\n\r\n'
    )
    received = raw(daemon.port, request.encode())
    assert received.startswith(b"HTTP/1.1 200")
    assert b'[{"name":"web01"}]' in received


def test_path_that_is_not_utf8(daemon):
    for target in (
        b"/mon/r/hosts/%FF",
        b"/mon/r/hosts/\xff",
        b"/mon/r/%C3",
        b"/mon/r/hosts?name=%FF",
    ):
        status, body = raw_status(daemon.port, target, daemon.key)
        assert status == 400, (target, body)
        document = json.loads(body)
        assert set(document) == {"code", "message", "description", "failed"}
        assert document["failed"] is True


def test_many_hosts_over_one_connection(client):
    for _round in range(50):
        for name in HOSTS[:2]:
            assert client.rows(f"/hosts/{name}?columns=name") == [{"name": name}]


def test_bearer_is_the_key(daemon):
    with daemon.client() as client:
        client.key = None
        headers = {"Authorization": f"Bearer {daemon.key}"}
        assert client.get("/hosts/web01?columns=name", headers=headers).json == WEB01
        refused(client.get("/hosts", headers={"Authorization": "Bearer wrong"}), 403)


def test_an_idle_daemon_leaves_the_core_to_others(daemon, core):
    """An Icinga 2 has two threads per processor for all its work, and a connection holds one."""

    def ask(_number):
        with daemon.client() as client:
            return len(client.rows("/services"))

    with ThreadPoolExecutor(12) as threads:
        assert set(threads.map(ask, range(60))) == {11}
    for _time in range(5):
        assert len(core.ask("GET hosts\nColumns: name")) == len(HOSTS)
