"""Short logs, A1 to A23, and a whole day, with the numbers that follow from them."""

import pytest

from monrest.availability.account import Availability, Period, Rules
from monrest.availability.periods import Span
from monrest.logs.state_events import StateEvent, Watched, transition
from tests.logs.accounts import availability, outages
from tests.table import each

START = 1_700_000_000 // 120 * 120
"""A multiple of the two minutes to which transitions of time periods are rounded."""
HOST, SERVICE = ("h", ""), ("h", "s")

_WORDS = {"CRIT": "CRITICAL", "WARN": "WARNING", "UNK": "UNKNOWN", "UNREACH": "UNREACHABLE"}
_HOST_WORDS = {"UP", "DOWN", "UNREACH"}
_DOWNTIME = {"DT+": "STARTED", "DT-": "STOPPED", "DTx": "CANCELLED"}
_TYPES = {"H": "HARD", "S": "SOFT"}


def line(at, what, output="out"):
    """One line, ``at`` seconds after START."""
    time = START + at
    return time, f"[{time}] {_text(what.split(), output)}"


def _text(words, output):
    word = words[0]
    if word == "P":
        return f"TIMEPERIOD TRANSITION: P;{words[1]}"
    if word == "stop":
        return "Caught 'Terminated', shutting down..."
    if word == "start":
        return "Naemon 1.5.2 starting... (PID=17)"
    if word in _DOWNTIME:
        name = "HOST DOWNTIME ALERT: h" if words[1] == "host" else "SERVICE DOWNTIME ALERT: h;s"
        return f"{name};{_DOWNTIME[word]}; text"
    if word in ("INITIAL", "CURRENT"):
        kind = "HOST STATE: h" if words[1] in _HOST_WORDS else "SERVICE STATE: h;s"
        return f"{word} {kind};{_WORDS.get(words[1], words[1])};HARD;1;{output}"
    kind = "HOST ALERT: h" if word in _HOST_WORDS else "SERVICE ALERT: h;s"
    state_type = _TYPES[words[1]] if len(words) > 1 else "HARD"
    return f"{kind};{_WORDS.get(word, word)};{state_type};1;{output}"


SPAN = Span(START, START + 1000)


def transitions(lines):
    found = [transition(time, text, "P") for time, text in lines]
    return Period(changes=sorted(one for one in found if one is not None))


def report(key, lines, *, span=SPAN, with_downtimes=True, initial=None, **rules):
    """The numbers that are not 0, and the outages, relative to START."""
    made = [line(*one) for one in lines]
    made.sort(key=lambda one: one[0])
    all_rules = Rules(
        span=span, period=transitions(made), initial={} if initial is None else {key: initial},
        **rules,
    )  # fmt: skip
    watched = Watched(keys={key}, program=all_rules.not_running)
    row = availability(watched.events(made), [key], all_rules)[key]
    rows = outages(watched.events(made), [key], all_rules, with_downtimes=with_downtimes)
    # The lists of downtimes are about outages alone.
    numbers = {
        name: value for name, value in row.items() if value and not name.endswith("_percent")
    }
    known = any("indeterminate" not in name for name in numbers)
    for name, value in row.items():
        if name.endswith("_percent"):
            expected = pytest.approx(100 * row[name.removesuffix("_percent")] / span.seconds)
            # Where no state is known, those of states are unknown as well.
            assert value == (expected if known or "indeterminate" in name else None)
    return numbers, rows


def numbers(**given):
    """Short names to fields: ``nodata``, ``s_up`` (scheduled)."""
    long = {"nodata": "time_indeterminate_nodata", "notrunning": "time_indeterminate_notrunning",
            "outside": "time_indeterminate_outside_timeperiod",
            "s_nodata": "scheduled_time_indeterminate"}  # fmt: skip
    return {
        long.get(name)
        or (f"scheduled_time_{name[2:]}" if name.startswith("s_") else f"time_{name}"): value
        for name, value in given.items()
    }


NOTHING_RUNS = {"not_running": True}

