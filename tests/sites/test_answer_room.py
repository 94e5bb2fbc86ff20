"""Rows of large answers and the room that they have, whoever asks for them."""

from __future__ import annotations

import gc
from functools import partial

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import BadRequest, SitesFailed, Unavailable
from monrest.bp.core_rows import Needs
from monrest.bp.runner import carriers, gather
from monrest.commands import lookups
from monrest.livestatus.framing import SLICE
from monrest.livestatus.recall import Recall
from monrest.query.model import Pushed
from monrest.sites.fanout import fan_out
from tests.fakes.livestatus import Script, raw, rows_in_pieces
from tests.fakes.livestatus.script import as_json, framed
from tests.fakes.sites import outcome

HOSTS = Pushed(table="hosts", columns=("name", "state"))
LAYOUT = (("name", "string"), ("state", "int"))
NAMES = [[f"h{at:05} {'x' * 60}", 0] for at in range(3 * SLICE // 70)]
"""More than is read in one go."""


@pytest.fixture
def room(town):
    """The room of all sites, in which nothing has room but in its turn."""
    town.memory.room.most = town.memory.room.free = 0
    yield town.memory.room
    assert (town.memory.room.held, town.memory.spools.held) == (0, 0)


def site(town, id="a"):
    return town.site(id, Script(default=rows_in_pieces(*NAMES)))


def fanned(town, *sites, **more):
    asked = partial(fan_out, sites, lambda *_: HOSTS, LAYOUT, town.clock, **more)
    return outcome(Deferred.fromCoroutine(asked()))


def test_rows_are_given_once_there_is_room(town, room):
    core, holder = site(town), room.share()
    assert holder.admit(1).called
    found = fanned(town, core)
    town.pass_time(1)
    assert found == []
    holder.release()
    town.pass_time(1)
    assert found[0].answers[0].rows == NAMES
    assert room.held > 0
    found.clear()
    assert room.held == 0


def test_nobody_waits_for_room_that_they_have(town, room):
    core, mine = site(town), room.share()
    both = [fanned(town, core, share=mine), fanned(town, core, share=mine)]
    town.pass_time(1)
    assert [one[0].answers[0].rows for one in both] == [NAMES, NAMES]
    del both, mine


def test_one_site_alone_waits_as_well(town, room):
    core, holder, mine = site(town), room.share(), room.turn()
    assert holder.admit(1).called
    found = outcome(Deferred.fromCoroutine(core.ask(HOSTS, LAYOUT, mine)))
    town.pass_time(1)
    assert found == []
    holder.release()
    town.pass_time(1)
    assert found == [NAMES]
    assert room.held > 0
    mine.release()


def test_what_can_never_have_room_is_refused_but_for_a_turn(town, room):
    room.largest = 1000
    core = site(town)
    found = fanned(town, core)
    town.pass_time(1)
    assert found.pop().check(BadRequest)
    found = fanned(town, core, share=room.turn())
    town.pass_time(1)
    assert found.pop().answers[0].rows == NAMES


def test_a_full_disk_is_told(town, room):
    core = site(town)
    spools = town.memory.spools
    spools.full, spools.most_held = True, 0
    for found in fanned(town, core), outcome(Deferred.fromCoroutine(core.ask(HOSTS, LAYOUT))):
        town.pass_time(1)
        assert found.pop().check(Unavailable)


def test_who_leaves_gives_the_room_up(town, room):
    core, holder = site(town), room.share()
    assert holder.admit(1).called
    asked = Deferred.fromCoroutine(fan_out([core], lambda *_: HOSTS, LAYOUT, town.clock))
    found = outcome(asked)
    town.pass_time(1)
    asked.cancel()
    assert len(found) == 1
    found.clear()
    holder.release()


def test_rows_of_the_time_before_are_not_kept_where_there_is_no_room(town, room):
    core, recall = site(town), Recall()
    for most, kept in ((0, False), (10**9, True), (0, False)):
        room.most = most
        found = fanned(town, core, recalls=lambda _: recall)
        town.pass_time(1)
        assert found.pop().answers[0].rows == NAMES
        assert bool(recall.rows) == kept


def test_packed_rows_are_gone_through_without_room(town, room):
    core, holder = site(town), room.share()
    assert holder.admit(1).called
    packing = town.memory.packing()
    found = fanned(town, core, packed=packing.of)
    town.pass_time(1)
    (answer,) = found.pop().answers
    assert list(packing.rows(answer.site, answer.rows)) == NAMES
    assert packing.share.size == 0
    packing.let_go()
    holder.release()


# ---------------------------------------------------------------- errors

UNFINISHED = raw(framed(as_json(NAMES))[:1000])
GROUPS = lookups._Question("hosts", LAYOUT, None, lambda _: ())


async def by_a_process(town, core):
    async with gather([core], Needs(every_host=True, every_service=True), town.clock) as found:
        return found


ASKING = {
    "all": lambda town, core: fan_out([core], lambda *_: HOSTS, LAYOUT, town.clock),
    "one": lambda _, core: core.ask(HOSTS, LAYOUT),
    "command": lambda town, core: lookups._asked([core], [GROUPS, GROUPS], town.clock),
    "process": by_a_process,
    "processes": lambda town, core: carriers([core], "hosts", "BP", None, town.clock),
}


@pytest.fixture
def uncollected(town):
    """A room without free bytes, while the interpreter looks for no garbage."""
    town.memory.room.free = 0
    gc.collect()
    gc.disable()
    yield town.memory.room
    gc.enable()


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_who_leaves_in_the_middle_of_an_answer_gives_the_room_back(town, uncollected, ask):
    """The frames of the error are a circle, so that it would be the collector who does that."""
    core = town.site("a", Script(default=UNFINISHED))
    asked = Deferred.fromCoroutine(ask(town, core))
    found = outcome(asked)
    town.pass_time(1)
    assert uncollected.held > 0
    asked.cancel()
    assert found.pop().check(CancelledError)
    assert uncollected.held == 0


def test_who_cannot_be_asked_takes_no_room_from_others(town, uncollected):
    failing = town.site("a", Script(default=UNFINISHED), timeout=2)
    share = uncollected.turn()
    found = fanned(town, failing, share=share)
    others = fanned(town, site(town, "b"), share=share)
    town.pass_time(1)
    held = uncollected.held
    town.pass_time(2)
    assert found.pop().check(SitesFailed)
    assert uncollected.held == held > 0
    others.clear()
    share.release()


def test_where_nobody_answers_the_room_is_given_back(town, uncollected):
    failing = town.site("a", Script(default=UNFINISHED), timeout=2)
    found = fanned(town, failing)
    town.pass_time(3)
    assert found[0].check(SitesFailed)
    assert uncollected.held == 0
