"""The scheduler where the clocks are changed: each day once, with its whole duration."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.downtimes.world import World

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = [{"type": "day", "minute": 30, "hour": 2}]


@pytest.fixture
def world(database_url, monkeypatch, request):
    made = World(database_url, monkeypatch, now=request.param.timestamp())
    yield made
    made.close()


def shown(moments):
    return [datetime.fromtimestamp(one, BERLIN).strftime("%d %H:%M%z") for one in moments]


def ends(world):
    return [int(one.fields[-6]) for one in world.sites[0].obeyed]


SPRING = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=BERLIN)
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