CASES = [
    # name, object, lines, rules, numbers, outages counted, outages excluded (None: the same)
    ("A1", SERVICE, [(-100, "OK H"), (200, "CRIT S"), (300, "CRIT H"), (600, "OK H")], {},
     {"ok": 700, "critical": 300}, [(300, 600)], None),
    ("A2", SERVICE, [(-100, "OK H"), (200, "CRIT S"), (300, "CRIT H"), (600, "OK H")],
     {"soft": True}, {"ok": 600, "critical": 400}, [(200, 600)], None),
    ("A3", SERVICE, [(400, "WARN H")], {}, {"nodata": 400, "warning": 600}, [], None),
    ("A4", SERVICE, [], {}, {"nodata": 1000}, [], None),
    ("A5", HOST, [(-100, "UP"), (100, "DT+ host"), (200, "DOWN"), (500, "DT- host"), (700, "UP")],
     {}, {"up": 500, "s_up": 100, "down": 500, "s_down": 300}, [(200, 700)], [(500, 700)]),
    ("A6", SERVICE,
     [(-100, "OK"), (100, "DT+ host"), (200, "CRIT"), (500, "DT- host"), (700, "OK")],
     {}, {"critical": 500, "s_critical": 300, "ok": 500, "s_ok": 100}, [(200, 700)], [(500, 700)]),
    ("A7", HOST, [(-100, "UP"), (200, "stop"), (600, "start"), (610, "INITIAL DOWN"), (800, "UP")],
     {}, {"up": 810, "down": 190}, [(610, 800)], None),
    ("A8", HOST, [(-100, "UP"), (200, "stop"), (600, "start"), (610, "INITIAL DOWN"), (800, "UP")],
     NOTHING_RUNS, {"up": 410, "notrunning": 400, "down": 190}, [(610, 800)], None),
    ("A9", HOST, [(-100, "UP"), (-50, "stop"), (400, "start")], NOTHING_RUNS, {"notrunning": 400, "up": 600}, [], None),
    # The times of transitions are rounded, so they stand a little later than on the page.
    ("A10", SERVICE,
     [(-120, "OK"), (-120, "P -1;0"), (240, "P 0;1"), (300, "CRIT"), (600, "P 1;0"), (800, "OK")],
     {}, {"outside": 640, "ok": 60, "critical": 300}, [(300, 600)], None),
    ("A11", SERVICE, [(400, "CRIT")], {"initial": 0}, {"ok": 400, "critical": 600}, [(400, 1000)], None),
    ("A12", SERVICE, [(400, "CRIT")], {"initial": 1}, {"warning": 400, "critical": 600}, [(400, 1000)], None),
    ("A13", HOST, [(400, "DOWN")], {"initial": 0}, {"up": 400, "down": 600}, [(400, 1000)], None),
    ("A14", SERVICE, [(-500, "CRIT"), (-300, "DT+ service"), (250, "DTx service")], {},
     {"critical": 1000, "s_critical": 250}, [(0, 1000)], [(250, 1000)]),
    ("A15", SERVICE,
     [(-100, "OK"), (100, "UNK", "u"), (200, "CRIT"), (300, "WARN"), (400, "CRIT")], {},
     {"ok": 100, "unknown": 100, "critical": 700, "warning": 100}, [(400, 1000), (100, 300)], None),
    ("A16", SERVICE, [(-100, "OK H"), (100, "CRIT H"), (200, "OK S")], {},
     {"ok": 900, "critical": 100}, [(100, 200)], None),
    ("A17", SERVICE, [(-100, "CURRENT PENDING"), (500, "OK")], {}, {"ok": 1000}, [], None),
    ("A18", SERVICE, [(0, "CRIT"), (1000, "OK")], {}, {"critical": 1000}, [(0, 1000)], None),
    ("A19", SERVICE, [(-1, "WARN"), (100, "DT+ service"), (300, "DT- service")], {},
     {"warning": 1000, "s_warning": 200}, [], None),
    ("A20", SERVICE, [(100, "DT+ service"), (300, "DT- service")], {}, {"nodata": 1000, "s_nodata": 200}, [], None),
    ("A21", HOST, [(-1, "UP"), (100, "DOWN"), (200, "UNREACH"), (300, "UP")], {},
     {"up": 800, "down": 100, "unreachable": 100}, [(100, 300)], None),
    ("A22", SERVICE,
     [(-1, "CRIT"), (100, "DT+ service"), (200, "DT+ service"), (300, "DT- service"),
      (400, "DT- service")], {},
     {"critical": 1000, "s_critical": 200}, [(0, 1000)], [(300, 1000), (0, 100)]),
]  # fmt: skip


