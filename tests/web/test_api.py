"""Request ids and bugs, in memory: real parser, site, Klein and renderer, scripted dispatch."""

import json

import pytest
from attrs import evolve

from tests.web.room import rows

ROOT = "/mon/r"


def refused(reply, code, message):
    document = json.loads(reply.body)
    assert document.pop("failed") is True
    assert set(document) == {"code", "message", "description"}
    assert (reply.status, document["code"]) == (code, code)
    assert document["message"] == message
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-request-id"]
    return document["description"]


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
