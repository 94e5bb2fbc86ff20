"""Requests and answers in memory: real parser, site, Klein and renderer, scripted dispatch."""

import contextlib
import json

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import (
    BadRequest,
    Conflict,
    MethodNotAllowed,
    NotFound,
    SitesFailed,
    SitesTimedOut,
    Unavailable,
)
from monrest.base.names import Names
from monrest.base.values import Document, SiteProblem
from tests.web.room import KEY, Room, asking, rows

ROOT = "/mon/r"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
OWN = {"X-Abc-Auth-Key": KEY, "X-Abc-Auth-User": "ann"}
PROBLEM = SiteProblem("lab", "Lab", "connection refused")


def refused(reply, code, message):
    document = json.loads(reply.body)
    assert document.pop("failed") is True
    assert set(document) == {"code", "message", "description"}
    assert (reply.status, document["code"]) == (code, code)
    assert document["message"] == message
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-request-id"]
    return document["description"]


def test_a_request_arrives_as_a_value(room, ask):
    reply = ask(f"{ROOT}/v1/csv/sites/a,b/services/h/Disk%20%2Fvar/?name[~]=x+y&q=***a&b***")
    assert reply.status == 200
    (request,) = room.seen
    assert (request.method, request.path) == ("GET", "/services/h/Disk%20%2Fvar")
    assert request.segments == ("services", "h", "Disk%20%2Fvar")
    assert request.parameters == (("name[~]", "x y"), ("q", "***a&b***"))
    assert (request.format, request.pretty, request.sites) == ("csv", False, ("a", "b"))
    assert request.identity.user == "ann"
    assert (request.caller.client, request.caller.address) == ("127.0.0.1", "127.0.0.1")
    assert request.request_id == reply.headers["x-request-id"]
    headers = request.caller.headers
    assert headers["x-mon-auth-user"] == "ann"
    assert headers.get("x-none") is None
    assert "x-mon-auth-key" in dict(headers)
    assert len(headers) == len(list(headers))


@pytest.mark.parametrize("path", ["/mon/r", "/mon/r/", "//mon/r//", "/mon/r/v1", "/mon/r/v1/"])
def test_the_root(room, ask, path):
    assert ask(path).status == 200
    assert room.seen[0].path == "/"
    assert room.seen[0].segments == ()


@pytest.mark.parametrize("path", ["/", "/mon", "/mon/", "/mon/x", "/mon//r", "/Mon/r", "/mon/rx"])
def test_outside_of_the_root(room, ask, path):
    assert "the API is below /mon/r/" in refused(ask(path), 404, "not found")
    assert room.seen == []


def test_the_root_has_the_words_of_the_site(clock):
    room = Room(clock, names=Names(app="abc"))
    ask = asking(room)
    assert ask("/abc/r/hosts", headers=OWN).status == 200
    assert room.seen[0].path == "/hosts"
    refused(ask("/mon/r/hosts"), 404, "not found")


def test_what_programs_ask_beside_the_root(clock):
    room = Room(clock, names=Names(app="abc"))
    ask = asking(room)
    for path in ("/-/healthy", "/-/ready", "/metrics", "/openapi.json", "//metrics"):
        assert ask(path, headers=OWN).status == 200, path
    paths = ["/abc/healthy", "/abc/ready", "/abc/metrics", "/openapi.json", "/abc/metrics"]
    assert [one.path for one in room.seen] == paths


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/hosts", ("json", False)),
        ("/wrapped_json/hosts", ("wrapped_json", False)),
        ("/hosts?headers=wrapped_json", ("wrapped_json", False)),
        ("/csv/hosts?headers=wrapped_json", ("csv", False)),
        ("/hosts?pretty=1", ("json", True)),
        ("/hosts?pretty=true&pretty=0", ("json", False)),
        ("/hosts?pretty=", ("json", False)),
    ],
)
def test_formats(room, ask, path, options):
    ask(ROOT + path)
    assert (room.seen[0].format, room.seen[0].pretty) == options
    assert "pretty" not in dict(room.seen[0].parameters)


def test_a_header_chooses_the_format_unless_the_path_does(room, ask):
    header = {"X-Mon-OutputFormat": "wrapped_json"}
    assert json.loads(ask(f"{ROOT}/hosts", headers=header).body)["data"] == {"path": "/hosts"}
    ask(f"{ROOT}/csv/hosts", headers=header)
    assert [request.format for request in room.seen] == ["wrapped_json", "csv"]
    description = refused(
        ask(f"{ROOT}/hosts", headers={"X-Mon-OutputFormat": "pdf"}), 400, "unknown output format"
    )
    assert "X-Mon-Outputformat" in description


