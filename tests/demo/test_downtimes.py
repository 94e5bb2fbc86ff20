"""Downtimes and acknowledgements over time, with what they leave in the log."""

import pytest

NOW = 1795000000


@pytest.fixture
def running(bench):
    """A core whose time runs, but which checks nothing by itself."""
    bench.command("STOP_EXECUTING_HOST_CHECKS")
    bench.command("STOP_EXECUTING_SVC_CHECKS")
    bench.simulation.start()
    yield bench
    bench.simulation.stop()
    assert not bench.clock.getDelayedCalls()


def plan(bench, start, end, *, target="alpha", fixed=1, trigger=0, duration=0, name="HOST"):
    line = f"SCHEDULE_{name}_DOWNTIME;{target};{start};{end};{fixed};{trigger};{duration};ann;why"
    assert bench.command(line) == ""


def depth(bench, name="alpha"):
    return bench.column("GET hosts", "Columns: scheduled_downtime_depth", f"Filter: name = {name}")


def alerts(bench, word="DOWNTIME ALERT"):
    return [text for text in bench.messages() if word in text]


def run(bench, seconds):
    bench.clock.pump([1] * seconds)


def test_a_fixed_downtime_begins_and_ends(running):
    plan(running, NOW + 10, NOW + 20)
    row = running.ask("GET downtimes", "Columns: id author comment entry_time start_time end_time "
                      "fixed duration triggered_by type is_service host_name")  # fmt: skip
    assert row == [[1, "ann", "why", NOW, NOW + 10, NOW + 20, 1, 10, 0, 1, 0, "alpha"]]
    (comment,) = running.core.comments.values()
    assert (comment.entry_type, comment.author) == (2, "(Naemon Process)")
    assert comment.comment.startswith("This host has been scheduled for fixed downtime from ")
    assert depth(running) == [0]
    run(running, 11)
    assert depth(running) == [1]
    run(running, 10)
    assert depth(running) == [0]
    assert running.core.downtimes == running.core.comments == {}
    assert alerts(running) == [
        "HOST DOWNTIME ALERT: alpha;STARTED; Host has entered a period of scheduled downtime",
        "HOST DOWNTIME ALERT: alpha;STOPPED; Host has exited from a period of scheduled downtime",
    ]
    told = [text for text in running.messages() if "NOTIFICATION: " in text]
    assert told == [
        "HOST NOTIFICATION: ann;alpha;DOWNTIMESTART (UP);mail;;ann;why",
        "HOST NOTIFICATION: ann;alpha;DOWNTIMEEND (UP);mail;;ann;why",
    ]


@pytest.mark.parametrize(("start", "end"), [(NOW - 20, NOW - 10), (NOW + 10, NOW + 10)])
def test_a_downtime_without_time_is_not_made(bench, start, end):
    plan(bench, start, end)
    assert bench.core.downtimes == bench.core.comments == {}


def test_a_flexible_downtime_waits_for_the_problem(running):
    plan(running, NOW, NOW + 100, fixed=0, duration=30)
    waiting = ("GET hosts", "Columns: pending_flex_downtime", "Filter: name = alpha")
    run(running, 5)
    assert (depth(running), running.column(*waiting)) == ([0], [1])
    running.result("alpha", 1)
    assert (depth(running), running.column(*waiting)) == ([1], [0])
    run(running, 29)
    assert depth(running) == [1]
    run(running, 2)
    assert depth(running) == [0]
    assert running.core.downtimes == {}


def test_a_flexible_downtime_that_is_not_needed_vanishes(running):
    plan(running, NOW, NOW + 10, fixed=0, duration=30)
    run(running, 11)
    assert running.core.downtimes == {}
    assert alerts(running) == []
    assert running.host("alpha").pending_flex_downtime == 0


def test_cancelling(running):
    plan(running, NOW - 1, NOW + 100)
    plan(running, NOW - 1, NOW + 100)
    assert depth(running) == [2]
    running.command("DEL_SVC_DOWNTIME;1")
    assert depth(running) == [2]
    running.command("DEL_HOST_DOWNTIME;1")
    assert depth(running) == [1]
    assert len(alerts(running)) == 1
    running.command("DEL_HOST_DOWNTIME;2")
    assert depth(running) == [0]
    assert alerts(running)[-1] == (
        "HOST DOWNTIME ALERT: alpha;CANCELLED; Scheduled downtime for host has been cancelled."
    )
    assert running.core.comments == {}


