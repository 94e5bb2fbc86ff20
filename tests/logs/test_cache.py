"""The service: each site by itself, at its interval, few at a time, until it is stopped."""

import pytest
from twisted.internet.defer import Deferred

from monrest.config import LogcacheConfig
from monrest.livestatus.errors import ConnectError
from monrest.logs.cache import LogCache
from monrest.logs.importer import BusyError
from monrest.values import SiteProblem
from tests.logs.core import DAY, NOW, LoggingCore, done, stored


class ReportingCore(LoggingCore):
    def problem(self, error):
        return SiteProblem(self.id, self.name, error.reason)


@pytest.fixture
def cores():
    return [ReportingCore("a"), ReportingCore("b")]


@pytest.fixture
def cache(clock, database, cores):
    cache = LogCache(clock, database, LogcacheConfig(first_import=DAY), cores)
    yield cache
    if cache.running:
        done(cache.stopService())
    assert not clock.getDelayedCalls()


def turn(clock, seconds):
    for _ in range(seconds):
        clock.advance(1)


def test_every_site_at_its_interval(cache, clock, database, cores):
    for core in cores:
        core.write(NOW - 10, f"first of {core.id}")
    cache.startService()
    turn(clock, 5)
    assert [len(stored(database, core.id)) for core in cores] == [1, 1]
    cores[0].write(NOW + 5, "another")
    turn(clock, 50)
    assert len(stored(database, "a")) == 1
    turn(clock, 20)
    assert len(stored(database, "a")) == 2


def test_a_site_that_fails_or_hangs_is_alone(cache, clock, database, cores):
    def fail(_):
        raise ConnectError("gone")

    cores[0].before = fail
    cores[1].write(NOW - 10, "x")
    cache.startService()
    turn(clock, 5)
    assert (stored(database, "a"), len(stored(database, "b"))) == ([], 1)
    cores[0].before = lambda _: None
    cores[0].write(NOW - 5, "x")
    turn(clock, 70)
    assert len(stored(database, "a")) == 1
    cores[0].before = lambda _: Deferred()
    cores[1].write(NOW + 70, "y")
    turn(clock, 130)
    assert len(stored(database, "b")) == 2


def test_stopped_in_the_middle_of_an_update(cache, clock, database, cores):
    held = cores[0].before = lambda _: Deferred()
    assert held
    cache.startService()
    turn(clock, 2)
    assert done(cache.record(cores[0])).owner == cache.owner
    assert done(cache.stopService()) is None
    assert done(cache.record(cores[0])).owner == ""


def test_other_sites_after_a_reload(cache, clock, database, cores):
    cache.startService()
    turn(clock, 2)
    third = ReportingCore("c")
    third.write(NOW, "x")
    done(cache.reconfigure(LogcacheConfig(first_import=DAY, update_interval=5), [third]))
    turn(clock, 2)
    assert len(stored(database, "c")) == 1
    before = [len(core.asked) for core in cores]
    turn(clock, 100)
    assert [len(core.asked) for core in cores] == before
    done(cache.reconfigure(LogcacheConfig(enabled=False), [third]))
    asked = len(third.asked)
    turn(clock, 100)
    assert len(third.asked) == asked


def test_updates_on_request(cache, clock, database, cores):
    def fail(_):
        raise ConnectError("gone")

    cores[0].write(NOW - 10, "x")
    cores[1].before = fail
    told = []
    updated = done(
        cache.update_all(cores, lambda percent, message: told.append((percent, message)))
    )
    assert (updated.inserted, updated.failed, updated.skipped) == (1, ("b: gone",), ())
    assert told == [(50, "1 of 2 sites are up to date"), (100, "2 of 2 sites are up to date")]
    held = Deferred()
    cores[1].before = lambda _: held
    running = Deferred.fromCoroutine(cache.update(cores[1]))
    assert done(cache.update_all(cores)).skipped == ("b: an update is running already",)
    with pytest.raises(BusyError):
        done(cache.update(cores[1]))
    cores[1].before = lambda _: None
    held.callback(None)
    assert done(running) == 0
