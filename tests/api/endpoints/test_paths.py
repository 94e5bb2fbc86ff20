"""What every handler adds to a request."""

import pytest

from tests.api.asking import answer
from tests.api.endpoints.given import DAY


@pytest.mark.parametrize(
    ("name", "value", "windowed"),
    [
        ("time[gte]", "5", False),
        ("q", "time > 5", False),
        ("q", 'host_name = "a" and (time < 5 or state = 1)', False),
        # Only a condition on the column counts, not the word.
        ("q", 'message ~ "timeout"', True),
        ("q", 'message = "time > 5"', True),
        ("message", "time", True),
        ("limit", "5", True),
        ("sort", "-time", True),
        ("columns", "time", True),
    ],
)
def test_default_window_of_logs(context, asked, name, value, windowed):
    answer(context, "/logs", (name, value))
    assert asked[0][1] == ((DAY,) if windowed else ())
