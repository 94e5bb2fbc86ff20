"""A door with real keys."""

import pytest

from tests.fakes.audited import audited
from tests.fakes.door import Door
from tests.fakes.keystore import result

__all__ = ["audited"]


@pytest.fixture
def door(tmp_path):
    made = Door(tmp_path)
    yield made
    made.store.down = made.store.held = False
    result(made.store.stopService())
