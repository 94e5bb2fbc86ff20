"""``monrest events`` against a daemon whose answers the test chooses."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

CUT = {"Content-Length": "10000"}


@pytest.fixture
def streams(fake, monkeypatch):
    """Answers to requests for events, one after the other; what was asked for is in ``fake``."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    answers = []
    fake.answers["/mon/r/events"] = lambda _: answers.pop(0)
    return answers


def lines(*numbers, **more):
    events = (
        {
            "type": "state", "id": f"s@1.{one}", "time": f"t{one}", "cursor": f"c{one}",
            "subject": "hosts/web01", "data": {"state": 1, "plugin_output": "gone"}, **more,
        }
        for one in numbers
    )  # fmt: skip
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


def queries(fake):
    return [parse_qs(urlsplit(one.target).query) for one in fake.seen]


def test_limit_counts_over_all_connections(monrest, fake, streams):
    streams += [
        (200, lines(1, 2), CUT),
        (503, {"message": "starting"}),
        (200, lines(3)),
        (200, lines(4)),
    ]
    ran = monrest("events", "--limit", "4", "--since", "-1h", "--snapshot")
    assert ran.status == 0, ran.err
    assert [line.split()[0] for line in ran.out.splitlines()] == ["t1", "t2", "t3", "t4"]
    assert [one["limit"] for one in queries(fake)] == [["4"], ["2"], ["2"], ["1"]]
    assert [one["since"] for one in queries(fake)] == [["-1h"], ["c2"], ["c2"], ["c3"]]
    assert [one.get("snapshot") for one in queries(fake)] == [["1"], None, None, None]
    assert ran.err.splitlines() == [
        f"monrest: {fake.url}/mon/r: the connection was cut in the middle; connecting again",
        "monrest: 503 starting; connecting again",
    ]


def test_filters_and_options_are_sent(monrest, fake, streams):
    streams += [(200, lines(1))]
    words = ["events", "--limit", "1", "--types", "state", "host_name=a", "host_name=\udcff b"]
    assert monrest(*words).status == 0
    assert fake.seen[0].target == (
        "/mon/r/events?types=state&host_name=a&host_name=%FF%20b&format=ndjson&limit=1"
    )


def test_a_gap_and_the_end_are_told(monrest, streams):
    gap = {"count": 7, "logs": "/logs?time[gte]=5"}
    end = {"code": 403, "message": "not authorized", "description": "the key is gone"}
    streams += [(200, lines(1, type="gap", data=gap) + lines(2, type="end", data=end))]
    ran = monrest("events")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "monrest: too slow, 7 events are only in /logs?time[gte]=5",
        "monrest: 403 not authorized: the key is gone",
    ]


def test_a_refusal_ends_it(monrest, fake):
    fake.answers["/mon/r/events"] = (400, {"message": "types", "description": "no such type"})
    ran = monrest("events", "--limit", "x")
    assert (ran.status, ran.err) == (1, "monrest: 400 types: no such type\n")
    assert queries(fake)[0]["limit"] == ["x"]


def test_columns_are_shown_as_far_as_an_event_has_them(monrest, streams):
    streams.append((200, lines(1, data={"host_name": None, "text": "BROKEN", "number": 0})))
    ran = monrest(
        "events", "--limit", "1", "--columns", "host_name,text,number", "--color", "never"
    )
    assert ran.out.split() == ["t1", "state", "web01", "text=BROKEN", "number=0"]


def test_a_daemon_that_is_away_for_long_is_reported_once(monrest, streams):
    streams += [(200, lines(1)), *[(503, {"message": "starting"})] * 5, (200, lines(2))]
    ran = monrest("events", "--limit", "2")
    assert [line.count("starting") for line in ran.err.splitlines()] == [1]
