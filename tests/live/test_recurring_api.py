"""Records of recurring downtimes over the API: fields, writes, who may do what."""

import time

import pytest
from harness.daemon import site
from harness.expect import refused

from tests.table import each

PATH = "/mon/recurring_downtimes"
MORNING = {"type": "week", "hour": 5, "minute": "30", "week_day": "1,2"}


@pytest.fixture(scope="module")
def server(embedded, shared):
    return shared.daemon(
        [site("s1", embedded, name="One"), site("s2", "unix:/nowhere/live")]
    ).start(connected=["s1"])


@pytest.fixture
def boss(server):
    with server.client() as client:
        yield client
        for row in client.rows(PATH):
            assert client.request("DELETE", f"{PATH}/{row['file']}").status == 200


@pytest.fixture
def olga(server):
    """Contact of web01 and of the service ping on db01."""
    with server.client("olga") as client:
        yield client


def create(client, path=PATH, **fields):
    response = client.post_json(path, fields)
    assert response.status == 200, response
    return response.json["file"]


def saved(response):
    return (response.status, response.json) == (
        200, {"count": 1, "message": "successfully saved 1 downtime."},
    )  # fmt: skip


def test_a_life(boss):
    assert create(boss, host="web02,web01", schedule=[MORNING], own={"a": [1]}) == "1"
    row = boss.rows(f"{PATH}/1")
    changed = row.pop("last_changed")
    assert abs(changed - time.time()) < 100
    assert row == {
        "backends": ["s1", "s2"], "childoptions": 0, "comment": "automatic downtime",
        "created_by": "admin", "duration": 120, "edited_by": "admin", "file": 1, "fixed": 1,
        "flex_range": 720, "host": ["web01", "web02"], "hostgroup": [], "own": {"a": [1]},
        "schedule": [MORNING], "service": [], "servicegroup": [], "target": "host",
    }  # fmt: skip
    assert saved(
        boss.patch(f"{PATH}/1", {"schedule": [{"hour": 6}], "host": {"1": None}, "own": None})
    )
    row = boss.rows("/mon/recurring_downtime/1")
    assert (row["schedule"], row["host"]) == ([{**MORNING, "hour": 6}], ["web01"])
    assert "own" not in row
    assert saved(boss.post_json(f"{PATH}/1", row))
    again = boss.rows(f"{PATH}/1")
    assert {**again, "last_changed": 0} == {**row, "last_changed": 0}
    assert saved(boss.post_json(f"{PATH}/1", {"servicegroup": "pings", "backends": ["s1"]}))
    row = boss.rows(f"{PATH}/1")
    assert (row["target"], row["host"], row["schedule"]) == ("servicegroup", [], [])
    assert (row["backends"], row["created_by"]) == (["s1"], "admin")
    assert saved(boss.patch(f"{PATH}/1", {"comment": "x", "backends": []}))
    assert boss.rows(f"{PATH}/1")["backends"] == ["s1"]
    assert saved(boss.patch(f"{PATH}/1", {"backends": None}))
    assert boss.rows(f"{PATH}/1")["backends"] == ["s1", "s2"]
    assert boss.request("DELETE", f"{PATH}/1").json == {
        "count": 1, "message": "successfully removed 1 downtime.",
    }  # fmt: skip
    for method in ("GET", "DELETE"):
        refused(boss.request(method, f"{PATH}/1"), 404, "no such downtime")
    refused(boss.patch(f"{PATH}/1", {}), 404, "no such downtime")


def test_lists(boss):
    create(boss, host="web02", backends="s1")
    create(boss, path=f"/sites/s2{PATH}", host="Web01")
    create(boss, hostgroup=["web"], path=f"{PATH}?backends=s1,s2")
    create(boss, host="db01", service="ping", file="10", own=1)
    assert create(boss, host="web01", file="10") == "11"
    assert boss.values(PATH, "file") == [2, 11, 1, 3, 10]
    assert boss.values(PATH, "file", file="10") == [10]
    assert boss.values(f"/sites/s2{PATH}", "file") == [2, 11, 3, 10]
    assert boss.values(PATH, "file", backends="s1") == [11, 1, 3, 10]
    assert boss.values(PATH, "target", own="1") == ["service"]
    assert boss.get(f"/csv{PATH}?columns=file,host&target=host&sort=file&limit=1").text == (
        "#file;host\n1;web02\n"
    )
    refused(boss.get(f"{PATH}?nothing=1"), 400, "possible typo in filter")


def test_a_form(boss):
    pairs = [("host", "web01"), ("host", "web02"), ("fixed", "0"), ("duration", "5")]
    assert boss.post_form(PATH, pairs).json["file"] == "1"
    row = boss.rows(f"{PATH}/1")
    assert (row["host"], row["fixed"], row["duration"]) == (["web01", "web02"], 0, 5)


@each(
    ("fields", "words"),
    [
        ({}, "host: expected at least one name"),
        ({"host": "a;b"}, "host: expected text without semicolons"),
        ({"host": "a", "schedule": [{"type": "never"}]}, "schedule.0.type: expected"),
        ({"host": "a", "schedule": [{"type": "cust", "cust": "* * * *"}]}, "schedule.0.cust"),
        ({"host": "a", "duration": -1}, "duration: expected"),
        ({"host": "a", "backends": "nowhere"}, "failed to find backend(s): nowhere"),
        ({"host": "a", "backends": {"a": 1}}, "backends: expected"),
        ([], "request body: expected"),
    ],
)
def test_bad_input(boss, fields, words):
    response = boss.post_json(PATH, fields)
    assert response.status == 400, response
    assert words in response.text
    assert boss.rows(PATH) == []


def test_who_may_do_what(boss, olga, server):
    """A contact needs all objects: to see the record, and to change it, before and after."""
    for number, fields in enumerate(
        [
            {"host": "web01"}, {"host": "web01,web02"}, {"host": "db01", "service": "ping"},
            {"host": "db01", "service": "ping,Disk /var"}, {"hostgroup": "web"},
            {"hostgroup": "web,idle"}, {"servicegroup": "pings"},
        ], 1,
    ):  # fmt: skip
        assert create(boss, backends="s1", **fields) == str(number)
    assert olga.values(PATH, "file") == [1, 5, 3, 7]
    refused(olga.get(f"{PATH}/2"), 404, "no such downtime")
    assert saved(olga.patch(f"{PATH}/1", {"duration": 5}))
    assert saved(olga.patch(f"{PATH}/3", {"duration": 5}))
    assert boss.rows(f"{PATH}/1")["edited_by"] == "olga"
    for number, change in [(1, {"host": "web02"}), (5, {"duration": 5}), (7, {"duration": 5})]:
        refused(olga.patch(f"{PATH}/{number}", change), 403, "permission denied")
    refused(olga.request("DELETE", f"{PATH}/5"), 403, "permission denied")
    refused(
        olga.post_json(f"{PATH}/1", {"host": "web02", "backends": "s1"}), 403, "permission denied"
    )
    refused(olga.post_json(PATH, {"host": "web02", "backends": "s1"}), 403, "permission denied")
    refused(olga.post_json(PATH, {"host": "none", "backends": "s1"}), 403, "permission denied")
    assert olga.post_json(PATH, {"host": "web01"}).status == 502, "nobody knows about s2"
    assert create(olga, host="web01", backends="s1") == "8"
    assert olga.request("DELETE", f"{PATH}/8").status == 200
    assert olga.request("DELETE", f"{PATH}/1").status == 200
    assert "recurring downtime delete" in server.log
