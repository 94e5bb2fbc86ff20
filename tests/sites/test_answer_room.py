"""Rows of large answers and the room that they have, whoever asks for them."""

import gc

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import BadRequest, SitesFailed, Unavailable
from monrest.bp.core_rows import Needs, carriers, gather
from monrest.commands import lookups
from monrest.livestatus.framing import BATCH
from monrest.sites.fanout import fan_out
from tests.fakes.livestatus import Script, raw, rows_in_pieces
from tests.fakes.livestatus.script import as_json, framed
from tests.fakes.sites import outcome
from tests.sites import asked
from tests.sites.asked import HOSTS, LAYOUT, ask

NAMES = [[f"h{at:05} {'x' * 60}", 0] for at in range(3 * BATCH // 70)]
"""More than is read in one go."""


@pytest.fixture
def room(town):
    """The room of all sites, in which nothing has room but in its turn."""
    town.memory.room.most = town.memory.free = 0
    yield town.memory.room
    assert (town.memory.room.held, town.memory.files.stored) == (0, 0)


def site(town, id="a"):
    return town.site(id, Script(default=rows_in_pieces(*NAMES)))


def fanned(town, *sites, **more):
    return asked.gather(town, sites, **more)


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
    town.memory.files.most = 100
    for found in fanned(town, core), ask(core):
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


def test_stored_rows_are_gone_through_without_room(town, room):
    core, holder = site(town), room.share()
    assert holder.admit(1).called
    inbox = town.memory.inbox()
    found = fanned(town, core, inbox=inbox)
    town.pass_time(1)
    (answer,) = found.pop().answers
    assert answer.rows == []
    assert [row for batch in answer.batches() for row in batch] == NAMES
    assert inbox.share.size == 0
    inbox.let_go()
    holder.release()


def test_a_site_whose_rows_turn_out_to_be_none_is_a_problem(town, room):
    lying = town.site("b", Script(default=raw(framed(as_json(NAMES)[:-9] + b"nonsense]"))))
    found = fanned(town, site(town), lying)
    town.pass_time(1)
    (gathered,) = found
    assert [one.site.id for one in gathered.answers] == ["a"]
    assert [(one.site, "JSON" in one.reason) for one in gathered.problems] == [("b", True)]
    found.clear()
    del gathered
    alone = fanned(town, lying)
    town.pass_time(1)
    assert alone.pop().check(SitesFailed)


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
    """Files that take all answers, while the interpreter looks for no garbage."""
    town.memory.free = 0
    gc.collect()
    gc.disable()
    yield town.memory.files
    gc.enable()


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_who_leaves_in_the_middle_of_an_answer_gives_its_file_back(town, uncollected, ask):
    """The frames of the error are a circle, so that it would be the collector who does that."""
    core = town.site("a", Script(default=UNFINISHED))
    asked = Deferred.fromCoroutine(ask(town, core))
    found = outcome(asked)
    town.pass_time(1)
    assert uncollected.stored > 0
    asked.cancel()
    assert found.pop().check(CancelledError)
    assert uncollected.stored == 0


def test_who_cannot_be_asked_takes_no_room_from_others(town, uncollected):
    failing, room = town.site("a", Script(default=UNFINISHED), timeout=2), town.memory.room
    share = room.turn()
    found = fanned(town, failing, share=share)
    others = fanned(town, site(town, "b"), share=share)
    town.pass_time(1)
    held = room.held
    town.pass_time(2)
    assert found.pop().check(SitesFailed)
    assert room.held == held > 0
    others.clear()
    share.release()


def test_where_nobody_answers_the_file_is_given_back(town, uncollected):
    failing = town.site("a", Script(default=UNFINISHED), timeout=2)
    found = fanned(town, failing)
    town.pass_time(3)
    assert found[0].check(SitesFailed)
    assert uncollected.stored == 0
