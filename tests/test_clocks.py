"""What lasts is measured, what means a date is read from a clock that somebody may set."""

import ast
import time
from pathlib import Path

import pytest
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.task import Clock

import monrest
from monrest.base.clock import ClockSteps, measure_spans
from tests.fakes.clocks import Wall

DATES = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime", "strftime"}


@pytest.fixture
def reactor():
    made = EPollReactor()
    yield made
    made.disconnectAll()
    made._poller.close()
    for one in made._internalReaders:
        one.connectionLost(None)


def test_calls_of_the_reactor_follow_the_clock_that_nobody_sets(reactor):
    measure_spans(reactor)
    before = time.monotonic()
    call = reactor.callLater(5, print)
    assert before + 5 <= call.getTime() <= time.monotonic() + 5
    before = time.monotonic()
    call.reset(7)
    assert before + 7 <= call.getTime() <= time.monotonic() + 7
    assert 0 < reactor.timeout() <= 7
    measure_spans(reactor)  # once more changes nothing


def test_whoever_waits_already_would_wait_for_years(reactor):
    reactor.callLater(5, print)
    with pytest.raises(RuntimeError, match="before anything waits"):
        measure_spans(reactor)


def test_a_clock_that_is_set_is_noticed_and_one_that_is_held_right_is_not():
    clock = Clock()
    wall = Wall(clock)
    steps = ClockSteps(wall, clock)
    assert [steps.look(), steps.look()] == [0, 0]
    for _ in range(100):
        clock.advance(60)
        wall.jump(0.5)
        assert steps.look() == 0
    wall.jump(-3600)
    assert [steps.look(), steps.look()] == [1, 1]
    wall.jump(3600)
    clock.advance(3600)
    assert steps.look() == 2


def calls():
    """Every call of the product, with where it is; ``from time import`` counts as one."""
    for path in sorted(Path(monrest.__file__).parent.rglob("*.py")):
        if path.name == "clock.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                for one in node.names:
                    yield f"{path}:{node.lineno}", ast.parse(f"time.{one.name}()").body[0].value
            if isinstance(node, ast.Call):
                yield f"{path}:{node.lineno}", node


def reads_the_date(call):
    if not isinstance(call.func, ast.Attribute):
        return False
    of, name = call.func.value, call.func.attr
    owner = of.id if isinstance(of, ast.Name) else getattr(of, "attr", "")
    if owner == "func":
        return name in {"now", "current_timestamp"}
    # With a moment these only spell it.
    spells = name in {"localtime", "gmtime", "ctime", "strftime"} and call.args
    return owner in {"time", "datetime", "date"} and name in DATES and not spells


def is_seconds(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr, node.args) == ("seconds", [])
    )


def test_one_room_reads_the_time():
    """The date comes from a WallClock, whoever needs it."""
    assert [where for where, call in calls() if reads_the_date(call)] == []


def test_seconds_of_the_reactor_are_no_date():
    """They are compared, added and kept here; whoever was handed them could take them for one."""
    assert [
        where
        for where, call in calls()
        if any(map(is_seconds, (*call.args, *(one.value for one in call.keywords))))
    ] == []
