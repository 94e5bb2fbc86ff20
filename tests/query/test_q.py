"""The q language: every form, the order of connectors, every error, and its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.query.model import Condition, FilterTree, Group
from monrest.query.q import MOST_BRACKETS, MOST_CONDITIONS, MOST_LEVELS, MOST_PAIRS, parse_q
from tests import strategies
from tests.table import each

A, B, C, D = (Condition(name, "=", "1") for name in "abcd")


def both(*items: FilterTree) -> Group:
    return Group("and", items)


def either(*items: FilterTree) -> Group:
    return Group("or", items)


def refusal(text: str) -> str:
    with pytest.raises(BadRequest) as caught:
        parse_q(text)
    assert caught.value.message == "error during request"
    prefix, _, description = caught.value.description.partition(": ")
    assert prefix == "q"
    return description


@each(
    ("text", "expected"),
    [
        ("a=1", A),
        ("  a\n=\t1\r\n", A),
        ('"a" = "1"', A),
        ('a>="x"', Condition("a", ">=", "x")),
        ("a=-1", Condition("a", "=", "-1")),
        ("a~^b", Condition("a", "~", "^b")),
        ("a.b~c", Condition("a.b", "~", "c")),
        ("a >=-10m", Condition("a", ">=", "-10m")),
        ("a!~~x", Condition("a", "!~~", "x")),
        ("a !>= x", Condition("a", "!>=", "x")),
        ("a like'x y'", Condition("a", "~~", "x y")),
        ("a = ~x~", Condition("a", "=", "~x~")),
        ("a = web-01.x_^*", Condition("a", "=", "web-01.x_^*")),
        ('a = "it\'s"', Condition("a", "=", "it's")),
        ("a = '\"'", Condition("a", "=", '"')),
        ("a = '\\'", Condition("a", "=", "\\")),
        ("a = ' (1) and b = 2'", Condition("a", "=", " (1) and b = 2")),
        ("a = 'ü/€ : % @ ,'", Condition("a", "=", "ü/€ : % @ ,")),
        ("a = and", Condition("a", "=", "and")),
        ("'avg(x)' > 2", Condition("avg(x)", ">", "2")),
        ('"C: used" > 2', Condition("C: used", ">", "2")),
        ("android = 1", Condition("android", "=", "1")),
    ],
)
def test_conditions(text: str, expected: Condition) -> None:
    assert parse_q(text) == expected


@each(
    ("text", "expected"),
    [
        ("", both()),
        (" \n ", both()),
        ("()", both()),
        ("(()())", both()),
        ("() and a = 1", A),
        ("a = 1 or () and b = 1", both(A, B)),
        ("a = 1 or ()", A),
        ("a=1&&b=1", both(A, B)),
        ("a = 1 oR b = 1", either(A, B)),
        ("a = 1 b = 1", both(A, B)),
        ("a = 1(b = 1)", both(A, B)),
        ("(a = 1)or(b = 1)", either(A, B)),
        ("a = 1 b = 1 or c = 1", either(both(A, B), C)),
        ("a = 1 or b = 1 c = 1", both(either(A, B), C)),
        ("a = 1 and b = 1 or c = 1 and d = 1", both(either(both(A, B), C), D)),
        ("a = 1 and b = 1 and c = 1", both(A, B, C)),
        ("a = 1 and (b = 1 and c = 1)", both(A, both(B, C))),
        ("(a = 1 and b = 1) and c = 1", both(both(A, B), C)),
        ("(((a = 1) or (b = 1))) and (((c = 1)))", both(either(A, B), C)),
        ("a = 1 or (b = 1 and (c = 1 or d = 1))", either(A, both(B, either(C, D)))),
    ],
)
def test_connectors_from_left_to_right(text: str, expected: FilterTree) -> None:
    assert parse_q(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('***name = "a&b"***', Condition("name", "=", "a&b")),
        ("  ///a = 1/// or b = 1", A),
        ("xxxa = 1xxx", A),
        ("***a = 1", Condition("***a", "=", "1")),
        ("******", both()),
        ("aaa = 1", Condition("aaa", "=", "1")),
        ("a = 1 as total", A),
        ("a = 1 AS total ", A),
        ("(a = 1 or b = 1) as total", either(A, B)),
        ("a = 1 as = 1", both(A, Condition("as", "=", "1"))),
        ("a = 'x as y'", Condition("a", "=", "x as y")),
    ],
)
def test_wrapper_and_alias(text: str, expected: FilterTree) -> None:
    assert parse_q(text) == expected


@each(
    ("text", "description"),
    [
        ('a = "x', 'parse error at "x (character 5)'),
        ("a = 1,b = 2", "parse error at = 2 (character 9)"),
        ("a = 1/2", "parse error at /2 (character 6)"),
        ("a = @", "parse error at @ (character 5)"),
        ("a = ü", "parse error at ü (character 5)"),
        ("a = `b`", "parse error at `b` (character 5)"),
        ("a 'x' = 1", "parse error at 'x' = 1 (character 3)"),
        ("'' = 1", "parse error at '' = 1 (character 1)"),
        ("count(*) > 2", "parse error at (*) > 2 (character 6)"),
        ("a = 1 \0", "parse error at \ufffd (character 7)"),
        ("a =~ x", "unknown operator =~ at =~ x (character 3)"),
        ("a gt 1", "unknown operator gt at gt 1 (character 3)"),
        ("not a = 1", "unknown operator a at a = 1 (character 5)"),
        ("a =", "unexpected end of query after = (character 4)"),
        ("(a = 1 or", "unexpected end of query after or (character 10)"),
        ("a = 1 && || b = 2", "unexpected end of query after && at || b = 2 (character 10)"),
        ("|| a = 1", "unexpected OR at || a = 1 (character 1)"),
        ("a = 1 ( and b = 2", "unexpected AND at and b = 2 (character 9)"),
        ("((a = 1) and b = 2", "expected closing bracket for ((a = 1) and b = 2 (character 1)"),
        ("a = 1) or b = 2", "unexpected closing bracket at ) or b = 2 (character 6)"),
        ("(a = 1 and)", "unexpected closing bracket at ) (character 11)"),
        ("a = 'x\ny'", "control characters are not accepted in 'x\ufffdy' (character 5)"),
        ("'a\tb' = 1", "control characters are not accepted in 'a\ufffdb' (character 1)"),
        ("a = '\ud800'", "control characters are not accepted in '\ufffd' (character 5)"),
    ],
)
def test_errors(text: str, description: str) -> None:
    assert refusal(text) == description


@each(
    ("text", "place"),
    [("  (a = 1", 3), ("a = 1 and\n  (b = 2 or (c = 3)", 13), ("***(a = 1***", 4)],
)
def test_places_are_those_of_what_was_sent(text: str, place: int) -> None:
    assert refusal(text).endswith(f" (character {place})")


def test_long_rests_are_cut_in_errors() -> None:
    assert refusal("a = 1;" + "x" * 1000) == "parse error at ;" + "x" * 99 + "… (character 6)"


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