def test_triggered_downtimes_follow_the_first(running):
    plan(running, NOW + 10, NOW + 50)
    plan(running, NOW + 10, NOW + 50, target="beta", fixed=0, trigger=1, duration=60)
    run(running, 5)
    assert depth(running, "beta") == [0]
    run(running, 6)
    assert depth(running, "beta") == [1]
    running.command("DEL_HOST_DOWNTIME;1")
    assert running.core.downtimes == {}


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("DEL_DOWNTIME_BY_HOST_NAME;alpha", [4]),
        ("DEL_DOWNTIME_BY_HOST_NAME;alpha;load", [1, 3, 4]),
        (f"DEL_DOWNTIME_BY_HOST_NAME;alpha;;{NOW - 1};", [2, 3, 4]),
        ("DEL_DOWNTIME_BY_HOST_NAME;alpha;;;other", [1, 2, 3, 4]),
        ("DEL_DOWNTIME_BY_HOSTGROUP_NAME;red", [4]),
        ("DEL_DOWNTIME_BY_HOSTGROUP_NAME;both;beta", [1, 2, 3]),
        (f"DEL_DOWNTIME_BY_START_TIME_COMMENT;{NOW};", [1]),
        ("DEL_DOWNTIME_BY_START_TIME_COMMENT;;why", []),
        ("DEL_DOWNTIME_BY_START_TIME_COMMENT", [1, 2, 3, 4]),
    ],
)
def test_deleting_by_what_they_are(bench, line, left):
    plan(bench, NOW - 1, NOW + 9)
    plan(bench, NOW, NOW + 9, target="alpha;load", name="SVC")
    plan(bench, NOW, NOW + 9, target="alpha;disk /var", name="SVC")
    plan(bench, NOW, NOW + 9, target="beta")
    assert bench.command(line) == ""
    assert bench.column("GET downtimes", "Columns: id") == left


def acknowledge(bench, *, sticky=1, persistent=0, end=None, send=0):
    kind = "PROBLEM" if end is None else "PROBLEM_EXPIRE"
    middle = "" if end is None else f"{end};"
    line = f"ACKNOWLEDGE_SVC_{kind};alpha;load;{sticky};{send};{persistent};{middle}ann;on it"
    assert bench.command(line) == ""


def acknowledged(bench):
    return bench.ask("GET services", "Columns: acknowledged acknowledgement_type",
                     "Filter: description = load")[0]  # fmt: skip


def test_an_acknowledgement_needs_a_problem(bench):
    acknowledge(bench)
    assert acknowledged(bench) == [0, 0]
    assert bench.core.comments == {}


def test_a_sticky_one_stays_until_the_recovery(bench):
    bench.result("alpha", 1, service="load")
    acknowledge(bench, send=1)
    assert acknowledged(bench) == [1, 2]
    (comment,) = bench.core.comments.values()
    assert (comment.entry_type, comment.comment, comment.persistent) == (4, "on it", 0)
    assert bench.messages()[-2:] == [
        "SERVICE ACKNOWLEDGE ALERT: alpha;load;STARTED;ann;on it",
        "SERVICE NOTIFICATION: ben;alpha;load;ACKNOWLEDGEMENT (WARNING);mail;text;ann;on it",
    ]
    bench.result("alpha", 2, service="load")
    assert acknowledged(bench) == [1, 2]
    bench.result("alpha", 0, service="load")
    assert acknowledged(bench) == [0, 0]
    assert bench.core.comments == {}


def test_a_normal_one_ends_with_the_next_state(bench):
    bench.result("alpha", 1, service="load")
    acknowledge(bench, sticky=0, persistent=1)
    assert acknowledged(bench) == [1, 1]
    bench.result("alpha", 2, service="load")
    assert acknowledged(bench) == [0, 0]
    assert len(bench.core.comments) == 1


def test_one_that_expires(running):
    running.result("alpha", 1, service="load")
    acknowledge(running, end=NOW + 10, persistent=1)
    rows = running.ask("GET comments", "Columns: expires expire_time persistent")
    assert rows == [[1, NOW + 10, 1]]
    run(running, 9)
    assert acknowledged(running) == [1, 2]
    run(running, 2)
    assert acknowledged(running) == [0, 0]
    assert running.core.comments == {}
    assert "SERVICE ACKNOWLEDGE ALERT: alpha;load;EXPIRED;;" in running.messages()
