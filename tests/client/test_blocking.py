"""The blocking client against a server whose answers the test chooses."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from fake import Fake, free_address

from monrest.client import (
    Client,
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

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def fake():
    fake = Fake()
    yield fake
    fake.close()


@pytest.fixture
def client(fake, monkeypatch):
    monkeypatch.setattr("monrest.client.blocking.time.sleep", lambda _: None)
    with Client(fake.url, key="k_1", user="ann") as client:
        yield client


def test_it_needs_the_standard_library_only():
    code = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import monrest.client as c; "
        "c.Client('http://h'); c.where(state=1); c.NotThereError; "
        "assert not {'twisted', 'attr'} & set(sys.modules); print('good')"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == ("good\n", "")


def test_unknown_columns_are_errors_by_default(fake):
    """Where columns are named, and unless the request or the client says otherwise."""
    asked = []
    for strict, path in (
        (True, "/hosts?columns=name"),
        (True, "/hosts?sort=name"),
        (True, "/hosts?columns=name&strict=0"),
        (True, "/hosts?name=web01"),
        (False, "/hosts?columns=name"),
    ):
        fake.answers["/mon/r/hosts"] = (200, [])
        with Client(fake.url, strict=strict) as client:
            client.get(path)
        asked.append(parse_qs(urlsplit(fake.seen[-1].target).query).get("strict"))
    assert asked == [["1"], ["1"], ["0"], None, None]


KINDS = {
    400: InvalidRequestError, 401: NotAuthorizedError, 403: NotAuthorizedError,
    404: NotThereError, 409: ConflictError, 429: OverloadedError, 502: SitesFailedError,
    504: SitesFailedError, 503: OverloadedError,
}  # fmt: skip


def test_errors_are_exceptions(fake, client):
    for code, kind in KINDS.items():
        answer = {"code": code, "message": "no", "description": "x: expected y"}
        fake.answers["/mon/r/x"] = (code, answer, {"Retry-After": "7"})
        with pytest.raises(kind, match=f"{code} no: x: expected y") as caught:
            client.get("/x")
        assert (caught.value.code, caught.value.document) == (code, answer)
    assert caught.value.retry_after == 7.0


def test_only_safe_requests_are_sent_again(fake, client):
    fake.answers["/mon/r/x"] = (503, {"message": "not now"})
    for send, times in ((client.get, 3), (client.post, 1), (client.delete, 1)):
        fake.seen.clear()
        with pytest.raises(OverloadedError):
            send("/x")
        assert len(fake.seen) == times
    answers = [(503, {}), (200, {"n": 1})]
    fake.answers["/mon/r/x"] = lambda _: answers.pop(0)
    assert client.get("/x") == {"n": 1}


def test_nobody_listens(monkeypatch):
    pauses = []
    monkeypatch.setattr("monrest.client.blocking.time.sleep", pauses.append)
    with pytest.raises(UnreachableError, match="cannot reach"):
        Client(free_address()).get("/x")
    assert pauses == [0.2, 0.4]


def test_a_connection_that_was_closed_meanwhile_is_no_error(fake, client):
    # The fake server closes each connection behind its answer, without saying so.
    fake.answers["/mon/r/x"] = (200, {"n": 1})
    assert [client.get("/x") for _ in range(3)] == [{"n": 1}] * 3
    assert client.post("/x", {"a": 1}) == {"n": 1}
    assert fake.seen[-1].json == {"a": 1}
    assert fake.seen[-1].headers["X-Mon-Auth-User"] == "ann"


def test_missing_sites(fake, client):
    fake.answers["/mon/r/hosts"] = (200, [{"name": "a"}], {"X-Mon-Failed-Sites": "b,c"})
    rows = client.hosts().all()
    assert (rows, rows.failed_sites) == ([{"name": "a"}], ["b", "c"])
    with pytest.raises(IncompleteError) as caught:
        Client(fake.url, whole=True).hosts().all()
    assert caught.value.sites == ["b", "c"]


def test_pages_end_with_the_rows_and_with_the_limit(fake, client):
    rows = [{"name": str(number)} for number in range(7)]

    def page(seen):
        named = dict(part.split("=") for part in seen.target.partition("?")[2].split("&"))
        start = int(named["offset"])
        return 200, rows[start : start + int(named["limit"])]

    fake.answers["/mon/r/hosts"] = page
    assert [len(page) for page in client.hosts().pages(3)] == [3, 3, 1]
    assert [len(page) for page in client.hosts().offset(1).limit(4).pages(3)] == [3, 1]
    assert [len(page) for page in client.hosts().offset(4).pages(3)] == [3]


def test_one_row(fake, client):
    for rows, told in (([], "none"), ([{"a": 1}] * 2, "several")):
        fake.answers["/mon/r/hosts"] = (200, rows)
        with pytest.raises(LookupError, match=told):
            client.hosts().one()
    fake.answers["/mon/r/hosts/w%20%2F"] = (200, [])
    with pytest.raises(NotThereError):
        client.host("w /")


def test_a_stream_that_breaks_off(fake, client):
    body = b'{"name": "a"}\n{"na'
    fake.answers["/mon/r/ndjson/hosts"] = (200, body, {"Content-Length": "100"})
    rows = iter(client.hosts())
    assert next(rows) == {"name": "a"}
    with pytest.raises(UnreachableError):
        next(rows)


def lines(*events):
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


def event(number, **more):
    return {"type": "state", "id": f"s@1.{number}", "data": {}, "cursor": f"c{number}", **more}


def test_events_go_on_behind_the_last_one(fake, client):
    cut = {"Content-Length": "10000"}
    answers = [
        (200, lines(event(0, type="snapshot"), event(1)), cut),
        (503, {"message": "stopping"}),
        (502, b"<html>nobody is behind this proxy</html>"),
        (200, lines(event(2), event(2, type="heartbeat", cursor="c3"))),
        (200, lines(event(4), event(5, type="gap"))),
        (200, lines({"type": "end", "data": {"message": "the key is gone"}})),
    ]
    asked = []

    def answer(request):
        asked.append(request)
        return answers.pop(0)

    fake.answers["/mon/r/events"] = answer
    events = client.events(column("state") > 0, types=["state"], since="-1h", snapshot=True)
    assert [next(events)["id"] for _ in range(4)] == ["s@1.1", "s@1.2", "s@1.4", "s@1.5"]
    with pytest.raises(NotAuthorizedError, match="the key is gone"):
        next(events)
    queries = [parse_qs(urlsplit(one).query) for one in (request.target for request in asked)]
    assert [one["since"] for one in queries] == [["-1h"], *[["c1"]] * 3, ["c3"], ["c5"]]
    assert [one.get("snapshot") for one in queries] == [["1"], *[None] * 5]
    assert queries[0]["q"] == ['"state" > 0']


def test_a_snapshot_that_breaks_off_comes_again(fake, client):
    cut = {"Content-Length": "10000"}
    answers = [
        (200, lines(event(1, cursor="")), cut),
        (200, lines(event(1, cursor=""), event(2, cursor=""), event(3, type="snapshot"))),
        (200, lines(event(4))),
    ]
    fake.answers["/mon/r/events"] = lambda _: answers.pop(0)
    events = client.events(snapshot=True)
    assert [next(events)["id"] for _ in range(4)] == ["s@1.1", "s@1.1", "s@1.2", "s@1.4"]
    queries = [parse_qs(urlsplit(one.target).query) for one in fake.seen]
    assert [one.get("snapshot") for one in queries] == [["1"], ["1"], None]
    assert [one.get("since") for one in queries] == [None, None, ["c3"]]


def test_the_end_of_a_stream_says_why(fake, client):
    end = {"type": "end", "data": {"code": 404, "message": "not found", "description": "no site"}}
    fake.answers["/mon/r/events"] = (200, lines(end))
    with pytest.raises(NotThereError, match="404 not found: no site"):
        next(client.events())


def test_events_that_are_refused_at_first(fake, client):
    for status, problem in ((400, InvalidRequestError), (503, OverloadedError)):
        fake.answers["/mon/r/events"] = (status, {"message": "no"})
        with pytest.raises(problem):
            next(client.events())


def test_a_job_is_awaited(fake, client):
    states = [{"is_running": 1, "percent": 40}, {"is_running": 0}]
    fake.answers["/mon/r/x"] = (200, {"job_id": "5"})
    fake.answers["/mon/r/mon/jobs/5"] = lambda _: (200, states.pop(0))
    outputs = [(302, b""), (200, [1])]
    fake.answers["/mon/r/mon/jobs/5/output"] = lambda _: outputs.pop(0)
    told = []
    job = client.background("/x", a=1)
    assert fake.seen[0].target == "/mon/r/x?a=1&background=1"
    assert job.result(told.append) == [1]
    assert [state["is_running"] for state in told] == [1, 0]
    fake.answers["/mon/r/mon/jobs/5/output"] = (500, {"message": "background job failed"})
    with pytest.raises(Exception, match="500 background job failed"):
        job.result()


def test_commands(fake, client):
    fake.answers["/mon/r/cmd"] = lambda seen: (
        200, [{"code": 200}, {"code": 400, "error": "no"}] if isinstance(seen.json, list)
        else {"message": "Command successfully submitted", "commands": "COMMAND [1] X", "effect": "seen"},
    )  # fmt: skip
    outcome = client.command("ping", host="a", comment=None, wait=3)
    assert (outcome.sent, outcome.effect, outcome.commands) == (True, "seen", ["COMMAND [1] X"])
    assert fake.seen[-1].target == "/mon/r/cmd?wait=3"
    assert fake.seen[-1].json == {"cmd": "ping", "host": "a"}
    assert [one.sent for one in client.commands([{"cmd": "a"}, {"cmd": "b"}])] == [True, False]


def test_what_is_no_monrest(fake, client):
    fake.answers["/mon/r/x"] = (200, b"<html>")
    with pytest.raises(Exception, match="is this the address of a monrest"):
        client.get("/x")
