"""The resource with real keys."""

import pytest

from tests.api.api_keys.room import Room
from tests.fakes.keystore import result


@pytest.fixture
def room(tmp_path):
    made = Room(tmp_path)
    yield made
    made.door.store.down = False
    result(made.door.store.stopService())
