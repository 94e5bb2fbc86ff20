"""All three clients do the same, over real sockets, before servers whose answers the test chooses."""

import asyncio
import gzip
import inspect
import json
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_twisted import ensureDeferred
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.threads import deferToThread

from monrest.client import (
    ApiError,
    AsyncClient,
    AsyncioClient,
    Client,
    ClientError,
    ConflictError,
    IncompleteError,
    InvalidRequestError,
    NotAuthorizedError,
    NotThereError,
    OverloadedError,
    SitesFailedError,
    UnreachableError,
    column,
)
from monrest.client.calling import Awaited, finish
from monrest.client.exchange import ApiRequest
from monrest.client.http_connection import error_text
from monrest.client.row_query import RowQuery
from tests.cli.fake import Fake, Handler, Raw, free_address, says
from tests.fakes.certificates import Authority

REPOSITORY = Path(__file__).parents[2]


class Way:
    """A kind of client; ``run`` runs a coroutine of a test that uses it."""

    def __init__(self, kind):
        self.kind = {"blocking": Client, "asyncio": AsyncioClient, "twisted": AsyncClient}[kind]
        self.run = {
            "blocking": finish,
            "asyncio": lambda test: asyncio.run(asyncio.wait_for(test, 60)),
            "twisted": lambda test: test,
        }[kind]

    async def use(self, test, url, **arguments):
        """Run ``test`` with a client that does not pause, and give the seconds of its pauses."""
        pauses = []

        async def pause(seconds):
            pauses.append(seconds)

        async def used():
            client = self.kind(url, **arguments)
            client._transport.pause = pause
            try:
                await test(client)
            finally:
                await the(client.close())

        await the(self.run(used()))
        return pauses


async def the(result):
    """The result of a call, which some clients give at once."""
    return await result if inspect.isawaitable(result) else result


async def following(walk):
    """The next item of an iterator; StopAsyncIteration at its end."""
    if hasattr(walk, "__anext__"):
        return await anext(walk)
    for one in walk:
        return one
    raise StopAsyncIteration


async def items(of, most=None):
    """What is iterated; with ``most`` only so many items, behind which the iterator is left."""
    if isinstance(of, RowQuery):
        of = aiter(of) if of.kind is Awaited else iter(of)
    found = []
    try:
        while len(found) != most:
            found.append(await following(of))
    except StopAsyncIteration:
        pass
    finally:
        await the(of.aclose() if hasattr(of, "aclose") else of.close())
    return found


@pytest.fixture(params=["blocking", "asyncio", "twisted"])
def way(request):
    return Way(request.param)


@pytest.fixture
def fake():
    fake = Fake()
    yield fake
    fake.close()


@ensureDeferred
@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_what_is_sent_is_as_it_was_meant(way, kind, tmp_path):
    fake = Fake(tmp_path / "s" if kind == "unix" else None)
    fake.answers["/mon/r/services/web01/Disk%20%2F"] = (200, [{"state": 1}])

    async def test(client):
        path = "/services/web01/Disk%20%2F?q=a~'b'"
        assert await the(client.get(path, n=[1, 2], m=None, flag=True)) == [{"state": 1}]

    try:
        await way.use(test, fake.url, key="k_1", user="j\u00fcrgen")
    finally:
        fake.close()
    (seen,) = fake.seen
    assert seen.method == "GET"
    assert seen.target == "/mon/r/services/web01/Disk%20%2F?q=a~'b'&n=1&n=2&flag=1"
    assert seen.headers["X-Mon-Auth-Key"] == "k_1"
    assert seen.headers["X-Mon-Auth-User"].encode("latin-1").decode() == "j\u00fcrgen"
    assert seen.headers["Host"] == (fake.url[7:] if kind == "tcp" else "localhost")


@pytest.fixture
def encrypted(tmp_path, fake):
    authority = Authority(tmp_path)
    fake.encrypt(authority)
    fake.answers["/mon/r/x"] = (200, {"n": 1})
    # Bundles of authorities have comments, in any language.
    fake.ca_file = authority.ca_file
    Path(fake.ca_file).write_text(
        f"# F\u0151tan\u00fas\u00edtv\u00e1ny\n{Path(fake.ca_file).read_text()}", "utf-8"
    )
    return fake


