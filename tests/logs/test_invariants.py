"""What holds for every log: against a second-by-second model, and of the fields themselves."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.availability.account import Period, Rules
from monrest.availability.periods import Span
from monrest.logs.state_events import DowntimeEvent, ProgramEvent, StateEvent
from tests.logs.accounts import availability, outages

KEYS = [("a", ""), ("a", "s"), ("a", "t"), ("b", "s")]
BACK, LENGTH = 30, 60
SPAN = Span(100, 100 + LENGTH)


@st.composite
def events(draw, *, program=True):
    times = sorted(draw(st.lists(st.integers(SPAN.start - BACK, SPAN.end), max_size=25)))
    found = []
    for time in times:
        kind = draw(st.sampled_from(["state", "state", "downtime", "program"]))
        key = draw(st.sampled_from([*KEYS, ("b", "")]))
        if kind == "state" and key in KEYS:
            state = draw(st.integers(0, 3 if key[1] else 2))
            soft = draw(st.booleans())
            found.append(StateEvent(time, key, state, soft, "x"))
        elif kind == "downtime":
            found.append(DowntimeEvent(time, key, draw(st.booleans())))
        elif kind == "program" and program:
            found.append(ProgramEvent(time, draw(st.booleans())))
    return found


@st.composite
def rules(draw):
    times = sorted(draw(st.sets(st.integers(SPAN.start - BACK, SPAN.end), max_size=4)))
    changes = tuple((time, draw(st.booleans())) for time in times)
    initial = {key: draw(st.integers(0, 2)) for key in KEYS if draw(st.booleans())}
    return Rules(
        span=SPAN,
        soft=draw(st.booleans()),
        not_running=draw(st.booleans()),
        period=Period(changes=changes, logged=draw(st.booleans())),
        initial=initial if draw(st.booleans()) else {},
    )


def buckets(row, key):
    words = ("ok", "warning", "critical", "unknown") if key[1] else ("up", "down", "unreachable")
    names = [f"time_{word}" for word in words]
    names += [f"time_indeterminate_{x}" for x in ("nodata", "notrunning", "outside_timeperiod")]
    return names


@given(events(), rules())
@settings(deadline=None)
def test_times_sum_to_the_period_and_percentages_to_a_hundred(log, rules):
    for key, row in availability(log, KEYS, rules).items():
        names = buckets(row, key)
        assert sum(row[name] for name in names) == LENGTH
        percents = [row[f"{name}_percent"] for name in names]
        assert sum(one or 0 for one in percents) == pytest.approx(100)
        unknown = row["time_indeterminate_nodata"] and not any(row[name] for name in names[:-3])
        assert [one is None for one in percents] == [bool(unknown)] * len(names[:-3]) + [False] * 3
        for name in names[:-3]:
            assert 0 <= row[f"scheduled_{name}"] <= row[name]
        assert len(row) == (24 if key[1] else 20)


@given(events(), rules(), st.integers(0, LENGTH))
@settings(deadline=None)
def test_parts_add_up(log, rules, cut):
    whole = availability(log, KEYS, rules)
    middle = SPAN.start + cut
    first = availability(
        [one for one in log if one.time <= middle],
        KEYS,
        evolve(rules, span=Span(SPAN.start, middle)),
    )
    second = availability(log, KEYS, evolve(rules, span=Span(middle, SPAN.end)))
    for key in KEYS:
        for name, value in whole[key].items():
            if not name.endswith("_percent"):
                assert first[key][name] + second[key][name] == value


def test_an_empty_report():
    span = Span(100, 100)
    row = availability([StateEvent(99, ("a", ""), 1, False, "")], [("a", "")], Rules(span=span))
    assert set(row["a", ""].values()) == {0}
    assert outages([StateEvent(99, ("a", ""), 1, False, "")], [("a", "")], Rules(span=span)) == []


def test_many_objects_keep_nothing_of_the_log():
    """A year of events of one object leaves the account as small as a day's."""
    from monrest.availability.account import Availability

    account = Availability([("a", "")], Rules(span=Span(0, 10**7)))
    for time in range(10**5):
        account.take(StateEvent(time * 100, ("a", ""), time % 2, False, "x"))
    assert account._changes == []
    assert account.times(("a", "")).seconds[:2] == [5 * 10**6, 5 * 10**6]
