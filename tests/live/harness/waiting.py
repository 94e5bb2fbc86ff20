"""Waiting for another process, with a deadline and without long sleeps."""

from __future__ import annotations

import time


def until(condition, what, *, seconds=60.0, pause=0.02):
    """Call ``condition`` until it is true and return its value; fail by name at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up after {seconds:g} s waiting until {what}")
        time.sleep(pause)