@ensureDeferred
async def test_tls(way, encrypted):
    async def trusted(client):
        assert await the(client.get("/x")) == {"n": 1}
        # The server has closed that connection without saying so.
        assert await the(client.post("/x", {"a": 1})) == {"n": 1}
        assert await the(client.get("/x")) == {"n": 1}

    async def refused(client):
        with pytest.raises(UnreachableError, match=r"cannot reach https://localhost:.*certificate"):
            await the(client.get("/x"))

    async def unusable(client):
        await the(client.get("/x"))

    await way.use(trusted, encrypted.url, ca_file=str(encrypted.ca_file))
    await way.use(trusted, encrypted.url, insecure=True)
    assert len([seen for seen in encrypted.seen if seen.method == "POST"]) == 2
    await way.use(refused, encrypted.url, retries=0)
    for wrong in ({"ca_file": __file__}, {"cert_file": __file__}, {"ca_file": "/nonexistent"}):
        with pytest.raises(ClientError, match="certificates: "):
            await way.use(unusable, encrypted.url, **wrong)


def test_a_port_without_tls_is_named():
    error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    assert error_text(error) == "it does not speak TLS, is it http://?"


@ensureDeferred
async def test_unknown_columns_are_errors_by_default(way, fake):
    """Where columns are named, and unless the request or the client says otherwise."""
    asked = []
    fake.answers["/mon/r/hosts"] = (200, [])
    for strict, path in (
        (True, "/hosts?columns=name"),
        (True, "/hosts?sort=name"),
        (True, "/hosts?columns=name&strict=0"),
        (True, "/hosts?name=web01"),
        (False, "/hosts?columns=name"),
    ):

        async def test(client, path=path):
            await the(client.get(path))

        await way.use(test, fake.url, strict=strict)
        asked.append(parse_qs(urlsplit(fake.seen[-1].target).query).get("strict"))
    assert asked == [["1"], ["1"], ["0"], None, None]


KINDS = {
    400: InvalidRequestError, 401: NotAuthorizedError, 403: NotAuthorizedError,
    404: NotThereError, 409: ConflictError, 429: OverloadedError, 500: ApiError,
    502: SitesFailedError, 504: SitesFailedError, 503: OverloadedError,
}  # fmt: skip


@ensureDeferred
async def test_errors_are_exceptions(way, fake):
    async def test(client):
        for code, kind in KINDS.items():
            answer = {"code": code, "message": "no", "description": "limit: expected a number"}
            fake.answers["/mon/r/x"] = (code, answer, {"Retry-After": "7"})
            with pytest.raises(kind, match=f"{code} no: limit: expected a number") as caught:
                await the(client.get("/x"))
            assert (caught.value.code, caught.value.document) == (code, answer)
            with pytest.raises(kind):
                await items(client.stream("/x"))
        assert caught.value.retry_after == 7.0
        fake.answers["/mon/r/x"] = (200, b"<html>")
        with pytest.raises(ClientError, match="is this the address of a monrest"):
            await the(client.get("/x"))

    fake.answers["/mon/r/ndjson/x"] = lambda _: fake.answers["/mon/r/x"]
    assert await way.use(test, fake.url) == [7.0, 7.0]


@ensureDeferred
async def test_only_safe_requests_are_sent_again(way, fake):
    async def test(client):
        fake.answers["/mon/r/x"] = (503, {"message": "not now"})
        for send, arguments, times in (
            (client.get, (), 3), (client.post, (), 1), (client.patch, ({},), 1),
            (client.delete, (), 1),
        ):  # fmt: skip
            fake.seen.clear()
            with pytest.raises(OverloadedError):
                await the(send("/x", *arguments))
            assert len(fake.seen) == times
        answers = [(503, {}), (200, {"n": 1})]
        fake.answers["/mon/r/x"] = lambda _: answers.pop(0)
        assert await the(client.get("/x")) == {"n": 1}

    assert await way.use(test, fake.url) == [0.2, 0.4, 0.2]


@ensureDeferred
async def test_an_address_without_a_listener(way, tmp_path):
    async def test(client):
        with pytest.raises(UnreachableError, match=r"cannot reach .*: "):
            await the(client.get("/x"))

    assert await way.use(test, free_address()) == [0.2, 0.4]
    assert await way.use(test, f"unix:{tmp_path}/none", retries=0) == []


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


