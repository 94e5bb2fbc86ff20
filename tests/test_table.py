"""Tables of cases as one test."""

import pytest
from twisted.internet.defer import Deferred

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
