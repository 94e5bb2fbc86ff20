"""What guards the other tests: tables of cases, errors that are not handled, doors for the reactor's thread."""

from __future__ import annotations

import sys

import pytest
from twisted.internet import defer
from twisted.internet.defer import Deferred

from monrest.base.room import RowRoom
from tests.fakes.threads import Reactor
from tests.forks import SCRIPT, ran
from tests.forks.doors import STRAY, watched
from tests.table import each


def test_every_case_that_fails_is_reported_and_the_others_are_run():
    seen = []

    @each(("number", "square"), [(1, 1), (2, 5), (3, 9), (4, 17)])
    def squares(fixture, number, square):
        seen.append((fixture, number))
        assert number * number == square

    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as raised:
        squares(fixture="f")
    assert seen == [("f", number) for number in (1, 2, 3, 4)]
    assert [one.__notes__ for one in raised.value.exceptions] == [
        ["in the case 2 5"],
        ["in the case 4 17"],
    ]


def test_fixtures_are_asked_for_and_cases_are_not():
    @each("case", ["a"], ids=str)
    def named(one, case, other):
        assert case == "a"

    assert list(named.__signature__.parameters) == ["one", "other"]
    named(one=1, other=2)


def test_an_empty_table_is_an_error():
    with pytest.raises(AssertionError, match="asserts nothing"):
        each("case", [])


def test_a_case_that_skips_or_is_not_waited_for_fails():
    @each("case", ["skip", "later", "well"])
    def mixed(case):
        if case == "skip":
            pytest.skip("not here")
        return Deferred() if case == "later" else None

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases"):
        mixed()


def test_an_error_is_known_until_it_is_handled():
    circle = defer.Deferred()
    circle.itself = circle
    circle.errback(ZeroDivisionError())
    assert [one.failResult.type for one in defer.DebugInfo.alive if one.failResult] == [
        ZeroDivisionError
    ]
    circle.addErrback(lambda failure: None)
    assert [one for one in defer.DebugInfo.alive if one.failResult] == []


STRAYING = """
import threading
from monrest.base.room import RowRoom
room = RowRoom(None)
room.share()
other = threading.Thread(target=room.share)
other.start()
other.join()
"""


def test_every_door_of_a_fork_is_watched(tmp_path):
    (tmp_path / "straying.py").write_text(STRAYING)
    _, said = ran([sys.executable, "straying.py"], program=SCRIPT, cwd=tmp_path)
    assert said.startswith(f"{STRAY}RowRoom.share\n")


def test_the_reactors_thread_goes_through():
    assert watched(RowRoom.share, "share")(RowRoom(Reactor())).size == 0


def test_another_one_does_not(capfd):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, pytest.raises(AssertionError, match=STRAY):
        pool.submit(watched(RowRoom.share, "share"), RowRoom(Reactor())).result()
