"""Recurring downtimes over the API, and what becomes of them in a core."""

import sqlite3
import time
from contextlib import closing
from datetime import datetime

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

PATH = "/mon/recurring_downtimes"


@pytest.fixture
def server(own, made):
    return made([site("s1", own, name="Site One")]).start()


def earlier():
    """A schedule whose time was an hour ago, and that time."""
    at = int(time.time()) // 60 * 60 - 3600
    when = datetime.fromtimestamp(at)
    return [{"type": "day", "minute": when.minute, "hour": str(when.hour)}], at


def create(client, **fields):
    response = client.post_json(PATH, fields)
    assert response.status == 200, response
    assert response.json["message"] == "successfully created downtime."
    assert response.json["count"] == 1
    return response.json["file"]


def pretend_a_pause(daemon):
    """Let the daemon find that it has not looked for more than an hour."""
    with closing(sqlite3.connect(daemon.folder / "var" / "monrest.sqlite", timeout=20)) as base:
        base.execute("UPDATE recurring_downtimes SET next_at = ?", (int(time.time()) - 3700,))
        base.commit()


def forget(daemon):
    """Let the daemon not know any more what the core has accepted."""
    with closing(sqlite3.connect(daemon.folder / "var" / "monrest.sqlite", timeout=20)) as base:
        base.execute("UPDATE downtime_occurrences SET open = 1, accepted = '{}'")
        base.commit()


def occurrences(daemon):
    with closing(sqlite3.connect(daemon.folder / "var" / "monrest.sqlite", timeout=20)) as base:
        return base.execute("SELECT downtime, at, open FROM downtime_occurrences").fetchall()


def all_done(daemon, count):
    """Wait until so many times have come, and nothing is left to be done for them."""
    until(
        lambda: [open_ for *_, open_ in occurrences(daemon)] == [0] * count,
        f"{count} times are done",
    )


def in_core(client, comment):
    """Downtimes of a core: host, service, begin, end, fixed, duration, triggered."""
    rows = client.rows("/downtimes", {"comment": comment, "author": "(cron)"})
    return sorted(
        (row["host_name"], row["service_description"], row["start_time"], row["end_time"],
         row["fixed"], row["duration"], int(row["triggered_by"] != 0))
        for row in rows
    )  # fmt: skip


OBJECTS = {
    "h": ({"host": "web01, db01"}, {("web01", ""), ("db01", "")}),
    "s": ({"host": "web01,web02", "service": "ping"}, {("web01", "ping"), ("web02", "ping")}),
    "hg": ({"hostgroup": "web"}, {("web01", ""), ("web02", "")}),
    "sg": ({"servicegroup": "pings"}, None),
    "kids0": ({"host": "router1"}, {("router1", "")}),
    "kids1": ({"host": "router1", "childoptions": 1}, {("router1", ""), ("leaf01", "")}),
    "kids2": ({"host": "router1", "childoptions": 2}, {("router1", ""), ("leaf01", "")}),
}


def test_what_a_core_is_told_after_a_pause(server, own):
    """Every type of object, fixed and flexible, with and without children; and nothing twice."""
    schedule, at = earlier()

    def found(kind, name):
        return in_core(client, f"{kind} {name}; of many")

    with server.client() as client:
        for name, (fields, _) in OBJECTS.items():
            create(client, schedule=schedule, comment=f"fixed {name}; of many", duration="90",
                   **fields)  # fmt: skip
            create(client, schedule=schedule, comment=f"flexible {name}; of many", fixed=0,
                   duration=20, flex_range=300, **fields)  # fmt: skip
        create(client, schedule=schedule, comment="fixed late; of many", duration=30, host="web01")
        until(lambda: client.rows(PATH) and not occurrences(server), "nothing came")
        pretend_a_pause(server)
        all_done(server, 2 * len(OBJECTS))
        until(lambda: found("flexible", "kids2"), "the core shows the last one")
        for name, (_, objects) in OBJECTS.items():
            expected = objects or {
                (row["host_name"], row["description"])
                for row in client.rows("/services", {"groups[gte]": "pings"})
            }
            fixed, flexible = found("fixed", name), found("flexible", name)
            assert {row[2:5] for row in fixed} == {(at, at + 5400, 1)}
            assert {row[2:6] for row in flexible} == {(at, at + 18000, 0, 1200)}
            for rows in (fixed, flexible):
                assert sorted(row[:2] for row in rows) == sorted(expected), name
                triggered = {row[0] for row in rows if row[6]}
                assert triggered == ({"leaf01"} if name == "kids1" else set())
        assert found("fixed", "late") == []
        assert {row.get("error") for row in client.rows(PATH)} == {None}
        before = everything(client)
        forget(server)
        all_done(server, 2 * len(OBJECTS))
        assert everything(client) == before
        for _ in range(2):
            late = server.log.count("times were over before they were seen")
            pretend_a_pause(server)
            if late > 1:
                server.stop()
                server.start()
            until(lambda late=late: server.log.count("times were over") > late, "it looked again")
    with server.client() as client:
        assert everything(client) == before
        assert client.request("DELETE", f"{PATH}/1").json["count"] == 1
        refused(client.get(f"{PATH}/1"), 404, "no such downtime")
        assert found("fixed", "h"), "what is set stays"


def everything(client):
    rows = client.rows("/downtimes", {"author": "(cron)"})
    return sorted((row["host_name"], row["service_description"], row["comment"]) for row in rows)


def test_what_is_there_of_another_one_is_no_reason_to_do_less(server):
    """After a failure the core is asked: a member, a parent, another kind are not all of it."""
    schedule, at = earlier()

    def begun(number, minutes):
        with closing(sqlite3.connect(server.folder / "var" / "monrest.sqlite", timeout=20)) as base:
            base.execute(
                "INSERT INTO downtime_occurrences (downtime, at, until, open, number, attempts, "
                "accepted) VALUES (?, ?, ?, 1, 0, 1, '{}')", (number, at, at + minutes * 60),
            )  # fmt: skip
            base.commit()

    def found():
        return sorted((row[0], row[1], row[4]) for row in in_core(client, "the same"))

    with server.client() as client:
        whole = {"comment": "the same", "schedule": schedule, "duration": 180}
        first = [create(client, host=name, **whole) for name in ("web01", "router1")]
        for number in first:
            begun(number, 180)
        all_done(server, 2)
        until(lambda: len(found()) == 2, "the core shows both")
        then = [
            create(client, hostgroup="web", **whole),
            create(client, host="router1", childoptions=2, **whole),
            create(client, host="web01", **{**whole, "fixed": 0, "flex_range": 180}),
            create(client, host="web02", service="ping", **whole),
            create(client, host="web01", **whole),
        ]
        for number in then:
            begun(number, 180)
        all_done(server, 7)
        until(lambda: len(found()) == 8, "the core shows all")
        assert found() == [
            ("leaf01", "", 1), ("router1", "", 1), ("router1", "", 1), ("web01", "", 0),
            ("web01", "", 1), ("web01", "", 1), ("web02", "", 1), ("web02", "ping", 1),
        ]  # fmt: skip
        before = everything(client)
        forget(server)
        all_done(server, 7)
        assert everything(client) == before
