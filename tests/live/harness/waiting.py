"""Waiting for another process, with a deadline and without long sleeps."""

import time


def until(condition, what, *, seconds=300.0, pause=None):
    """Call ``condition`` until it is true and return its value; fail by name at the deadline.

    Without ``pause`` it is called the less often the longer it takes: a wait of minutes
    leaves the processors to others.
    """
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"gave up after {seconds:g} s waiting until {what}")
        time.sleep(min(max(waited / 10, 0.01), 0.25) if pause is None else pause)
