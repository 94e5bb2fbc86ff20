"""Log lines as text and as JSON; access and audit lines among them."""

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import Logger, LogLevel, LogPublisher, globalLogPublisher

from monrest.base.audit import audit
from monrest.base.log import ACCESS, AUDIT, REQUEST_ID, LineObserver
from monrest.base.values import Caller, Identity

ACCESS_FIELDS = {"method": "GET", "path": "/mon/r/x y", "status": 200, "ms": 1.5, "user": "ann",
                 "failed_sites": ["a", "b"], "client": ""}  # fmt: skip


class Lines(io.StringIO):
    def __init__(self):
        super().__init__()
        self.flushes = 0

    def flush(self):
        self.flushes += 1

    @property
    def lines(self):
        return self.getvalue().splitlines()


@pytest.fixture
def stream():
    return Lines()


def logger(stream, namespace="monrest.web", **more):
    observer = LineObserver(stream, **more)
    return Logger(namespace=namespace, observer=LogPublisher(observer)), observer


def test_text(stream):
    log, _ = logger(stream)
    log.info("site {site} is up", site="prod")
    (line,) = stream.lines
    assert line.endswith("Z info monrest.web: site prod is up")
    assert line[:2] == "20"
    assert stream.flushes == 1


def test_json(stream):
    log, _ = logger(stream, as_json=True)
    log.warn("site {site} is down", site="prod\n")
    document = json.loads(stream.lines[0])
    assert document.pop("time").endswith("Z")
    assert document == {
        "level": "warning",
        "logger": "monrest.web",
        "message": "site prod\n is down",
    }


def test_a_line_stays_a_line(stream):
    log, _ = logger(stream)
    log.info("name {name}", name="a\nfake line\x00")
    assert len(stream.lines) == 1
    assert "a\\nfake line\\x00" in stream.lines[0]


def test_access_lines(stream):
    log, _ = logger(stream)
    log.info("request", **{ACCESS: ACCESS_FIELDS})
    assert stream.lines[0].split("Z ", 1)[1] == (
        'access method=GET path="/mon/r/x y" status=200 ms=1.5 user=ann failed_sites=a,b client=""'
    )


def test_access_lines_as_json(stream):
    log, _ = logger(stream, as_json=True)
    log.info("request", **{ACCESS: ACCESS_FIELDS})
    document = json.loads(stream.lines[0])
    assert {key: document[key] for key in ACCESS_FIELDS} == ACCESS_FIELDS
    assert document["message"] == "request"


def test_what_others_chat_is_left_out(stream):
    log, _ = logger(stream, namespace="twisted.web.http")
    log.info("Timing out client")
    log.debug("nothing")
    assert stream.lines == []
    log.warn("a warning")
    log.error("an error")
    assert len(stream.lines) == 2


def test_debug_is_left_out(stream):
    log, _ = logger(stream)
    log.debug("nothing")
    assert stream.lines == []


def test_levels():
    said = {}
    for level in ("debug", "info", "warning", "error"):
        stream = Lines()
        own, observer = logger(stream)
        others, _ = logger(stream, namespace="twisted.web.http")
        others.observer = own.observer
        observer.configure(level, as_json=False, access=True)
        for log, name in ((own, "own"), (others, "other")):
            for one in ("debug", "info", "warn", "error"):
                getattr(log, one)(f"{name}-{one}")
        own.info("request", **{ACCESS: ACCESS_FIELDS})
        own.info("audit", **{AUDIT: {"user": "ann"}})
        said[level] = re.findall(r"(?:own|other)-\w+|access|audit", stream.getvalue())
    warnings = ["own-warn", "own-error", "other-warn", "other-error"]
    assert said == {
        "debug": [
            *("own-debug", "own-info", "own-warn", "own-error"),
            *("other-debug", "other-info", "other-warn", "other-error", "access", "audit"),
        ],
        "info": ["own-info", *warnings, "access", "audit"],
        "warning": [*warnings, "audit"],
        "error": ["own-error", "other-error", "audit"],
    }


def test_access_lines_can_be_left_out(stream):
    log, observer = logger(stream)
    observer.configure("info", as_json=False, access=False)
    log.info("request", **{ACCESS: ACCESS_FIELDS})
    log.info("something else")
    assert len(stream.lines) == 1


def test_json_by_the_command_line_stays(stream):
    log, observer = logger(stream, as_json=True)
    observer.configure("info", as_json=False, access=True)
    log.info("x")
    assert json.loads(stream.lines[0])["message"] == "x"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_journal_gets_priorities(stream, as_json):
    log, observer = logger(stream, as_json=as_json, journal=True)
    observer.configure("debug", as_json=as_json, access=True)
    for one in ("debug", "info", "warn", "error", "critical"):
        getattr(log, one)("x")
    log.info("request", **{ACCESS: ACCESS_FIELDS})
    log.info("audit", **{AUDIT: {"user": "ann"}})
    assert [line[:3] for line in stream.lines] == ["<7>", "<6>", "<4>", "<3>", "<2>", "<6>", "<5>"]
    try:
        int("what")
    except ValueError:
        log.failure("it broke")
    assert len(stream.lines) > 7
    assert {line[:3] for line in stream.lines[7:]} == {"<2>"}


