"""Which sites a request means, and taking over a new configuration."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.errors import BadRequest
from monrest.config.sections import LmdConfig, SiteConfig
from monrest.query.model import Pushed
from monrest.sites.registry import Registry
from monrest.sites.site import Site
from tests.fakes.livestatus import MemoryCore, Script, hang
from tests.fakes.sites import outcome
from tests.fakes.threads import Reactor, own_memory

CONFIGS = (
    SiteConfig(id="a", name="Alpha", section="Europe", address="unix:/run/a"),
    SiteConfig(id="b", name="Beta", section="Europe", address="tcp:b:1", hidden=True),
    SiteConfig(id="c", name="Gamma", section="Asia", address="tls:c:1"),
    SiteConfig(id="d", name="Alpha", section="Asia", address="unix:/run/d", hidden=True),
)


class World:
    def __init__(self):
        self.clock = Clock()
        self.cores = {}
        self.registry = Registry(self.clock, CONFIGS, self.make, memory=own_memory(Reactor()))

    def make(self, clock, config, memory):
        core = self.cores.setdefault(config.id, MemoryCore(clock, Script()))
        return Site(clock, config, endpoint=core, memory=memory)

    def ids(self, *items):
        return "".join(site.id for site in self.registry.select(items))


@pytest.fixture
def world():
    world = World()
    yield world
    done = outcome(world.registry.stopService())
    world.clock.advance(0)
    assert done == [None]
    assert not any(core.open for core in world.cores.values())
    assert not world.clock.getDelayedCalls()


def test_nothing_is_configured():
    memory = own_memory(Reactor())
    registry = Registry(Clock(), (), lmd=LmdConfig(address="unix:/run/lmd"), memory=memory)
    assert [site.id for site in registry.sites] == ["lmd"]
    assert registry.direct == (), "nothing is kept for an LMD of which nothing is known"
    registry = Registry(Clock(), (), memory=memory)
    assert registry.select() == ()
    assert registry.select(["ALL"]) == ()


def test_configure(world):
    world.registry.startService()
    world.clock.advance(0)
    a, b, c, d = world.registry.sites
    world.cores["b"].script.plan.append(hang)
    running = outcome(Deferred.fromCoroutine(b.ask(Pushed(table="hosts", columns=("name",)))))
    idle = outcome(Deferred.fromCoroutine(c.ask(Pushed(table="hosts", columns=("name", "state")))))
    world.clock.advance(0)
    assert idle == [[["h1", 0]]]
    before = world.registry.sites
    new = SiteConfig(id="e", name="E", address="unix:/run/e")
    changed = SiteConfig(id="c", name="Gamma 2", address="tls:c:1")
    world.registry.configure([new, changed, CONFIGS[0]])
    world.clock.advance(0)
    assert [site.id for site in world.registry.sites] == ["e", "c", "a"]
    assert world.registry.sites[2] is a
    assert before == (a, b, c, d)
    assert world.cores["a"].connects == 1
    assert world.registry.sites[0].connected
    assert world.registry.sites[1] is not c
    assert world.registry.sites[1].name == "Gamma 2"
    assert world.cores["c"].connects == 2
    assert len(world.cores["c"].open) == 1
    assert not world.cores["d"].open
    # The query on the removed site ends as if nothing had happened.
    assert len(world.cores["b"].open) == 1
    world.cores["b"].open[0].say(b"200           9\n" + b'[["h7"]]\n')
    world.clock.advance(0)
    assert running == [[["h7"]]]
    assert not world.cores["b"].open
    with pytest.raises(BadRequest):
        world.ids("b")


def test_configure_before_the_start(world):
    world.registry.configure(CONFIGS[:1])
    world.clock.advance(0)
    assert not world.cores["a"].connects


def test_stopping_ends_what_runs_on_removed_sites(world):
    world.registry.startService()
    world.clock.advance(0)
    world.cores["a"].script.plan.append(hang)
    query = world.registry.sites[0].ask(Pushed(table="hosts", columns=("name",)))
    found = outcome(Deferred.fromCoroutine(query))
    world.clock.advance(0)
    world.registry.configure(())
    assert found == []
    outcome(world.registry.stopService())
    world.clock.advance(0)
    assert found[0].value.reason == "connection closed by monrest"
