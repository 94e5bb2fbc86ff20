"""Time periods: which moments lie in which of them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from monrest.objectconfig.timeperiods import (
    TimeperiodError,
    parse_date_rule,
    parse_ranges,
    timeperiod,
)
from tests.table import each

WORKDAYS = dict.fromkeys(("monday", "tuesday", "wednesday", "thursday", "friday"), "09:00-17:00")
ALWAYS = dict.fromkeys([*WORKDAYS, "saturday", "sunday"], "00:00-24:00")
ALL_DAY = "00:00-24:00"
PRIO = [
    ("2026-01-02", "01:00-02:00"),
    ("january 2", "03:00-04:00"),
    ("day 2", "05:00-06:00"),
    ("friday 1 january", "07:00-08:00"),
    ("friday 1", "09:00-10:00"),
]


def inside(text, days, rules=(), others=(), zone=UTC):
    period = timeperiod("p", "P", days, rules)
    moment = datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()
    return period.holds(moment, zone, {item.name: item for item in others}.get)


@each(
    ("text", "expected"),
    [
        ("2026-01-05 08:59", False),
        ("2026-01-05 09:00", True),
        ("2026-01-05 16:59", True),
        ("2026-01-05 17:00", False),
        ("2026-12-25 10:00", False),
        ("2026-12-24 10:00", True),
    ],
)
def test_work(text, expected):
    assert inside(text, WORKDAYS, [("december 25", "00:00-00:00")]) is expected


@each(
    ("text", "expected"),
    [("2026-01-05 10:00", False), ("2026-01-05 18:00", True), ("2026-12-25 10:00", True)],
)
def test_exclusion(text, expected):
    work = timeperiod("work", "W", WORKDAYS, [("december 25", "00:00-00:00")])
    assert inside(text, {**ALWAYS, "exclude": "work"}, others=[work]) is expected


@each(
    ("rules", "hours"),
    [(PRIO, {"01:30"}), (PRIO[2:], {"05:30"})],
)
def test_the_first_rule_decides(rules, hours):
    days = {"friday": ALL_DAY}
    found = {
        f"{hour:02}:30"
        for hour in (1, 3, 5, 7, 9, 12)
        if inside(f"2026-01-02 {hour:02}:30", days, rules)
    }
    assert found == hours


@each(
    ("rule", "yes", "no"),
    [
        ("2026-01-01 - 2026-01-31 / 3", ["2026-01-01", "2026-01-04", "2026-01-31"], ["2026-01-02"]),
        ("2026-01-01 / 3", ["2026-02-03"], ["2026-02-04", "2025-12-29"]),
        ("day 25 - day 5", ["2026-03-26", "2026-03-03"], ["2026-03-10"]),
        ("friday -1", ["2026-01-30"], ["2026-01-23"]),
        ("day 29 - 31", ["2026-04-30"], ["2026-02-28"]),
        ("day -1", ["2026-02-28", "2026-01-31"], ["2026-01-30"]),
        ("december 20 - january 5", ["2026-12-31", "2027-01-05"], ["2026-01-06", "2026-12-19"]),
        ("thursday -1 november", ["2026-11-26"], ["2026-11-19", "2026-12-31"]),
        ("monday 2 - thursday 3", ["2026-01-12", "2026-01-15"], ["2026-01-05", "2026-01-16"]),
        ("thursday 2 - 4", ["2026-01-08", "2026-01-22"], ["2026-01-29"]),
        ("february 3 - 5", ["2026-02-04"], ["2026-02-06", "2026-03-04"]),
        ("2026-01-31", ["2026-01-31"], ["2027-01-31"]),
    ],
)
def test_date_spans(rule, yes, no):
    for day in yes:
        assert inside(f"{day} 12:00", {}, [(rule, ALL_DAY)]), day
    for day in no:
        assert not inside(f"{day} 12:00", {}, [(rule, ALL_DAY)]), day


def test_weekday_rules_beat_plain_weekdays():
    days, rules = {"monday": "10:00-11:00"}, [("monday 3", "12:00-13:00")]
    assert not inside("2026-01-19 10:30", days, rules)
    assert inside("2026-01-19 12:30", days, rules)
    assert inside("2026-01-12 10:30", days, rules)
    two = [("january 1 - 10", "01:00-02:00"), ("january 2 - 3", "03:00-04:00")]
    assert inside("2026-01-02 01:30", {}, two)
    assert not inside("2026-01-02 03:30", {}, two)


def test_a_range_over_midnight_never_matches():
    for hour in (1, 7, 20, 23):
        assert not inside(f"2026-01-05 {hour:02}:30", {"monday": "20:00-08:00"})


def test_times_are_those_of_the_zone():
    zone = ZoneInfo("Europe/Berlin")
    assert inside("2026-07-06 09:00", WORKDAYS, zone=zone)
    period = timeperiod("p", "P", WORKDAYS, [])
    at_nine_utc = datetime(2026, 7, 6, 15, 30, tzinfo=UTC).timestamp()
    assert not period.holds(at_nine_utc, zone, lambda _name: None)


@each("text", ["9-17", "09:00-17:00, 18:00-19:00", "00:00-25:00", "", "x"])
def test_bad_ranges(text):
    with pytest.raises(TimeperiodError):
        parse_ranges(text)


@each("text", ["someday 1", "day 0", "monday", "2026-13-01", "december", "day"])
def test_bad_dates(text):
    with pytest.raises(TimeperiodError):
        parse_date_rule(text, ALL_DAY)
