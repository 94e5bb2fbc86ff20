"""Whose bodies are received, how much of each and of all together: over real connections."""

import json

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred

from monrest.web.limits import SMALL_BODY
from tests.web.room import USUAL
from tests.web.wire import get, one

LONG = SMALL_BODY + 1


def posted(path, *more, key=None):
    """The head of a POST with credentials, with those of a wrong key, or (False) with none."""
    head = get(path, *more, method="POST")
    if key is None:
        return head
    lines = [line for line in head.split("\r\n") if not line.startswith("X-Mon-Auth-")]
    if key:
        lines.insert(2, f"X-Mon-Auth-Key: {key}")
    return "\r\n".join(lines)


def of_length(size):
    return f"Content-Length: {size}"


async def answered_early(client, request, code):
    """Send a head; the answer comes without the body, and the connection ends."""
    client.send(request)
    await client.until(lambda wire: wire.replies())
    ((status, headers, body),) = client.replies()
    assert (status, json.loads(body)["code"], headers["connection"]) == (code, code, "close")
    assert headers["x-request-id"]
    client.transport.loseConnection()
    await client.until(lambda wire: wire.closed)
    return headers, json.loads(body)["message"]


WRONG = "f" * 64 + "_1"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("key", "size", "code", "message"),
    [
        (False, of_length(LONG), 401, "login required"),
        (False, of_length(33554432), 401, "login required"),
        (False, CHUNKED, 401, "login required"),
        (WRONG, of_length(LONG), 403, "wrong authentication key"),
        (WRONG, CHUNKED, 403, "wrong authentication key"),
        ("nonsense", of_length(LONG), 403, "wrong authentication key"),
    ],
)
async def test_nobody_unknown_sends_a_long_body(serve, key, size, code, message):
    served = serve()
    client = await served.connect()
    request = posted("/hosts", size, "Expect: 100-continue", key=key)
    assert (await answered_early(client, request, code))[1] == message
    assert served.room.seen == []
    assert served.room.site.intake.held == 0


async def test_a_short_body_is_read_before_anybody_asks(serve):
    served = serve()
    client = await served.connect()
    body = "a" * SMALL_BODY
    status, _, _ = await one(client, posted("/hosts", of_length(SMALL_BODY), key=False) + body)
    assert (status, client.closed) == (401, False)
    assert (await one(client, posted("/hosts", of_length(SMALL_BODY)) + body))[0] == 200
    assert len(served.room.seen[0].parameters[0][0]) == SMALL_BODY
    assert served.room.site.intake.held == 0


async def test_without_a_login_no_body_is_long(serve):
    served = serve()
    client = await served.connect()
    _, message = await answered_early(client, posted("/open", of_length(LONG), key=False), 413)
    assert message == "request body too long"
    client = await served.connect()
    chunks = f"{LONG:x}\r\n" + "a" * LONG + "\r\n0\r\n\r\n"
    status, _, body = await one(client, posted("/open", CHUNKED, key=False) + chunks)
    assert (status, json.loads(body)["description"]) == (
        413,
        "expected a body of up to 65536 bytes",
    )
    assert served.room.seen == []


async def test_a_long_body_is_asked_for_when_it_is_known_who_sends_it(serve):
    served = serve()
    client = await served.connect()
    client.send(posted("/hosts", of_length(LONG), "Expect: 100-continue"))
    await client.until(lambda wire: wire.data)
    assert client.data == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.data.clear()
    assert (await one(client, "a" * LONG))[0] == 200


async def test_while_a_key_is_looked_up_nothing_more_is_read(serve):
    served, asked, found = serve(), Deferred(), Deferred()

    async def find(_):
        asked.callback(None)
        return await found

    served.room.keys.find = find
    client = await served.connect()
    client.send(posted("/hosts", of_length(30_000_000), key=WRONG) + "a" * 3_000_000)
    await asked
    other = await served.connect()
    assert (await one(other, get("/fine")))[0] == 200
    (channel,) = [one for one in served.room.site.channels if one.requests]
    assert channel.requests[0].body.tell() <= 2 * SMALL_BODY
    found.callback(None)
    await client.until(lambda wire: wire.replies() or wire.closed)
    assert client.data.startswith(b"HTTP/1.1 403")
    assert served.room.site.intake.held == 0


async def test_all_bodies_together_have_a_limit(serve):
    served = serve()
    site = served.room.site
    site.intake.most = 200_000
    first, second = await served.connect(), await served.connect()
    first.send(posted("/hosts", of_length(150_000)) + "a" * 100)
    while not site.intake.held:
        await one(await served.connect(), get("/fine"))
    headers, message = await answered_early(second, posted("/hosts", of_length(150_000)), 503)
    assert (headers["retry-after"], message) == ("5", "too many request bodies at once")
    chunked = await served.connect()
    chunked.send(posted("/hosts", CHUNKED) + "13880\r\n" + "a" * 80_000)
    await chunked.until(lambda wire: wire.replies())
    assert chunked.replies()[0][0] == 503
    assert (await one(first, "a" * 149_900))[0] == 200
    assert site.intake.held == 0
    again = await served.connect()
    assert (await one(again, posted("/hosts", of_length(150_000)) + "a" * 150_000))[0] == 200


async def test_who_leaves_takes_his_body_along(serve):
    served = serve()
    for kind in (of_length(150_000), CHUNKED):
        client = await served.connect()
        client.send(posted("/hosts", kind) + ("" if kind != CHUNKED else "10\r\n") + "a" * 10)
        while not served.room.site.intake.held:
            await one(await served.connect(), get("/fine"))
        client.transport.abortConnection()
        await client.lost
        while served.room.site.intake.held:
            await one(await served.connect(), get("/fine"))
    assert [request.path for request in served.room.seen if request.path != "/fine"] == []


async def test_an_endpoint_may_take_longer_bodies_and_one_with_a_role_only_from_who_holds_it(serve):
    served = serve(max_body=100_000)
    served.room.endpoints = {
        "/long": evolve(USUAL, body_limit=200_000),
        "/mine": evolve(USUAL, body_limit=200_000, roles=("admin",)),
    }
    client = await served.connect()
    body = "a" * 150_000
    assert (await one(client, posted("/long", of_length(150_000)) + body))[0] == 200
    for path, length, code, message in (
        ("/long", 200_001, 413, "request body too long"),
        ("/short", 150_000, 413, "request body too long"),
        ("/mine", 150_000, 403, "not authorized"),
    ):
        client = await served.connect()
        assert (await answered_early(client, posted(path, of_length(length)), code))[1] == message
    assert [request.path for request in served.room.seen] == ["/long"]


async def test_the_values_of_a_body_count(serve):
    served = serve()
    client = await served.connect()
    body = '{"a": [' + ",".join(["1"] * 10_000) + "]}"
    head = get("/hosts", of_length(len(body)), "Content-Type: application/json", method="POST")
    assert (await one(client, head + body))[0] == 200
    assert served.room.seen[0].body_size > 200 * 10_000
    assert served.room.site.intake.held == 0
    served.room.site.intake.most = 2_000_000
    assert (await one(client, head + body))[0] == 200, "alone it may need all of the room"
    served.room.site.intake.held = 1000
    assert (await one(client, head + body))[0] == 503
    served.room.site.intake.held = 0
