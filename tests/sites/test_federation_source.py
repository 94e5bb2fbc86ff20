"""The sites that an address of another instance stands for, as its list changes."""

import orjson
import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from monrest.config.sections import SiteConfig
from monrest.livestatus.core_errors import BrokenConnectionError, ConnectError
from monrest.query.model import Pushed
from monrest.sites.federation.federated_site import FederationSource, openly, selectors
from monrest.sites.federation.remote import OnBehalfOf, PartialBody
from monrest.sites.registry import Registry, SiteList
from tests.fakes.sites import outcome
from tests.fakes.threads import Reactor, own_memory

CONFIG = SiteConfig(
    id="m", name="Munich", section="Europe", address="http://there/mon", auth_key="k"
)


def row(key, **more):
    return {"id": key, "name": key.upper(), "connected": 1, "core": "c", "instances": [], **more}


class Far:
    """Another instance: its list of sites and tables; ``held`` are requests without an answer.

    ``lost`` are what the next questions to a core fail with; ``partial``: some of it is missing.
    """

    def __init__(self, clock, *rows):
        self.reactor = clock
        self.rows = list(rows)
        self.problem = None
        self.hold = False
        self.held = []
        self.asked = []
        self.lost = []
        self.partial = False
        self.closed = False

    def call(
        self, method, path, timeout, whom=None, body=None, content_type="", sink=None, **_more
    ):
        self.asked.append((method, path, whom))
        if self.hold:
            self.held.append(Deferred())
            return self.held[-1]
        if self.problem is not None:
            return fail(self.problem)
        if "tables" in path:
            tables = {"hosts": {"name": "string", "state": "int", "9bad": "int", "x": "what"}}
            return succeed(orjson.dumps([{"id": "x", "tables": tables}]))
        if path.partition("?")[0] == "/sites":
            return succeed(orjson.dumps(self.rows))
        if self.lost:
            return fail(self.lost.pop(0))
        body = orjson.dumps([{"name": "h1", "state": 1}])
        if sink is not None:
            sink(body)
            body = b""
        return succeed(PartialBody(body) if self.partial else body)

    def questions(self):
        return [path for _, path, _ in self.asked if path.startswith("/sites/")]

    def lists(self):
        return sum(1 for _, path, _ in self.asked if path.startswith("/sites?columns=connected"))

    def close(self):
        self.closed = True
        return succeed(None)


class World:
    def __init__(self):
        self.clock = Clock()
        self.far = Far(self.clock, row("x"))
        self.changes = []
        self.source = FederationSource(
            reactor=self.clock,
            config=CONFIG,
            instance=lambda: "me",
            changed=lambda: self.changes.append(1),
            memory=own_memory(Reactor()),
            remote=self.far,
        )

    @property
    def ids(self):
        return [site.id for site in self.source.sites]

    def states(self):
        return [site.health.state for site in self.source.sites]

    def turn(self, seconds=11.0):
        for _ in range(int(seconds * 10)):
            self.clock.advance(0.1)


@pytest.fixture
def world():
    world = World()
    yield world
    for one in world.far.held:
        if not one.called:
            one.callback(b"[]")
    done = outcome(world.source.stopService())
    world.clock.advance(0)
    assert done == [None]
    assert world.far.closed
    assert not world.clock.getDelayedCalls()


def test_several_sites_are_named_by_theirs(world):
    world.far.rows = [row("x", section="South", hidden=1), row("y", section="Default")]
    world.source.startService()
    assert (world.ids, world.states()) == (["m-x", "m-y"], ["up", "up"])
    assert world.changes == [1]
    first, second = world.source.sites
    assert (first.name, first.section, first.hidden) == ("Munich X", "Europe/South", True)
    assert (second.name, second.section, second.hidden) == ("Munich Y", "Europe", False)
    assert "m" in selectors(first)
    # The tables of equal cores are asked for once.
    assert sum("tables" in path for _, path, _ in world.far.asked) == 1


