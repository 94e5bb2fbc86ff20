"""Who goes on where he was, one client at a time (docs/spec/events.md, "Where a stream goes on")."""

from types import SimpleNamespace

import pytest
from twisted.internet.task import Clock

from monrest.events.model import Cursor, Event, Place
from monrest.events.service import Follower

BEGIN = 1000
SLICE = 10


def happened(second):
    return Event(
        site="s1", place=Place(second, 1), type="state", time=second, subject="hosts/a",
        data={"at": second},
    )  # fmt: skip


class Source:
    """Has told something every second before it was watched; ``reading`` who reads that."""

    id, begin, place = "s1", Place(BEGIN), Place(BEGIN)

    def __init__(self):
        self.reading = 0

    async def ready(self):
        pass

    async def reach(self, _place):
        return False

    async def older(self, place):
        self.reading += 1
        try:
            for start in range(place.time + 1, BEGIN, SLICE):
                yield [happened(second) for second in range(start, min(start + SLICE, BEGIN))]
        finally:
            self.reading -= 1

    def since(self, _place):
        return []


class Group:
    start = end = 0
    idle = True

    def __init__(self, source):
        self.members, self.sources = {}, {source.id: source}
        self.places = {source.id: source.place}
        self.stale, self.prepared = False, []

    def waits_for(self, _events):
        return self.stale

    async def prepare(self, _events):
        if self.stale:
            self.stale = False
            self.prepared.append([one.reading for one in self.sources.values()])

    def judge(self, event):
        return event.data

    def cursor(self):
        return Cursor(None, self.places)


class Listener:
    """Takes a slice, and then nothing until it is told to."""

    def __init__(self):
        self.paused, self.got = False, []

    def take(self, told):
        self.got += [one.data["at"] for one in told]
        self.paused = True


@pytest.fixture
def clock():
    return Clock()


def test_while_a_client_takes_nothing_no_log_is_open_for_it(clock):
    source, listener = Source(), Listener()
    follower = Follower(SimpleNamespace(clock=clock), None, None, None, listener)
    follower.begin(Group(source), Cursor(None, {"s1": Place(BEGIN - 35)}))
    for count in (10, 20, 30, 34):
        for _ in range(5):
            clock.advance(0)
        assert len(listener.got) == count
        assert source.reading == 0
        listener.paused = False
        follower.resume()
    clock.advance(0)
    assert listener.got == list(range(BEGIN - 34, BEGIN))
    assert follower.at == 0


def test_while_the_cores_are_asked_about_objects_no_log_is_open(clock):
    """Their answers wait for room that an open log would hold."""
    source, listener = Source(), Listener()
    follower = Follower(SimpleNamespace(clock=clock), None, None, None, listener)
    group = Group(source)
    follower.begin(group, Cursor(None, {"s1": Place(BEGIN - 35)}))
    for _ in range(4):
        group.stale = True
        listener.paused = False
        follower.resume()
        for _ in range(5):
            clock.advance(0)
    assert group.prepared == [[0]] * len(group.prepared)
    assert len(group.prepared) >= 3
    assert listener.got == list(range(BEGIN - 34, BEGIN))
