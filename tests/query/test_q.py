"""The q language: every form, the order of connectors, every error, and its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.query.model import Condition, FilterTree, Group
from monrest.query.q import MOST_BRACKETS, MOST_CONDITIONS, MOST_LEVELS, MOST_PAIRS, parse_q
from tests import strategies

A = Condition("a", "=", "1")


def both(*items: FilterTree) -> Group:
    return Group("and", items)


def refusal(text: str) -> str:
    with pytest.raises(BadRequest) as caught:
        parse_q(text)
    assert caught.value.message == "error during request"
    prefix, _, description = caught.value.description.partition(": ")
    assert prefix == "q"
    return description


def test_limits() -> None:
    most = " and ".join(["a = 1"] * MOST_CONDITIONS)
    assert parse_q(most) == both(*[A] * MOST_CONDITIONS)
    assert refusal(most + " and a = 1") == "at most 1000 conditions are accepted"
    assert refusal("a = '" + "x" * 65_536) == "at most 65536 characters are accepted"
    nested = "(" * MOST_BRACKETS + "a = 1" + ")" * MOST_BRACKETS
    assert parse_q(nested) == A
    assert refusal(f"({nested})") == "at most 20 brackets may be nested"
    assert parse_q("()" * MOST_PAIRS) == both()
    assert refusal("()" * MOST_PAIRS + "()") == "at most 4000 pairs of brackets are accepted"
    assert refusal("(" * 60_000) == "at most 20 brackets may be nested"


def levels(tree: FilterTree) -> int:
    return 1 + max(map(levels, tree.items), default=0) if isinstance(tree, Group) else 1


def test_changing_connectors_do_not_build_endless_trees() -> None:
    def changing(times: int) -> str:
        return "a = 1" + " and a = 1 or a = 1" * (times // 2) + " and a = 1" * (times % 2)

    assert levels(parse_q(changing(MOST_LEVELS - 1))) == MOST_LEVELS
    for text in (changing(MOST_LEVELS + 1), changing(998)):
        assert refusal(text) == "at most 100 changes between and and or are accepted"


@given(strategies.broken_q_texts)
def test_nothing_but_a_refusal_is_raised(text: str) -> None:
    try:
        tree = parse_q(text)
    except BadRequest as error:
        refused = error.description
    else:
        assert parse_q(f"{text}\n") == tree
        return
    assert refused.startswith("q: ")


special_keys = strategies.printable.filter(lambda name: name != "" and "`" not in name)
spellings = st.sampled_from([("and", "or"), ("AND", "||"), ("", "Or"), ("&&", "or")])


@given(strategies.q_trees(strategies.conditions(special_keys)), st.booleans(), spellings)
def test_what_is_printed_is_read_back(
    tree: FilterTree, sparing: bool, connectors: tuple[str, str]
) -> None:
    text = strategies.printed(tree, sparing=sparing, connectors=connectors)
    assert parse_q(text) == tree
    assert parse_q(f"!!!{text}!!!") == tree or "!!!" in text


@given(strategies.q_texts)
def test_right_queries_are_accepted_as_often_as_they_come(text: str) -> None:
    assert parse_q(text) == parse_q(f" ({text}) ")
