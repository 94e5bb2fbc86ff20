"""A channel of which nothing is left over."""

import pytest

from tests.livestatus.channel.bench import Bench


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.check_end()
