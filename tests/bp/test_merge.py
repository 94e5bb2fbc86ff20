"""The merge of PATCH (frontend-data.md, section 1.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.bp.merge import merged, without_nulls
from monrest.bp.service import patched
from monrest.errors import BadRequest


@pytest.mark.parametrize(
    ("stored", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        (["a", "b"], ["c"], ["c", "b"]),
        (["a", "b"], [None], ["b"]),
        (["a"], ["b", "c"], ["b", "c"]),
        ([{"hour": 1, "type": "day"}], [{"hour": 5}], [{"hour": 5, "type": "day"}]),
        (["a", "b", "c"], {"1": None}, ["a", "c"]),
        (["a", "b"], {"1": "x"}, ["a", "x"]),
        (["a"], {"3": "x"}, ["a", "x"]),
        ([{"a": 1}], {"0": {"b": 2}}, [{"a": 1, "b": 2}]),
        ("a", {"b": 1}, {"b": 1}),
        ({"a": 1}, [1], [1]),
        ([1, 2], "x", "x"),
    ],
)
def test_cases(stored, patch, result):
    assert merged(stored, patch) == result


@pytest.mark.parametrize("name", ["x", "-1", "1.0", "99999", "", "٣"])
def test_a_key_that_is_no_position(name):
    with pytest.raises(BadRequest):
        merged([1], {name: 2})


def test_too_deep():
    deep = patch = {}
    for _ in range(60):
        deep["a"] = {}
        deep = deep["a"]
    with pytest.raises(BadRequest):
        merged(patch, patch)


JSON = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=2), JSON), st.dictionaries(st.text(max_size=2), JSON))
def test_an_object_has_what_the_patch_says(stored, patch):
    try:
        result = merged(stored, patch)
    except BadRequest:
        return
    assert set(result) == set(stored) | set(patch)
    for name, value in patch.items():
        if name not in stored:
            assert result[name] == without_nulls(value)
    assert merged(stored, {}) == stored


def test_a_new_function_has_arguments_of_its_own():
    before = {"nodes": [{"id": "node1", "function": "status", "function_args": ["h"]}]}
    after = patched(before, {"nodes": [{"function": "fixed('OK')"}]})
    assert after == {"nodes": [{"id": "node1", "function": "fixed('OK')"}]}
    after = patched(before, {"nodes": {"0": {"function_args": ["g"]}}})
    assert after["nodes"][0]["function_args"] == ["g"]
    after = patched(before, {"nodes": [{"label": "x"}]})
    assert after["nodes"][0]["function_args"] == ["h"]
    assert before["nodes"][0]["function_args"] == ["h"]