def test_who_may_use_a_site_there_may_use_it_here(world):
    world.far.rows = [row("x", groups=["ops"], hidden=1)]
    world.source.startService()
    (site,) = world.source.sites
    assert world.changes == [1]
    listed = SiteList(world.source.sites)
    assert listed.restricted
    assert listed.select() == ()
    assert listed.permitted(frozenset({"ops"})).select(["m"]) == (site,)
    assert listed.permitted(frozenset()).sites == ()


def test_one_request_serves_all_sites_and_is_repeated(world):
    world.far.rows = [row(key) for key in "wxyz"]
    world.source.startService()
    before = world.far.lists()
    world.turn(30)
    assert 2 <= world.far.lists() - before <= 4


def test_sites_come_and_go(world):
    world.source.startService()
    (old,) = world.source.sites
    world.far.rows = [row("x"), row("y")]
    world.turn()
    assert world.ids == ["m-x", "m-y"]
    assert not old.breaker.running
    kept = world.source.sites[0]
    world.far.rows = [row("z"), row("x", name="New")]
    world.turn()
    assert world.ids == ["m-z", "m-x"]
    assert world.source.sites[1] is kept
    assert kept.name == "Munich New"
    world.far.rows = []
    world.turn()
    assert world.ids == ["m-z", "m-x"]
    assert world.states() == ["down", "down"]
    assert "no site for us" in kept.last_error


def test_a_site_that_is_down_there_is_down_here(world):
    world.far.rows = [row("x"), row("y", connected=0, last_error="no such socket")]
    world.source.startService()
    assert world.states() == ["up", "down"]
    assert world.source.sites[1].last_error == "down on the other side: no such socket"
    world.turn(2)
    world.far.rows = [row("x"), row("y")]
    world.turn(2)
    assert world.states() == ["up", "up"]
    world.far.rows = [row("x"), row("y", connected=0)]
    world.turn(60)
    before = world.far.lists()
    world.turn(60)
    assert world.far.lists() - before <= 7


def test_what_is_reached_through_us_is_not_taken(world):
    world.far.rows = [
        row("x", instances=["them"]),
        row("y", instances=["them", "me"]),
        row("z", instances=["1", "2", "3", "4", "5", "6"]),
        row("far", federation_key=["1", "2", "3", "4", "5", "6"]),
    ]
    world.source.startService()
    assert world.ids == ["m"]
    assert world.source.sites[0].remote_id == "x"


def test_a_request_that_waits_for_the_first_answer_is_in_the_name_of_its_user(world):
    world.far.hold = True
    world.source.startService()
    acting = world.source.sites[0].acting(OnBehalfOf("olga", ("first",)))
    rows = outcome(Deferred.fromCoroutine(acting.ask(Pushed(table="hosts", columns=("name",)))))
    assert rows == []
    world.far.hold = False
    world.far.held[0].callback(orjson.dumps(world.far.rows))
    assert rows == [[["h1"]]]
    method, path, whom = world.far.asked[-1]
    assert (method, path) == ("GET", "/sites/x/hosts?columns=name")
    assert whom == OnBehalfOf("olga", ("first",))
    assert world.source.sites[0].whom == OnBehalfOf()
    assert openly(acting).whom == OnBehalfOf("", ("first",))


def test_a_stop_ends_what_waits(world):
    world.far.hold = True
    world.source.startService()
    rows = outcome(
        Deferred.fromCoroutine(world.source.sites[0].ask(Pushed(table="hosts", columns=("name",))))
    )
    world.source.stopService()
    assert "closed by monrest" in rows[0].value.reason


HOSTS = Pushed(table="hosts", columns=("name",))
LOST = "the connection was closed before the answer was complete"


def ask(world):
    return outcome(Deferred.fromCoroutine(world.source.sites[0].ask(HOSTS)))


def test_an_instance_that_is_away_for_a_moment_is_waited_for(world):
    world.source.startService()
    world.turn(2)
    world.far.problem = ConnectError("connection refused", momentary=True)
    found = [ask(world), ask(world)]
    world.turn(1)
    assert found == [[], []]
    assert world.states() == ["up"]
    world.far.problem = None
    world.turn(1)
    assert found == [[[["h1"]]], [[["h1"]]]]
    world.far.problem = ConnectError("connection refused", momentary=True)
    found = ask(world)
    world.turn(2.2)
    assert found[0].value.reason == "connection refused"
    assert world.states() == ["down"]


