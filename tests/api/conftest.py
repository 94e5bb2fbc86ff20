"""Accounts with a daemon's parts around them."""

import pytest

from monrest.base import concurrency
from tests.fakes.accounts import House
from tests.fakes.audited import audited
from tests.fakes.keystore import result

__all__ = ["audited"]


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch):
    """Short work is done in one go, however long a busy machine takes for it.

    Tests of turns have a timer, or a ``sliced``, of their own.
    """
    monkeypatch.setattr(concurrency.sliced, "__defaults__", (0.008, lambda: 0.0))


@pytest.fixture
def house(tmp_path):
    """A daemon without sockets, whose password file knows ann, bob and root."""
    made = House(tmp_path)
    made.write(ann="right", bob="right", root="right")
    yield made
    made.store.down = made.store.held = False
    result(made.store.stopService())
