"""Answers that a client may keep, and asks about again: over real connections."""

import json

import pytest
from attrs import evolve

from monrest.base.errors import NotFound
from monrest.base.values import Document, SiteProblem
from tests.web.room import rows
from tests.web.wire import get, one

MAY_KEEP, MUST_NOT = "private, no-cache", "no-store"


@pytest.fixture
def served(serve):
    served = serve()
    served.room.answers["/hosts"] = Document(value={"name": "web01", "output": "x" * 2000})
    return served


async def test_an_answer_that_is_still_the_same_is_a_304(served):
    client = await served.connect()
    status, headers, body = await one(client, get("/hosts"))
    tag = headers["etag"]
    assert (status, headers["cache-control"], tag[0], tag[-1]) == (200, MAY_KEEP, '"', '"')
    failures = []
    for known in (
        tag,
        f"W/{tag}",
        "*",
        f'"other", {tag}',
        f'W/"x",W/{tag} , "y"',
        f'"other"\r\nIf-None-Match: {tag}',
    ):
        for method in ("GET", "HEAD"):
            request = get("/hosts", f"If-None-Match: {known}", method=method)
            status, told, rest = await one(client, request)
            kept = [told.get(name) for name in ("etag", "cache-control", "vary")]
            if (status, rest, kept) != (304, b"", [tag, MAY_KEEP, "accept, accept-encoding"]):
                failures.append((known, method, status, told, rest))
            if not told["date"] or "content-length" in told or "content-type" in told:
                failures.append((known, method, told))
    assert not failures
    # The connection goes on, and the answer comes whole when it is another one.
    assert (await one(client, get("/hosts", 'If-None-Match: "other"')))[::2] == (200, body)
    served.room.answers["/hosts"] = Document(value={"name": "web02"})
    status, changed, body = await one(client, get("/hosts", f"If-None-Match: {tag}"))
    assert (status, json.loads(body)) == (200, {"name": "web02"})
    assert changed["etag"] != tag


async def test_each_form_of_an_answer_has_a_tag_of_its_own(served):
    client = await served.connect()
    seen = {}
    for path, more in (
        ("/hosts", ()),
        ("/hosts", ("Accept-Encoding: gzip",)),
        ("/csv/hosts", ()),
        ("/text/hosts", ()),
        ("/hosts?pretty=1", ()),
    ):
        status, headers, _ = await one(client, get(path, *more))
        assert status == 200
        seen[path, more] = headers["etag"]
        again = await one(client, get(path, *more))
        assert again[1]["etag"] == headers["etag"]
    assert len(set(seen.values())) == len(seen), seen


async def test_a_tag_is_the_same_from_every_worker(serve):
    answers = []
    for _ in range(2):
        served = serve()
        client = await served.connect()
        answers.append((await one(client, get("/hosts")))[1]["etag"])
    assert answers[0] == answers[1]


async def test_what_must_not_be_kept_has_no_tag(served):
    room = served.room
    good = Document(value={"name": "web01"})
    problem = SiteProblem("lab", "Lab", "connection refused")
    room.answers.update(
        {
            "/partial": evolve(good, failed_sites=(problem,)),
            "/cookie": evolve(good, headers=(("Set-Cookie", "mon=1"),)),
            "/made": evolve(good, status=201),
            "/gone": NotFound("host not found"),
            "/large": rows(5000),
        }
    )
    client = await served.connect()
    failures = []
    for path, method, code in (
        ("/partial", "GET", 200),
        ("/cookie", "GET", 200),
        ("/made", "GET", 201),
        ("/gone", "GET", 404),
        ("/large", "GET", 200),
        ("/hosts", "POST", 200),
    ):
        request = get(path, "If-None-Match: *", "Content-Length: 0", method=method)
        status, headers, _ = await one(client, request)
        if (status, headers.get("etag"), headers["cache-control"]) != (code, None, MUST_NOT):
            failures.append((path, status, headers))
        if path == "/partial" and headers["x-mon-failed-sites"] != "lab":
            failures.append((path, headers))
    assert not failures
