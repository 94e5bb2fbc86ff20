"""Schedules: what they may be, and when they come, also where clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.base.schedule import between, cron, expressions, following, read
from tests.examples import examples
from tests.table import each

BERLIN = ZoneInfo("Europe/Berlin")
SPRING = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=BERLIN)


@each(
    ("entry", "text"),
    [
        ({"type": "day", "minute": 5, "hour": "07"}, "5 7 * * *"),
        ({"type": "week", "minute": "0", "hour": 0, "week_day": "1,5,0"}, "0 0 * * 0,1,5"),
        ({"type": "week", "minute": "0", "hour": 0, "week_day": 7}, "0 0 * * 7"),
        ({"type": "week", "minute": "0", "hour": 0, "week_day": [1, "2"]}, "0 0 * * 1,2"),
        ({"type": "month", "minute": 59, "hour": 23, "day": "31"}, "59 23 31 * *"),
        ({"type": "monthday", "minute": 0, "hour": 4, "month_day": "2nd_Tuesday"}, "0 4 * * 2#2"),
        ({"type": "monthday", "minute": 0, "hour": 4, "month_day": "Last_Sunday"}, "0 4 * * 0L"),
        ({"type": "cust", "cust": " */5 1-3 * jan mon-fri ", "hour": "ignored"}, "*/5 1-3 * jan mon-fri"),
    ],
)  # fmt: skip
def test_entries(entry, text):
    assert cron(entry) == text
    assert read([entry]) == [entry]


@each(
    ("entry", "place"),
    [
        ({}, "schedule.0.type"),
        ({"type": "year"}, "schedule.0.type"),
        ({"type": ["day"]}, "schedule.0.type"),
        ({"type": "day", "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": 60, "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": -1, "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": 1.5, "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": True, "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": "*", "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": "٣", "hour": 5}, "schedule.0.minute"),
        ({"type": "day", "minute": 0, "hour": None}, "schedule.0.hour"),
        ({"type": "week", "minute": 0, "hour": 5}, "schedule.0.week_day"),
        ({"type": "week", "minute": 0, "hour": 5, "week_day": ""}, "schedule.0.week_day"),
        ({"type": "week", "minute": 0, "hour": 5, "week_day": "8"}, "schedule.0.week_day"),
        ({"type": "month", "minute": 0, "hour": 5, "day": 0}, "schedule.0.day"),
        ({"type": "monthday", "minute": 0, "hour": 5, "month_day": "5th_Monday"}, "schedule.0.month_day"),
        ({"type": "monthday", "minute": 0, "hour": 5, "month_day": "1st_monday"}, "schedule.0.month_day"),
        ({"type": "cust", "cust": "0 0 * *"}, "schedule.0.cust"),
        ({"type": "cust", "cust": "0 0 0 * * *"}, "schedule.0.cust"),
        ({"type": "cust", "cust": "@daily"}, "schedule.0.cust"),
        ({"type": "cust", "cust": "x 0 * * *"}, "schedule.0.cust"),
        ({"type": "cust", "cust": "0 0 31 2 *"}, "schedule.0.cust"),
        ({"type": "cust", "cust": "0 0 * * " + "1," * 500 + "1"}, "schedule.0.cust"),
        ({"type": "cust"}, "schedule.0.cust"),
    ],
)  # fmt: skip
def test_wrong_entries(entry, place):
    with pytest.raises(BadRequest) as caught:
        read([entry])
    assert caught.value.description.startswith(f"{place}: expected")
    assert expressions([entry]) == []


@each("value", [{}, "0 0 * * *", [[]], ["x"], [{"type": "day"}] * 101, 5])
def test_no_schedule(value):
    with pytest.raises(BadRequest, match="schedule"):
        read(value)


def shown(times, zone=BERLIN):
    return [datetime.fromtimestamp(one, zone).strftime("%d %H:%M%z") for one in times]


def times(text, begin, days=2):
    begin = begin.astimezone(UTC)
    return shown(
        between([text], begin.timestamp(), (begin + timedelta(days=days)).timestamp(), BERLIN, 99)
    )


@each(
    ("text", "begin", "found"),
    [
        ("30 2 * * *", SPRING, ["29 03:00+0200", "30 02:30+0200"]),
        ("30 1 * * *", SPRING, ["29 01:30+0100", "30 01:30+0200"]),
        ("0 3 * * *", SPRING, ["29 03:00+0200", "30 03:00+0200"]),
        ("30 2 * * *", AUTUMN, ["25 02:30+0200", "26 02:30+0100"]),
        ("0 12 * * *", AUTUMN, ["25 12:00+0100", "26 12:00+0100"][:1]),
    ],
)
def test_changed_clocks(text, begin, found):
    assert times(text, begin)[: len(found)] == found
    assert len(times(text, begin)) in (1, 2)


def test_what_comes_every_hour_comes_every_hour():
    assert len(times("0 * * * *", SPRING, 1)) == 24
    assert len(times("0 * * * *", AUTUMN, 1)) == 24


def test_a_start_inside_of_the_hour_that_comes_twice():
    """What came in the first of the two does not come in the second."""
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN).timestamp()
    for minutes in (0, 15, 30, 60, 75, 89):
        at = first + minutes * 60
        assert shown([following(["30 2 * * *"], at, BERLIN)]) == ["26 02:30+0100"]
    assert shown([following(["30 2 * * *"], first - 1, BERLIN)]) == ["25 02:30+0200"]


@each(
    ("month_day", "found"),
    [
        ("1st_Monday", [6, 3, 7]), ("2nd_Wednesday", [8, 12, 9]), ("4th_Friday", [24, 28, 25]),
        ("Last_Friday", [31, 28, 25]), ("Last_Tuesday", [28, 25, 29]),
    ],
)  # fmt: skip
def test_days_of_months(month_day, found):
    text = cron({"type": "monthday", "minute": 0, "hour": 0, "month_day": month_day})
    begin, end = (datetime(2026, month, 1, tzinfo=UTC).timestamp() for month in (7, 10))
    times_ = between([text], begin - 1, end - 1, UTC, 99)
    assert [datetime.fromtimestamp(one, UTC).day for one in times_] == found


def test_the_newest_of_too_many():
    found = between(["* * * * *"], 0, 86400, UTC, 10)
    assert found == [86400 - 60 * n for n in range(9, -1, -1)]


MINUTE = st.integers(0, 59).map(str)
HOUR = st.one_of(st.integers(0, 23).map(str), st.just("*"), st.just("*/2"), st.just("1-3"))
CRON = st.builds(
    lambda minute, hour, day: f"{minute} {hour} * * {day}",
    st.one_of(MINUTE, st.just("*/20")),
    HOUR,
    st.sampled_from(["*", "0", "1-5", "6,7", "0#1", "5L"]),
)
ZONE = st.sampled_from(
    [ZoneInfo(one) for one in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")]
)


def test_a_moment_before_a_time_is_before_it():
    time = 1768456800
    assert between(["*/20 * * * *"], time - 2e-7, time, UTC, 10) == [time]
    assert between(["*/20 * * * *"], time, time + 1, UTC, 10) == []


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(CRON, min_size=1, max_size=3), ZONE, st.integers(0, 365 * 24), st.data())
def test_every_time_comes_once_however_it_is_looked_for(crons, zone, hour, data):
    """In one go, in any steps, or one by one: the same times, none twice, none left out."""
    begin = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + hour * 3600
    end = begin + 3 * 86400
    whole = between(crons, begin, end, zone, 100_000)
    assert whole == sorted(set(whole))
    cuts = data.draw(st.lists(st.floats(begin, end), max_size=6).map(sorted))
    steps = [begin, *cuts, end]
    found = [
        one for low, high in pairwise(steps) for one in between(crons, low, high, zone, 100_000)
    ]
    assert found == whole
    at, one_by_one = begin, []
    while (at := following(crons, at, zone)) is not None and at <= end:
        one_by_one.append(at)
    assert one_by_one == whole
