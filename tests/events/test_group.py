"""Many who listen to the same (docs/spec/events.md, "Many clients")."""

from itertools import count

import pytest
from twisted.internet.task import Clock

from monrest.events import followers as group_module
from monrest.events.followers import ListenerGroup
from monrest.events.model import Event
from tests.fakes.turn import turn

TEXT = "x" * 1000


class Selection:
    """Wants everything."""

    def waits_for(self, _events):
        return []

    def judge(self, event):
        return event.data


class Member:
    """Somebody who takes ``most`` chunks and then has no room."""

    def __init__(self, group, most=10**9):
        self.group, self.most, self.at, self.got, self.missed = group, most, group.end, [], 0

    def serve(self):
        group = self.group
        if self.at < group.start:
            self.missed += group.start - self.at
            self.at = group.start
        while self.at < group.end and self.most:
            data, self.at = group.chunk(self.at, written)
            self.got.append(data)
            self.most -= 1

    def take_again(self):
        self.most += 1
        self.group.serve_again(self)


def written(told):
    written.calls += 1
    return f"{told.data['number']};".encode() + told.data["text"].encode()


def numbers(member):
    return [int(one.split(";")[0].replace("x", "")) for one in shown(member)]


def shown(member):
    text = b"".join(member.got).decode()
    return [one + ";" for one in text.split(";")[:-1]]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def group(clock):
    written.calls = 0
    return ListenerGroup(Selection(), clock, lambda: 64_000_000, 0)


def told(group, numbers, text=TEXT):
    group.take(
        [
            Event(
                number=number + 1, site="s1", type="state", time=100, subject="hosts/a",
                data={"number": number, "text": text},
            )
            for number in numbers
        ],
    )  # fmt: skip


def run(clock):
    while clock.getDelayedCalls():
        clock.advance(0)


def members(group, count, **more):
    made = [Member(group, **more) for _ in range(count)]
    group.members.update(dict.fromkeys(made))
    return made


def test_an_event_is_written_once_for_all_and_all_get_the_same_bytes(clock, group):
    everybody = members(group, 100)
    told(group, range(20), text="")
    run(clock)
    assert written.calls == 20
    assert {id(one.got[0]) for one in everybody} == {id(everybody[0].got[0])}
    assert numbers(everybody[0]) == list(range(20))
    assert not group.ring, "what everybody has got is forgotten"


def test_those_who_have_room_again_at_once_share_what_is_written_for_them(clock, group):
    everybody = members(group, 50, most=1)
    told(group, range(100))
    run(clock)
    assert {len(one.got) for one in everybody} == {1}
    while any(one.at < group.end for one in everybody):
        calls = written.calls
        for one in everybody:
            one.take_again()
        run(clock)
        assert written.calls - calls <= 40, "a chunk of 32 KiB is written once for all"
    assert all(numbers(one) == list(range(100)) for one in everybody)
    assert not group.ring


def test_what_was_written_for_others_is_not_kept(clock, group, monkeypatch):
    monkeypatch.setattr(group_module, "_MOST_CHUNKS", 3)
    everybody = members(group, 10, most=0)
    told(group, range(400))
    run(clock)
    most = 0
    for at, one in enumerate(everybody):
        one.at, one.most = at * 33, 3
        group.serve_again(one)
    while clock.getDelayedCalls():
        clock.advance(0)
        most = max(most, len(group._chunks))
    assert most <= 3
    assert not group._chunks


def test_all_are_served_in_turns_of_some_milliseconds(clock, group):
    clock.seconds = count(step=0.001).__next__
    everybody = members(group, 100)
    told(group, [0])
    served, turns = 0, 0
    while served < 100:
        before, served = served, sum(1 for one in everybody if one.got)
        assert served - before <= 10
        turns += 1
        turn(clock)
    assert turns > 8
    assert all(numbers(one) == [0] for one in everybody)


def test_what_happened_before_the_group_began_is_not_told(clock):
    group = ListenerGroup(Selection(), clock, lambda: 64_000_000, 3)
    (one,) = members(group, 1)
    told(group, range(6), text="")
    run(clock)
    assert numbers(one) == [3, 4, 5]
    assert str(group.cursor()) == "@6"


def test_events_that_come_while_others_are_served_reach_all(clock, group):
    clock.seconds = count().__next__
    everybody = members(group, 20)
    told(group, [0])
    clock.advance(0)
    told(group, [1])
    everybody[3].take_again()
    run(clock)
    assert all(numbers(one) == [0, 1] for one in everybody)
    assert not group.ring


def test_who_takes_nothing_has_a_gap_and_the_others_have_none(clock, group):
    group.room = lambda: 100_000
    quick, slow = members(group, 1)[0], members(group, 1, most=0)[0]
    for number in range(1000):
        told(group, [number])
        run(clock)
    assert numbers(quick) == list(range(1000))
    assert group.size <= 100_000
    slow.most = 10**9
    slow.take_again()
    run(clock)
    assert slow.missed > 0
    assert numbers(slow) == list(range(slow.missed, 1000))
    assert not group.ring
