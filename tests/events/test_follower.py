"""A client that goes on where it was (docs/spec/events.md, "Where a stream continues")."""

from types import SimpleNamespace

import pytest
from twisted.internet.task import Clock

from monrest.events import store
from monrest.events.followers import Follower
from monrest.events.model import Cursor, Event, Place, line_id, read_cursor
from monrest.livestatus.core_errors import LivestatusError
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store
from tests.fakes.store import migrated_sqlite_url

BEGIN = 1_795_400_000
"""The second from which on the events of the site are stored."""

SLICE = 10


def happened(second, site="s1"):
    return Event(
        site=site, type="state", time=second, subject="hosts/a", nth=1,
        data={"host_name": "a", "at": second - BEGIN}, name=line_id(site, Place(second, 1)),
    )  # fmt: skip


class Group:
    """Wants everything of some sites; ``stale``: it has to ask the cores first."""

    start = end = 0
    idle = True

    def __init__(self, logs, number, sites):
        self.logs, self.number = logs, number
        self.members, self.stale, self.prepared = {}, False, []
        self.selection = SimpleNamespace(sites=dict.fromkeys(sites))

    def waits_for(self, _events):
        return self.stale

    async def prepare(self, _events):
        if self.stale:
            self.stale = False
            self.prepared.append(self.logs.reading)

    def judge(self, event):
        return event.data

    def cursor(self):
        return Cursor(self.number)


class Logs:
    """A line every second before ``BEGIN`` and after it; ``reading`` clients read it."""

    def __init__(self):
        self.reading, self.away = 0, False

    async def slices(self, site, wanted):
        if site.id != "s1":
            return
        self.reading += 1
        try:
            if self.away:
                raise LivestatusError("it is away")
            for start in range(wanted.since, wanted.until + 1, SLICE):
                seconds = range(start, min(start + SLICE, wanted.until + 1))
                yield [(one, f"[{one}] HOST ALERT: a;DOWN;HARD;1;{one - BEGIN}") for one in seconds]
        finally:
            self.reading -= 1


class Listener:
    """Takes ``most`` slices and then nothing until it is resumed."""

    def __init__(self, most=10**9):
        self.most, self.got, self.gaps, self.cursors = most, [], [], []

    @property
    def paused(self):
        return self.most <= 0

    def take(self, told):
        self.got += [_at(one.event) for one in told]
        self.cursors += [one.cursor for one in told]
        self.most -= 1

    def miss(self, gap):
        self.gaps.append(gap)

    def serve(self, _follower):
        pass


def _at(event):
    return int(event.time) - BEGIN if event.site == "s1" else event.subject


class World:
    def __init__(self, folder):
        self.clock = Clock()
        self.clock.advance(BEGIN + 100)
        self.database = Store(migrated_sqlite_url(folder), self.clock)
        self.database.startService()
        self.logs = Logs()
        self.change(store.begin("s2", BEGIN - 1000))
        self.change(store.begin("s1", BEGIN))
        self.add(*(happened(BEGIN + at) for at in range(5)))

    def change(self, work):
        self.database.change(work)

    def add(self, *events):
        self.change(store.add(events, BEGIN))

    def follow(self, since, listener=None, number=None, sites=("s1", "s2")):
        group = Group(self.logs, self.last() if number is None else number, sites)
        listener = listener or Listener()
        events = SimpleNamespace(
            clock=self.clock, wall=Wall(self.clock), database=self.database,
            logs=lambda: self.logs, site=lambda one: SimpleNamespace(id=one),
        )  # fmt: skip
        made = Follower(events, None, None, None, listener)
        made.begin(group, read_cursor(since, "since"))
        self.turn()
        return made

    def last(self):
        found = []
        self.database.run(store.last).addCallback(found.append)
        return found[0]

    def turn(self, seconds=0.0):
        for _ in range(10):
            self.clock.advance(seconds / 10)


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.database.stopService()


def test_a_client_goes_on_behind_its_number(world):
    follower = world.follow("@4")
    assert follower.listener.got == [2, 3, 4]
    assert follower.listener.cursors == ["@5", "@6", "@7"]
    assert follower.at == 0, "it goes with its group now"


