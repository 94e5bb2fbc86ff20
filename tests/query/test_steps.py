"""What the functions of one answer may do, and where others have their turn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

import monrest.query.steps as module
from monrest.base.concurrency import sliced
from monrest.base.errors import BadRequest
from monrest.query.regex import MOST_TEXT, compile_pattern
from monrest.query.select import Cell, Reader
from monrest.query.steps import (
    A_CALL,
    A_SECOND,
    MOST_WORK,
    MOST_WORK_ON_A_ROW,
    TURN,
    Budget,
    Steps,
    finished,
)
from tests.query.pipeline import host
from tests.query.test_many_rows import many_rows


def turns(steps: Steps[Any], seen: Callable[[], None] = lambda: None) -> int:
    """How many safe points there are; ``seen`` is called at each."""
    count, value = 0, None
    while True:
        try:
            step = steps.send(value)
        except StopIteration:
            return count
        value = None if step is None else step()
        count += 1
        seen()


def test_a_call_costs_itself_and_what_it_makes() -> None:
    budget = Budget()
    for made, price in [
        ("x" * 30, A_CALL + 30),
        (7, A_CALL),
        (None, A_CALL),
        (["a", "b"], 3 * A_CALL),
    ]:
        before = budget.left
        assert budget.metered(lambda row: row)(made) == made
        assert before - budget.left == price


def test_the_budget_of_an_answer_ends() -> None:
    budget = Budget(left=100)
    read = budget.metered(lambda row: "x" * 10)
    budget.begin()
    for _ in range(3):
        read([])
    with pytest.raises(BadRequest) as caught:
        read([])
    assert caught.value.description == (
        f"functions and regular expressions work through at most {MOST_WORK} characters "
        "in one answer, select fewer rows or make shorter texts"
    )


def test_the_budget_of_one_row_ends_and_begins_again_with_the_next() -> None:
    budget = Budget()
    for _ in range(3):
        budget.begin()
        budget.spend(MOST_WORK_ON_A_ROW)
    with pytest.raises(BadRequest) as caught:
        budget.spend(1)
    assert caught.value.description == (
        "functions and regular expressions work through at most "
        f"{MOST_WORK_ON_A_ROW} characters for one row, make shorter texts"
    )


def test_work_that_yields_may_take_any_part_of_the_budget() -> None:
    budget = Budget()
    budget.begin()
    budget.spend_in_steps(MOST_WORK - 1)
    budget.spend_in_steps(1)
    assert budget.left == 0


def test_many_matches_in_one_text_are_replaced_in_steps() -> None:
    pattern = compile_pattern("(.)", ignore_case=False, parameter="x")
    budget = Budget()
    left = [budget.left]
    count = turns(pattern.replaced("b", "a" * 5000, 10, budget), lambda: left.append(budget.left))
    assert count > 5000 * 200 / TURN
    # Between two turns there is no more work than the rest of a turn and one match.
    assert max(first - last for first, last in pairwise(left)) < 2 * TURN


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("x*a[ab]{900}c", "ab" * 20_000),
        ("(a?){900}c", "a" * 4_000),
        ("((a{1,10}){10}){10}c", "a" * 4_000),
    ],
)
def test_a_search_that_may_take_long_is_done_aside(pattern: str, text: str) -> None:
    compiled = compile_pattern(pattern, ignore_case=False, parameter="x")
    steps = compiled.replaced("b", text, 10, Budget())
    assert callable(next(steps)), "it is done where nobody waits for it"
    assert finished(compiled.replaced("b", text, 10, Budget())) == text


def test_a_text_that_grows_too_much_is_given_up_before_it_is_made() -> None:
    compiled = compile_pattern("(.)", ignore_case=False, parameter="x")
    budget = Budget()
    made = finished(compiled.replaced("b" * 30_000, "a" * MOST_TEXT, 100_000, budget))
    assert made is None
    assert MOST_WORK - budget.left < 1_000_000


ROW = host("h", 0, [], [], alias="a" * 20_000)


@pytest.mark.parametrize(
    "columns",
    [
        ",".join(f"upper(alias) as a{at}" for at in range(50)),
        ",".join(f"concat(lower(alias),upper(alias)) as a{at}" for at in range(20)),
        "s(alias,'a','b')",
        "concat('x',s(s(alias,'a','b'),'b','c'))",
    ],
)
def test_others_have_their_turn_within_a_row(columns: str) -> None:
    bound, shape, part = many_rows(f"columns→{columns}", ROW, 1)
    reader = Reader(bound, dict(shape.index))
    cells = [reader.item(at) for at in range(len(bound.selected))]
    spent = [reader.budget.left]
    count = turns(reader.values(part.rows, cells), lambda: spent.append(reader.budget.left))
    assert count >= 5
    assert max(first - last for first, last in pairwise(spent)) < 3 * TURN


def test_quick_values_are_many_a_turn() -> None:
    bound, shape, part = many_rows("columns→state*2 as s", ROW, 4000)
    reader = Reader(bound, dict(shape.index))
    assert turns(reader.values(part.rows, [Cell(lambda _row: 1)])) == 2


def test_a_search_aside_costs_the_time_that_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0, 5.25])
    monkeypatch.setattr(module, "thread_time", lambda: next(times))
    budget = Budget()
    assert finished(budget.aside(lambda: "found")) == "found"
    assert MOST_WORK - budget.left == A_SECOND // 4


def test_whoever_is_cancelled_ends_the_work_within_a_row() -> None:
    bound, shape, part = many_rows("columns→s(alias,'a','b')", ROW, 1)
    reader = Reader(bound, dict(shape.index))
    clock = Clock()
    work = reader.values(part.rows, [reader.item(0)])
    answer = Deferred.fromCoroutine(sliced(work, clock, budget=0.0))
    failed: list[Any] = []
    answer.addErrback(failed.append)
    spent = reader.budget.left
    assert spent < MOST_WORK
    answer.cancel()
    clock.advance(1)
    assert failed[0].check(CancelledError)
    assert reader.budget.left == spent
    assert not clock.getDelayedCalls()
