"""The resource with real keys."""

import pytest

from tests.fakes.keystore import result
from tests.resources.api_keys.room import Room


@pytest.fixture
def room(tmp_path):
    made = Room(tmp_path)
    yield made
    made.door.store.down = False
    result(made.door.store.stopService())
