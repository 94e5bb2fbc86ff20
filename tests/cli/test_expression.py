"""Arithmetic of output templates."""

import contextlib
import operator
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.cli.plugin import ExpressionError, evaluate
from tests.table import each

VALUES = {"a": 6, "b": 4, "c.d": 0.5, "x::0": 2, "my-key": 7, "größe": 3}

GOOD = {
    "1": 1,
    "1.5": 1.5,
    ".5": 0.5,
    "2e3": 2000.0,
    "a": 6,
    "a + b": 10,
    "a-b": 2,
    "a - b - 1": 1,
    "a / b": 1.5,
    "a / b / 2": 0.75,
    "a + b * 2": 14,
    "(a + b) * 2": 20,
    "((a))": 6,
    "-a": -6,
    "+a": 6,
    "--a": 6,
    "a * -b": -24,
    "-a * b": -24,
    "c.d * 2": 1.0,
    "x::0 + 1": 3,
    '"my-key" / 7': 1.0,
    "'my-key'": 7,
    "größe": 3,
    "unknown + 1": 1,
    " a ": 6,
    "a\t+\nb": 10,
}


def resolve(name):
    return VALUES.get(name, 0)


@each("text", GOOD)
def test_values(text):
    assert evaluate(text, resolve) == GOOD[text]


@each(
    "text",
    [
        "", " ", "a b", "1 2", "a +", "* a", "(a", "a)", "()", "a ** b", "a % b", "a / 0", "1 / (a - a)",
        "1a", "a.", "@", '"', '""', "a; b", "__import__('os')", "a == b", "((((a)", "9e999 / 9e999 - ",
    ],
)  # fmt: skip
def test_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(text, resolve)


def test_deep_brackets_are_no_crash():
    with pytest.raises(ExpressionError):
        evaluate("(" * 100_000 + "1" + ")" * 100_000, resolve)
    with pytest.raises(ExpressionError):
        evaluate("-" * 100_000 + "1", resolve)


def test_huge_numbers_are_no_crash():
    with pytest.raises(ExpressionError):
        evaluate("9" * 400 + " / 1", resolve)
    with pytest.raises(ExpressionError):
        evaluate("9" * 5000, resolve)


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@st.composite
def trees(draw, depth=4):
    """(text, value) of a random expression; brackets only where they are needed or by chance."""

    def made(level):
        if level == 0 or draw(st.booleans()):
            number = draw(st.integers(1, 20))
            return str(number), Fraction(number), 3
        sign = draw(st.sampled_from("+-*/"))
        rank = 1 if sign in "+-" else 2
        left, left_value, left_rank = made(level - 1)
        right, right_value, right_rank = made(level - 1)
        if left_rank < rank:
            left = f"({left})"
        if right_rank <= rank:
            right = f"({right})"
        if sign == "/" and right_value == 0:
            sign, rank = "-", 1
            left = f"({left})"
            right = f"({right})"
        space = draw(st.sampled_from(["", " "]))
        return (
            f"{left}{space}{sign}{space}{right}",
            OPERATORS[sign](left_value, right_value),
            rank,
        )

    text, value, _rank = made(depth)
    return text, value


@given(trees())
def test_precedence_and_brackets(tree):
    text, value = tree
    assert evaluate(text, resolve) == pytest.approx(float(value), rel=1e-9, abs=1e-9)


@given(st.text(alphabet="ab.:0 1+-*/()\"'%{}", max_size=30))
def test_any_text_has_a_value_or_is_refused(text):
    with contextlib.suppress(ExpressionError):
        assert isinstance(evaluate(text, resolve), (int, float))


@given(st.lists(st.integers(0, 99), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_left_to_right(numbers, chance: random.Random):
    text, value = str(numbers[0]), numbers[0]
    for number in numbers[1:]:
        sign = chance.choice("+-")
        text += f"{sign}{number}"
        value = OPERATORS[sign](value, number)
    assert evaluate(text, resolve) == value