def test_all_sites_of_an_instance_that_is_away_look_for_it_together(world):
    world.far.rows = [row(key) for key in "wxyz"]
    world.source.startService()
    world.turn(2)
    world.far.problem = ConnectError("connection refused", momentary=True)
    asked = [outcome(Deferred.fromCoroutine(site.ask(HOSTS))) for site in world.source.sites]
    before = world.far.lists()
    world.turn(1)
    assert asked == [[], [], [], []]
    assert world.far.lists() - before <= 12


@pytest.mark.parametrize("same", [True, False])
def test_a_question_that_was_lost_is_sent_again_to_the_same_instance_only(world, same):
    world.far.rows = [row("x", instances=["one"], program_start=5)]
    world.source.startService()
    world.turn(0.2)  # the list would still be fresh
    if not same:
        world.far.rows = [row("x", instances=["two"], program_start=5)]
    world.far.lost.append(BrokenConnectionError(LOST, kept=True))
    before = world.far.lists()
    found = ask(world)
    world.turn(1)
    assert world.far.lists() > before
    if same:
        assert found == [[["h1"]]]
    else:
        assert found[0].value.reason == "the core was restarted while it was asked"
    assert len(world.far.questions()) == 1 + same


def test_half_an_answer_of_an_instance_is_not_asked_for_again(world):
    world.source.startService()
    world.far.lost.append(BrokenConnectionError(LOST))
    found = ask(world)
    world.turn(1)
    assert found[0].value.reason == LOST
    assert len(world.far.questions()) == 1


def test_an_instance_that_hangs_holds_nobody(world):
    world.source.startService()
    world.turn(2)
    world.far.hold = True
    found = ask(world)
    world.turn(4.3)
    assert found[0].value.reason == "hangs: no sign of life within 1 s"
    assert ask(world)[0].value.timed_out
    world.far.hold = False
    world.far.held[-1].callback(orjson.dumps(world.far.rows))
    assert world.states() == ["up"]


def test_the_registry_follows_and_settles():
    clock = Clock()
    registry = Registry(
        clock,
        (SiteConfig(id="a", name="A", section="S", address="unix:/run/a"), CONFIG),
        memory=own_memory(Reactor()),
    )
    assert [site.id for site in registry.sites] == ["a", "m"]
    assert [site.id for site in registry.direct] == ["a"]
    source = registry._sources[1]
    far = Far(clock, row("x"), row("y"))
    source.remote = far
    source.sites[0].pool.remote = far
    far.hold = True
    source.startService()
    assert outcome(Deferred.fromCoroutine(registry.settled(["a"]))) == [None]
    waits = outcome(Deferred.fromCoroutine(registry.settled()))
    assert waits == []
    far.hold = False
    far.held[0].callback(orjson.dumps(far.rows))
    assert waits == [None]
    assert [site.id for site in registry.sites] == ["a", "m-x", "m-y"]
    assert [site.id for site in registry.select(["m"])] == ["m-x", "m-y"]
    assert [site.id for site in registry.select(["Munich"])] == ["m-x", "m-y"]
    acting = registry.acting(OnBehalfOf("olga"))
    assert isinstance(acting, SiteList)
    assert [site.whom.user for site in acting.select(["m"])] == ["olga", "olga"]
    assert acting.select(["a"])[0] is registry.select(["a"])[0]
    registry.configure(registry.configs[:1])
    assert [site.id for site in registry.sites] == ["a"]
    assert registry.acting(OnBehalfOf("olga")) is registry
    assert outcome(registry.stopService()) == [None]
    assert not clock.getDelayedCalls()


def test_one_site_has_the_configured_id(world):
    assert (world.ids, world.states()) == (["m"], ["pending"])
    (site,) = world.source.sites
    world.source.startService()
    assert (world.ids, world.states()) == (["m"], ["up"])
    assert world.source.sites == (site,)
    assert world.changes == []
    assert (site.name, site.section, site.remote_id) == ("Munich", "Europe", "x")
    assert site.capabilities.tables == {"hosts": {"name": "string", "state": "int"}}
    assert site.capabilities.sorts
