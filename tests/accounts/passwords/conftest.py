"""A password file, and what is told of it."""

import pytest
from twisted.logger import globalLogPublisher

from tests.accounts.passwords.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def warnings():
    seen = []

    def watch(event):
        if event["log_namespace"].startswith("monrest.accounts"):
            seen.append(event["log_format"].format(**event))

    globalLogPublisher.addObserver(watch)
    yield seen
    globalLogPublisher.removeObserver(watch)
