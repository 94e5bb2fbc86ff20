"""Accounts with a daemon's parts around them."""

import pytest

from tests.fakes.accounts import House
from tests.fakes.audited import audited
from tests.fakes.keystore import result

__all__ = ["audited"]


@pytest.fixture
def house(tmp_path):
    """A daemon without sockets, whose password file knows ann, bob and root."""
    made = House(tmp_path)
    made.write(ann="right", bob="right", root="right")
    yield made
    made.store.down = made.store.held = False
    result(made.store.stopService())
