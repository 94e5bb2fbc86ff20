"""Numbers: parts of a time, availability by parts, what counts as unavailable."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.availability.account import Availability, Period, Rules, Times
from monrest.availability.periods import Span
from monrest.base.errors import BadRequest
from monrest.logs.state_events import DowntimeEvent, ProgramEvent, StateEvent
from monrest.reports.availability import figures, parts_of, require_room
from monrest.reports.sheet import Spelling, duration
from tests.reports.samples import BERLIN
from tests.table import each

HOST, SERVICE = ("h", ""), ("h", "s")


def moment(*when, zone=BERLIN):
    return int(datetime(*when, tzinfo=zone).timestamp())


def labels(span, breakdown, weekday=1):
    return [one.label for one in parts_of(span, breakdown, BERLIN, weekday)]


def test_months_weeks_days():
    span = Span(moment(2026, 1, 15, 12), moment(2026, 3, 2))
    assert labels(span, "months") == ["2026-01", "2026-02", "2026-03"]
    week = Span(moment(2026, 1, 1), moment(2026, 1, 13))
    assert labels(week, "weeks") == ["2026-W01", "2026-W02", "2026-W03"]
    assert [one.start for one in parts_of(week, "weeks", BERLIN, 0)][1] == moment(2026, 1, 4)
    assert labels(Span(moment(2026, 2, 27), moment(2026, 3, 2)), "days") == [
        "02-27", "02-28", "03-01",
    ]  # fmt: skip


def test_days_of_23_and_25_hours():
    spring = parts_of(Span(moment(2026, 3, 28), moment(2026, 3, 31)), "days", BERLIN, 1)
    assert [(one.end - one.start) // 3600 for one in spring] == [24, 23, 24]
    autumn = parts_of(Span(moment(2026, 10, 24), moment(2026, 10, 27)), "days", BERLIN, 1)
    assert [(one.end - one.start) // 3600 for one in autumn] == [24, 25, 24]


def test_no_parts_and_too_many():
    assert parts_of(Span(5, 5), "days", UTC, 1) == []
    with pytest.raises(BadRequest, match=r"params\.breakdown: expected at most 400 parts"):
        parts_of(Span(0, 86400 * 500), "days", UTC, 1)


def test_more_numbers_than_there_is_room_for():
    require_room(20_000, 31, "days")
    with pytest.raises(BadRequest, match=r"params\.breakdown: .* got 365 days of each of 20000"):
        require_room(20_000, 365, "days")


times = st.integers(0, 1000)
events = st.lists(
    st.one_of(
        st.builds(StateEvent, times, st.sampled_from([HOST, SERVICE]), st.integers(0, 2),
                  st.booleans(), st.just("")),
        st.builds(DowntimeEvent, times, st.sampled_from([HOST, SERVICE]), st.booleans()),
        st.builds(ProgramEvent, times, st.booleans()),
    ),
    max_size=30,
)  # fmt: skip


@given(
    events,
    st.sets(st.integers(101, 899), max_size=8),
    st.booleans(),
    st.lists(st.tuples(times, st.booleans()), max_size=4),
)
def test_parts_together_are_the_whole(events, bounds, not_running, changes):
    """And the whole is what it is without parts; each part has the seconds that it is long."""
    period = Period(changes=sorted(changes))
    rules = Rules(span=Span(100, 900), not_running=not_running, period=period)
    whole = Availability([HOST, SERVICE], rules)
    parted = Availability([HOST, SERVICE], rules, [100, *sorted(bounds)])
    for event in sorted(events, key=lambda one: one.time):
        whole.take(event)
        parted.take(event)
    starts = [100, *sorted(bounds)]
    lengths = [end - start for start, end in zip(starts, [*starts[1:], 900], strict=True)]
    for key in (HOST, SERVICE):
        expected = whole.times(key)
        assert parted.times(key) == expected
        parts = [Times(*pair) for pair in parted.parts(key)]
        assert [sum(one.seconds) for one in parts] == lengths
        for at in range(7):
            assert sum(one.seconds[at] for one in parts) == expected.seconds[at]
            assert sum(one.scheduled[at] for one in parts) == expected.scheduled[at]


def test_each_part_has_its_own_time():
    parted = Availability([HOST], Rules(span=Span(0, 300)), [0, 100, 200])
    parted.take(StateEvent(50, HOST, 1, False, ""))
    parted.take(StateEvent(150, HOST, 0, False, ""))
    parted.times(HOST)
    assert [list(seconds[:2]) for seconds, _ in parted.parts(HOST)] == [[0, 50], [50, 50], [100, 0]]


def test_what_counts_as_unavailable():
    seconds = Times([600, 100, 50, 0, 30, 20, 10], [60, 40, 50, 0, 5, 0, 0])
    plain = figures(HOST, seconds, {"down", "unreachable"})
    assert (plain.available, plain.unavailable) == (540 + 60 + 40 + 50, 60)
    assert (plain.downtime, plain.unknown) == (150, 60)
    strict = figures(HOST, seconds, {"down", "unreachable", "down_downtime"})
    assert (strict.available, strict.unavailable) == (540 + 60 + 50, 100)
    assert figures(HOST, seconds, ()).unavailable == 0
    service = figures(SERVICE, Times([1, 2, 3, 4, 0, 0, 0], [0] * 7), {"critical", "unknown"})
    assert (service.available, service.unavailable) == (3, 7)
    assert service.percent == 30.0


def test_nothing_known():
    nothing = figures(HOST, Times([0, 0, 0, 0, 900, 0, 0], [0] * 7), {"down"})
    assert nothing.percent is None
    assert Spelling(zone=UTC).percent(nothing.percent) == "n/a"


@each(
    ("rounding", "value", "shown"),
    [("round", 99.995, "100.00"), ("round", 99.994, "99.99"), ("floor", 99.999, "99.99"),
     ("floor", 100.0, "100.00"), ("round", 0.005, "0.01")],
)  # fmt: skip
def test_rounding(rounding, value, shown):
    assert Spelling(zone=UTC, rounding=rounding).rounded(value) == Decimal(shown)


@each(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m 00s"), (3661, "1h 01m 01s"), (93784, "1d 02h 03m 04s")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
