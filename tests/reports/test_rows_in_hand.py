"""Rows have their room until a report has looked at them; of two collections one at a time has room."""

from types import SimpleNamespace

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.availability import chosen_objects
from monrest.availability.chosen_objects import ChosenObjects, in_servicegroup
from monrest.base.values import Column, Identity, RestRequest, Rows
from monrest.bp import endpoints
from monrest.query.model import Condition
from monrest.reports import builder, making
from tests.fakes.context import make_context
from tests.fakes.sites import outcome

REQUEST = RestRequest(method="GET", path="/x", segments=("x",), identity=Identity(user="ann"))


VALUES = {
    "state": 1,
    "has_been_checked": 1,
    "last_state_change": 0,
    "scheduled_downtime_depth": 0,
    "host_scheduled_downtime_depth": 0,
}


class Looked(list):
    """One row, which notes what is held when it is looked at."""

    def __init__(self, row, cores):
        super().__init__([row])
        self.cores = cores

    def __iter__(self):
        self.cores.seen.append(tuple(self.cores.held))
        return super().__iter__()


class Cores:
    """Answers of one row; ``asked`` are the collections, with what was held when one was asked."""

    def __init__(self):
        self.asked, self.held, self.seen = [], [], []

    async def fetch(self, _context, request, schema, *, extra=()):
        self.asked.append((schema.name, len(self.held)))
        self.held.append(schema.name)
        usual = "name,host_name,description"
        names = dict(request.parameters).get("columns", usual).split(",")
        row = [VALUES.get(name, "x") for name in names]
        return Rows(columns=tuple(map(Column, names)), rows=Looked(row, self), gone=self.held.clear)


@pytest.fixture
def cores(monkeypatch):
    cores = Cores()
    for module in (chosen_objects, builder, endpoints):
        monkeypatch.setattr(module, "fetch", cores.fetch)
    return cores


def asking(**settings):
    return builder.ReportBuilder(
        context=make_context(Clock()),
        cache=None,
        request=REQUEST,
        report=SimpleNamespace(record={"failed_backends": "cancel"}),
        settings=SimpleNamespace(search=(), names={}, **settings),
        spelling=None,
        now=0,
    )


def test_problems(cores, monkeypatch):
    monkeypatch.setattr(making, "sheet_of_problems", lambda *_: "done")
    wanted = asking(filter_type="Both", handled=True)
    assert outcome(Deferred.fromCoroutine(making.current_problems(wanted))) == ["done"]
    assert cores.asked == [("hosts", 0), ("services", 0)]
    assert cores.seen == [("hosts",), ("services",)]
    assert cores.held == []


def test_objects_that_are_chosen_by_others(cores):
    """The room of the hosts is not held while the services wait for theirs."""
    found, scope = ChosenObjects(), in_servicegroup("g")
    trees = [Condition("service", "=", "x", "path")]
    ask = chosen_objects._ask_cores(make_context(Clock()), REQUEST, found)
    work = chosen_objects._choose(ask, scope, "both", trees, found)
    assert outcome(Deferred.fromCoroutine(work)) == [None]
    assert [held for _, held in cores.asked] == [0, 0, 0]
    assert cores.seen == [(name,) for name, _ in cores.asked]
    assert cores.held == []
    assert set(found.states["x"]) == {("x", "x"), ("x", "")}


def test_objects_of_a_business_process(cores):
    keys = {("web01", ""), ("web01", "http")}
    work = endpoints._answer(make_context(Clock()), REQUEST, keys)
    assert outcome(Deferred.fromCoroutine(work))[0].rows == []
    assert [held for _, held in cores.asked] == [0, 0]
    assert cores.held == []
