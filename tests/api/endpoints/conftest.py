"""The road to the cores replaced by a recorder."""

import pytest
from twisted.internet.task import Clock

from monrest.base.values import Rows
from monrest.logs import endpoints as logs
from tests.api.endpoints.given import NOW
from tests.fakes.context import make_context


@pytest.fixture
def context():
    clock = Clock()
    clock.advance(NOW + 0.5)
    return make_context(clock, path="/etc/monrest/monrest.toml")


@pytest.fixture
def asked(monkeypatch):
    """The (schema, extra) of every question about logs."""
    seen = []

    async def ask(cache, context, request, schema, *, extra=()):
        seen.append((schema, extra))
        return Rows(columns=(), rows=[])

    monkeypatch.setattr(logs, "ask", ask)
    return seen
