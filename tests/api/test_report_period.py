"""Time periods of cores: from the log, from the definition, over clock changes, from liars (3.7)."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from monrest.availability import report as reportperiod
from monrest.availability.account import ALWAYS
from monrest.availability.periods import Span
from monrest.availability.report import PeriodUnreadableError, period_of, timeperiod_of
from monrest.base.values import Capabilities
from monrest.livestatus.core_errors import ProtocolError
from monrest.objectconfig.timeperiods import timeperiod
from tests.fakes.threads import Reactor, own_memory

BERLIN = ZoneInfo("Europe/Berlin")
WORK = [[], *([[28800, 61200]] * 5), []]
FULL = [[0, 86400]] * 7
COLUMNS = (
    *("name", "days", "exclusions", "exceptions_calendar_dates", "exceptions_month_date"),
    *("exceptions_month_day", "exceptions_month_week_day", "exceptions_week_day"),
)


class FakeSite:
    def __init__(self, *records, kind="naemon", columns=COLUMNS):
        self.records = records
        tables = {"timeperiods": dict.fromkeys(columns, "list")}
        self.capabilities = Capabilities(kind=kind, tables=tables, key=kind)
        self.memory = own_memory(Reactor())

    def verdict(self):
        return succeed(None)

    async def ask(self, pushed, layout=None, share=None):
        assert pushed.table == "timeperiods"
        return [[record.get(name, []) for name in pushed.columns] for record in self.records]


class FakeLog:
    def __init__(self, *lines):
        self.lines = lines
        self.wanted = []

    async def slices(self, site, wanted):
        self.wanted.append(wanted)
        yield [(time, f"[{time}] {text}") for time, text in self.lines]


def period(site, name="P", *, span, log=None, zone=BERLIN):
    found = []
    source = FakeLog() if log is None else log
    clock = Clock()
    work = period_of(source, site, name, span.start - 600, span, zone)
    Deferred.fromCoroutine(work).addBoth(found.append)
    while not found:
        clock.advance(0.01)
    if hasattr(found[0], "raiseException"):
        found[0].raiseException()
    return found[0]


def held(found, span):
    """Seconds of the span in which the period holds."""
    total, since, inside = 0, span.start, True
    for time, holds in [*found.changes, (span.end, False)]:
        time = min(max(time, span.start), span.end)
        total += (time - since) * inside
        since, inside = time, holds
    return total


def day(text, days=1):
    start = datetime.fromisoformat(text)
    end = start + timedelta(days=days)
    return Span(
        *(int(one.replace(tzinfo=BERLIN).timestamp()) for one in (start, end)),
    )


def test_no_name_is_always():
    assert period(FakeSite(), "", span=Span(0, 10)) is ALWAYS


def test_changes_of_the_log():
    log = FakeLog(
        (1200, "TIMEPERIOD TRANSITION: P;-1;0"),
        (1300, "TIMEPERIOD TRANSITION: Q;0;1"),
        (1330, "TIMEPERIOD TRANSITION: P;0;1"),
    )
    found = period(FakeSite({"name": "P", "days": FULL}), span=Span(1200, 2000), log=log)
    assert found.logged
    assert list(found.changes) == [(1200, False), (1320, True)]
    (wanted,) = log.wanted
    assert (wanted.since, wanted.until, wanted.transitions) == (600, 2000, True)


@pytest.mark.parametrize(
    ("text", "days", "hours"),
    [
        ("2024-03-11", 1, 9),  # a Monday
        ("2024-03-10", 1, 0),
        ("2024-03-11", 7, 45),
        ("2024-03-25", 14, 90),  # the clock goes forward between
        ("2024-10-21", 14, 90),  # and back
    ],
)
def test_the_definition(text, days, hours):
    span = day(text, days)
    found = period(FakeSite({"name": "P", "days": WORK}), span=span)
    assert not found.logged
    assert held(found, span) == hours * 3600


@pytest.mark.parametrize(
    ("text", "hours"), [("2024-03-31", 23), ("2024-10-27", 25), ("2024-10-28", 24)]
)
def test_a_whole_day_is_whole_also_when_the_clock_changes(text, hours):
    span = day(text)
    found = period(FakeSite({"name": "P", "days": FULL}), span=span)
    assert held(found, span) == hours * 3600


def test_other_kinds_of_ranges():
    # Flat lists, as Naemon has them, and several ranges of a day.
    flat = [[], *([[28800, 43200, 46800, 61200]] * 5), []]
    span = day("2024-03-11")
    assert held(period(FakeSite({"name": "P", "days": flat}), span=span), span) == 8 * 3600


def test_exclusions_and_exceptions():
    lunch = {"name": "lunch", "days": [[[43200, 46800]]] * 7}
    holiday = {
        "syear": 2024,
        "smon": 2,
        "smday": 12,
        "eyear": 2024,
        "emon": 2,
        "emday": 12,
        "skip_interval": 0,
        "times": [[0, 3600]],
    }
    work = {
        "name": "P",
        "days": WORK,
        "exclusions": ["lunch", "nope", "P"],
        "exceptions_calendar_dates": [holiday],
    }
    span = day("2024-03-11", 2)
    # 9 hours without lunch, and one hour on the holiday; a period without itself is ... empty.
    work["exclusions"] = ["lunch", "nope"]
    found = period(FakeSite(work, lunch), span=span)
    assert held(found, span) == (8 + 1) * 3600


def test_periods_that_exclude_each_other_end():
    one = {"name": "P", "days": FULL, "exclusions": ["Q"]}
    two = {"name": "Q", "days": FULL, "exclusions": ["P"]}
    span = day("2024-03-11")
    assert held(period(FakeSite(one, two), span=span), span) == 0
    # Looked at once each, not once for every way through them.
    names = ["P", *map(str, range(30))]
    many = [{"name": name, "days": FULL, "exclusions": names} for name in names]
    held(period(FakeSite(*many), span=span), span)


@pytest.mark.parametrize(
    ("site", "reason"),
    [
        (FakeSite({"name": "Q", "days": FULL}), "no such time period"),
        (FakeSite(), "no such time period"),
        (FakeSite({"name": "P"}, columns=("name", "alias")), "does not tell"),
    ],
)
def test_unknown_periods(site, reason):
    with pytest.raises(PeriodUnreadableError, match=reason):
        period(site, span=day("2024-03-11"))


def test_a_definition_is_not_followed_for_ever():
    with pytest.raises(PeriodUnreadableError, match="at most"):
        period(FakeSite({"name": "P", "days": FULL}), span=Span(0, 253402300799))


@pytest.mark.parametrize(
    "record",
    [
        *({"days": one} for one in ("x", 7, None, [], [["a"]] * 7, [[1]] * 7, [[1e30, 2e30]] * 7)),
        *(
            {"days": FULL, "exceptions_calendar_dates": one}
            for one in (7, ["x"], [{}], [{"syear": "x", "emday": 1, "times": []}])
        ),
        {"days": FULL, "exclusions": 7},
        {
            "days": FULL,
            "exceptions_month_date": [{"smon": 99, "smday": 1, "emon": 1, "emday": 1, "times": []}],
        },
    ],
)
def test_a_lying_core(record):
    with pytest.raises(ProtocolError):
        period(FakeSite({"name": "P", **record}), span=day("2024-03-11"))


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 20)), max_size=8),
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 20)), max_size=8),
)
def test_what_is_left_without_others(some, others):
    def merged(pairs):
        found = []
        for low, length in sorted(pairs):
            if found and low <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], low + length))
            else:
                found.append((low, low + length))
        return found

    left = reportperiod._without(merged(some), merged(others))

    def seconds(pairs):
        return {second for low, high in pairs for second in range(low, high)}

    assert seconds(left) == seconds(merged(some)) - seconds(merged(others))
    assert all(low < high for low, high in left)


RULES = [
    ("2024-03-12", 1),
    ("march 12", 2),
    ("day 12", 3),
    ("day -1", 3),
    ("tuesday 2 march", 4),
    ("tuesday -1", 5),
    ("day 10 - 15 / 2", 3),
]


@pytest.mark.parametrize(("text", "kind"), RULES)
def test_rules_as_the_embedded_core_tells_them(text, kind):
    """What a core says about a rule means the same as the rule."""
    from monrest.demo.core_tables import exception_info

    made = timeperiod("P", "", {}, [(text, "08:00-09:00")])
    column = reportperiod._EXCEPTIONS[kind - 1]
    told = timeperiod_of({"name": "P", "days": [[]] * 7, column: [exception_info(made.rules[0])]})
    start = datetime(2024, 1, 1).date()
    for offset in range(400):
        one = start + timedelta(days=offset)
        assert told.ranges_on(one) == made.ranges_on(one), one
