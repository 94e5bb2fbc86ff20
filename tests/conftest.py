"""What every test gets: a logged failure or an error that nobody handled fails the test."""

import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from twisted.logger import LogLevel, globalLogPublisher

from monrest.clocks import measure_spans
from monrest.query.model import Test

# How fast a busy machine makes up and tries examples says nothing about what they are for.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# A condition on a column, and no class of tests, wherever it is imported.
Test.__test__ = False


@pytest.fixture(autouse=True, scope="session")
def reactor_that_nobody_sets():
    """Seconds are those of a daemon; imported late, because pytest-twisted chooses the reactor."""
    from twisted.internet import reactor

    measure_spans(reactor)


_LIVE = Path(__file__).parent / "live"


def pytest_collection_modifyitems(items):
    """Tests of whole daemons come first: they wait long, while others can work beside them."""
    items.sort(key=lambda item: not item.path.is_relative_to(_LIVE))


@pytest.fixture(autouse=True, scope="module")
def frozen_modules():
    """Leave what was imported out of the collections below: they run after every single test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def stray_failures():
    """Watch the log; a test appends the exception classes that it expects to be logged."""
    seen, expected = [], []

    def watch(event):
        level = event.get("log_level", LogLevel.info)
        if level >= LogLevel.error or event.get("log_failure") is not None:
            seen.append(event)

    globalLogPublisher.addObserver(watch)
    yield expected
    gc.collect()  # errors of Deferreds that nobody handled are logged when they are collected
    globalLogPublisher.removeObserver(watch)
    stray = [
        event.get("log_failure") or event.get("log_format")
        for event in seen
        if not (event.get("log_failure") and event["log_failure"].check(*expected))
    ]
    assert not stray
