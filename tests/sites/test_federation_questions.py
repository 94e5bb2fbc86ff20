"""What a core would be asked, as a question to another instance: it means the same there."""

import operator
from datetime import UTC
from urllib.parse import parse_qsl

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities, Column, Document
from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.inbox import StoredRows
from monrest.query.bind import bind
from monrest.query.column_names import ColumnNames, CoreColumn, TableSchema, View
from monrest.query.flow import SitePart
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.model import Group, Pushed, Stat
from monrest.query.model import Test as Where
from monrest.query.parse import parse_query
from monrest.query.plan import SitePlan, layout, plan
from monrest.query.stages import finish
from monrest.query.totals import core_test
from monrest.sites.federation.answers import RecordReader, document, records
from monrest.sites.federation.questions import _Found, question
from tests.fakes.sites import outcome
from tests.fakes.threads import NoThreads, Reactor, own_memory

TYPES = {
    "name": "string", "alias": "string", "state": "int", "last_check": "int", "latency": "float",
    "groups": "list", "contacts": "list", "custom_variables": "dict",
}  # fmt: skip
CORE = Capabilities(kind="rest", tables={"hosts": TYPES, "log": {"time": "int"}}, key="k")
_API = {"string": "string", "int": "number", "float": "number", "list": "array_of_strings"}
SCHEMA = TableSchema(
    name="hosts",
    table="hosts",
    columns={
        name: CoreColumn(column=Column(name, _API.get(kind, "object")), core_type=kind)
        for name, kind in TYPES.items()
    },
    order=("name",),
)


def asked(pushed, layout=None):
    """The path and the parameters of a question."""
    path, _, query = question(pushed, CORE, layout).request.decode().partition("?")
    assert query.isascii()
    return path, parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))


def answered(pushed, rows):
    """What the query engine of the other side makes of the question, for a core with ``rows``."""
    _, parameters = asked(pushed)
    query = parse_query(tuple(parameters))
    bound = bind(query, ColumnNames(SCHEMA), View(), Moment(now=1e9, zone=UTC))
    shape = layout(bound, (CORE,))
    asking = plan(bound, shape, CORE, push_down=False)
    values = [[row[name] for name, _ in shape.columns] for row in rows]
    part = SitePart(plan=SitePlan(pushed=asking.pushed), rows=values, constants={})
    with Limit() as limit:
        result = finish(bound, shape, [part], limit)
    if isinstance(result, Document):
        return result.value
    names = [column.name for column in result.columns]
    return [dict(zip(names, row, strict=False)) for row in result.rows]


@pytest.mark.parametrize(
    ("pushed", "path", "parameters"),
    [
        (Pushed(table="hosts", columns=("name",)), "/hosts", [("columns", "name")]),
        (
            Pushed(
                table="hosts",
                columns=("name", "state"),
                filter=Group("and", (Where("state", "!=", "0"), Where("name", "~", "a'b\"c"))),
                sort=(("state", True), ("name", False)),
                limit=7,
            ),
            "/hosts",
            [
                ("columns", "name,state"),
                ("state[!=]", "0"),
                ("name[~]", "a'b\"c"),
                ("sort", "-state,name"),
                ("limit", "7"),
            ],
        ),
        (
            Pushed(
                table="hosts",
                columns=("name",),
                filter=Group(
                    "or",
                    (
                        Where("groups", "!>=", "a b"),
                        Group("and", (Where("state", "<", "2"), Where("name", "!~~", "it's"))),
                    ),
                ),
            ),
            "/hosts",
            [
                ("columns", "name"),
                ("q", "(groups !>= 'a b' or (state < '2' and name !~~ \"it's\"))"),
            ],
        ),
        (
            Pushed(table="hosts", columns=("name",), filter=Group("or", ())),
            "/hosts",
            [("columns", "name"), ("name[=]", "0"), ("name[!=]", "0")],
        ),
        (
            Pushed(
                table="log",
                columns=("time",),
                filter=Group("or", (Where("time", ">", "1"), Where("time", "<", "9"))),
                sort=(("time", True), ("lineno", True)),
                limit=3,
            ),
            "/logs",
            [
                ("columns", "time"),
                ("q", "(time > '1' or time < '9')"),
                ("time[>=]", "0"),
                ("limit", "3"),
            ],
        ),
        (
            Pushed(table="status", stats=(Stat("count"), Stat("sum", "x"))),
            "/processinfo",
            [("columns", "count(*):_n,sum(x):_1")],
        ),
    ],
)
def test_questions(pushed, path, parameters):
    assert asked(pushed) == (path, parameters)


def test_a_value_with_both_quotes_is_refused_where_it_cannot_be_written():
    tree = Group("or", (Where("name", "=", "'\""), Where("name", "=", "x")))
    with pytest.raises(BadRequest, match="name: expected a value without both kinds of quotes"):
        question(Pushed(table="hosts", columns=("name",), filter=tree), CORE, None)


