"""The service: each site by itself, at its interval, few at a time, until it is stopped."""

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.values import SiteProblem
from monrest.config import LogcacheConfig
from monrest.livestatus.core_errors import ConnectError
from monrest.logs import cache_records as records
from monrest.logs.cache import LogCache
from monrest.logs.importer import UpdateRunningError
from tests.fakes.clocks import Wall
from tests.fakes.store import BOTH
from tests.logs.core import DAY, NOW, LoggingCore, done, stored


class ReportingCore(LoggingCore):
    def problem(self, error):
        return SiteProblem(self.id, self.name, error.reason)


@pytest.fixture
def cores():
    return [ReportingCore("a"), ReportingCore("b")]


@pytest.fixture
def cache(clock, database, cores):
    config = LogcacheConfig(first_import=DAY)
    cache = LogCache(clock, Wall(clock), database, config, cores, timer=clock.seconds)
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
    done(cache.configure(LogcacheConfig(first_import=DAY, update_interval=5), [third]))
    turn(clock, 2)
    assert len(stored(database, "c")) == 1
    before = [len(core.asked) for core in cores]
    turn(clock, 100)
    assert [len(core.asked) for core in cores] == before
    done(cache.configure(LogcacheConfig(enabled=False), [third]))
    asked = len(third.asked)
    turn(clock, 100)
    assert len(third.asked) == asked


def test_updates_on_request(cache, clock, database, cores):
    def fail(_):
        raise ConnectError("gone")

    cores[0].write(NOW - 10, "x")
    cores[1].before = fail
    updated = done(cache.update_all(cores))
    (problem,) = updated.failed
    assert (updated.inserted, problem.site, problem.reason) == (1, "b", "gone")
    assert updated.skipped == ()
    held = Deferred()
    cores[1].before = lambda _: held
    running = Deferred.fromCoroutine(cache.update(cores[1]))
    assert done(cache.update_all(cores)).skipped == ("b: an update is running already",)
    with pytest.raises(UpdateRunningError):
        done(cache.update(cores[1]))
    cores[1].before = lambda _: None
    held.callback(None)
    assert done(running).added == 0


class Told:
    """What a job was told of its progress."""

    def __init__(self):
        self.percents, self.texts = [], []

    def __call__(self, percent, remaining=None, message=""):
        self.percents.append(percent)
        self.texts.append(message)


@pytest.fixture
def long(cache, cores):
    """Two sites with a month of lines, asked for a few hours at a time."""
    cache.config = LogcacheConfig(first_import=30 * DAY)
    for core in cores:
        for age in range(0, 30 * DAY, 7200):
            core.write(NOW - age, f"line {age}")
    return cache


@BOTH
def test_a_first_import_is_followed(long, database, cores):
    told = Told()
    updated = done(long.import_all(cores, told))
    assert updated.inserted == len(cores[0].rows) + len(cores[1].rows)
    assert (updated.failed, updated.skipped) == ((), ())
    assert all(stored(database, core.id) == core.told() for core in cores)
    assert told.percents == sorted(told.percents)
    assert told.percents[0] < 10
    assert told.percents[-1] == 100
    assert len(told.percents) > 10
    assert told.texts[1].startswith("a: importing the lines of 2023-1")
    # Nothing is left but what is new.
    assert done(long.import_all(cores, Told())).inserted == 0


@BOTH
def test_an_import_of_another_process_is_followed_and_taken_over(long, clock, database, cores):
    # It looks at leases, and leaves the regular updates to others.
    long.duty = lambda: False
    long.startService()
    other = done(database.change(records.acquire("a", "dies", "update", NOW)))
    lease = records.UpdateLease(id=other.id, owner="dies")
    covered = {"covered_from": NOW - DAY, "covered_until": NOW, "wanted_from": NOW - 30 * DAY}
    done(database.change(records.write(lease, NOW, (), **covered)))
    told = Told()
    following = Deferred.fromCoroutine(long.import_all(cores[:1], told))
    turn(clock, 10)
    covered["covered_from"] = NOW - 15 * DAY
    done(database.change(records.write(lease, NOW + 10, (), **covered)))
    turn(clock, 10)
    assert not following.called
    assert told.texts[-1] == "a: another process imports its lines"
    assert 45 < told.percents[-1] < 55
    turn(clock, 30)
    assert done(following).inserted > 0
    assert told.percents[-1] == 100
    assert done(long.record(cores[0])).progress == 1


def test_a_canceled_import_goes_on_where_it_was(long, clock, database, cores):
    cores[0].before = lambda _: Deferred() if len(cores[0].asked) > 5 else None
    following = Deferred.fromCoroutine(long.import_all(cores[:1], Told()))
    failed = []
    following.addErrback(failed.append)
    following.cancel()
    assert failed[0].check(CancelledError)
    known = done(long.record(cores[0]))
    assert known.owner == ""
    assert 0 < known.progress < 1
    cores[0].before = lambda _: None
    asked = len(cores[0].asked)
    told = Told()
    assert done(long.import_all(cores[:1], told)).inserted == len(cores[0].rows) - known.items
    assert stored(database, "a") == cores[0].told()
    # What is there already is not asked for again, but for the last minutes.
    lows = [int(one.filter.items[0].value) for one in cores[0].asked[asked:]]
    assert not any(known.covered_from < low < NOW - 3600 for low in lows)


def test_a_site_that_fails_in_a_followed_import(long, cores):
    def fail(_):
        raise ConnectError("gone")

    cores[1].before = fail
    updated = done(long.import_all(cores, Told()))
    assert [one.site for one in updated.failed] == ["b"]
    assert updated.inserted == len(cores[0].rows)


def test_only_some_sites_are_imported_at_once(cache, clock):
    cores = [ReportingCore(f"s{number}") for number in range(6)]
    for core in cores:
        core.before = lambda _: Deferred()
    following = Deferred.fromCoroutine(cache.import_all(cores, Told()))
    following.addErrback(lambda failure: failure.trap(CancelledError))
    assert sum(bool(core.asked) for core in cores) == 2
    following.cancel()
