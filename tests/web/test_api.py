"""Own words, request ids and bugs, in memory: real parser, site, Klein and renderer, scripted dispatch."""

import json

from attrs import evolve

from monrest.base.names import Names
from tests.web.room import KEY, Room, asking, rows

ROOT = "/mon/r"
OWN = {"X-Abc-Auth-Key": KEY, "X-Abc-Auth-User": "ann"}


def refused(reply, code, message):
    document = json.loads(reply.body)
    assert document.pop("failed") is True
    assert set(document) == {"code", "message", "description"}
    assert (reply.status, document["code"]) == (code, code)
    assert document["message"] == message
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-request-id"]
    return document["description"]


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
