"""The objects of a process are rows of two collections, of which one at a time has room."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.values import Column, Identity, RestRequest, Rows
from monrest.bp import endpoints
from tests.fakes.context import make_context
from tests.fakes.sites import outcome


def test_who_asks_for_services_holds_no_room_for_hosts(monkeypatch):
    asked, held = [], []

    async def fetched(_context, _request, schema, *, extra):
        asked.append((schema.name, len(held)))
        held.append(schema.name)
        names = ("name", "host_name", "description")
        return Rows(columns=tuple(map(Column, names)), rows=[["x", "x", "y"]], gone=held.clear)

    monkeypatch.setattr(endpoints, "fetch", fetched)
    request = RestRequest(method="GET", path="/x", segments=("x",), identity=Identity(user="ann"))
    keys = {("web01", ""), ("web01", "http")}
    found = outcome(Deferred.fromCoroutine(endpoints._answer(make_context(Clock()), request, keys)))
    assert found[0].rows == []
    assert asked == [("hosts", 0), ("services", 0)]
    assert held == []
