"""Which format an Accept header means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.instance.stats import quality, wants_prometheus


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
