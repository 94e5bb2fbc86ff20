"""Statistics and updates of the log cache, with the cache itself replaced."""

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from monrest.api.visibility import SYSTEM
from monrest.base.errors import BadRequest, Forbidden, SitesFailed, SitesTimedOut
from monrest.base.values import Identity, RestRequest, SiteProblem
from monrest.logs.importer import Again
from monrest.logs.model import CachedSite
from monrest.logs.updates import Updated
from tests.fakes.context import make_context
from tests.logs.core import LoggingCore, done

NOW = 1_700_000_000
ROOT = Identity(user="root", superuser=True)
ANN = Identity(user="ann")
KNOWN = CachedSite(
    id=1, site="a", covered_from=NOW - 900, covered_until=NOW - 5, wanted_from=NOW - 900,
    compacted_until=0, firsts_until=None, items=7, data_size=700, index_size=70, last_update=NOW - 9,
    update_duration=0.5, last_compact=None, compact_duration=0.0, mode="", mode_since=NOW - 9,
    owner="", owned_until=0.0, last_entry=NOW - 5,
)  # fmt: skip


def known(**values):
    return evolve(KNOWN, **values)


class Cache:
    def __init__(self):
        self.enabled, self.records, self.result, self.asked = True, {}, Updated(), []

    async def record(self, site):
        return self.records.get(site.id)

    def busy(self, known):
        return bool(known.owner) and not known.owner.startswith("dead:")

    async def update_all(self, sites, again=None):
        self.asked.append([site.id for site in sites])
        self.again = again
        return self.result

    async def import_all(self, sites, progress, again=None):
        progress(50.0, message="half of it")
        return await self.update_all(sites, again)


class Nobody:
    """Users of whom no profile is known."""

    async def get(self, name):
        return None


@pytest.fixture
def cache():
    return Cache()


@pytest.fixture
def ask(cache):
    clock = Clock()
    clock.advance(NOW)
    sites = [LoggingCore("a"), LoggingCore("b")]
    for site in sites:
        site.section, site.hidden, site.local = "Default", False, True
        site.config = type("Config", (), {"groups": ()})
    context = make_context(clock, *sites, logcache=cache, users=Nobody())

    def ask(method, path, *parameters, identity=ROOT):
        request = RestRequest(
            method=method, path=path, segments=tuple(path.strip("/").split("/")),
            parameters=parameters, identity=identity,
        )  # fmt: skip
        return done(context.dispatch(context, request))

    return ask


def rows(answer):
    names = [one.name for one in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.rows]


@pytest.mark.parametrize(
    ("record", "status"),
    [
        (None, "logcache not yet created"),
        (known(covered_from=None, covered_until=None), "logcache not yet created"),
        (KNOWN, "OK"),
        (known(wanted_from=NOW - 1795), "importing, 50% done"),
        (
            known(owner="4711:17", owned_until=NOW + 20.0, mode="update"),
            "running update since 2023-11-14 22:13:11 (pid: 17)",
        ),
        # Whoever died holds it no more.
        (known(owner="dead:17", owned_until=NOW + 20.0, mode="update"), "OK"),
    ],
)
def test_states_of_a_cache(ask, cache, record, status):
    cache.records["a"] = record
    found = rows(ask("GET", "/mon/logcache/stats", ("columns", "key,status")))
    assert found == [
        {"key": "a", "status": status},
        {"key": "b", "status": "logcache not yet created"},
    ]


def test_all_fields(ask, cache):
    cache.records["a"] = KNOWN
    (found, empty) = rows(ask("GET", "/mon/logcache/stats", identity=ANN))
    assert found == {
        "cache_version": "1", "compact_duration": 0.0, "compact_till": 0, "data_size": 700,
        "enabled": 1, "index_size": 70, "items": 7, "key": "a", "last_compact": 0,
        "last_entry": NOW - 5, "last_reorder": 0, "last_update": NOW - 9, "mode": "", "name": "A",
        "reorder_duration": 0, "status": "OK", "update_duration": 0.5,
    }  # fmt: skip
    assert {**empty, "key": "", "name": "", "status": "", "enabled": 0} == {
        name: "" if isinstance(value, str) else 0 for name, value in found.items()
    }
    assert [one["key"] for one in rows(ask("GET", "/mon/logcache/stats", ("backends", "b")))] == [
        "b"
    ]


def test_a_time_once_more(ask, cache):
    cache.result = Updated(inserted=3, removed=2)
    span = (("from", "-2h"), ("to", str(NOW - 60)))
    answer = ask("POST", "/mon/logcache/update", *span)
    assert cache.again == Again(start=NOW - 7200, end=NOW - 60)
    assert answer.value == {
        "code": 200, "insert_count": 3, "message": "logcache update finished.",
        "errors": [],
    }  # fmt: skip
    answer = ask("POST", "/mon/logcache/update", *span, ("force", "yes"))
    assert cache.again == Again(start=NOW - 7200, end=NOW - 60, exactly=True)
    assert answer.value["message"] == "logcache update finished, 2 lines removed."
    ask("POST", "/mon/logcache/update", ("from", "-2h"))
    assert cache.again == Again(start=NOW - 7200, end=NOW + 1)
    assert ask("POST", "/mon/logcache/update").value["errors"] == []
    assert cache.again is None


def test_update(ask, cache):
    cache.result = Updated(inserted=3, skipped=("b: an update is running already",))
    answer = ask("POST", "/mon/logcache/update")
    assert (answer.status, cache.asked) == (200, [["a", "b"]])
    assert answer.value == {
        "code": 200, "errors": ["b: an update is running already"], "insert_count": 3,
        "message": "logcache update finished.",
    }  # fmt: skip
    cache.result = Updated(inserted=3, failed=(SiteProblem("a", "A", "gone"),))
    answer = ask("POST", "/mon/logcache/update")
    assert (answer.status, answer.value["code"], answer.value["errors"]) == (200, 200, ["a: gone"])
    assert [one.site for one in answer.failed_sites] == ["a"]
    with pytest.raises(SitesFailed, match="a: gone"):
        ask("POST", "/mon/logcache/update", ("backends", "a"))
    cache.result = Updated(failed=(SiteProblem("a", "A", "late", timed_out=True),))
    with pytest.raises(SitesTimedOut):
        ask("POST", "/mon/logcache/update", ("backends", "a"))
    cache.result = Updated()
    ask("POST", "/mon/logcache/update", identity=Identity(user="x", roles=frozenset({SYSTEM})))
    with pytest.raises(Forbidden):
        ask("POST", "/mon/logcache/update", identity=ANN)


def test_switched_off(ask, cache):
    cache.enabled = False
    for method, path in (("GET", "/mon/logcache/stats"), ("POST", "/mon/logcache/update")):
        with pytest.raises(BadRequest) as caught:
            ask(method, path)
        assert caught.value.message == "logcache is disabled"
    assert not cache.asked
