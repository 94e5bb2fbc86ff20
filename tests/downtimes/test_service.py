"""The scheduler: once for each time, though daemons, cores, clocks and the database fail meanwhile."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from twisted.internet.defer import Deferred

from monrest.base.errors import SitesFailed
from monrest.base.values import SiteProblem
from monrest.config.sections import CommandsConfig
from monrest.downtimes import cores, service
from monrest.downtimes import store as statements
from monrest.downtimes.cores import orders_of
from monrest.downtimes.model import checked
from monrest.downtimes.service import DUTY, RecurringDowntimes
from monrest.livestatus.command import Target
from monrest.livestatus.external import line
from monrest.sites.commands import SentToSite
from tests.examples import examples
from tests.fakes.scheduling import BEGIN, DAILY, MIDNIGHT, SIX, Daemons
from tests.fakes.store import BOTH, migrated_sqlite_url, url_for

MINUTELY = [{"type": "cust", "cust": "* * * * *"}]
BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = [{"type": "day", "minute": 30, "hour": 2}]


class Core:
    """A site; ``obeyed`` are the commands that it has followed."""

    def __init__(self, id, *objects):
        self.id, self.name, self.section = id, id.upper(), ""
        self.objects = set(objects) or {
            Target("hosts", "h"), Target("services", "h", "s"), Target("hosts", "k"),
        }  # fmt: skip
        self.obeyed, self.down, self.manner = [], False, "obey"
        self.held = None

    def problem(self):
        return SiteProblem(self.id, self.name, "connection refused")


class World(Daemons):
    """Its cores obey, refuse, vanish or lose the answer."""

    def __init__(self, url, monkeypatch, *sites, now=BEGIN):
        super().__init__(url, now)
        self.sites = sites or (Core("a"),)
        monkeypatch.setattr(service, "send", self.send)
        monkeypatch.setattr(cores, "in_effect", self.in_effect)
        monkeypatch.setattr(cores, "existing", self.existing)

    def service(self, zone=UTC, **given):
        return RecurringDowntimes(registry=self, zone=zone, **given)

    async def existing(self, sites, targets, clock):
        if all(site.down for site in sites):
            raise SitesFailed([site.problem() for site in sites])

        def on(target):
            return {one.id for one in sites if not one.down and target in one.objects}

        problems = {site.id: site.problem() for site in sites if site.down}
        return SimpleNamespace(problems=problems, on=on)

    async def send(self, orders, clock, wall, allowed):
        done = []
        for site, commands in orders:
            lines = tuple(line(one, 0, decodes_backslashes=False) for one in commands)
            if site.held is not None:
                await site.held
            if not allowed():
                problem = SiteProblem(site.id, site.name, "withdrawn before it was sent")
                done.append(SentToSite(site=site, unsent=lines, problem=problem))
            elif site.down or site.manner == "vanish":
                done.append(SentToSite(site=site, unsent=lines, problem=site.problem()))
            elif site.manner == "refuse":
                refused = dict.fromkeys(range(len(lines)), "no such thing")
                done.append(SentToSite(site=site, lines=lines, refused=refused))
            elif site.manner in ("lose", "swallow"):
                if site.manner == "lose":
                    site.obeyed += commands
                doubtful = dict.fromkeys(range(len(lines)), "connection lost")
                done.append(
                    SentToSite(site=site, lines=lines, doubtful=doubtful, problem=site.problem())
                )
            else:
                site.obeyed += commands
                done.append(SentToSite(site=site, lines=lines))
        return tuple(done)

    async def in_effect(self, site, orders, downtime, at, until, clock):
        if site.down:
            raise SitesFailed([site.problem()])
        return {order.key for order in orders if order.command in site.obeyed}

    def add(self, sites=(), **fields):
        record = checked({"host": ["h"], "schedule": DAILY, **fields}, CommandsConfig())
        names = {one: one.upper() for one in sites}
        return self.change(statements.add(1, record, names, self.now, UTC))

    def get(self, number):
        return next(iter(self.run(statements.several(number))), None)

    def begins(self, at=0):
        """The begins that a core was told, in order."""
        return [int(one.fields[-7]) for one in self.sites[at].obeyed]

    def unfinished(self):
        return [(one.downtime.number, one.at) for one in self.run(statements.unfinished)]


@pytest.fixture
def world(monkeypatch, request, tmp_path):
    """``request.param``, where there is one: the time at the beginning."""
    now = getattr(request, "param", BEGIN)
    made = World(url_for(request, tmp_path), monkeypatch, now=now)
    yield made
    made.close()


@pytest.fixture
def two_sites(monkeypatch, tmp_path):
    made = World(migrated_sqlite_url(tmp_path), monkeypatch, Core("a"), Core("b"))
    yield made
    made.close()


def commands(world, at=0):
    return [";".join((one.name, *one.fields)) for one in world.sites[at].obeyed]


@BOTH
def test_what_is_sent(world):
    world.join()
    world.add(comment="x; y", duration=90)
    world.add(service=["s"], fixed=0, duration=90, flex_range=200)
    world.add(childoptions=1)
    world.add(childoptions=2, target="host")
    world.pass_(59)
    assert world.begins() == []
    world.pass_(120)
    end = SIX + 7200
    assert sorted(commands(world)) == sorted([
        f"SCHEDULE_HOST_DOWNTIME;h;{SIX};{SIX + 5400};1;0;0;(cron);x; y",
        f"SCHEDULE_SVC_DOWNTIME;h;s;{SIX};{SIX + 12000};0;0;5400;(cron);automatic downtime",
        f"SCHEDULE_AND_PROPAGATE_TRIGGERED_HOST_DOWNTIME;h;{SIX};{end};1;0;0;(cron);automatic downtime",
        f"SCHEDULE_AND_PROPAGATE_HOST_DOWNTIME;h;{SIX};{end};1;0;0;(cron);automatic downtime",
    ])  # fmt: skip
    assert world.unfinished() == []
    world.pass_(86400, step=1800)
    assert sorted(set(world.begins())) == [SIX, SIX + 86400]
    assert len(world.begins()) == 8


def test_within_seconds_of_its_time(world):
    world.join()
    world.add(schedule=MINUTELY, duration=5)
    world.pass_(600, step=5)
    assert world.begins() == [BEGIN + 60 * n for n in range(1, 11)]


def test_only_one_of_three_daemons_and_never_twice(world):
    one, *_ = (world.join(name, wrong) for name, wrong in (("x", 0), ("y", 40.0), ("z", -40.0)))
    world.add(schedule=MINUTELY, duration=5)
    world.pass_(300, step=5)
    world.kill(one)
    world.pass_(300, step=5)
    assert len(world.begins()) == len(set(world.begins()))
    assert set(range(BEGIN + 60, BEGIN + 240, 60)) <= set(world.begins())
    assert max(world.begins()) >= BEGIN + 480


def test_after_a_pause_what_is_of_use_still_comes(world):
    """Those whose end has passed do not, and are not made up for in another way."""
    daemon = world.join()
    world.add(schedule=[{"type": "cust", "cust": "0 * * * *"}], duration=150)
    world.kill(daemon)
    world.elapsed += 10 * 3600
    world.join("again")
    world.pass_(30)
    assert world.begins() == [SIX + 3600 * n for n in (8, 9)]
    ends = {int(one.fields[-6]) - int(one.fields[-7]) for one in world.sites[0].obeyed}
    assert ends == {9000}


@pytest.mark.parametrize("obeyed", [False, True])
def test_a_daemon_that_dies_between_its_row_and_the_core(world, obeyed):
    """It is unknown whether the core was told: the core is asked."""
    daemon = world.join("first")
    world.add()
    core = world.sites[0]
    core.held = Deferred()
    world.pass_(70)
    (one,) = world.run(statements.unfinished)
    assert one.attempts == 1
    if obeyed:
        core.obeyed += [order.command for order in orders_of(one.downtime, one.at)]
    world.kill(daemon)
    core.held = None
    world.join("second")
    world.pass_(60)
    assert world.unfinished() == []
    assert world.begins() == [SIX]


def test_a_frozen_daemon_does_not_send_late(world):
    """It took the row and was about to write to the core when it was frozen."""
    frozen, other = world.join("one"), world.join("two")
    world.add()
    core = world.sites[0]
    core.held = held = Deferred()
    world.pass_(70)
    assert world.unfinished()
    core.held = None
    world.pass_(60, frozen)
    assert other.duties.held(DUTY)
    assert world.begins() == [SIX]
    held.callback(None)
    world.pass_(120)
    assert world.begins() == [SIX]
    assert world.unfinished() == []
    assert world.get(1).problems is None


def test_a_site_that_is_down_is_told_when_it_is_back(two_sites):
    world = two_sites
    world.join()
    world.add()
    world.sites[1].down = True
    world.pass_(360, step=5)
    assert (world.begins(0), world.begins(1)) == ([SIX], [])
    assert world.get(1).problems == "  - ERROR: B: connection refused"
    world.sites[1].down = False
    world.pass_(120)
    assert (world.begins(0), world.begins(1)) == ([SIX], [SIX])
    assert world.get(1).problems is None


def test_a_site_that_stays_down_is_given_up_at_the_end(world, audited):
    world.join()
    world.add(duration=5)
    world.sites[0].down = True
    world.pass_(460, step=10)
    assert world.unfinished() == []
    world.sites[0].down = False
    world.pass_(600, step=10)
    assert world.begins() == []


@pytest.mark.parametrize(
    ("manner", "times"), [("lose", 1), ("swallow", 0), ("vanish", 0), ("refuse", 0)]
)
def test_answers_that_get_lost(world, manner, times):
    """A core that was told and did not say so is not told again; one that was not is."""
    world.join()
    world.add()
    core = world.sites[0]
    core.manner = manner
    world.pass_(68)
    assert len(core.obeyed) == times
    assert "ERROR: A:" in world.get(1).problems
    core.manner = "obey"
    world.pass_(120)
    assert world.begins() == [SIX]
    assert world.unfinished() == []
    assert world.get(1).problems is None


def test_what_a_core_refuses_is_tried_some_times(world):
    world.join()
    world.add()
    world.sites[0].manner = "refuse"
    world.pass_(660, step=5)
    assert world.unfinished() == []
    assert world.get(1).problems == "  - ERROR: A: h: no such thing"


def test_an_outage_of_the_database(world):
    daemon = world.join()
    world.add(schedule=DAILY)
    world.pass_(50)
    daemon.database.down = True
    world.pass_(600, step=5)
    assert world.begins() == []
    daemon.database.down = False
    world.pass_(60)
    assert world.begins() == [SIX]


def test_sites(two_sites):
    """Those that were chosen, also under another id; else all that have the object."""
    world = two_sites
    world.join()
    world.sites[0].objects = {Target("hosts", "h")}
    world.add(sites=["b"], comment="chosen")
    world.add(service=["s"], comment="where it is")
    world.change(statements.add(1, world.get(1).record, {"old": "B"}, BEGIN, UTC))
    world.pass_(90)
    assert [one.name for one in world.sites[0].obeyed] == []
    assert sorted(one.name for one in world.sites[1].obeyed) == [
        "SCHEDULE_HOST_DOWNTIME", "SCHEDULE_HOST_DOWNTIME", "SCHEDULE_SVC_DOWNTIME",
    ]  # fmt: skip


def test_a_check_keeps_what_is_wrong_and_forgets_it(world):
    world.join()
    wrong = {
        "unknown backend: gone": world.add(sites=["a", "gone"]),
        "host x not found": world.add(host=["h", "x"]),
        "host k has none of the services": world.add(host=["h", "k"], service=["s"]),
        "hostgroup g not found": world.add(host=[], hostgroup=["g"]),
        "servicegroup g not found": world.add(host=[], servicegroup=["g"]),
        "service t not found on any of the hosts": world.add(service=["s", "t"]),
    }
    healthy = world.add()
    world.pass_(700, step=20)
    for text, number in wrong.items():
        assert world.get(number).error == f"  - ERROR: {text}"
    assert world.get(healthy).error is None
    world.sites[0].objects |= {
        Target("hosts", "x"), Target("services", "k", "s"), Target("hostgroups", "g"),
        Target("servicegroups", "g"), Target("services", "h", "t"),
    }  # fmt: skip
    world.pass_(700, step=20)
    assert [world.get(number).error for number in list(wrong.values())[1:]] == [None] * 5
    world.sites[0].down = True
    world.sites[0].objects.clear()
    world.pass_(700, step=20)
    assert world.get(healthy).error is None, "nobody knows"


def test_who_writes_sees_soon_what_is_wrong(world):
    world.pass_(10)
    daemon = world.join()
    number = world.add(host=["x"])
    world.pass_(10)
    assert world.get(number).error == "  - ERROR: host x not found"
    old = world.get(number)
    work = statements.replace(old, {**old.record, "host": ["h", "y"]}, {}, world.begun, UTC)
    assert world.change(work)
    assert world.get(number).error is None
    world.pass_(10)
    assert world.get(number).error == "  - ERROR: host y not found"
    daemon.database.down = True
    again = world.add(host=["z"])
    world.pass_(10)
    daemon.database.down = False
    world.pass_(10)
    assert world.get(again).error == "  - ERROR: host z not found"
    assert not world.change(statements.report(old, None)), "of what was there before"


@BOTH
def test_a_change_neither_loses_nor_repeats(world):
    """The time has come when the record is changed, and no daemon has looked yet."""
    world.join()
    number = world.add(schedule=DAILY)
    world.pass_(57)
    old = world.get(number)
    record = checked({**old.record, "comment": "new"}, CommandsConfig())
    work = statements.replace(old, record, {}, SIX + 1, world.daemons[0].zone)
    assert world.change(work)
    assert not world.change(work), "it is another one now"
    world.pass_(60)
    assert world.begins() == [SIX]
    world.pass_(86400, step=1800)
    assert world.begins() == [SIX, SIX + 86400]


def test_another_zone(world):
    """After a reload with other clocks a time comes when those show it."""
    daemon = world.join()
    world.add(schedule=DAILY)
    world.pass_(30)
    daemon.zone = ZoneInfo("Asia/Tokyo")
    world.pass_(86400, step=1800)
    assert world.begins() == [MIDNIGHT + 21 * 3600]


@BOTH
def test_removing_one_that_is_due(world):
    world.join()
    number = world.add()
    world.sites[0].down = True
    world.pass_(120)
    assert world.change(statements.remove(world.get(number)))
    world.sites[0].down = False
    world.pass_(300, step=5)
    assert world.begins() == []


@BOTH
def test_numbers(world):
    assert [world.add() for _ in range(3)] == [1, 2, 3]
    old = world.get(2)
    world.change(statements.remove(old))
    assert [world.add() for _ in range(2)] == [2, 4]
    # A number that comes again is another downtime: looked at anew, not changed as the one before.
    assert not world.change(statements.remove(old))
    assert world.change(statements.report(old, "wrong")) is False
    assert world.run(statements.versions)[2] != old.version


def shown(moments):
    return [datetime.fromtimestamp(one, BERLIN).strftime("%d %H:%M%z") for one in moments]


def ends(world):
    return [int(one.fields[-6]) for one in world.sites[0].obeyed]


SPRING = datetime(2026, 3, 28, 12, tzinfo=BERLIN).timestamp()
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=BERLIN).timestamp()
CHANGES = pytest.mark.parametrize(
    ("world", "begins", "over"),
    [
        (SPRING, ["29 03:00+0200", "30 02:30+0200"], ["29 05:00+0200", "30 04:30+0200"]),
        (AUTUMN, ["25 02:30+0200", "26 02:30+0100"], ["25 03:30+0100", "26 04:30+0100"]),
    ],
    indirect=["world"],
)


@CHANGES
def test_while_it_runs(world, begins, over):
    world.join(zone=BERLIN)
    world.add(schedule=NIGHTLY, duration=120)
    world.pass_(40 * 3600, step=1800)
    assert shown(world.begins()) == begins
    assert shown(ends(world)) == over


@CHANGES
def test_caught_up_with_after_a_pause(world, begins, over):
    """The daemon was off from the day before until the downtime was half over."""
    first = world.join(zone=BERLIN)
    world.add(schedule=NIGHTLY, duration=120)
    world.pass_(10)
    world.kill(first)
    middle = datetime.strptime(over[0], "%d %H:%M%z").replace(
        year=2026, month=3 if begins[0].startswith("29") else 10
    )
    world.elapsed = middle.timestamp() - 3600 - world.begun
    world.join("again", zone=BERLIN)
    world.pass_(60)
    assert shown(world.begins()) == begins[:1]
    assert shown(ends(world)) == over[:1]
    assert world.unfinished() == []


@pytest.mark.parametrize(
    ("world", "begins"),
    [
        (SPRING, ["29 03:00+0200", "30 02:30+0200", "30 03:00+0200"]),
        (AUTUMN, ["25 02:30+0200", "25 03:00+0100", "26 02:30+0100", "26 03:00+0100"]),
    ],
    indirect=["world"],
)
def test_several_entries_and_a_daemon_that_takes_over(world, begins):
    """Two entries that the change brings together are one; nothing comes twice."""
    first = world.join("first", zone=BERLIN)
    entries = [
        *NIGHTLY,
        {"type": "cust", "cust": "0 3 * * *"},
        {"type": "day", "minute": 30, "hour": "2"},
    ]
    world.add(schedule=entries, duration=30)
    world.pass_(14 * 3600 + 1200, step=1200)
    world.kill(first)
    world.join("second", zone=BERLIN)
    world.pass_(3600, step=300)
    world.pass_(25 * 3600, step=1200)
    assert shown(world.begins()) == begins
    lengths = {end - begin for begin, end in zip(world.begins(), ends(world), strict=True)}
    assert lengths == {1800}


class Cluster(RuleBasedStateMachine):
    """Daemons freeze, die, lose the database; cores vanish and lose answers: once each time.

    So it is when the clock of their machine is set.
    """

    @initialize()
    def begin(self):
        self.patch = pytest.MonkeyPatch()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(
            migrated_sqlite_url(Path(self.folder.name)), self.patch, Core("a"), Core("b")
        )
        self.frozen = set()
        for owner in ("one", "two", "three"):
            self.world.join(owner)
        self.world.add(schedule=[{"type": "cust", "cust": "*/10 * * * *"}], duration=240)

    @rule(seconds=st.sampled_from([7, 60, 300]))
    def pass_(self, seconds):
        self.world.pass_(seconds, *self.frozen, step=5.0)

    @rule(at=st.integers(0, 2))
    def freeze_or_thaw(self, at):
        self.frozen ^= {self.world.daemons[at]}

    @rule(at=st.integers(0, 2))
    def cut_off_or_back(self, at):
        store = self.world.daemons[at].database
        store.down = not store.down

    @rule(at=st.integers(0, 2))
    def die_and_start(self, at):
        dead = self.world.daemons[at]
        self.frozen.discard(dead)
        self.world.kill(dead)
        self.world.join(dead.duties.owner)

    @rule(ahead=st.sampled_from([-3600, 0, 3600]))
    def set_clocks(self, ahead):
        self.world.set_clocks(ahead)

    @rule(at=st.integers(0, 1), manner=st.sampled_from(["obey", "lose", "swallow", "vanish"]))
    def behave(self, at, manner):
        self.world.sites[at].manner = manner

    def teardown(self):
        if not hasattr(self, "world"):
            return
        world = self.world
        self.frozen.clear()
        for daemon in world.daemons:
            daemon.database.down = False
        for core in world.sites:
            core.manner = "obey"
        world.set_clocks(0)
        world.pass_(300, step=5.0)
        shown = range(SIX - 3600, int(BEGIN + world.elapsed) + 3601, 600)
        expected = list(range(SIX, int(BEGIN + world.elapsed) + 1, 600))
        late = [at for at in expected if at + 240 * 60 > BEGIN + world.elapsed]
        for at in range(2):
            assert sorted(world.begins(at)) == sorted(set(world.begins(at)))
            assert set(late) <= set(world.begins(at)) <= set(shown)
        assert world.unfinished() == []
        world.close()
        self.folder.cleanup()
        self.patch.undo()


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=examples(12, 3),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
