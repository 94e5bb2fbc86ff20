"""A patch of a definition: merged, but a new function has no old arguments."""

from __future__ import annotations

from monrest.bp.service import patched


def test_a_new_function_has_arguments_of_its_own():
    before = {"nodes": [{"id": "node1", "function": "status", "function_args": ["h"]}]}
    after = patched(before, {"nodes": [{"function": "fixed('OK')"}]})
    assert after == {"nodes": [{"id": "node1", "function": "fixed('OK')"}]}
    after = patched(before, {"nodes": {"0": {"function_args": ["g"]}}})
    assert after["nodes"][0]["function_args"] == ["g"]
    after = patched(before, {"nodes": [{"label": "x"}]})
    assert after["nodes"][0]["function_args"] == ["h"]
    assert before["nodes"][0]["function_args"] == ["h"]