@ensureDeferred
@pytest.mark.parametrize(
    ("said", "times"), [(b"", 1), (HEAD[:20], 1), (HEAD + b"[1,", 2)], ids=["head", "half", "body"]
)
async def test_no_answer_in_time(way, said, times):
    """What is at work already is not asked again; an answer that stops is."""

    async def test(client):
        with pytest.raises(UnreachableError, match="no answer in time"):
            await the(client.get("/x"))

    with Raw(says(said, and_waits=True)) as raw:
        await way.use(test, raw.url, timeout=0.1, retries=1)
        assert len(raw.heads) == times


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PACKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
NO_ANSWERS = {
    "nothing": b"",
    "half a head": HEAD[:20],
    "half a body": HEAD + b"[1,",
    "half a chunk": CHUNKED + b"3\r\n[1,\r\n50\r\n[",
    "no last chunk": CHUNKED + b"3\r\n[1,\r\n",
    "a long length of a chunk": CHUNKED + b"1" * 100_000,
    "a chunk without length": CHUNKED + b"xyz\r\n[1]",
    "half a gzip": PACKED + gzip.compress(b"[1]" * 99, mtime=0)[:-9],
    "no gzip": PACKED + b"[1]",
    "another protocol": b"SSH-2.0-x\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 30_000,
    "a long line": b"x" * 100_000,
}


