"""Statistics and updates of the log cache, with the cache itself replaced."""

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from monrest.api.visibility import SYSTEM
from monrest.base.errors import Forbidden, SitesFailed, SitesTimedOut
from monrest.base.values import Identity, RestRequest, SiteProblem
from monrest.logs.cache import Updated
from monrest.logs.model import CachedSite
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
