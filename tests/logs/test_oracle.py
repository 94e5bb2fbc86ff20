"""Reports over random logs say what a slow and independent calculation says."""

from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.availability.account import Period, Rules
from monrest.availability.periods import Span
from monrest.logs.state_events import Watched
from tests.examples import examples
from tests.logs import oracle
from tests.logs.accounts import availability, outages

KEYS = [("a", ""), ("a", "s"), ("a", "t"), ("b", ""), ("b", "s")]
START, END, BACK = 1000, 1060, 30
HOST_STATES = ["UP", "UP", "DOWN", "DOWN", "UNREACHABLE", "PENDING", "RECOVERY", "nonsense"]
SERVICE_STATES = ["OK", "OK", "WARNING", "CRITICAL", "CRITICAL", "UNKNOWN", "PENDING", "(unknown)"]
KINDS = ["ALERT", "ALERT", "ALERT", "INITIAL", "CURRENT"]
NOISE = ["LOG ROTATION: DAILY", "HOST FLAPPING ALERT: a;STARTED; x", "SERVICE NOTIFICATION: c;a;s;OK;n;x",
         "HOST ALERT: a", "SERVICE ALERT: a;s", "Warning: a core shutting down..."]  # fmt: skip


@st.composite
def texts(draw, number):
    kind = draw(st.sampled_from(["state"] * 5 + ["downtime", "downtime", "program", "noise"]))
    host, service = draw(st.sampled_from(KEYS))
    if kind == "noise":
        return draw(st.sampled_from(NOISE))
    if kind == "program":
        return draw(st.sampled_from(["Naemon 1.5.2 starting... (PID=1)", "Caught 'Terminated', shutting down..."]))  # fmt: skip
    target = f"{host};{service}" if service else host
    word = "SERVICE" if service else "HOST"
    if kind == "downtime":
        how = draw(st.sampled_from(["STARTED", "STARTED", "STOPPED", "CANCELLED"]))
        return f"{word} DOWNTIME ALERT: {target};{how}; text"
    when = draw(st.sampled_from(KINDS))
    title = f"{word} ALERT" if when == "ALERT" else f"{when} {word} STATE"
    state = draw(st.sampled_from(SERVICE_STATES if service else HOST_STATES))
    hardness = draw(st.sampled_from(["HARD", "HARD", "SOFT"]))
    return f"{title}: {target};{state};{hardness};1;output {number}; and more"


@st.composite
def logs(draw):
    times = sorted(draw(st.lists(st.integers(START - BACK, END + 5), max_size=25)))
    return [(time, f"[{time}] {draw(texts(at))}") for at, time in enumerate(times)]


CHANGES = st.dictionaries(st.integers(START - BACK, END + 5), st.booleans(), max_size=4).map(
    lambda found: tuple(sorted(found.items()))
)
ROUNDS = settings(max_examples=examples(200), deadline=None)


@ROUNDS
@given(logs(), CHANGES, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_availability(log, changes, soft, not_running, logged, assume):
    initial = {("a", ""): 1, ("a", "s"): 3} if assume else {}
    rules = Rules(
        span=Span(START, END), soft=soft, not_running=not_running, initial=initial,
        period=Period(changes=changes, logged=logged),
    )  # fmt: skip
    watched = Watched(keys=frozenset(KEYS), program=not_running)
    taken = [one for one in log if one[0] <= END]
    rows = availability(watched.events(taken), KEYS, rules)
    assumed = {key: oracle.words(key)[state] for key, state in initial.items()}
    for key in KEYS:
        row = {name: value for name, value in rows[key].items() if not name.endswith("_percent")}
        assert row == oracle.availability(
            log, key, START, END, soft=soft, not_running=not_running, changes=changes,
            logged=logged, assumed=assumed.get(key),
        )  # fmt: skip


@ROUNDS
@given(logs(), CHANGES, st.booleans(), st.booleans(), st.booleans())
def test_outages(log, changes, soft, downtimes, program):
    rules = Rules(span=Span(START, END), soft=soft, period=Period(changes=changes))
    watched = Watched(keys=frozenset(KEYS), program=program)
    taken = [one for one in log if one[0] <= END]
    rows = outages(watched.events(taken), KEYS, rules, with_downtimes=downtimes)
    assert rows == [
        row
        for key in KEYS
        for row in oracle.outages(
            log, key, START, END, soft=soft, changes=changes, downtimes=downtimes
        )
    ]
