"""A channel of which nothing is left over."""

from __future__ import annotations

import pytest

from tests.livestatus.channel.bench import Bench


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.check_end()
