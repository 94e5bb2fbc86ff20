"""What is read of lines (7.3), also of lines that no core should have written."""

from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from monrest.logs.state_events import Watched, transition
from tests.table import each

KEYS = {("h", ""), ("h", "s"), ("h", "a;b"), ("Größe", "Disk /var: 5 €")}


def event(text, *, program=False, keys=KEYS):
    found = Watched(keys=keys, program=program).event(5, f"[1700000000] {text}")
    return None if found is None else asdict(found)


def state(key, number, *, soft=False, output="out"):
    return {"time": 5, "key": key, "state": number, "soft": soft, "output": output}


@each(
    ("text", "expected"),
    [
        ("HOST ALERT: h;UP;HARD;1;out", state(("h", ""), 0)),
        ("HOST ALERT: h;RECOVERY;HARD;1;out", state(("h", ""), 0)),
        ("INITIAL HOST STATE: h;DOWN;HARD;1;out", state(("h", ""), 1)),
        ("CURRENT HOST STATE: h;UNREACHABLE;HARD;1;out", state(("h", ""), 2)),
        ("CURRENT HOST STATE: h;PENDING;HARD;1;", state(("h", ""), 0, output="")),
        ("CURRENT HOST STATE: h;DOWN;SOFT;1;", state(("h", ""), 1, soft=True, output="")),
        ("SERVICE ALERT: h;s;OK;SOFT;1;out", state(("h", "s"), 0, soft=True)),
        ("SERVICE ALERT: h;s;WARNING;HARD;1;out", state(("h", "s"), 1)),
        ("SERVICE ALERT: h;s;CRITICAL;HARD;1;a;b: c;d", state(("h", "s"), 2, output="a;b: c;d")),
        ("SERVICE ALERT: h;s;UNKNOWN;HARD;1;out", state(("h", "s"), 3)),
        ("INITIAL SERVICE STATE: h;s;(unknown);HARD;1;out", state(("h", "s"), 3)),
        ("CURRENT SERVICE STATE: h;s;PENDING;HARD;1;", state(("h", "s"), 0, output="")),
        ("SERVICE ALERT: h;a;b;CRITICAL;HARD;1;out", state(("h", "a;b"), 2)),
        ("SERVICE ALERT: Größe;Disk /var: 5 €;OK;HARD;1;out", state(("Größe", "Disk /var: 5 €"), 0)),
        ("SERVICE ALERT: h;s;CRITICAL", state(("h", "s"), 2, output="")),
        ("HOST DOWNTIME ALERT: h;STARTED; x", {"time": 5, "key": ("h", ""), "started": True}),
        ("HOST DOWNTIME ALERT: h;STOPPED; x", {"time": 5, "key": ("h", ""), "started": False}),
        ("HOST DOWNTIME ALERT: h;CANCELLED; x", {"time": 5, "key": ("h", ""), "started": False}),
        ("SERVICE DOWNTIME ALERT: h;a;b;STARTED; x", {"time": 5, "key": ("h", "a;b"), "started": True}),
    ],
)  # fmt: skip
def test_lines(text, expected):
    assert event(text) == expected


@each(
    "text",
    [
        *("", "x", ":", ": ", "HOST ALERT", "HOST ALERT:", "HOST ALERT: ", "SERVICE ALERT: h"),
        *("HOST ALERT: h", "HOST ALERT: h;", "HOST ALERT: h;WORSE;HARD;1;x", "HOST ALERT: x;UP;"),
        "HOST ALERT: h;UNKNOWN;HARD;1;x",
        "SERVICE ALERT: h;;OK;HARD;1;x",
        "SERVICE ALERT: h;other;OK;HARD;1;x",
        "HOST FLAPPING ALERT: h;STARTED; x",
        "HOST ACKNOWLEDGE ALERT: h;STARTED;ann;x",
        "HOST NOTIFICATION: ann;h;DOWN;mail;x",
        "SERVICE NOTIFICATION: ann;h;s;CRITICAL;mail;x",
        "EXTERNAL COMMAND: LOG;HOST ALERT: h;DOWN;HARD;1;x",
        "PASSIVE HOST CHECK: h;1;x",
        "LOG ROTATION: DAILY",
        "LOG VERSION: 2.0",
        "TIMEPERIOD TRANSITION: P;0;1",
        "Naemon 1.5.2 starting... (PID=1)",
    ],
)
def test_lines_that_do_not_matter(text):
    assert event(text) is None


@each(
    ("text", "running"),
    [
        ("Naemon 1.5.2 starting... (PID=17)", True),
        ("Nagios 4.4.6 starting... (PID=17)", True),
        ("Caught 'Hangup', restarting...", True),
        ("Caught 'Terminated', shutting down...", False),
        ("Bailing out due to one or more errors", False),
    ],
)
def test_program_lines(text, running):
    assert event(text, program=True) == {"time": 5, "running": running}
    assert event(f"note: {text}", program=True) is None


def test_other_texts_are_no_program_lines():
    assert event("Successfully shutdown... (PID=17)", program=True) is None
    assert event("Auto-save of retention data completed successfully.", program=True) is None


def test_downtimes_of_the_hosts_of_services_matter():
    keys = {("h", "s")}
    assert event("HOST DOWNTIME ALERT: h;STARTED; x", keys=keys) is not None
    assert event("HOST ALERT: h;DOWN;HARD;1;x", keys=keys) is None


@each(
    ("time", "text", "expected"),
    [
        (1200, "P;-1;0", (1200, False)),
        (1289, "P;0;1", (1200, True)),
        (1290, "P;0;1", (1320, True)),
        (1200, "Q;0;1", None),
        (1200, "P2;0;1", None),
        (1200, "P", None),
        (1200, "P;1", None),
        (1200, "P;0;1;1", None),
    ],
)
def test_transitions(time, text, expected):
    assert transition(time, f"[{time}] TIMEPERIOD TRANSITION: {text}", "P") == expected


@given(st.text(alphabet="hs;: ]AOKUPx\\nÖ", max_size=60), st.booleans())
def test_any_text_is_a_line_or_none(text, program):
    watched = Watched(keys=KEYS, program=program)
    for kind in ("HOST ALERT: ", "SERVICE ALERT: ", "SERVICE DOWNTIME ALERT: ", ""):
        found = watched.event(1, f"[1700000000] {kind}{text}")
        assert found is None or found.time == 1
    transition(1, text, "P")
