"""Columns: splitting, renaming, calculations, functions and where they may stand (6 to 8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from monrest.base.errors import BadRequest
from monrest.query.columns import MOST_NESTED, parse_columns, split_list
from monrest.query.functions import MOST_ITEMS
from monrest.query.model import Calculation, Call, Expression, Item, Literal_, Ref
from monrest.query.scan import HIDDEN, outline
from tests import strategies
from tests.table import each

NAME = Ref("name")
STATE = Ref("state")


def call(function: str, *arguments: Expression | str | int | float) -> Call:
    return Call(
        function,
        tuple(Literal_(one) if isinstance(one, str | int | float) else one for one in arguments),
    )


def calculation(
    first: Expression | int | str, *steps: tuple[str, Expression | int | str]
) -> Calculation:
    def made(one: Expression | int | str) -> Expression:
        return Literal_(one) if isinstance(one, int | str | float) else one

    return Calculation(made(first), tuple((op, made(operand)) for op, operand in steps))


def expression_of(text: str) -> Expression:
    (item,) = parse_columns([text])
    return item.expression


def refusal(*values: str) -> str:
    with pytest.raises(BadRequest) as caught:
        parse_columns(values)
    assert caught.value.message == "error during request"
    prefix, _, description = caught.value.description.partition(": ")
    assert prefix == "columns"
    return description


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ,", []),
        ("name", ["name"]),
        (" name , state ,", ["name", "state"]),
        ("concat(name,' (',alias,')'),b", ["concat(name,' (',alias,')')", "b"]),
        ("s(name,'a(b','x'),b", ["s(name,'a(b','x')", "b"]),
        ('fmt("%s,(",name),b', ['fmt("%s,(",name)', "b"]),
        ("`a,b`,c", ["`a,b`", "c"]),
        ("f(a,(b,c),d),e", ["f(a,(b,c),d)", "e"]),
        ("it's,b", ["it's", "b"]),
        ("a),b", ["a)", "b"]),
        ("f(a,b", ["f(a,b"]),
    ],
)
def test_splitting(text: str, expected: list[str]) -> None:
    assert split_list(text) == expected


@each(
    ("text", "expression", "key", "named"),
    [
        ("name", NAME, "name", "name"),
        (" name ", NAME, "name", "name"),
        ("name : n", NAME, "n", "name"),
        ("name:", NAME, "", "name"),
        ("name  AS  n", NAME, "n", "name"),
        ("name As n:x", NAME, "n:x", "name"),
        ("name as", Ref("name as"), "name as", "name as"),
        ("name as 'a b'", Ref("name as 'a b'"), "name as 'a b'", "name as 'a b'"),
        ("as", Ref("as"), "as", "as"),
        ("`C: used`", Ref("C: used", quoted=True), "C: used", "C: used"),
        ("`C: free` as free", Ref("C: free", quoted=True), "free", "C: free"),
        ("`C: free`:free", Ref("C: free", quoted=True), "free", "C: free"),
        ("`child1::check_x::a`", Ref("child1::check_x::a", quoted=True), "child1::check_x::a", "child1::check_x::a"),
        ("`/`", Ref("/", quoted=True), "/", "/"),
        ("`a as b`", Ref("a as b", quoted=True), "a as b", "a as b"),
        ("`it's: x`:y", Ref("it's: x", quoted=True), "y", "it's: x"),
        ("`count(*)`", Ref("count(*)", quoted=True), "count(*)", "count(*)"),
        ("`a`b", Ref("`a`b"), "`a`b", "`a`b"),
        ("concat(name,':',alias) as c", call("concat", NAME, ":", Ref("alias")), "c", "concat(name,':',alias)"),
        ("concat(name,':',alias):c", call("concat", NAME, ":", Ref("alias")), "c", "concat(name,':',alias)"),
        ('date(last_check,"%H:%M:%S"):b', call("date", Ref("last_check"), "%H:%M:%S"), "b",
         'date(last_check,"%H:%M:%S")'),
        ("s(name,':','-'):a:b", call("s", NAME, ":", "-"), "a:b", "s(name,':','-')"),
        ("`C: used`:c", Ref("C: used", quoted=True), "c", "C: used"),
        ("calc(`C: used`,+,1):c", call("calc", Ref("C: used", quoted=True), "+", 1), "c", "calc(`C: used`,+,1)"),
        ("concat(name,' as x')", call("concat", NAME, " as x"), "concat(name,' as x')", "concat(name,' as x')"),
        ("utc(last_check,%H:%M):t", call("utc", Ref("last_check"), "%H:%M"), "t", "utc(last_check,%H:%M)"),
        ("utc(last_check,%H:%M)", call("utc", Ref("last_check"), "%H:%M"),
         "utc(last_check,%H:%M)", "utc(last_check,%H:%M)"),
        ("num_services num_services_ok as x", Ref("num_services num_services_ok"), "x", "num_services num_services_ok"),
    ],
)  # fmt: skip
def test_items(text: str, expression: Expression, key: str, named: str) -> None:
    assert parse_columns([text]) == (Item(expression, key, named, renamed=key != named),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniq()", []),
        ("uniq(*)", []),
        ("uniq() as u", []),
        ("uniq(state)", [(STATE, "uniq(state)")]),
        ("uniq(state) as s", [(STATE, "s")]),
        ("uniq(state):s", [(STATE, "s")]),
        ("uniq(state as s)", [(STATE, "s")]),
        ("uniq(name, state)", [(NAME, "name"), (STATE, "state")]),
        ("uniq(name as n,upper(name))", [(NAME, "n"), (call("upper", NAME), "upper(name)")]),
        ("uniq(to_rows(groups))", [(call("to_rows", Ref("groups")), "uniq(to_rows(groups))")]),
    ],
)
def test_uniq_of_columns_is_these_columns(text: str, expected: list[Any]) -> None:
    first, *others = parse_columns([text])
    assert first.expression == call("uniq")
    assert [(one.expression, one.key) for one in others] == expected


def test_an_alias_that_repeats_the_name_is_one() -> None:
    assert parse_columns(["name as name"]) == (Item(NAME, "name", "name", renamed=True),)


def test_repeated_parameters_are_one_list() -> None:
    found = parse_columns(["name, state", "", "alias:a"])
    assert [item.key for item in found] == ["name", "state", "a"]


@each(
    ("text", "expected"),
    [
        ("num_services*-1", calculation(Ref("num_services"), ("*", ""), ("-", 1))),
        ("a + b", calculation(Ref("a"), ("+", Ref("b")))),
        ("a*x5", calculation(Ref("a"), ("*", Ref("x5")))),
        ("`a-b`*2", calculation(Ref("a-b", quoted=True), ("*", 2))),
        ("4/3", calculation(4, ("/", 3))),
        ("/var/log", calculation("", ("/", Ref("var")), ("/", Ref("log")))),
        ("a*" + "9" * 400, calculation(Ref("a"), ("*", Ref("9" * 400)))),
        ("a*" + "9" * 20, calculation(Ref("a"), ("*", 1e20))),
        ("a-", Ref("a-")),
        ("-a", Ref("-a")),
        ("a+b-", Ref("a+b-")),
        ("/var", Ref("/var")),
        ("*", Ref("*")),
        ("--a", Ref("--a")),
        ("`a-b`", Ref("a-b", quoted=True)),
        ("a b", Ref("a b")),
        ("5", Ref("5")),
        ("'a-b'", Ref("'a-b'")),
        ("age(last_check)/60", calculation(call("age", Ref("last_check")), ("/", 60))),
        ("( a + 2 ) * 3", calculation(calculation(Ref("a"), ("+", 2)), ("*", 3))),
        ("((a))+(1)", calculation(Ref("a"), ("+", Ref("1")))),
        ("(a-b)/(c-d)", calculation(
            calculation(Ref("a"), ("-", Ref("b"))), ("/", calculation(Ref("c"), ("-", Ref("d"))))
        )),
        ("(`a-b`+1)*2", calculation(calculation(Ref("a-b", quoted=True), ("+", 1)), ("*", 2))),
        ("(a+b", Ref("(a+b")),
        ("()", Ref("()")),
        ("(a)b*2", calculation(Ref("(a)b"), ("*", 2))),
    ],
)  # fmt: skip
def test_calculations(text: str, expected: Expression) -> None:
    assert expression_of(text) == expected


@each(
    ("text", "expected"),
    [
        ("lc( name )", call("lower", NAME)),
        ("substring(name,-2,'1')", call("substr", NAME, -2, 1)),
        ("substr(name,x)", call("substr", NAME, "x")),
        ("calc(rta,'/', 2.5)", call("calc", Ref("rta"), "/", 2.5)),
        ("calc(rta,,5)", call("calc", Ref("rta"), "", 5)),
        ("calc(rta,+,state)", call("calc", Ref("rta"), "+", "state")),
        ("s(name,/a,b/,x)", None),
        ("s(name,'/a,b/','')", call("s", NAME, "/a,b/", "")),
        ("s(name,007,1.50)", call("s", NAME, "007", "1.50")),
        ("concat('Host: ',name,upper(alias))",
         call("concat", "Host: ", NAME, call("upper", Ref("alias")))),
        ("concat(`a::b`,2,,'')", call("concat", Ref("a::b", quoted=True), 2, "", "")),
        ("fmt(%s,upper(name))", call("fmt", "%s", call("upper", NAME))),
        ('unit(rta,"%")', call("unit", Ref("rta"), "%")),
        ("unit(rta)", call("unit", Ref("rta"))),
        ("age(1000)", call("age", 1000)),
        ("duration(-90)", call("duration", -90)),
        ("utc(last_check,'%Y, (%H)')", call("utc", Ref("last_check"), "%Y, (%H)")),
        ("hststate(state)", call("hoststate", STATE)),
        ("servicestate(state)", call("servicestate", STATE)),
        ("svcstate('x')", call("servicestate", "x")),
        ("upper(`a::b`)", call("upper", Ref("a::b", quoted=True))),
        ("count( )", call("count")),
        ("sum(num_services*2)", call("sum", calculation(Ref("num_services"), ("*", 2)))),
        ("avg(unit(calc(latency,/,1000),\"ms\"))",
         call("avg", call("unit", call("calc", Ref("latency"), "/", 1000), "ms"))),
        ("min(age(x))", call("min", call("age", Ref("x")))),
        ("max(1e3)", call("max", 1000.0)),
        ("uniq()", call("uniq")),
        ("as_rows(`groups`)", call("to_rows", Ref("groups", quoted=True))),
        ("upper(to_rows(services))", call("upper", call("to_rows", Ref("services")))),
        ("count(upper(to_rows(groups)))",
         call("count", call("upper", call("to_rows", Ref("groups"))))),
        # Not calls: capitals, a blank before the bracket, something after it.
        ("UPPER(name)", Ref("UPPER(name)")),
        ("upper (name)", Ref("upper (name)")),
        ("upper(name)x", Ref("upper(name)x")),
        ("upper(name) (x)", Ref("upper(name) (x)")),
        ("(name)", NAME),
        ("it's", Ref("it's")),
        ("a)", Ref("a)")),
    ],
)  # fmt: skip
def test_functions(text: str, expected: Expression | None) -> None:
    if expected is None:
        assert refusal(text) == "usage: s(column, 'regexp', 'replacement')"
    else:
        assert expression_of(text) == expected


def test_limits() -> None:
    assert len(parse_columns([",".join(["name"] * MOST_ITEMS)])) == MOST_ITEMS
    assert refusal("name," * MOST_ITEMS, "x") == "at most 500 items are accepted, got 501"
    assert refusal("x" * 32_000, "x" * 1000) == "at most 32768 characters are accepted"

    def nested(depth: int) -> str:
        return "lower(" * depth + "name" + ")" * depth

    expression = expression_of(nested(MOST_NESTED))
    for _ in range(MOST_NESTED):
        assert isinstance(expression, Call)
        (expression,) = expression.arguments
    assert expression == NAME
    assert refusal(nested(MOST_NESTED + 1)) == "at most 20 functions may be nested"
    assert refusal(nested(4000)) == "at most 20 functions may be nested"
    assert expression_of("(" * 20_000) == Ref("(" * 20_000)
    many = ",".join(["concat(lower(a),upper(b))"] * 333)
    assert len(parse_columns([f"{many},lower(a)"])) == 334
    assert refusal(f"{many},lower(a),upper(a)") == "at most 1000 functions are accepted"
    assert expression_of("a" + "*a" * (MOST_ITEMS - 1))
    assert refusal("a" + "*a" * MOST_ITEMS) == "at most 500 operands are accepted in a calculation"
    assert refusal(f"concat({'name,' * MOST_ITEMS}name)").startswith("usage: concat")


@given(strategies.broken_columns)
def test_an_outline_hides_and_never_moves(text: str) -> None:
    shape = outline(text)
    assert len(shape) == len(text)
    assert all(shown in (sent, HIDDEN) for shown, sent in zip(shape, text, strict=True))


@given(strategies.broken_columns)
def test_nothing_but_a_refusal_is_raised(text: str) -> None:
    try:
        found = parse_columns([text])
    except BadRequest as error:
        refused = error.description
    else:
        assert len(found) >= len(split_list(text))
        return
    assert refused.startswith("columns: ")


@given(strategies.columns)
def test_right_columns_are_accepted(text: str) -> None:
    for item, sent in zip(parse_columns([text]), split_list(text), strict=True):
        assert sent.startswith(item.text)
        assert item.renamed == (sent != item.text)
        assert parse_columns([item.text]) == (Item(item.expression, item.text, item.text),)


@given(strategies.names, strategies.expressions)
def test_expressions_are_never_taken_for_plain_names(name: str, text: str) -> None:
    assert isinstance(expression_of(text), Ref) == (text in strategies.COLUMNS)
    assert expression_of(f"`{name}`") == Ref(name, quoted=True)
