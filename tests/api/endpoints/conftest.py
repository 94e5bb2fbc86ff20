"""The road to the cores replaced by a recorder."""

import pytest
from twisted.internet.task import Clock

from monrest.base.values import Document, Rows
from monrest.logs import endpoints as logs
from monrest.rows import fetch as core
from monrest.rows import statistics
from tests.api.endpoints.given import NOW
from tests.fakes.context import make_context


@pytest.fixture
def context():
    clock = Clock()
    clock.advance(NOW + 0.5)
    return make_context(clock, path="/etc/monrest/monrest.toml")


@pytest.fixture
def asked(monkeypatch):
    """The (schema, extra) or (schema, spec, extra) of every fetch."""
    seen = []

    async def fetch(context, request, schema, *, extra=(), late=False):
        seen.append((schema, extra))
        return Rows(columns=(), rows=[])

    async def fetch_stats(context, request, schema, spec, *, extra=(), unseen=None):
        seen.append((schema, spec, extra))
        return Document(value={one.name: 1 for one in spec.fields})

    monkeypatch.setattr(core, "fetch", fetch)

    async def ask(cache, context, request, schema, *, extra=()):
        return await fetch(context, request, schema, extra=extra)

    monkeypatch.setattr(logs, "ask", ask)
    monkeypatch.setattr(statistics, "fetch_stats", fetch_stats)
    return seen