def test_pretty_is_a_flag(ask):
    description = refused(ask(f"{ROOT}/hosts?pretty=maybe"), 400, "invalid pretty")
    assert description == "pretty: expected 0 or 1 (or false, no, off, true, yes, on)"


@pytest.mark.parametrize("headers", ["0", ""])
def test_csv_without_its_first_line(room, ask, headers):
    room.answers["/hosts"] = rows(1, "t")
    assert ask(f"{ROOT}/csv/hosts?headers=1").body == b"#id;text\n0;t\n"
    room.answers["/hosts"] = rows(1, "t")
    assert ask(f"{ROOT}/csv/hosts?headers={headers}").body == b"0;t\n"


def test_bodies_join_the_query(room, ask):
    ask(f"{ROOT}/hosts?a=1&b=2", "POST", FORM, b"a=3")
    ask(f"{ROOT}/hosts?a=1&b=2", "POST", JSON, b'{"a": 3, "pretty": true}')
    form, js = room.seen
    assert form.parameters == (("a", "1"), ("b", "2"), ("a", "3"))
    assert form.document is None
    assert js.parameters == (("b", "2"), ("a", "3"))
    assert js.document == {"a": 3, "pretty": True}
    assert js.pretty


@pytest.mark.parametrize(
    ("method", "headers", "arrived"),
    [
        ("GET", {}, ()),
        ("DELETE", {"Content-Type": "text/plain"}, ()),
        ("GET", FORM, (("a", "3"),)),
        ("GET", JSON, (("a", "3"),)),
        ("POST", {}, (("a", "3"),)),
        ("PUT", FORM, (("a", "3"),)),
        ("PATCH", JSON, (("a", "3"),)),
    ],
)
def test_bodies_of_each_method(room, ask, method, headers, arrived):
    body = b'{"a": 3}' if headers == JSON else b"a=3"
    assert ask(f"{ROOT}/hosts", method, headers, body).status == 200
    assert room.seen[0].parameters == arrived
    assert room.seen[0].method == {"PUT": "POST"}.get(method, method)


def test_big_bodies_are_read_in_a_thread(room, ask):
    ask(f"{ROOT}/hosts", "POST", FORM, b"a=" + b"x" * 10_000)
    assert room.threads.runs == 0
    ask(f"{ROOT}/hosts", "POST", FORM, b"a=" + b"x" * 200_000)
    assert room.threads.runs == 1
    assert len(room.seen[1].parameters[0][1]) == 200_000


def test_headers_of_every_answer(ask):
    reply = ask(f"{ROOT}/hosts")
    assert reply.body == b'{"path":"/hosts"}\n'
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.length == len(reply.body)
    assert reply.headers["cache-control"] == "private, no-cache"
    assert reply.headers["vary"] == "Accept, Accept-Encoding"
    assert reply.headers["server"] == "monrest"
    assert reply.headers["date"].endswith("GMT")
    assert "x-mon-failed-sites" not in reply.headers


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("abc-123", True),
        ("x" * 128, True),
        ("!~", True),
        ("x" * 129, False),
        ("a b", False),
        ("ü", False),
        ("", False),
    ],
)
def test_request_ids(room, ask, given, taken):
    reply = ask(f"{ROOT}/hosts", headers={"X-Request-Id": given})
    assert (reply.headers["x-request-id"] == given) is taken
    assert reply.headers["x-request-id"] == room.seen[0].request_id


def test_request_ids_differ(ask):
    ids = {ask(f"{ROOT}/hosts").headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5


def test_failed_sites_are_named(room, ask):
    other = SiteProblem("prod", "Prod", "timed out")
    room.answers["/hosts"] = Document(value={}, failed_sites=(PROBLEM, other))
    assert ask(f"{ROOT}/hosts").headers["x-mon-failed-sites"] == "lab,prod"


def test_a_document_may_have_a_status(room, ask):
    room.answers["/jobs"] = Document(value={"id": 1}, status=201)
    assert ask(f"{ROOT}/jobs").status == 201


def test_excel_is_made_in_a_thread(room, ask):
    room.answers["/hosts"] = rows(3)
    reply = ask(f"{ROOT}/xls/hosts")
    assert room.threads.runs == 1
    assert reply.body.startswith(b"PK")
    assert "rest.xlsx" in reply.headers["content-disposition"]
    assert reply.headers["vary"] == "Accept, Accept-Encoding"


def test_head_is_get_without_a_body(room, ask):
    get = ask(f"{ROOT}/hosts")
    head = ask(f"{ROOT}/hosts", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(get.length) == str(len(get.body))
    room.answers["/hosts"] = rows(5000)
    big = ask(f"{ROOT}/hosts", "HEAD")
    assert (big.status, big.body) == (200, b"")
    assert int(big.headers["content-length"]) > 10_000


def test_options(room, ask):
    reply = ask(f"{ROOT}/hosts", "OPTIONS")
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    refused(ask(f"{ROOT}/nope", "OPTIONS"), 404, "unknown rest path: /nope")
    assert room.seen == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadRequest("error during request", "limit must be"), 400, "error during request"),
        (NotFound("unknown rest path: /x"), 404, "unknown rest path: /x"),
        (Conflict("no", "because"), 409, "no"),
        (Unavailable("stopping"), 503, "stopping"),
    ],
)
def test_rest_errors(room, ask, error, code, message):
    room.answers["/hosts"] = error
    described = refused(ask(f"{ROOT}/hosts"), code, message)
    assert described == (error.description or described) != ""