def test_the_id_of_an_event_is_its_number(world):
    assert world.follow(f"s1@{BEGIN + 2}.1").listener.got == [3, 4]


def test_from_a_time_on_what_the_log_has_comes_before_what_is_stored(world):
    follower = world.follow(str(BEGIN - 3))
    assert follower.listener.got == [-3, -2, -1, 0, 1, 2, 3, 4]
    assert follower.listener.cursors[1] == f"@7,s1@{BEGIN - 2}.1"
    again = world.follow(follower.listener.cursors[1])
    assert again.listener.got == [-1, 0, 1, 2, 3, 4]
    assert world.follow(follower.cursor).listener.got == []


def test_a_cursor_of_version_0_2_is_understood(world):
    world.add(happened(BEGIN + 50, "s2"))
    follower = world.follow(f"{BEGIN + 40},s1@{BEGIN - 2}.1,@1")
    assert sorted(follower.listener.got, key=str) == sorted([-1, 0, 1, 2, 3, 4, "hosts/a"], key=str)


def test_what_happened_in_a_break_comes_from_the_log(world):
    world.change(store.begin("s1", BEGIN + 20))
    world.add(happened(BEGIN + 20), happened(BEGIN + 21))
    follower = world.follow("@6")
    assert follower.listener.got == list(range(4, 22))


def test_a_site_that_cannot_be_asked_holds_up_no_other(world):
    world.change(store.begin("s1", BEGIN + 20))
    world.add(happened(BEGIN + 20), happened(BEGIN + 21), happened(BEGIN + 22, "s2"))
    world.logs.away = True
    follower = world.follow("@6")
    assert follower.listener.got == ["hosts/a"]
    assert follower.cursor.endswith(f",s1@{BEGIN + 3}.1")
    world.logs.away = False
    world.turn(2)
    assert follower.listener.got == ["hosts/a", *range(4, 22)]
    again = world.follow(follower.listener.cursors[0])
    assert again.listener.got == list(range(4, 22)), "nothing is lost, and nothing comes twice"


def test_what_is_kept_no_more_is_a_gap(world, monkeypatch):
    monkeypatch.setattr(store, "_CLEANED", 1)
    world.change(store.add([happened(BEGIN + 9 * 86400)], BEGIN + 9 * 86400))
    follower = world.follow("@4")
    (gap,) = follower.listener.gaps
    assert (gap.since, gap.until, gap.count) == ("@4", "@7", 3)
    assert follower.listener.got == [9 * 86400]
    other = world.follow("@999")
    assert other.listener.gaps[0].since == "@999", "it is that of another database"
    assert other.listener.got == []


def test_while_the_database_is_away_a_client_waits(world):
    number = world.last()
    world.database.down = True
    follower = world.follow("@4", number=number)
    world.turn(30)
    assert follower.listener.got == []
    world.database.down = False
    world.turn(2)
    assert follower.listener.got == [2, 3, 4]


def test_a_client_may_begin_in_the_future_of_a_site_that_was_never_watched(world):
    follower = world.follow(str(BEGIN + 500), sites=("s3",))
    world.turn(10)
    assert follower.listener.got == []
    assert not follower.ended.called
    world.change(store.begin("s3", BEGIN + 110))
    world.turn(5)
    assert follower.at == 0, "it goes with its group now"


def test_while_a_client_takes_nothing_no_log_is_open_for_it(world):
    follower = world.follow(str(BEGIN - 35), Listener(1))
    for count in (10, 19, 28, 35, 40):
        assert len(follower.listener.got) == count
        assert world.logs.reading == 0
        follower.listener.most = 1
        follower.resume()
        world.turn()
    assert follower.listener.got == list(range(-35, 5))


def test_while_the_cores_are_asked_about_objects_no_log_is_open(world):
    """Their answers wait for room that an open log would hold."""
    follower = world.follow(str(BEGIN - 35), Listener(0))
    group = follower.group
    for _ in range(6):
        group.stale = True
        follower.listener.most = 1
        follower.resume()
        world.turn()
    assert group.prepared == [0] * len(group.prepared)
    assert len(group.prepared) >= 3
    assert follower.listener.got == list(range(-35, 5))
