"""Conditions of the Python client say in the query language what they say in Python."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.client import Client, column, where
from monrest.query.q import parse_q
from tests.table import each

state, name, groups, acknowledged = map(column, ("state", "name", "groups", "acknowledged"))

SAID = {
    where(state=1): '"state" = 1',
    where(state=1, name="a b"): '("state" = 1 and "name" = "a b")',
    acknowledged: '"acknowledged" != 0',
    ~acknowledged: '"acknowledged" = 0',
    where(state=1) & ~acknowledged: '("state" = 1 and "acknowledged" = 0)',
    ~(where(state=1) & ~acknowledged): '("state" != 1 or "acknowledged" != 0)',
    (state > 0) & (name == "a") & (name != "b"): '("state" > 0 and "name" = "a" and "name" != "b")',
    (state > 0) | (name == "a") & acknowledged: '("state" > 0 or ("name" = "a" and "acknowledged" != 0))',
    ~(state >= 1): '"state" < 1',
    ~~(state <= 1): '"state" <= 1',
    groups.has("linux"): '"groups" >= "linux"',
    ~groups.has("linux"): '"groups" !>= "linux"',
    ~~groups.has("linux"): '"groups" >= "linux"',
    name.matches("^w"): '"name" ~ "^w"',
    ~name.matches("^w", ignore_case=True): '"name" !~~ "^w"',
    state.within([1, 2]): '("state" = 1 or "state" = 2)',
    name == 'say "hi"': """"name" = 'say "hi"'""",
    column("last_check") < datetime(2026, 11, 22, tzinfo=UTC): '"last_check" < 1795305600',
    where(flag=True): '"flag" = 1',
    state < -1.5: '"state" < -1.5',
}  # fmt: skip


def test_what_is_said_is_understood():
    said = {clause.text(): wanted for clause, wanted in SAID.items()}
    assert list(said) == list(said.values())
    for text in said:
        parse_q(text)


def test_a_condition_is_no_truth():
    with pytest.raises(TypeError, match="and use brackets"):
        bool(where(state=1))
    with pytest.raises(ValueError, match="both kinds of quotes"):
        (name == "'\"").text()
    with pytest.raises(ValueError, match="expected a condition"):
        where()


@given(st.recursive(
    st.sampled_from([state > 0, ~acknowledged, groups.has("a"), name.matches("x")]),
    lambda inner: st.builds(lambda a, b, c: ~(a & b) if c else a | b, inner, inner, st.booleans()),
    max_leaves=8,
))  # fmt: skip
def test_any_condition_is_understood(clause):
    parse_q(clause.text())
    assert (~~clause).text() == clause.text()


ASKED = {
    (): "/hosts?",
    ("columns",): "/hosts?columns=name%2Cstate",
    ("columns", "limit"): "/hosts?columns=name%2Cstate&limit=5",
}


@each("steps", ASKED)
def test_a_selection_is_a_value(steps):
    hosts = Client().hosts()
    made = hosts
    for step in steps:
        made = made.columns("name", state) if step == "columns" else made.limit(5)
    assert f"{made.request().path}?{made.request().query}" == ASKED[steps]
    assert hosts.request().query == ""


def test_conditions_of_a_selection_add_up():
    chosen = Client().hosts(where(state=1)).filter(acknowledged).on("a", "b").request()
    assert chosen.query == "q=%28%22state%22%20%3D%201%20and%20%22acknowledged%22%20%21%3D%200%29"
    assert chosen.sites == ("a", "b")
