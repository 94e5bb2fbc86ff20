"""The registry of figures: who is asked when, and what becomes of failures."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.errors import Unavailable
from monrest.base.metrics import LIFETIME, Metrics
from tests.fakes.keystore import result


@pytest.fixture
def clock():
    made = Clock()
    made.advance(1000)
    return made


class Part:
    def __init__(self):
        self.asked, self.value, self.problem, self.wait = 0, 0, None, None

    async def source(self):
        self.asked += 1
        if self.wait is not None:
            await self.wait
        if self.problem is not None:
            raise self.problem
        return {"users_total": self.value}


def now(figures):
    return result(Deferred.fromCoroutine(figures.current()))


def test_what_is_filled_is_shown_and_nothing_else(clock):
    figures = Metrics(clock)
    assert now(figures) == {}
    figures.fill({"business_process_total": 3, "business_process_duration_seconds": 0.5})
    figures.fill({"business_process_total": 4})
    assert now(figures) == {"business_process_duration_seconds": 0.5, "business_process_total": 4}
    with pytest.raises(ValueError, match="no_such_figure"):
        figures.fill({"no_such_figure": 1})


def test_a_source_is_asked_when_its_answer_is_old_or_expired(clock):
    figures, part = Metrics(clock), Part()
    figures.offer("users", part.source)
    for value, asked in ((1, 1), (2, 1)):
        part.value = value
        assert now(figures) == {"users_total": 1}
        assert part.asked == asked
    figures.expire("users")
    assert now(figures) == {"users_total": 2}
    clock.advance(LIFETIME - 1)
    part.value = 3
    assert now(figures) == {"users_total": 2}
    clock.advance(1)
    assert now(figures) == {"users_total": 3}
    another = Part()
    another.value = 9
    figures.offer("users", another.source)
    assert now(figures) == {"users_total": 9}


def test_several_share_one_question(clock):
    figures, part = Metrics(clock), Part()
    part.wait, part.value = Deferred(), 7
    figures.offer("users", part.source)
    waiting = [Deferred.fromCoroutine(figures.current()) for _ in range(3)]
    waiting.pop().addErrback(lambda _: None).cancel()
    assert part.asked == 1
    part.wait.callback(None)
    assert [result(one) for one in waiting] == [{"users_total": 7}] * 2


def test_a_failure_is_told_and_asked_again(clock):
    figures, part = Metrics(clock), Part()
    part.problem = Unavailable("cannot read", "gone")
    figures.offer("users", part.source)
    for _ in range(2):
        with pytest.raises(Unavailable):
            now(figures)
    part.problem, part.value = None, 5
    assert now(figures) == {"users_total": 5}
    assert part.asked == 3
