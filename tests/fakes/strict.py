"""Makes a test fail on logged failures and on errors in Deferreds that nobody looked at."""

from __future__ import annotations

import gc

import pytest
from twisted.logger import LogLevel, globalLogPublisher

__all__ = ["stray_failures"]


@pytest.fixture(autouse=True)
def stray_failures():
    seen, expected = [], []

    def watch(event):
        if event["log_level"] >= LogLevel.error or event.get("log_failure") is not None:
            seen.append(event)

    globalLogPublisher.addObserver(watch)
    yield expected  # a test appends the exception classes that it expects
    gc.collect()  # unhandled errors of Deferreds are logged when they are collected
    globalLogPublisher.removeObserver(watch)
    strange = [
        event
        for event in seen
        if not (event.get("log_failure") and event["log_failure"].check(*expected))
    ]
    assert not strange, strange
