"""What only a real connection shows: limits of requests."""

import json

import pytest

from tests.web.wire import get, one

CODING = "unknown transfer coding"


def explained(reply, code):
    status, headers, body = reply
    document = json.loads(body)
    assert (status, document["code"]) == (code, code)
    assert document.pop("failed") is True
    assert set(document) == {"code", "message", "description"}
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    return document["message"]


async def test_urls_up_to_the_limit_are_read(serve):
    served = serve()
    client = await served.connect()
    path = "/hosts?q=" + "x" * (131072 - len("/mon/r/hosts?q="))
    status, _, _ = await one(client, get(path))
    assert status == 200
    assert len(served.room.seen[0].parameters[0][1]) > 131000
    assert explained(await one(client, get(path + "y")), 400) == "URL too long"
    assert not client.closed


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ("GET /mon/r/" + "x" * 140_000 + " HTTP/1.1\r\n\r\n", 400, "URL too long"),
        ("GET /mon/r/" + "x" * 3_000_000, 400, "URL too long"),
        (get("/hosts", "X-Long: " + "x" * 140_000), 400, "header too long"),
        (get("/hosts", *[f"X-Many-{n}: {n}" for n in range(600)]), 400, "bad request"),
        (get("/hosts", *[f"X-Big-{n}: {'x' * 10_000}" for n in range(30)]), 400, "bad request"),
        ("GET /mon/r/ho sts HTTP/1.1\r\n\r\n", 400, "bad request"),
        (b"GE\xff /mon/r/ HTTP/1.1\r\n\r\n", 400, "bad request"),
        ("GET /mon/r/ HTTP/3\r\n\r\n", 400, "bad request"),
        ("nonsense\r\n\r\n", 400, "bad request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "no TLS here"),
        (get("/hosts", "no header"), 400, "bad request"),
        ("GET /mon/r/hosts HTTP/1.1\r\n\r\n", 400, "bad request"),
        (get("/hosts", "Host: y"), 400, "bad request"),
        (get("/hosts", "Transfer-Encoding: identity", method="POST"), 501, CODING),
        (get("/hosts", "Transfer-Encoding: gzip, chunked", method="POST"), 501, CODING),
        (get("/hosts", "Content-Length: " + "9" * 5000, method="POST"), 400, "bad request"),
        (get("/hosts", "Content-Length: x", method="POST"), 400, "bad request"),
        (get("/hosts", "Content-Length: 33554433", method="POST"), 413, "request body too long"),
        (
            get("/hosts", "Content-Length: 99999999999", "Expect: 100-continue", method="POST"),
            413,
            "request body too long",
        ),
    ],
)
async def test_what_never_becomes_a_request(serve, request_, code, message):
    served = serve()
    client = await served.connect()
    client.send(request_)
    await client.until(lambda wire: wire.replies() or wire.closed)
    (reply,) = client.replies()
    assert explained(reply, code) == message
    assert reply[1]["connection"] == "close"
    client.transport.loseConnection()
    await client.until(lambda wire: wire.closed)
    assert served.room.seen == []


async def test_what_follows_a_refusal_is_ignored(serve):
    served = serve()
    client = await served.connect()
    client.send("nonsense\r\n\r\n" + get("/hosts"))
    await client.until(lambda wire: wire.replies())
    client.send(get("/hosts"))
    client.transport.loseWriteConnection()
    await client.until(lambda wire: wire.closed)
    assert len(client.replies()) == 1
    assert served.room.seen == []
