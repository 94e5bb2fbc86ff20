"""Nodes on one database whose network, clocks and lives are the test's: views, and restarts."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from monrest.base.workers import Workers, marks
from monrest.cluster.model import Member, PeerError, Pong
from monrest.cluster.seal import key_of, new_number, of_call
from monrest.cluster.service import Cluster
from monrest.config import ClusterConfig
from monrest.store.database_health import DatabaseHealth
from monrest.store.duties import Duties
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result

URLS = ("http://a:1", "http://b:1", "http://c:1")
KEY = key_of("k")


class Net:
    """Calls that reach whoever is at a url, as far as that is not cut."""

    key = KEY

    def __init__(self, world, at):
        self.world, self.at = world, at

    async def ping(self, url):
        at = URLS.index(url)
        if at in self.world.cut or self.at in self.world.cut or self.world.nodes[at] is None:
            raise PeerError("no connection")
        there = self.world.nodes[at].cluster
        call = of_call(KEY, new_number(), url)
        self.world.calls.append((call, url))
        answer = there.answer(call, url)
        return Pong.read(answer)

    async def close(self):
        pass


class Node:
    """One run of a daemon."""

    def __init__(self, world, at, run, workers=None):
        self.world, self.at = world, at
        self.clock = Clock()
        self.clock.advance(1_700_000_000 + 1000 * at)
        self.store = Store(world.url, self.clock)
        self.store.startService()
        self.duties = Duties(self.store, self.clock, str(at + 1), timer=lambda: world.elapsed)
        self.problem = ""
        self.cluster = Cluster(
            database=self.store,
            health=DatabaseHealth(self.store, self.clock),
            clock=self.clock,
            wall=Wall(self.clock),
            duties=self.duties,
            peers=Net(world, at),
            config=ClusterConfig(nodes=URLS, restart_notice=5.0),
            drain=10.0,
            check=self.check,
            leave=lambda: world.leaving.append(self),
            timer=lambda: world.elapsed,
            workers=workers or Workers(),
        )
        self.cluster.own = Member(id=at + 1, run=run, host=f"h{at}", pid=10 + at, version="1")
        self.duties.startService()
        self.cluster.startService()

    async def check(self):
        return self.problem

    def stop(self, *, clean=True):
        if clean:
            result(self.cluster.stopService())
            result(self.duties.stopService())
        self.store.stopService()


class World:
    def __init__(self, url):
        self.url, self.elapsed, self.runs = url, 0.0, 0
        self.dead, self.calls = set(), []
        self.cut, self.leaving, self.history, self.back = set(), [], [], True
        self.nodes = [None] * len(URLS)
        for at in range(len(URLS)):
            self.start(at)
        self.pass_(30, step=3.0)

    def start(self, at):
        self.runs += 1
        self.dead.discard(at)
        self.nodes[at] = Node(self, at, 100 + self.runs)

    def kill(self, at):
        self.dead.add(at)
        self.nodes[at].stop(clean=False)
        self.nodes[at] = None

    def pass_(self, seconds, step=1.0, *, take=True):
        for _ in range(int(seconds / step)):
            self.elapsed += step
            for node in self.nodes:
                if node is not None:
                    node.clock.advance(step)
            out = [at for at, node in enumerate(self.nodes)
                   if node is None or node.cluster.leaving]  # fmt: skip
            assert len(set(out) - self.dead) <= 1, "one at a time"
            if not take:
                continue
            leaving, self.leaving = self.leaving, []
            for node in leaving:
                self.history.append(node.at)
                node.stop()
                self.nodes[node.at] = None
                if self.back:
                    self.start(node.at)

    def states(self, at=0):
        result(self.nodes[at].cluster.look())
        return [step.state for step in self.nodes[at].cluster.steps]

    def close(self):
        for node in self.nodes:
            if node is not None:
                node.stop()


@pytest.fixture
def world(database_url):
    made = World(database_url)
    yield made
    made.close()


def test_a_node_is_ready_when_each_of_its_workers_knows_the_others(world):
    world.nodes[0].stop()
    memory = marks(2)
    world.nodes[0] = first = Node(world, 0, 900, Workers(2, 1, memory=memory))
    result(first.cluster.look())
    assert first.cluster.not_ready() == "STARTING"
    second = Node(world, 0, 900, Workers(2, 2, memory=memory))
    result(second.cluster.look())
    assert (first.cluster.not_ready(), second.cluster.not_ready()) == ("", "")
    second.stop()
    assert first.cluster.not_ready() == ""


def test_maintenance_stays_over_a_restart(world):
    assert result(world.nodes[0].cluster.maintain(2, on=True))
    world.pass_(5)
    assert world.nodes[1].cluster.not_ready() == "MAINTENANCE"
    world.kill(1)
    world.start(1)
    assert world.nodes[1].cluster.not_ready() == "MAINTENANCE"
    assert result(world.nodes[2].cluster.maintain(2, on=False))
    world.pass_(5)
    assert world.nodes[1].cluster.not_ready() == ""
    assert not result(world.nodes[0].cluster.maintain(99, on=True))


def test_a_copied_id_is_told(world):
    world.nodes[1].cluster.own = Member(id=1, run=5, host="copy", pid=1, version="1")
    result(world.nodes[0].cluster.heartbeat())
    assert "was node.id copied?" in world.nodes[0].cluster.seen(URLS[1]).last_error


def test_the_driver_dies(world):
    """Another one drives on, and leaves out who does not answer."""
    result(world.nodes[2].cluster.restart_all())
    (driver,) = [at for at, node in enumerate(world.nodes) if node.duties.held("cluster restart")]
    world.kill(driver)
    world.pass_(120)
    assert sorted([*world.history, driver]) == [0, 1, 2]
    left = next(at for at in range(3) if at != driver)
    assert sorted(world.states(left)) == ["done", "done", "skipped"]


def test_one_that_dies_at_its_turn_and_comes_back_has_restarted(world):
    result(world.nodes[2].cluster.restart_all())
    for _ in range(60):
        if not world.leaving:
            world.pass_(1, take=False)
    assert world.states() == ["leaving", "waiting", "waiting"]
    world.kill(0)
    world.leaving.clear()
    world.pass_(40)
    assert world.states(1) == ["leaving", "waiting", "waiting"]
    world.start(0)
    world.pass_(120)
    assert world.states() == ["done"] * 3


def test_one_that_does_not_come_back_ends_it(world):
    result(world.nodes[2].cluster.restart_all())
    world.back = False
    world.pass_(400, step=4.0)
    assert world.history == [0]
    assert world.states(2) == ["failed", "skipped", "skipped"]
    steps = world.nodes[2].cluster.steps
    assert "did not restart in time" in steps[0].message
    assert URLS[0] in steps[1].message


def test_one_that_is_cut_off_is_left_out(world):
    world.cut.add(1)
    steps = result(world.nodes[0].cluster.restart_all())
    assert [step.state for step in steps] == ["skipped", "waiting", "waiting"]
    assert "no connection" in steps[0].message
    world.pass_(120)
    assert world.states() == ["skipped", "done", "done"]
    assert world.history == [2, 0]


def test_a_driver_that_is_cut_off_leaves_it_to_others(world):
    (driver,) = [at for at, node in enumerate(world.nodes) if node.duties.held("cluster restart")]
    asked = next(at for at in range(3) if at != driver)
    result(world.nodes[asked].cluster.restart_all())
    world.cut.add(driver)
    world.pass_(150)
    assert sorted(world.states(asked)) == ["done", "done", "skipped"]
    assert driver not in world.history


def test_who_is_alone_does_not_restart(world):
    result(world.nodes[0].cluster.restart_all())
    for at in (1, 2):
        world.kill(at)
    world.pass_(400, step=4.0)
    assert world.history == []
    assert world.states() == ["failed", "skipped", "skipped"]
    assert world.nodes[0].cluster.steps[0].message == "no other node answers"


def test_the_last_one_that_is_ready_stays(world):
    """While all others are cut off or in maintenance nothing is taken away from clients."""
    for number in (1, 2):
        result(world.nodes[2].cluster.maintain(number, on=True))
    world.pass_(5)
    result(world.nodes[0].cluster.restart_all())
    world.pass_(60)
    assert 2 not in world.history
    for number in (1, 2):
        result(world.nodes[2].cluster.maintain(number, on=False))
    world.pass_(120)
    assert world.states() == ["done"] * 3


def test_a_database_that_is_away_only_delays_it(world):
    result(world.nodes[2].cluster.restart_all())
    for node in world.nodes:
        node.store.down = True
    world.pass_(60)
    assert world.history == []
    for node in world.nodes:
        node.store.down = False
    world.pass_(150)
    assert world.states() == ["done"] * 3


def test_a_node_that_goes_takes_its_duty_only_with_it(world):
    for node in world.nodes:
        assert node.cluster.does("x") in (True, False)
    world.pass_(10)
    assert [node.cluster.does("x") for node in world.nodes].count(True) == 1
    alone = world.nodes[0].cluster
    alone.configure(ClusterConfig(), 10.0)
    assert alone.does("x")
    assert alone.urls() == []
