import pytest

from tests.fakes.sites import Town
from tests.fakes.strict import stray_failures

__all__ = ["stray_failures", "town"]


@pytest.fixture
def town():
    town = Town()
    yield town
    town.stop()
