"""The audit lines that a test writes."""

import pytest
from twisted.logger import globalLogPublisher

from monrest.base.log import AUDIT


@pytest.fixture
def audited():
    """The fields of each line, in their order."""
    seen = []

    def watch(event):
        if AUDIT in event:
            seen.append(event[AUDIT])

    globalLogPublisher.addObserver(watch)
    yield seen
    globalLogPublisher.removeObserver(watch)