@each(
    ("key", "lines", "rules", "expected", "counted", "excluded"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_worked_examples(key, lines, rules, expected, counted, excluded):
    found, rows = report(key, lines, **rules)
    assert found == numbers(**expected)
    assert [(row["start"] - START, row["end"] - START) for row in rows] == counted
    assert [row["duration"] for row in rows] == [end - start for start, end in counted]
    _, rows = report(key, lines, with_downtimes=False, **rules)
    assert [(row["start"] - START, row["end"] - START) for row in rows] == (
        counted if excluded is None else excluded
    )


def test_fields_of_the_first_outage():
    lines = [(-100, "OK H"), (200, "CRIT S", "soft"), (300, "CRIT H", "hard"), (600, "OK H")]
    _, (row,) = report(SERVICE, lines)
    assert row == {
        "class": "critical", "type": "SERVICE CRITICAL (HARD)", "start": START + 300,
        "end": START + 600, "duration": 300, "host": "h", "service": "s", "plugin_output": "hard",
    }  # fmt: skip
    lines[1:3] = [(200, "CRIT H", "hard"), (300, "CRIT S", "soft")]
    _, (row,) = report(SERVICE, lines, soft=True)
    assert (row["type"], row["plugin_output"]) == ("SERVICE CRITICAL", "soft")


def test_class_type_and_output_are_of_the_latest_line():
    _, rows = report(SERVICE, {one[0]: one[2] for one in CASES}["A15"])
    assert [(row["class"], row["type"], row["plugin_output"]) for row in rows] == [
        ("critical", "SERVICE CRITICAL (HARD)", "out"),
        ("critical", "SERVICE CRITICAL (HARD)", "out"),
    ]
    _, (row,) = report(HOST, {one[0]: one[2] for one in CASES}["A21"])
    assert (row["class"], row["type"]) == ("unreachable", "HOST UNREACHABLE (HARD)")
    assert "service" not in row
    repeated = [(100, "CRIT H", "first"), (200, "CRIT H", "latest"), (1000, "UNK H", "too late")]
    _, (row,) = report(SERVICE, repeated)
    assert (row["class"], row["plugin_output"]) == ("critical", "latest")


@each(
    ("lines", "rules", "expected", "out"),
    [
        # A recovery ends a problem although it is soft, other soft states change nothing.
        ([(-1, "UP"), (100, "DOWN H"), (200, "UNREACH S"), (300, "UP S")], {},
         {"up": 800, "down": 200}, [(100, 300)]),
        ([(-1, "UP"), (100, "DOWN S"), (300, "UP S")], {}, {"up": 1000}, []),
        ([(-1, "UP"), (100, "DOWN S"), (300, "UP S")], {"soft": True},
         {"up": 800, "down": 200}, [(100, 300)]),
        ([(-50, "DOWN H"), (-10, "UP S"), (500, "DOWN H")], {}, {"up": 500, "down": 500},
         [(500, 1000)]),
        ([(200, "UP S")], {}, {"nodata": 200, "up": 800}, []),
    ],
)  # fmt: skip
def test_soft_recoveries(lines, rules, expected, out):
    found, rows = report(HOST, lines, **rules)
    assert found == numbers(**expected)
    assert [(row["start"] - START, row["end"] - START) for row in rows] == out


def test_state_goes_on_into_the_future():  # A23
    span = Span(START, START + 10**9)
    found, (row,) = report(SERVICE, [(-1, "CRIT")], span=span)
    assert found == {"time_critical": 10**9}
    assert (row["start"], row["end"]) == (span.start, span.end)


DAY = Span(1710115200, 1710201600)


def day(*, since=None, **rules):
    """The end-to-end day: down over midnight, an outage with a downtime, the core stopped."""
    lines = [
        (DAY.start - 60, "HOST ALERT: h;DOWN;HARD;3;no"),
        (DAY.start + 10, "HOST ALERT: h;UP;HARD;1;yes"),
        (1710118920, "HOST ALERT: h;DOWN;HARD;3;no"),
        (1710119000, "HOST DOWNTIME ALERT: h;STARTED; x"),
        (1710120800, "HOST DOWNTIME ALERT: h;STOPPED; x"),
        (1710126000, "HOST ALERT: h;UP;HARD;1;yes"),
        (1710140000, "Caught 'Terminated', shutting down..."),
        (1710150000, "Naemon 1.5.2 starting... (PID=17)"),
    ]
    texts = [(at, f"[{at}] {text}") for at, text in lines if since is None or at >= since]
    all_rules = Rules(span=DAY, **rules)
    watched = Watched(keys={HOST}, program=all_rules.not_running)
    row = availability(watched.events(texts), [HOST], all_rules)[HOST]
    return row, outages(watched.events(texts), [HOST], all_rules)


def test_the_day():
    row, rows = day()
    assert (row["time_down"], row["scheduled_time_down"], row["time_up"]) == (7090, 1800, 79310)
    assert row["time_down_percent"] == pytest.approx(8.20601851851852)
    assert [(one["start"], one["end"], one["duration"]) for one in rows] == [
        (1710118920, 1710126000, 7080),
        (1710115200, 1710115210, 10),
    ]


def test_the_day_without_backtrack():
    row, _ = day(since=DAY.start)
    assert (row["time_indeterminate_nodata"], row["time_down"]) == (10, 7080)


def test_the_day_with_a_stopped_core():
    row, _ = day(not_running=True)
    assert (row["time_indeterminate_notrunning"], row["time_up"]) == (10000, 69310)


def test_the_day_at_work():
    # workhours 08:00 to 17:00 would leave too little of this day; the page's holds from 7:00.
    hours = Period(changes=((DAY.start, False), (DAY.start + 25200, True)), logged=False)
    row, _ = day(period=hours)
    assert row["time_indeterminate_outside_timeperiod"] == 25200
    assert row["time_up"] == 86400 - 25200


def test_an_empty_report():
    rules, key = Rules(span=Span(100, 100)), ("a", "")
    log = [StateEvent(99, key, 1, False, "")]
    assert set(availability(log, [key], rules)[key].values()) == {0}
    assert outages(log, [key], rules) == []


def test_many_events_keep_nothing_of_the_log():
    """A year of events of one object leaves the account as small as a day's."""
    account = Availability([("a", "")], Rules(span=Span(0, 10**7)))
    for time in range(10**4):
        account.take(StateEvent(time * 1000, ("a", ""), time % 2, False, "x"))
    assert account._changes == []
    assert account.times(("a", "")).seconds[:2] == [5 * 10**6, 5 * 10**6]
