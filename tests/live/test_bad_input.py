"""Input that is wrong, huge or hostile: always a clear 4xx, never 5xx, never a line in LQL."""

import json
import string
from urllib.parse import quote, urlencode

import pytest
from harness.client import raw, raw_status
from harness.daemon import Daemon, site
from harness.expect import refused
from harness.recorder import problems
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

GENERATED = settings(
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# ------------------------------------------------------------------ control characters

PAYLOADS = {
    "a filter line": "web01\nFilter: name = web02",
    "a limit line": "web01\nLimit: 0",
    "the end of the request": "web01\n\nCOMMAND [1] DISABLE_NOTIFICATIONS\n\n",
    "one newline and a command": "web01\nCOMMAND [1] DISABLE_NOTIFICATIONS",
    "carriage return": "web01\r\nAuthUser: olga",
    "NUL": "web01\0",
    "escape": "web01\x1b[0m",
    "delete": "web01\x7f",
    "only a newline": "\n",
}
PARAMETERS = {
    "name": "/hosts?name={}",
    "name[ne]": "/hosts?name[ne]={}",
    "name[regex]": "/hosts?name[regex]={}",
    "groups[gte]": "/hosts?groups[gte]={}",
    "_WORKER": "/hosts?_WORKER={}",
    "pl[gt]": "/hosts?pl[gt]={}",
    "state": "/hosts?state={}",
    "last_check[gt]": "/hosts?last_check[gt]={}",
    "peer_key": "/hosts?peer_key={}",
    "columns": "/hosts?columns={}",
    "sort": "/hosts?sort={}",
    "limit": "/hosts?limit={}",
    "offset": "/hosts?offset={}",
    "backends": "/hosts?backends={}",
    "backend": "/hosts?backend={}",
    "host_name": "/services?host_name={}",
    "time[gt]": "/logs?time[gt]={}",
    "type": "/logs?type={}",
    "q": "/hosts?q=name%20=%20%22{}%22",
}
SEGMENTS = [
    "/hosts/{}",
    "/hosts/{}/services",
    "/hosts/{}/alerts",
    "/hosts/{}/notifications",
    "/hosts/{}/commandline",
    "/services/{}/ping",
    "/services/web01/{}",
    "/services/web01/{}/commandline",
    "/services/*{}/*",
    "/hostgroups/{}",
    "/hostgroups/{}/stats",
    "/servicegroups/{}/stats",
    "/contacts/{}",
    "/commands/{}",
    "/comments/{}",
    "/downtimes/{}",
    "/sites/{}/hosts",
    "/{}/hosts",
    "/{}",
]


@pytest.fixture
def clean(recorder):
    """After the test: nothing but expected lines has reached the core."""
    mark = recorder.mark()
    yield
    for request in recorder.since(mark):
        assert not problems(request), request
        assert b"DISABLE_NOTIFICATIONS" not in request
        assert b"AuthUser: olga" not in request


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize(("name", "path"), PARAMETERS.items(), ids=PARAMETERS)
def test_control_characters_in_parameters(client, clean, name, path, payload):
    refused(client.get(path.format(quote(payload, safe=""))), 400, name.partition("[")[0])


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("path", SEGMENTS)
def test_control_characters_in_path_segments(client, clean, path, payload):
    response = client.get(path.format(quote(payload, safe="")))
    assert response.status in (400, 404), response
    refused(response, response.status)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_control_characters_in_names(client, clean, payload):
    refused(client.get(f"/hosts?{quote(payload, safe='')}=x"))
    refused(client.get(f"/hosts?name[{quote(payload, safe='')}]=x"))
    refused(client.get(f"/hosts?_X{quote(payload, safe='')}=x"))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("name", ["name", "columns", "sort", "q", "backends", "groups[gte]"])
def test_control_characters_in_bodies(client, clean, name, payload):
    value = f'name = "{payload}"' if name == "q" else payload
    word = name.partition("[")[0]
    refused(client.post_json("/hosts", {name: value}), 400, word)
    refused(client.post_form("/hosts", {name: value}), 400, word)


@pytest.mark.parametrize("user", ["olga\x01", "olga\x7f", "\x0b", "a" * 5000])
def test_control_characters_in_the_user(daemon, clean, user):
    with daemon.client(user) as client:
        response = client.get("/hosts")
        assert response.status in (200, 400, 401, 403), response
        if response.status == 200:
            assert response.json == []


def test_bare_line_ends_in_headers_do_not_get_through(daemon, recorder, clean):
    request = (
        b"GET /mon/r/hosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Mon-Auth-Key: "
        + daemon.key.encode()
        + b"\r\nX-Mon-Auth-User: olga\nLimit: 0\r\n AuthUser: admin\r\n\r\n"
    )
    raw(daemon.port, request)
    raw(daemon.port, request.replace(b"olga\n", b"olga\r"))


# ------------------------------------------------------------------ values that are only odd

ODD = [
    *(" ", "  web01  ", "'", '"', "\\", "\\n", "%", "%00", ";", "#", "$", "`", "{}", "[]", "()"),
    *("*", "?", ".*", "^", "😀", "ü", "\u2028", "\u00a0", "\ufeff", "a" * 3000, "-1", "nan", "inf"),
    *(
        "1e400",
        "-1e400",
        "0x10",
        "1_000",
        "99999999999999999999999",
        "null",
        "true",
        "''",
        "=",
        "!",
    ),
    *("<script>", "../../etc/passwd", "$(id)", "{{7*7}}", "%s%s%s%n", "\u202e", "\ud7ff", "٣"),
]
COLUMNS = [
    *("name", "name[ne]", "name[gt]", "name[lte]", "alias[gte]", "state", "state[gt]", "state[ne]"),
    *("groups", "groups[ne]", "groups[gte]", "groups[notin]", "_WORKER", "_WORKER[gt]", "pl"),
    *("pl[lt]", "latency", "latency[gte]", "custom_variables", "acknowledged", "peer_key"),
    *("services_with_state", "services_with_state[gte]", "comments[gte]", "check_options"),
    *("custom_variables[gte]", "last_check", "last_check[gt]", "peer_name[gt]", "comments_info"),
]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("column", COLUMNS)
def test_odd_values_in_filters(client, clean, column, value):
    response = client.get("/hosts", {column: value, "columns": "name"})
    assert response.status in (200, 400), (column, value, response)
    if response.status == 400:
        refused(response, 400, column.partition("[")[0])


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("path", ["/hosts/{}", "/services/{}/x", "/services/x/{}", "/comments/{}"])
def test_odd_values_in_paths(client, clean, path, value):
    response = client.get(path.format(quote(value, safe="")) + "?columns=name")
    assert response.status in (200, 400), (path, value, response)
    if response.status == 400:
        refused(response)
    elif path == "/hosts/{}":
        assert response.json == []


# ------------------------------------------------------------------ too much of it


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
    filler = "&".join(["=x"] * (size // 3))
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


@pytest.mark.parametrize(
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
    import socket

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
def narrow(embedded, tmp_path_factory):
    """A daemon that takes bodies of 64 KiB only."""
    daemon = Daemon(
        tmp_path_factory.mktemp("narrow"),
        [site("s1", f"unix:{embedded.socket}")],
        sections={"server": {"max_body": 65536}},
    )
    try:
        yield daemon.start()
    finally:
        daemon.stop()


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
        assert set(json.loads(answer)) == {"code", "message", "description"}
    with narrow.client() as client:
        assert client.post_form("/hosts", {"name": "web01", "columns": "name"}).status == 200


# ------------------------------------------------------------------ generated

NAMES = [
    *("name", "state", "groups", "alias", "_WORKER", "pl", "rta_unit", "last_check", "nope"),
    *("host_name", "service_description", "count(*)", "to_rows(groups)", "peer_key", "latency"),
]
OPERATORS = ["", "=", "!=", "~", "!~", "~~", "!~~", ">", "<", ">=", "<=", "!>=", "eq", "lte", "x"]
WORDS = [
    *("and", "or", "&&", "||", "(", ")", "=", "!=", "~", "~~", ">=", "<", "!>=", "like", "unlike"),
    *("name", "state", "groups", "web01", "1", "-10m", "'x y'", '"', "'", "`pl`", "***", "as", ","),
    *("duration", "1d", "_WORKER", "^web", "[", "\\", "not", "==", "now", "ü", "()", "count(*)"),
]
FUNCTIONS = [
    *("upper", "lower", "substr", "calc", "s", "concat", "fmt", "unit", "age", "duration", "utc"),
    *("date", "hoststate", "servicestate", "count", "avg", "sum", "min", "max", "uniq", "to_rows"),
    *("as_rows", "nope", "lc", "uc"),
]
anything = st.text(max_size=40)
values = st.one_of(
    anything,
    st.text(alphabet="()[]{}^$.*+?|\\dwsDWb0123456789a,-", max_size=20),
    st.sampled_from([*ODD, "-10m", "now-1h", "today+1d", "7d", "2026-11-21", "lastweek"]),
    st.integers().map(str),
    st.floats().map(str),
)
arguments = st.recursive(
    st.sampled_from(["name", "state", "'x'", "2", "", "`pl`", "*", "groups", "'%s%d%999999999d'"]),
    lambda inner: st.builds(
        lambda function, parts: f"{function}({','.join(parts)})",
        st.sampled_from(FUNCTIONS),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)
columns = st.lists(
    st.one_of(
        arguments,
        st.text(alphabet=string.printable[:95] + "ü", max_size=20),
        st.builds("{}{}{}".format, arguments, st.sampled_from(":+-*/"), arguments),
        st.builds("{} as {}".format, arguments, anything),
    ),
    max_size=4,
).map(",".join)
parameter = st.one_of(
    st.tuples(
        st.builds("{}[{}]".format, st.sampled_from(NAMES), st.sampled_from(OPERATORS)), values
    ),
    st.tuples(st.sampled_from(NAMES), values),
    st.tuples(st.just("q"), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)),
    st.tuples(st.just("q"), anything),
    st.tuples(st.just("columns"), columns),
    st.tuples(st.just("sort"), st.one_of(anything, arguments, st.sampled_from(["-name", "state"]))),
    st.tuples(st.sampled_from(["limit", "offset"]), values),
    st.tuples(st.sampled_from(["backends", "backend"]), st.one_of(anything, st.just("s1"))),
    st.tuples(anything, anything),
)
paths = st.one_of(
    st.sampled_from(
        [
            *("/hosts", "/services", "/hosts/totals", "/services/stats", "/hostgroups", "/logs"),
            *("/contacts", "/comments", "/processinfo", "/checks/stats", "/sites", "/index"),
            *("/csv/hosts", "/text/services", "/wrapped_json/hosts", "/hosts/*/commandline"),
        ]
    ),
    st.builds(lambda text: f"/services/{quote(text, safe='*')}/*", anything),
    st.builds(lambda text: f"/hosts/{quote(text, safe='')}/alerts", anything),
    st.builds(lambda text: f"/{quote(text)}", anything),
)


def sound(response):
    """A success, or a refusal with its three keys (in the format that was asked for)."""
    assert response.status == 200 or 400 <= response.status < 500, response
    if response.status != 200 and response.type == "application/json":
        refused(response, response.status)


@GENERATED
@given(path=paths, parameters=st.lists(parameter, max_size=4))
def test_generated_requests(client, path, parameters):
    encoded = urlencode(
        [
            (name.encode(errors="replace"), value.encode(errors="replace"))
            for name, value in parameters
        ]
    )
    sound(client.get(f"{path}?{encoded}" if encoded else path))


@GENERATED
@given(query=st.text(alphabet="&=;[]%+?#/*'\"`~!<>(),.ab0 ".replace(" ", ""), max_size=60))
def test_generated_query_strings(client, query):
    sound(client.get(f"/hosts?{quote(query, safe='&=;[]%+?/*!~(),')}"))


@GENERATED
@given(
    document=st.dictionaries(
        st.sampled_from([*NAMES, "q", "columns", "limit", "sort", "backends", "name[regex]"]),
        st.recursive(
            st.one_of(
                st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), anything
            ),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=4,
    )
)
def test_generated_documents(client, document):
    body = json.dumps(document).encode()
    headers = {"Content-Type": "application/json"}
    sound(client.request("POST", "/hosts", body=body, headers=headers))


@GENERATED
@given(body=st.binary(max_size=200), kind=st.sampled_from(
    ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", ""]
))  # fmt: skip
def test_generated_bodies(client, body, kind):
    sound(client.request("POST", "/hosts", body=body, headers={"Content-Type": kind}))


@GENERATED
@given(target=st.binary(max_size=60).map(
    lambda data: b"/mon/r/" + bytes(byte for byte in data if byte > 32 and byte != 35)
))  # fmt: skip
def test_generated_raw_targets(daemon, target):
    status, _body = raw_status(daemon.port, target, daemon.key)
    assert status is not None
    assert status == 200 or 400 <= status < 500


def test_afterwards_everything_still_works(daemon, client, recorder):
    assert client.rows("/hosts/web01?columns=name") == [{"name": "web01"}]
    assert client.rows("/sites")[0]["connected"] == 1
    assert "Traceback" not in daemon.log
    for request in recorder.requests:
        assert not problems(request), request
