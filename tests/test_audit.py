"""Audit lines as they stand in the log, text and JSON."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import globalLogPublisher

from monrest.base.audit import audit
from monrest.base.log import REQUEST_ID, LineObserver
from monrest.base.values import Caller, Identity

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
