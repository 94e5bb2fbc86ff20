"""Pools of which nothing is left over."""

import pytest

from tests.livestatus.pool.bench import Bench


@pytest.fixture
def bench():
    benches = []

    def make(*args, **options):
        benches.append(Bench(*args, **options))
        return benches[-1]

    yield make
    for one in benches:
        one.stop()
