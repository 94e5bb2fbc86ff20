"""Times are understood wherever a time is: dates of ISO 8601, words of the calendar, spans."""

import re
from datetime import datetime, timedelta

import pytest

BEFORE = [
    "2020-12-24",
    "2020-12-24 10:00",
    "2020-12-24T10:00:00Z",
    "2020-12-24T10:00:00+01:00",
    "last monday - 3y",
    "last year - 3y",
    "-3y10d",
    "2000 days ago",
]
AFTER = [
    "2099-12-24",
    "2099-12-24T10:00:00Z",
    "2099-12-24 10:00:00-05:00",
    "next monday",
    "next friday 8:00",
    "in 2 hours",
    "+1h30m",
    "tomorrow 8:00",
]


def test_filters_and_q(client):
    names = client.values("/hosts", "name", has_been_checked="1")
    wrong = []
    for text, expected in [*((one, names) for one in BEFORE), *((one, []) for one in AFTER)]:
        found = client.values("/hosts", "name", **{"last_check[gt]": text, "has_been_checked": "1"})
        in_q = client.values("/hosts", "name", q=f"has_been_checked = 1 and last_check > '{text}'")
        if found != expected or in_q != expected:
            wrong.append((text, found, in_q))
    assert not wrong


def test_logs(client):
    begun = ("-2h", "2 hours ago", "yesterday", "yesterday 23:00")
    lines = {
        text: len(client.rows("/logs", {"time[gt]": text, "limit": "1"}))
        for text in (*AFTER, *begun)
    }
    assert lines == {**dict.fromkeys(AFTER, 0), **dict.fromkeys(begun, 1)}


def test_arguments_of_commands(client):
    path = "/hosts/web01/cmd/schedule_host_downtime"

    def sent(**times):
        fields = {"comment_data": "x", "test_only": "1", **times}
        answer = client.post_form(path, fields)
        assert answer.status == 200, (times, answer)
        found = re.search(r"SCHEDULE_HOST_DOWNTIME;web01;([0-9]+);([0-9]+);", str(answer.json))
        return int(found[1]), int(found[2])

    assert sent(start_time="2099-12-24T10:00:00Z", end_time="2099-12-24T12:00:00+01:00") == (
        4101789600,
        4101793200,
    )
    assert sent(start_time="2099-12-24T10:00:00Z", end_time="2099-12-24T10:00:00Z + 1h30m") == (
        4101789600,
        4101795000,
    )
    start, end = sent(start_time="next monday", end_time="next monday 8:00")
    assert end - start == 8 * 3600
    start, end = sent(start_time="now", end_time="in 2 hours")
    assert 0 <= end - start - 7200 <= 1
    start, end = sent(start_time="now", end_time="+1h30m")
    assert 0 <= end - start - 5400 <= 1


@pytest.mark.parametrize("path", ["/hosts/availability", "/hosts/outages"])
def test_ranges_of_reports(client, path):
    for start, end in (
        ("2 hours ago", "now"),
        ("yesterday", "today"),
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+00:00"),
        ("last monday", "+1h30m"),
    ):
        answer = client.get(path, {"start": start, "end": end})
        assert answer.status == 200, (start, end, answer)


def test_records(client):
    for text in ("2099-12-24", "2099-12-24T10:00:00Z", "in 2 days", "next monday", "+1d12h"):
        made = client.post_form("/mon/broadcasts", {"text": "x", "expires": text})
        assert made.status == 200, (text, made)
        assert client.request("DELETE", f"/mon/broadcasts/{made.json['file']}").status == 200


def test_days_are_those_of_the_user(client, olga):
    profile = olga.rows("/mon/whoami")["id"]
    changed = client.patch(f"/mon/users/{profile}", {"tz": "Pacific/Kiritimati"})
    assert changed.status == 200, changed
    try:
        ahead = datetime.utcnow() + timedelta(hours=14)
        columns = "date(1798106400,'%Y-%m-%d %H:%M') as d"
        assert olga.rows("/hosts/web01", {"columns": columns}) == [{"d": "2026-12-25 00:00"}]
        noon = f"{ahead:%Y-%m-%d} 00:00"
        answer = olga.post_form(
            "/hosts/web01/cmd/schedule_host_downtime",
            {"comment_data": "x", "test_only": "1", "start_time": noon, "end_time": "2099-01-01"},
        )
        assert answer.status == 200, answer
        begins = int(re.search(r";web01;([0-9]+);", str(answer.json))[1])
        midnight = datetime(ahead.year, ahead.month, ahead.day) - datetime(1970, 1, 1)
        assert begins == int(midnight.total_seconds()) - 14 * 3600
    finally:
        client.patch(f"/mon/users/{profile}", {"tz": ""})


REFUSED = [
    "some day",
    "monday",
    "2026-13-01",
    "2026-12-24T25:00:00Z",
    "in 2 months",
    "next someday",
]


def test_what_is_no_time_is_refused_by_name(client):
    for text in REFUSED:
        for path, name in (
            ("/hosts", "last_check[gt]"),
            ("/logs", "time[gte]"),
            ("/hosts/availability", "start"),
        ):
            answer = client.get(path, {name: text})
            assert answer.status == 400, (path, text, answer)
            assert name in answer.json["description"], (path, text, answer)