words = st.text(st.sampled_from("ab'% +&=;#/\\ü)(,"), min_size=1, max_size=4).filter(
    lambda text: text == text.strip()
)
tests = st.one_of(
    st.builds(Where, st.sampled_from(["name", "alias"]), st.sampled_from(["=", "!="]), words),
    st.builds(Where, st.just("alias"), st.sampled_from(["=", "!="]), st.just("")),
    st.builds(
        Where,
        st.sampled_from(["state", "last_check"]),
        st.sampled_from(["=", "!=", "<", ">", "<=", ">="]),
        st.integers(-2, 3).map(str),
    ),
    st.builds(Where, st.just("groups"), st.sampled_from([">=", "!>="]), words),
    st.builds(Where, st.just("groups"), st.sampled_from(["=", "!="]), st.just("")),
)
trees = st.recursive(
    tests,
    lambda inner: st.builds(
        Group, st.sampled_from(["and", "or"]), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "name": words,
            "alias": st.one_of(words, st.just("")),
            "state": st.integers(-2, 3),
            "last_check": st.integers(-2, 3),
            "latency": st.just(0.5),
            "groups": st.lists(words, max_size=2),
            "contacts": st.just([]),
            "custom_variables": st.just({}),
        }
    ),
    max_size=6,
    unique_by=lambda row: row["name"],
)
_PLACES = {name: at for at, name in enumerate(TYPES)}


def passes(tree, row):
    return core_test(tree, _PLACES)(list(row.values()))


@given(trees, rows)
def test_the_other_side_keeps_the_rows_that_a_core_would_keep(tree, given_rows):
    pushed = Pushed(table="hosts", columns=("name",), filter=tree)
    ordered = [{name: row[name] for name in TYPES} for row in given_rows]
    kept = {row["name"] for row in ordered if passes(tree, row)}
    assert {row["name"] for row in answered(pushed, ordered)} == kept


@given(st.lists(trees, max_size=3), trees, rows, st.booleans())
def test_counts_are_those_of_a_core(counted, tree, given_rows, grouped):
    ordered = [{name: row[name] for name in TYPES} for row in given_rows]
    stats = (
        Stat("count"),
        *(Stat("count", "", one) for one in counted),
        Stat("sum", "last_check"),
        Stat("min", "last_check"),
        Stat("max", "last_check"),
    )
    groups = ("state",) if grouped else ()
    pushed = Pushed(table="hosts", columns=groups, filter=tree, stats=stats)
    told = answered(pushed, ordered)
    reading = question(pushed, CORE, None).transform
    assert reading.whole
    found = {
        tuple(row[: len(groups)]): row[len(groups) :]
        for row in reading(told if isinstance(told, list) else [told])
    }
    kept = [row for row in ordered if passes(tree, row)]
    wanted = {}
    for key in {tuple(row[name] for name in groups) for row in kept} | (set() if grouped else {()}):
        mine = [row for row in kept if tuple(row[name] for name in groups) == key]
        checks = [row["last_check"] for row in mine]
        wanted[key] = [
            len(mine),
            *(sum(passes(one, row) for row in mine) for one in counted),
            sum(checks),
            min(checks, default=0),
            max(checks, default=0),
        ]
    assert found == wanted


def read(body):
    return outcome(Deferred.fromCoroutine(records(body, NoThreads())))[0]


columns = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'))
long_texts = st.builds(operator.mul, st.text(max_size=9), st.integers(0, 30_000))
"""With them a list comes in several pieces."""


@given(
    st.lists(st.dictionaries(st.text(max_size=9), st.text(max_size=300)), max_size=5)
    | st.lists(st.dictionaries(columns, long_texts, min_size=1), max_size=5)
)
def test_any_list_of_objects_is_read_as_it_is(value):
    assert read(orjson.dumps(value)) == value


def test_a_list_may_arrive_in_any_pieces():
    value = [{"a": '},{"a":' * at, "b": [{"a": at}]} for at in range(400)]
    body = orjson.dumps(value)
    for size in (1000, 131_071, 131_073, 10_000_000):
        taken = []
        reader = RecordReader()
        for start in range(0, len(body), size):
            reader.feed(body[start : start + size])
            taken.append(reader.taken())
        taken.append(reader.finish())
        assert [one for found in taken for one in found] == value
        assert size > len(body) or sum(map(bool, taken)) > 3


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"7", b'"x"', b"[1]", b"[[]]", b"null", b"[{}", b"{}x", b"[" * 3_000_000],
)
def test_what_is_no_list_of_objects(body):
    assert read(body).check(ProtocolError)


def test_a_document_is_short():
    assert document(b"{}") == {}
    with pytest.raises(ProtocolError):
        document(b" " * 2_000_000)
    with pytest.raises(ProtocolError):
        document(b"x")


def test_a_second_answer_takes_the_place_of_one_that_was_lost():
    reading = question(
        Pushed(table="hosts", columns=("name",)), CORE, (("name", "string"),)
    ).transform
    inbox = own_memory(Reactor()).inbox()
    stored = StoredRows(inbox, "far")
    lost = _Found(reading, stored)
    lost.take(b'[{"name":"' + b"x" * 400_000)
    assert inbox.size > 0
    for count in (1, 30_000):
        found, body = _Found(reading, stored), [{"name": f"h{at:05}"} for at in range(count)]
        data = orjson.dumps(body)
        for start in range(0, len(data), 65_536):
            found.take(data[start : start + 65_536])
        rows = found.finish() + [row for batch in stored.batches() for row in batch]
        assert rows == [[one["name"]] for one in body]
    inbox.let_go()
