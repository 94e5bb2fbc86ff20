"""The composed daemon, and what it says."""

import signal

import pytest
import pytest_twisted
from twisted.logger import globalLogPublisher

from tests.service.running import Running


@pytest.fixture
def running(tmp_path):
    handler = signal.getsignal(signal.SIGHUP)
    made = Running(tmp_path)
    yield made
    if made.daemon is not None and made.daemon.running:
        pytest_twisted.blockon(made.daemon.stopService())
    signal.signal(signal.SIGHUP, handler)


@pytest.fixture
def problems():
    """The problems that the daemon logs."""
    seen = []

    def see(event):
        if "problem" in event:
            seen.append(event["problem"])

    globalLogPublisher.addObserver(see)
    yield seen
    globalLogPublisher.removeObserver(see)