@pytest.mark.parametrize("as_json", [False, True])
def test_failures_bring_their_traceback_and_the_request(stream, as_json):
    log, _ = logger(stream, as_json=as_json)
    token = REQUEST_ID.set("abc-1")
    try:
        int("what")
    except ValueError:
        log.failure("it broke")
    finally:
        REQUEST_ID.reset(token)
    text = stream.getvalue()
    assert "abc-1" in text
    assert "invalid literal" in text
    assert "Traceback" in text
    if as_json:
        assert json.loads(text)["request_id"] == "abc-1"


def test_events_without_anything(stream):
    observer = LineObserver(stream)
    observer({})
    observer({"log_level": LogLevel.error})
    observer({"log_level": LogLevel.warn, "log_format": "{x", "log_time": 1.25})
    assert stream.lines[-1].startswith("1970-01-01T00:00:01.250Z warning")


HOSTILE = "a\u2028b\x85c\x9b31md\u202ee\ufffe\ud800\U000e0001\x7f\x1b ü"


def test_nothing_ends_a_line_or_steers_a_terminal(stream):
    log, observer = logger(stream)
    log.info("{what}", what=HOSTILE)
    log.info("audit", **{AUDIT: {"user": HOSTILE}})
    observer.access({**ACCESS_FIELDS, "user": HOSTILE}, 0.0, "monrest.web")
    assert len(stream.lines) == 3
    assert all(line.isprintable() for line in stream.lines)
    assert r"a\u2028b\x85c\x9b31md\u202ee\ufffe\ud800\U000e0001\x7f\x1b ü" in stream.lines[0]


def test_nor_as_json(stream):
    log, observer = logger(stream, as_json=True)
    log.info("{what}", what=HOSTILE)
    log.info("audit", **{AUDIT: {"user": HOSTILE.replace("\ud800", "")}})
    observer.access({**ACCESS_FIELDS, "user": HOSTILE}, 0.0, "monrest.web")
    assert len(stream.lines) == 3
    assert all(line.isprintable() for line in stream.lines)
    message, audited, access = map(json.loads, stream.lines)
    assert message["message"] == access["user"] == HOSTILE
    assert audited["user"] == HOSTILE.replace("\ud800", "")


ANN = Identity(user="ann", source="api_key", key="ab" * 32)
HERE = Caller(address="192.0.2.1", client="192.0.2.1")


def written(*arguments, as_json=False, **details):
    stream = io.StringIO()
    observer = LineObserver(stream, as_json)
    globalLogPublisher.addObserver(observer)
    token = REQUEST_ID.set("r1")
    try:
        audit(*arguments, **details)
    finally:
        REQUEST_ID.reset(token)
        globalLogPublisher.removeObserver(observer)
    return stream.getvalue()


def test_a_line_says_who_from_where_by_what_and_with_what_result():
    line = written(ANN, HERE, "command", target="host web01", commands=("A;b", "C d"))
    _, _, rest = line.partition(" ")
    assert rest == (
        "audit action=command user=ann client=192.0.2.1 method=api_key "
        'target="host web01" result=ok key=abababababababab commands=A;b,"C d" request_id=r1\n'
    )


def test_the_line_as_json_has_the_same_fields():
    line = json.loads(
        written(ANN, HERE, "key create", result="refused", as_json=True, roles=("x", "y"))
    )
    line.pop("time")
    assert line == {
        "level": "info",
        "logger": "audit",
        "action": "key create",
        "user": "ann",
        "client": "192.0.2.1",
        "method": "api_key",
        "target": "",
        "result": "refused",
        "key": "ab" * 8,
        "roles": ["x", "y"],
        "request_id": "r1",
    }


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        (None, "client=- "),
        (Caller(client="unix"), "client=unix "),
        (Caller(address="127.0.0.1", client="192.0.2.9"), "client=192.0.2.9 "),
    ],
)
def test_where_from(caller, expected):
    assert expected in written("bob", caller, "login failed")


def test_the_proxy_is_named_when_it_is_another_address():
    line = written("bob", Caller(address="127.0.0.1", client="192.0.2.9"), "login failed")
    assert " proxy=127.0.0.1 " in line
    assert "proxy" not in written("bob", HERE, "login failed")


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_from_outside_makes_another_line_or_field(name, target):
    line = written(name, HERE, "login failed", target=target)
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert not any(ord(char) < 32 or ord(char) == 127 for char in line[:-1])
    fields = list(_fields(line.rstrip("\n").split(" ", 2)[2]))
    names = [key for key, _ in fields]
    assert names == ["action", "user", "client", "method", "target", "result", "request_id"]


def _fields(text):
    """The fields of a line as a reader of logs takes them apart."""
    at = 0
    while at < len(text):
        name, _, rest = text[at:].partition("=")
        at += len(name) + 1
        if rest.startswith('"'):
            end = 1
            while rest[end] != '"':
                end += 2 if rest[end] == "\\" else 1
            value, at = rest[1:end], at + end + 2
        else:
            value = rest.partition(" ")[0]
            at += len(value) + 1
        yield name, value
