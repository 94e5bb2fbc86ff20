import pytest

from tests.fakes.sites import Town


@pytest.fixture
def town():
    town = Town()
    yield town
    town.stop()
