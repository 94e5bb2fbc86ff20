"""Paths, prefixes, query strings, and bodies that are refused by what separates their values."""

import contextlib
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.api.fields import Ruled
from monrest.base.errors import BadRequest
from monrest.query.target import (
    MOST_VALUES,
    check_values,
    count_values,
    parameters,
    parsed_size,
    target,
)
from monrest.web.body import MOST_RELAXED, read_body
from tests.table import each

# The characters of str.isprintable, made and not sifted: most texts have another one.
PRINTABLE = st.characters(exclude_categories=("C", "Z")) | st.just(" ")


@given(st.lists(st.text(PRINTABLE, min_size=1), max_size=5))
def test_any_names_survive_as_segments(names):
    path = "/hosts/" + "/".join(quote(name, safe="") for name in names)
    assert target(path).segments == ("hosts", *(quote(name, safe="") for name in names))


@given(st.text())
def test_any_path_is_read_or_refused(path):
    with contextlib.suppress(BadRequest):
        read = target(path)
        assert read.path == "/" + "/".join(read.segments)


@each(
    ("query", "expected"),
    [
        (b"", ()),
        (b"&&", ()),
        (b"a=1&b=2", (("a", "1"), ("b", "2"))),
        (b"a=1&a=2", (("a", "1"), ("a", "2"))),
        (b"?&q=", (("?", ""), ("q", ""))),
        (b"&q=", (("q", ""),)),
        (b"latency>5", (("latency>5", ""),)),
        (b"latency>=5", (("latency>", "5"),)),
        (b"=5", (("", "5"),)),
        (b"a=b=c", (("a", "b=c"),)),
        (b"columns=concat(name,';',state)", (("columns", "concat(name,';',state)"),)),
        (b"a+b=c+d%2B", (("a b", "c d+"),)),
        (b"name%5B~%5D=web%C3%BC", (("name[~]", "webü"),)),
        (b"name[~]=100%&x=%zz", (("name[~]", "100%"), ("x", "%zz"))),
        ("a=ü".encode(), (("a", "ü"),)),
        (b"q=***a+%3D+1***", (("q", "***a = 1***"),)),
        (b'q=***name = "a&b=c"***&limit=1', (("q", '***name = "a&b=c"***'), ("limit", "1"))),
        (b"x=1&q=///a&b///&y=2", (("x", "1"), ("q", "///a&b///"), ("y", "2"))),
        (b"q=+++a&b+++", (("q", "   a&b   "),)),
        (b"q=___a&b___", (("q", "___a&b___"),)),
        (b"q=xxxa&bxxx", (("q", "xxxa&bxxx"),)),
        (b"q=***a%26b***", (("q", "***a&b***"),)),
        (b"q=%2A%2A%2Aa%26b%2A%2A%2A", (("q", "***a&b***"),)),
        (b"q=***a&b", (("q", "***a"), ("b", ""))),
        (b"q=***a&b***rest&c=1", (("q", "***a&b***rest"), ("c", "1"))),
        (b"qq=***a&b***", (("qq", "***a"), ("b***", ""))),
        (b"q=&&&limit=1&&&", (("q", ""), ("limit", "1"))),
        (b"q=***a&b***&q=***c&d***", (("q", "***a&b***"), ("q", "***c&d***"))),
        (b"q=***", (("q", "***"),)),
        (b"q=******", (("q", "******"),)),
    ],
)
def test_pairs(query, expected):
    assert parameters(query) == expected


def test_a_wrapper_of_plus_signs_is_still_a_wrapper():
    ((name, value),) = parameters(b"q=%2B%2B%2Ba%26b%2B%2B%2B")
    assert (name, value) == ("q", "+++a&b+++")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (b"name=%FF", "parameter name"),
        (b"a=1&q=***%C3***", "parameter q"),
        (b"%FF=1", "the name '%FF'"),
        (b"a=\xff", "parameter a"),
    ],
)
def test_bytes_that_are_not_utf8(query, named):
    with pytest.raises(BadRequest, match="UTF-8") as refused:
        parameters(query)
    assert named in refused.value.description


def test_the_number_of_parameters_has_a_limit():
    assert len(parameters(b"a=1&" * 20_000)) == 20_000
    with pytest.raises(BadRequest, match="at most 20000 parameters"):
        parameters(b"a=1&" * 20_001)


def test_many_open_wrappers_do_not_take_long():
    query = "&".join(f"q={chr(0x4E00 + n) * 3}" for n in range(19_000)).encode()
    assert len(parameters(query)) == 19_000


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=6))
def test_what_a_client_encodes_arrives(pairs):
    query = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)
    assert parameters(query.encode()) == tuple(pairs)


@given(st.binary(max_size=200))
def test_any_query_is_read_or_refused(query):
    with contextlib.suppress(BadRequest):
        assert all(len(pair) == 2 for pair in parameters(query))


@pytest.mark.parametrize(
    ("raw", "count"), [(b"", 0), (b"[[],{}]", 4), (b'{"a": "x,y"}', 2), (b"a=1&b=2", 0)]
)
def test_values(raw, count):
    assert count_values(raw) == count


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_a_body_with_too_many_values(kind):
    with pytest.raises(BadRequest, match="too many values") as refused:
        read_body(b"a=[" + b"[]," * MOST_VALUES + b"x", kind)
    assert refused.value.description.startswith("request body: expected at most 100,000 commas")


def test_a_field_of_a_form():
    with pytest.raises(BadRequest, match="too many values") as refused:
        Ruled("nodes", "", rule=list, nested=True).parsed("[" * (MOST_VALUES + 1))
    assert refused.value.description.startswith("nodes: ")
    check_values(b"," * MOST_VALUES, "x")


def test_long_json_has_no_comments():
    text = b'{"a": "' + b"x" * MOST_RELAXED + b'", # comment\n}'
    with pytest.raises(BadRequest) as refused:
        read_body(text, "application/json")
    assert "may be in bodies of up to 262144 bytes" in refused.value.description
    assert read_body(text.replace(b"xx", b""), "application/json").parameters


@pytest.mark.parametrize(
    ("raw", "size"), [(b"abc", 3), (b"\xc3\xa4", 8), (b"%41", 12), (b"a&b", 203), (b"[1,2]", 405)]
)
def test_what_values_take(raw, size):
    assert parsed_size(raw) == size
