"""Texts are refused by what separates their values, before they are read."""

import pytest

from monrest.api.fields import Ruled
from monrest.base.errors import BadRequest
from monrest.query.separators import MOST_VALUES, check_values, count_values, parsed_size
from monrest.web.body import MOST_RELAXED, read_body


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
