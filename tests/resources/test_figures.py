"""Which format an Accept header means, and what of a configuration is hidden."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.resources.figures import quality, wants_prometheus
from monrest.resources.settings import shown


@pytest.mark.parametrize(
    ("accept", "text"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", True),
        ("TEXT/Plain;version=0.0.4", True),
        ("text/*", True),
        ("application/json, text/plain, */*", False),
        ("application/json;q=0.4, text/plain;q=0.5", True),
        ("application/json;q=0.5, text/plain;q=0.4", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1", True),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("text/plain;q=0", False),
        ("*/*, application/json;q=0", True),
        ("text/plain;q=x;;,,;", True),
    ],
)
def test_formats(accept, text):
    assert wants_prometheus(accept) is text


@given(st.text())
def test_no_header_is_too_strange(accept):
    assert 0 <= quality(accept, "text/plain") <= 1.999
    wants_prometheus(accept)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": {"d": None, "c": ("x",)}}, {"a": {"c": ["x"], "d": None}, "b": 1}),
        ({"auth_key": "s", "API_KEYS": ["s", ""]}, {"API_KEYS": ["***", ""], "auth_key": "***"}),
        ({"auth": {"default_user": "ann"}}, {"auth": {"default_user": "ann"}}),
        ({"api_keys_enabled": True, "max_keys": 3}, {"api_keys_enabled": True, "max_keys": 3}),
        ({"url": "postgresql://u:s@h/d"}, {"url": "postgresql://***@h/d"}),
        ({"url": "postgresql://u:s@s@h/d?password=s&x=1"}, {"url": "postgresql://***@h/d?password=***&x=1"}),
        ({"cmd": "curl https://u:s@h/ http://i/"}, {"cmd": "curl https://***@h/ http://i/"}),
        ({"secret_key_file": "/x"}, {}),
    ],
)  # fmt: skip
def test_what_is_hidden(value, expected):
    assert orjson.dumps(shown(value)) == orjson.dumps(expected)
