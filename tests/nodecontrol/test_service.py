"""When nodes are asked, and by whom: one daemon of several, never twice at once."""

from __future__ import annotations

from datetime import UTC
from itertools import pairwise

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.errors import Conflict
from monrest.base.values import no_progress
from monrest.config import ControlledNode, NodeControlConfig
from monrest.config.sections import SiteConfig
from monrest.nodecontrol.gather import NodeFacts
from monrest.nodecontrol.model import GatherError
from monrest.nodecontrol.service import NodeControl
from monrest.sites.registry import SiteList
from monrest.sites.site import Site
from monrest.store.duties import Duties
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result
from tests.fakes.store import migrated_sqlite_url
from tests.fakes.threads import NoThreads, Reactor, own_memory

HOUR = 3600
DAY = 24 * HOUR
BEGIN = 1_700_000_000 // 7200 * 7200 + HOUR + 10  # after an odd hour in UTC


class Gatherer:
    """Answers at once, or when it is let go; ``asked`` has the times and what was wanted."""

    def __init__(self, world):
        self.world, self.asked, self.held, self.error, self.busy = world, [], None, None, 0
        self.most = 0

    def gather(self, what):
        return Deferred.fromCoroutine(self._gather(what))

    async def _gather(self, what):
        self.asked.append((self.world.elapsed, what))
        self.world.busy += 1
        self.world.most = max(self.world.most, self.world.busy)
        try:
            if self.held is not None:
                await self.held
        finally:
            self.world.busy -= 1
        if self.error is not None:
            raise GatherError(self.error)
        return NodeFacts({f"{what}_said": len(self.asked)})


class World:
    """Daemons with one database and the same nodes."""

    def __init__(self, url, monkeypatch, count=1, **config):
        self.url, self.elapsed, self.daemons, self.busy, self.most = url, 0.0, [], 0, 0
        self.failures = {}
        self.clock = Clock()
        configs = [SiteConfig(id=f"n{n}", name="N", address="unix:/live") for n in range(count)]
        self.sites = [Site(self.clock, config, memory=own_memory(Reactor())) for config in configs]
        self.gatherers = {site.id: Gatherer(self) for site in self.sites}
        monkeypatch.setattr(
            NodeControl, "gatherer", lambda _self, site, _host: self.gatherers[site.id].gather
        )
        self.config = NodeControlConfig(
            nodes=tuple(ControlledNode(site=one.id, install="true") for one in configs),
            **{"gather_schedule": "0 */2 * * *", "runtime_schedule": "*/5 * * * *", **config},
        )

    def join(self, owner):
        clock = Clock()
        clock.advance(BEGIN + self.elapsed)
        store = Store(self.url, clock)
        store.startService()
        duties = Duties(store, clock, owner, timer=lambda: self.elapsed)
        made = NodeControl(
            *(clock, Wall(clock), store, NoThreads(), duties),
            *(SiteList(tuple(self.sites)), self.config, "/", self.end, lambda: True, UTC),
        )
        made.startService()
        duties.startService()
        self.daemons.append(made)
        return made

    async def end(self, job):
        return self.failures.get(job)

    def pass_(self, seconds, step=5.0):
        for _ in range(int(seconds / step)):
            self.elapsed += step
            for daemon in self.daemons:
                daemon.reactor.advance(step)

    def kill(self, daemon):
        self.daemons.remove(daemon)
        daemon.database.stopService()

    def close(self):
        for daemon in self.daemons:
            result(daemon.stopService())
            result(daemon.duties.stopService())
            assert not daemon.reactor.getDelayedCalls()
            daemon.database.stopService()


@pytest.fixture
def world(database_url, monkeypatch):
    made = World(database_url, monkeypatch)
    yield made
    made.close()


def stored(daemon):
    return result(daemon.stored()).nodes["n0"]