def test_a_wrong_method_names_the_right_ones(room, ask):
    room.answers["/hosts"] = MethodNotAllowed("/hosts", ("GET", "POST"))
    reply = ask(f"{ROOT}/hosts", "BREW")
    description = refused(reply, 405, "method not allowed")
    assert description == "available methods for /hosts are: GET, POST"
    assert reply.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(("kind", "code"), [(SitesFailed, 502), (SitesTimedOut, 504)])
def test_all_sites_failed(room, ask, kind, code):
    room.answers["/hosts"] = kind([PROBLEM])
    reply = ask(f"{ROOT}/hosts")
    assert refused(reply, code, "no backend available") == "lab: connection refused"
    assert reply.headers["x-mon-failed-sites"] == "lab"


def test_a_bug_shows_nothing_of_itself(room, ask, stray_failures):
    stray_failures.append(ZeroDivisionError)

    async def broken(_):
        return 1 / 0

    room.answers["/hosts"] = broken
    reply = ask(f"{ROOT}/hosts")
    description = refused(reply, 500, "internal server error")
    assert reply.headers["x-request-id"] in description
    assert b"division" not in reply.body


def test_a_bug_in_rendering_too(room, ask, stray_failures):
    stray_failures.append(ZeroDivisionError)
    room.answers["/hosts"] = evolve(rows(3), expand=lambda _: 1 / 0)
    refused(ask(f"{ROOT}/hosts"), 500, "internal server error")


def test_errors_come_in_the_asked_format(room, ask):
    room.answers["/hosts"] = NotFound("no such thing", "at all")
    csv = ask(f"{ROOT}/csv/hosts")
    assert csv.status == 404
    assert csv.body.splitlines()[:2] == [b"#key;value", b"code;404"]
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert "content-disposition" not in csv.headers
    excel = ask(f"{ROOT}/xls/hosts")
    assert (excel.status, excel.body[:2]) == (404, b"PK")
    wrapped = ask(f"{ROOT}/wrapped_json/hosts")
    refused(wrapped, 404, "no such thing")
    pretty = ask(f"{ROOT}/hosts?pretty=1")
    assert len(pretty.body.splitlines()) == 6


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/hosts/%FF", "invalid path"),
        ("/hosts/%0A", "invalid path"),
        ("/hosts?name=%FF", "invalid UTF-8"),
        ("/hosts?%FF=1", "invalid UTF-8"),
        ("/hosts?a=" + "x" * 140_000, "URL too long"),
    ],
)
def test_bad_input(room, ask, path, message):
    with contextlib.suppress(KeyError):
        del room.answers["/hosts"]
    if len(path) < 1000:
        refused(ask(ROOT + path), 400, message)
        assert room.seen == []


def test_credentials_come_first(room, ask):
    refused(ask(f"{ROOT}/hosts?name=%FF", headers={"X-Mon-Auth-Key": "x"}), 403,
            "wrong authentication key")  # fmt: skip
    assert room.seen == []


def hanging(cancelled):
    async def hang(_):
        try:
            await Deferred()
        except CancelledError:
            cancelled.append(True)
            raise

    return hang


def test_the_request_time_out(room, ask, clock):
    cancelled = []
    room.answers["/hosts"] = hanging(cancelled)
    waiting = ask(f"{ROOT}/hosts")
    clock.advance(39.9)
    ask.flush()
    assert not cancelled
    replies = []
    waiting.addCallback(replies.append)
    clock.advance(0.2)
    ask.flush()
    ask.flush()
    assert cancelled == [True]
    assert "after 40 seconds" in refused(replies[0], 504, "request timed out")
    for channel in tuple(room.site.channels):
        channel.setTimeout(None)


def test_a_client_that_leaves_cancels_the_work(room, ask, clock):
    cancelled = []
    room.answers["/hosts"] = hanging(cancelled)
    waiting = ask(f"{ROOT}/hosts")
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    ask.flush()
    ask.flush()
    assert cancelled == [True]
    assert not clock.getDelayedCalls()
