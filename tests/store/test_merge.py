"""Merging a patch: the table of the reference, and what holds for every patch."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.store.documents import merged


@pytest.mark.parametrize(
    ("stored", "patch", "result"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": None}, {}),
        ({}, {"a": None}, {}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "c": 3}}, {"a": {"c": 3}}),
        ({"a": ["a", "b"]}, {"a": ["c"]}, {"a": ["c", "b"]}),
        ({"a": ["a", "b"]}, {"a": ["c", None]}, {"a": ["c"]}),
        ({"a": ["a"]}, {"a": ["b", "c"]}, {"a": ["b", "c"]}),
        ({"a": ["a", "b", "c"]}, {"a": {"1": None}}, {"a": ["a", "c"]}),
        ({"a": ["a"]}, {"a": {"5": "x", "0": "y"}}, {"a": ["y", "x"]}),
        ({"a": [{"h": 1, "m": 2}, {"x": 1}]}, {"a": [{"h": 5}]}, {"a": [{"h": 5, "m": 2}, {"x": 1}]}),
        ({"a": [{"h": 1, "m": 2}]}, {"a": {"0": {"h": None}}}, {"a": [{"m": 2}]}),
        ({"a": [["x", "y"]]}, {"a": [["z"]]}, {"a": [["z", "y"]]}),
        ({"a": [1]}, {"a": "text"}, {"a": "text"}),
        ({"a": "text"}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)  # fmt: skip
def test_the_rules(stored, patch, result):
    assert merged(stored, patch) == result


@pytest.mark.parametrize("key", ["x", "-1", "1.5", "", "٣", "9" * 10])
def test_positions_that_are_none(key):
    with pytest.raises(BadRequest, match="a position of the list"):
        merged({"a": [1]}, {"a": {key: 1}})


@pytest.mark.parametrize("stored", [{}, {"a": {}}, {"a": [1]}, {"a": 1}])
def test_too_deep(stored):
    patch = {}
    for _ in range(900):
        patch = {"a": patch, "0": patch} if stored == {"a": [1]} and not patch else {"a": patch}
    with pytest.raises(BadRequest):
        merged(stored, patch)


VALUE = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.text("ab", max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc012"), inner, max_size=3)
    ),
    max_leaves=10,
)
RECORD = st.dictionaries(st.sampled_from("abc"), VALUE, max_size=3)


@given(RECORD, RECORD)
def test_every_patch(stored, patch):
    """Neither value is changed, what was removed is gone, and the same patch of keys is stable."""
    before = copy.deepcopy((stored, patch))
    try:
        result = merged(stored, patch)
    except BadRequest:
        return
    finally:
        assert (stored, patch) == before
    for key in stored.keys() - patch.keys():
        assert result[key] == stored[key]
    for key, value in patch.items():
        if value is None:
            assert key not in result
        elif not isinstance(value, (dict, list)):
            assert result[key] == value