@ensureDeferred
@pytest.mark.parametrize("said", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_what_is_cut_or_no_answer(way, said):
    async def test(client):
        with pytest.raises(UnreachableError):
            await the(client.get("/x"))

    with Raw(says(said)) as raw:
        assert await way.use(test, raw.url, retries=1) == [0.2]
        assert len(raw.heads) == 2


@ensureDeferred
async def test_heads_in_front_of_the_answer_and_a_body_until_the_end(way):
    async def test(client):
        assert await the(client.get("/x")) == [1]

    first = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    with Raw(says(first + b"HTTP/1.1 200 OK\r\n\r\n[1]")) as raw:
        await way.use(test, raw.url)


@ensureDeferred
@pytest.mark.parametrize("said", [CHUNKED, PACKED, HEAD], ids=["chunked", "packed", "length"])
async def test_the_answer_to_head_has_no_body(way, said):
    async def test(client):
        reply, body = await client._answered(ApiRequest("/x", "HEAD"))
        assert (reply.status, body) == (200, b"")

    with Raw(says(said, and_waits=True)) as raw:
        assert await way.use(test, raw.url, timeout=5) == []


@ensureDeferred
async def test_no_header_is_smuggled(way, fake):
    async def test(client):
        with suppress(UnreachableError):
            await the(client.get("/x"))

    fake.answers["/mon/r/x"] = (200, {})
    await way.use(test, fake.url, key="k\r\nX-Mon-Auth-User: root", retries=0)
    assert not [seen for seen in fake.seen if "X-Mon-Auth-User" in seen.headers]


class Keeping(Handler):
    def handle_any(self):
        super().handle_any()
        self.close_connection = False

    do_GET = do_POST = do_HEAD = handle_any


@ensureDeferred
async def test_connections_are_used_again(way, fake):
    """But for what changes something; and the end of the client closes them."""
    accepted = []
    fake.server.RequestHandlerClass = Keeping
    fake.server.verify_request = lambda request, _: accepted.append(request) or True
    fake.answers["/mon/r/x"] = (200, {"n": 1})
    fake.answers["/mon/r/chunked"] = (
        200, b"5\r\n{\"n\":\r\n3;a\r\n 1}\r\n0\r\nEnd: x\r\n\r\n", {"Transfer-Encoding": "chunked"},
    )  # fmt: skip
    fake.answers["/mon/r/packed"] = (200, gzip.compress(b'{"n": 1}'), {"Content-Encoding": "gzip"})

    async def test(client):
        for path in ("/x", "/chunked", "/packed", "/x"):
            assert await the(client.get(path)) == {"n": 1}
        assert len(accepted) == 1
        assert await the(client.post("/x", {"a": 1})) == {"n": 1}
        assert len(accepted) == 2

    await way.use(test, fake.url)
    assert fake.seen[-1].json == {"a": 1}


@ensureDeferred
async def test_a_connection_that_was_closed_meanwhile_is_no_error(way, fake):
    # The fake server closes each connection behind its answer, without saying so.
    fake.answers["/mon/r/x"] = (200, {"n": 1})

    async def test(client):
        for _ in range(3):
            assert await the(client.get("/x")) == {"n": 1}
        assert await the(client.post("/x", {"a": 1})) == {"n": 1}
        assert await the(client.get("/x")) == {"n": 1}

    await way.use(test, fake.url)
    assert len(fake.seen) == 5


@ensureDeferred
async def test_missing_sites(way, fake):
    fake.answers["/mon/r/hosts"] = fake.answers["/mon/r/ndjson/hosts"] = (
        200, b'[{"name": "a"}]', {"X-Mon-Failed-Sites": "b,c", "X-Mon-Warnings": "x%20y; z"},
    )  # fmt: skip

    async def any_sites(client):
        rows = await the(client.hosts().all())
        assert (rows, rows.failed_sites) == ([{"name": "a"}], ["b", "c"])
        assert rows.warnings == ["x y", "z"]

    async def whole(client):
        for asked in (client.hosts().all, lambda: items(client.hosts())):
            with pytest.raises(IncompleteError) as caught:
                await the(asked())
            assert caught.value.sites == ["b", "c"]

    await way.use(any_sites, fake.url)
    await way.use(whole, fake.url, whole=True)


@ensureDeferred
async def test_rows_and_pages(way, fake):
    rows = [{"name": str(number)} for number in range(7)]

    def page(seen):
        named = parse_qs(urlsplit(seen.target).query)
        if named.get("columns") == ["count(*) as n"]:
            return 200, [{"n": len(rows)}]
        start = int(named.get("offset", "0")[0])
        return 200, rows[start:][: int(named.get("limit", ["99"])[0])]

    async def test(client):
        hosts = client.hosts(column("state") > 0).sort("name")
        for chosen, wanted in (
            (hosts, [3, 3, 1]), (hosts.offset(1).limit(4), [3, 1]), (hosts.offset(4), [3]),
        ):  # fmt: skip
            assert [len(page) for page in await items(chosen.pages(3))] == wanted
        assert await the(hosts.first()) == rows[0]
        assert await the(hosts.count()) == 7
        with pytest.raises(LookupError, match="several"):
            await the(hosts.one())
        rows.clear()
        assert await the(hosts.first()) is None
        with pytest.raises(LookupError, match="none"):
            await the(hosts.one())
        with pytest.raises(NotThereError):
            await the(client.host("w /"))
        assert await the(client.service("a", "b")) == {"state": 1}

    fake.answers["/mon/r/hosts"] = page
    fake.answers["/mon/r/hosts/w%20%2F"] = (200, [])
    fake.answers["/mon/r/services/a/b"] = (200, [{"state": 1}])
    await way.use(test, fake.url)


@ensureDeferred
async def test_a_large_answer_is_read_as_it_comes(way):
    """The first row is there while the server has hardly begun, and leaving ends the request."""
    line = json.dumps({"name": "x" * 980}).encode() + b"\n"
    read, left, sent, chunks = threading.Event(), threading.Event(), [], 5

    def talk(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for number in range(chunks):
                chunk = line * 1000
                connection.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                if not number:
                    assert read.wait(30)
                sent.append(number)
            connection.sendall(b"0\r\n\r\n")
        except OSError:
            left.set()

    async def counted(client):
        read.set()
        assert len(await items(client.stream("/hosts"))) == 5_000

    with Raw(talk) as raw:
        await way.use(counted, raw.url)
        assert len(sent) == 5
        read.clear()
        sent.clear()
        chunks = 30  # more than all buffers on the way hold

        async def first_only(client):
            assert await items(client.hosts(), 1) == [json.loads(line)]
            assert sent == []

        await way.use(first_only, raw.url)
        read.set()
        assert await deferToThread(left.wait, 30)
        assert len(sent) < 30


@ensureDeferred
async def test_a_stream_that_breaks_off(way, fake):
    cut = {"Content-Length": "100"}
    fake.answers["/mon/r/ndjson/hosts"] = (200, b'{"name": "a"}\n{"na', cut)

    async def test(client):
        assert await items(client.hosts(), 1) == [{"name": "a"}]
        with pytest.raises(UnreachableError):
            await items(client.hosts())

    await way.use(test, fake.url)


def lines(*events):
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


def event(number, **more):
    return {"type": "state", "id": f"s@1.{number}", "data": {}, "cursor": f"c{number}", **more}


def asked_for(fake):
    return [parse_qs(urlsplit(seen.target).query) for seen in fake.seen]


async def until(events, error, match=None):
    """The ids of events until the stream ends with this error."""
    found = []

    async def read_on():
        while True:
            found.append((await following(events))["id"])

    with pytest.raises(error, match=match):
        await read_on()
    return found


@ensureDeferred
async def test_events_go_on_behind_the_last_one(way, fake):
    cut = {"Content-Length": "10000"}
    answers = [
        (200, lines(event(0, type="snapshot"), event(1)), cut),
        (503, {"message": "stopping"}),
        (502, b"<html>nobody is behind this proxy</html>"),
        (200, lines(event(2), event(2, type="heartbeat", cursor="c3"))),
        (200, lines(event(4), event(5, type="gap"))),
        (200, lines({"type": "end", "data": {"message": "the key is gone"}})),
    ]
    fake.answers["/mon/r/events"] = lambda _: answers.pop(0)

    async def test(client):
        events = client.events(column("state") > 0, types=["state"], since="-1h", snapshot=True)
        found = await until(events, NotAuthorizedError, "the key is gone")
        assert found == ["s@1.1", "s@1.2", "s@1.4", "s@1.5"]

    assert await way.use(test, fake.url) == [3.0] * 5
    queries = asked_for(fake)
    assert [one["since"] for one in queries] == [["-1h"], *[["c1"]] * 3, ["c3"], ["c5"]]
    assert [one.get("snapshot") for one in queries] == [["1"], *[None] * 5]
    assert queries[0]["q"] == ['"state" > 0']


@ensureDeferred
async def test_a_snapshot_that_breaks_off_comes_again(way, fake):
    cut = {"Content-Length": "10000"}
    answers = [
        (200, lines(event(1, cursor="")), cut),
        (200, lines(event(1, cursor=""), event(2, cursor=""), event(3, type="snapshot"))),
        (200, lines(event(4))),
    ]
    fake.answers["/mon/r/events"] = lambda _: answers.pop(0)

    async def test(client):
        found = [one["id"] for one in await items(client.events(snapshot=True), 4)]
        assert found == ["s@1.1", "s@1.1", "s@1.2", "s@1.4"]

    await way.use(test, fake.url)
    queries = asked_for(fake)
    assert [one.get("snapshot") for one in queries] == [["1"], ["1"], None]
    assert [one.get("since") for one in queries] == [None, None, ["c3"]]


@ensureDeferred
async def test_events_that_are_refused(way, fake):
    async def test(client):
        for status, problem in ((400, InvalidRequestError), (503, OverloadedError)):
            fake.answers["/mon/r/events"] = (status, {"message": "no"})
            assert await until(client.events(), problem) == []
        data = {"code": 404, "message": "not found", "description": "no site"}
        fake.answers["/mon/r/events"] = (200, lines({"type": "end", "data": data}))
        assert await until(client.events(), NotThereError, "404 not found: no site") == []

    assert await way.use(test, fake.url) == []


@ensureDeferred
async def test_a_job_is_awaited(way, fake):
    states = [{"is_running": 1, "percent": 40}, {"is_running": 0}]
    fake.answers["/mon/r/x"] = (200, {"job_id": "5"})
    fake.answers["/mon/r/mon/jobs/5"] = lambda seen: (
        (200, {}) if seen.method == "DELETE" else (200, states.pop(0))
    )
    outputs = [(302, b""), (200, [1])]
    fake.answers["/mon/r/mon/jobs/5/output"] = lambda _: outputs.pop(0)

    async def test(client):
        shown = []
        job = await the(client.background("/x", a=1))
        assert fake.seen[0].target == "/mon/r/x?a=1&background=1"
        assert await the(job.result(shown.append)) == [1]
        assert [state["is_running"] for state in shown] == [1, 0]
        fake.answers["/mon/r/mon/jobs/5/output"] = (500, {"message": "background job failed"})
        with pytest.raises(ApiError, match="500 background job failed"):
            await the(client.job("5").result())
        await the(job.cancel())
        assert fake.seen[-1].method == "DELETE"
        fake.answers["/mon/r/x"] = (200, {})
        with pytest.raises(ClientError, match="expected an answer with a job_id"):
            await the(client.background("/x"))

    assert await way.use(test, fake.url) == [0.2, 0.2]


@ensureDeferred
async def test_commands(way, fake):
    fake.answers["/mon/r/cmd"] = lambda seen: (
        200, [{"code": 200}, {"code": 400, "error": "no"}] if isinstance(seen.json, list)
        else {"message": "Command successfully submitted", "commands": "COMMAND [1] X", "effect": "seen"},
    )  # fmt: skip

    async def test(client):
        outcome = await the(client.command("ping", host="a", comment=None, wait=3))
        assert (outcome.sent, outcome.effect, outcome.commands) == (True, "seen", ["COMMAND [1] X"])
        assert fake.seen[-1].target == "/mon/r/cmd?wait=3"
        assert fake.seen[-1].json == {"cmd": "ping", "host": "a"}
        outcomes = await the(client.commands([{"cmd": "a"}, {"cmd": "b"}], sites=["x", "y"]))
        assert [one.sent for one in outcomes] == [True, False]

    fake.answers["/mon/r/sites/x,y/cmd"] = fake.answers["/mon/r/cmd"]
    await way.use(test, fake.url)


@ensureDeferred
@pytest.mark.parametrize("said", [b"", HEAD + b"[1,"], ids=["head", "body"])
@pytest.mark.parametrize("kind", ["asyncio", "twisted"])
async def test_a_cancelled_request_is_ended_and_not_sent_again(kind, said):
    left = threading.Event()

    def talk(connection):
        connection.sendall(said)
        with suppress(ConnectionResetError):
            connection.recv(1)
        left.set()

    async def on_asyncio(client):
        asked = asyncio.ensure_future(client.get("/x"))
        await asyncio.sleep(0.1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    async def on_twisted(client):
        from twisted.internet import reactor
        from twisted.internet.task import deferLater

        asked = Deferred.fromCoroutine(client.get("/x"))
        await deferLater(reactor, 0.1)
        asked.cancel()
        with pytest.raises(CancelledError):
            await asked

    async def test(client):
        await (on_asyncio if kind == "asyncio" else on_twisted)(client)

    with Raw(talk) as raw:
        assert await Way(kind).use(test, raw.url) == []
        assert await deferToThread(left.wait, 30)
        assert len(raw.heads) == 1


@ensureDeferred
@pytest.mark.parametrize("kind", ["asyncio", "twisted"])
async def test_requests_run_at_the_same_time_each_on_its_connection(fake, kind):
    together = threading.Barrier(3)
    fake.server.RequestHandlerClass = Keeping
    fake.answers["/mon/r/ndjson/x"] = (200, lines({"n": 1}))
    fake.answers["/mon/r/x"] = lambda _: (200, {"n": together.wait(30)})

    async def test(client):
        assert await items(client.stream("/x")) == [{"n": 1}]
        if kind == "asyncio":
            found = await asyncio.gather(*[client.get("/x") for _ in range(3)])
        else:
            found = await gatherResults(
                [Deferred.fromCoroutine(client.get("/x")) for _ in range(3)]
            )
        assert sorted(one["n"] for one in found) == [0, 1, 2]

    await Way(kind).use(test, fake.url)


def test_a_client_for_twisted_names_the_one_for_asyncio():
    with pytest.raises(TypeError, match="with asyncio use AsyncioClient"):
        asyncio.run(AsyncClient("unix:/none").get("/hosts"))


@pytest.mark.parametrize(
    ("name", "absent"), [("Client", "twisted attr asyncio"), ("AsyncioClient", "twisted attr")]
)
def test_it_needs_the_standard_library_only(name, absent):
    code = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import monrest.client as c; "
        f"c.{name}('http://h'); c.where(state=1); c.NotThereError; "
        f"assert not {set(absent.split())} & set(sys.modules); print('good')"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == ("good\n", "")