def test_two_schedules(world):
    daemon = world.join("one")
    world.pass_(50)
    world.pass_(3 * HOUR + 240, step=60.0)  # it looks at each full minute
    asked = world.gatherers["n0"].asked
    assert asked[0][0] >= 290
    assert len(asked) == 37
    gaps = {round(b - a) for (a, _), (b, _) in pairwise(asked)}
    assert gaps == {300}
    facts = [at for at, what in asked if what == "facts"]
    assert [round((BEGIN + at) % 7200) // 10 for at in facts] == [0, 0]
    node = stored(daemon)
    assert set(node.data) == {"facts_said", "runtime_said"}
    assert node.gathered > node.facts_gathered > 0


def test_only_one_of_three_daemons_and_another_after_its_death(world):
    first, *_ = (world.join(name) for name in ("x", "y", "z"))
    world.pass_(HOUR, step=30.0)
    asked = world.gatherers["n0"].asked
    assert len(asked) == 12
    world.kill(first)
    world.pass_(HOUR, step=30.0)
    assert len(asked) == 24
    assert len({(BEGIN + at) // 300 for at, _ in asked}) == len(asked)


def test_one_that_dies_while_it_gathers_is_followed_at_once(world):
    """What it had begun is done by who takes over, and nothing that it had done."""
    first, _ = world.join("x"), world.join("y")
    gatherer = world.gatherers["n0"]
    world.pass_(HOUR, step=30.0)
    gatherer.held = Deferred()
    before = len(gatherer.asked)
    while len(gatherer.asked) == before:
        world.pass_(5)
    began = world.elapsed
    first.database.down = True
    gatherer.held = None
    world.pass_(30)
    assert len(gatherer.asked) == before + 2
    assert stored(world.daemons[1]).gathered >= BEGIN + began
    # Another one that comes finds everything done.
    world.kill(world.daemons[1])
    world.join("z")
    world.pass_(60)
    assert len(gatherer.asked) == before + 2


def test_who_lost_the_duty_stores_nothing_late(world):
    first, second = world.join("x"), world.join("y")
    gatherer = world.gatherers["n0"]
    held = gatherer.held = Deferred()
    world.pass_(300)
    assert len(gatherer.asked) == 1
    first.duties.database.held = True
    gatherer.held = None
    world.pass_(40)
    assert len(gatherer.asked) == 2
    first.duties.database.release()
    gathered = stored(second).data
    held.callback(None)
    world.pass_(5)
    assert stored(second).data == gathered


def test_no_more_than_parallel_tasks_and_none_twice_at_once(database_url, monkeypatch):
    world = World(database_url, monkeypatch, count=7)
    try:
        world.join("one")
        for one in world.gatherers.values():
            one.held = Deferred()
        world.pass_(1200)
        assert (world.most, world.busy) == (3, 3)
        assert sum(len(one.asked) for one in world.gatherers.values()) == 3
        for one in world.gatherers.values():
            held, one.held = one.held, None
            held.callback(None)
        assert world.most <= 3
        world.pass_(5)
        assert [len(one.asked) for one in world.gatherers.values()] >= [1] * 7
    finally:
        world.close()


def test_a_daemon_that_stops_ends_what_it_gathers(world):
    daemon = world.join("one")
    gatherer = world.gatherers["n0"]
    gatherer.held = Deferred()
    world.pass_(300)
    assert world.busy == 1
    assert stored(daemon).gathering_until > 0
    result(daemon.stopService())
    assert world.busy == 0
    assert stored(daemon).gathering_until == 0


def test_a_failure_is_kept_with_its_time_and_the_facts_stay(world):
    daemon = world.join("one")
    world.pass_(300)
    before = stored(daemon)
    world.gatherers["n0"].error = "no route"
    world.pass_(300)
    node = stored(daemon)
    assert (node.last_error, node.data, node.gathered) == ("no route", before.data, before.gathered)
    assert node.last_error_at > before.gathered
    assert node.gathering_until == 0


def test_one_who_gathers_and_died_is_forgotten(world):
    first, second = world.join("x"), world.join("y")
    gatherer = world.gatherers["n0"]
    gatherer.held = Deferred()
    waiting = Deferred.fromCoroutine(first.gather(world.sites[0], "facts"))
    with pytest.raises(Conflict):
        result(second.gather(world.sites[0], "facts"))
    first.database.down = True
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    world.kill(first)
    gatherer.held = None
    assert stored(second).gathering_until > second.wall.now()
    world.pass_(4 * world.config.gather_timeout + 60)
    assert result(second.gather(world.sites[0], "facts")) == ""


def test_what_nobody_does_any_more_is_tidied_up(world):
    daemon = world.join("one")
    site = world.sites[0]

    def claim():
        return result(daemon.claim(site, "install"))

    def assign(job, claimed):
        return result(daemon.assign(site, job, claimed))

    late = claim()
    with pytest.raises(Conflict):
        claim()
    world.pass_(15)
    assert (stored(daemon).operation, stored(daemon).last_error) == (
        "", "the operation did not begin",
    )  # fmt: skip
    assign(7, claim())
    world.pass_(100)
    assert stored(daemon).operation == "install"
    world.failures[7] = "its daemon was killed"
    assert stored(daemon).operation == ""
    assert stored(daemon).last_error == "its daemon was killed"
    assert result(daemon.output(site, "install")).failed == 1
    assign(8, claim())
    world.failures[8] = ""
    assert stored(daemon).operation == ""
    assert (stored(daemon).last_job, stored(daemon).last_error) == (8, "its daemon was killed")
    fresh = claim()
    with pytest.raises(Conflict):
        assign(9, late)
    result(daemon.release(site, late))
    assert stored(daemon).operation == "install"
    assign(10, fresh)
    assert stored(daemon).job == 10


def test_who_was_given_up_does_not_go_on(world):
    """A daemon that was paused between two commands finds that its job is not the node's any more."""
    daemon = world.join("one")
    work = daemon.perform(world.sites[0], "install", 7, no_progress)
    with pytest.raises(Conflict, match="given up"):
        result(work)


@pytest.fixture
def daily(tmp_path, monkeypatch):
    """Days go by, which ask for nothing of a database that the tests above do not."""
    defaults = NodeControlConfig()
    made = World(
        migrated_sqlite_url(tmp_path),
        monkeypatch,
        gather_schedule=defaults.gather_schedule,
        runtime_schedule=defaults.runtime_schedule,
    )
    yield made
    made.close()


def test_by_itself_everything_is_gathered_once_a_day_and_never_at_start(daily):
    first = daily.join("one")
    daily.pass_(2 * DAY, step=300.0)
    asked = daily.gatherers["n0"].asked
    assert [what for _, what in asked] == ["facts"] * 2
    assert {(BEGIN + at) // 300 * 300 % DAY for at, _ in asked} == {3 * HOUR}
    for _ in range(3):
        daily.kill(first)
        first = daily.join("one")
        daily.pass_(300)
    assert len(asked) == 2


def test_a_clock_that_is_set_repeats_and_skips_nothing(daily):
    daemon = daily.join("one")
    asked = daily.gatherers["n0"].asked
    begin = 27 * HOUR - BEGIN % DAY
    daily.pass_(begin - 1800, step=300.0)
    daemon.wall.jump(HOUR)  # over the time
    daily.pass_(60)
    assert len(asked) == 1
    daemon.wall.jump(-HOUR)
    daily.pass_(2 * HOUR, step=300.0)
    assert len(asked) == 1
    daemon.wall.jump(-HOUR)  # it comes once more by a clock that is behind
    daily.pass_(2 * HOUR, step=300.0)
    assert len(asked) == 1
    daemon.wall.jump(HOUR)
    daily.pass_(DAY, step=300.0)
    assert len(asked) == 2
