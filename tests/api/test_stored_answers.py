"""Large answers that are stored are the same as those that are rows in memory."""

import pytest
from attrs import evolve
from pytest_twisted import blockon
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.concurrency import pause
from monrest.base.errors import BadRequest, Unavailable
from monrest.base.room import RowRoom
from monrest.base.values import ADMIN, Document, Identity, Rows, RowSource
from monrest.config import Config
from monrest.render.formats import RenderOptions, render
from monrest.rows.columns import SCHEMAS
from monrest.rows.fetch import fetch, fetch_stats
from monrest.rows.statistics import SERVICE_TOTALS
from tests.api import asking
from tests.fakes.demo import demo_context
from tests.fakes.threads import Reactor

ADMINISTRATOR = Identity(user="admin", roles=frozenset({ADMIN}))
VIEWER = Identity(user="nobody", roles=frozenset({"authorized_for_all_services"}))

FLOW = (
    (),
    (("limit", "70"),),
    (("offset", "90"),),
    (("offset", "95"), ("limit", "130")),
    (("offset", "100000"),),
    (("columns", "description,plugin_output,state,description"),),
    (("columns", "peer_key,plugin_output,display_name"),),
    (("state[ne]", "0"),),
    (("backends", "a"), ("sort", "-description")),
    (("backends", "a"), ("sort", "state"), ("columns", "state,plugin_output,description,display_name")),
)  # fmt: skip
"""What needs no look at all rows together."""
REST = (
    (("sort", "-plugin_output"),),
    (("sort", "state"), ("offset", "20"), ("limit", "30")),
    (("columns", "count(*),state,upper(host_name)"),),
    (("columns", "avg(latency)"),),
    (("columns", "upper(description):d,rta,rta_unit"),),
    (("q", "rta > 0 or state = 2"),),
    (("columns", "to_rows(contacts),description"),),
    (("rta[gt]", "0"),),
    (("nosuch", "0"),),
    (("columns", "host_name,description,nosuch,display_name"),),
)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    sites = [{"id": name, "name": name.upper()} for name in "ab"]
    size = {"hosts": 20, "services": 150}
    zone = Config().display.zone()
    with demo_context(tmp_path_factory.mktemp("core"), sites, size, zone=zone) as made:
        yield made


@pytest.fixture
def packing(context):
    """The context of a daemon that has no room for any rows."""
    room = RowRoom(Reactor(), most=0)
    context = evolve(context, memory=evolve(context.memory, room=room, free=0))
    yield context
    blockon(pause(reactor))
    assert (context.memory.room.held, context.memory.files.stored) == (0, 0)


async def answered(context, pairs, table="services", *, flows=False, identity=ADMINISTRATOR):
    request = asking.request(f"/{table}", *pairs, identity=identity)
    return await fetch(context, request, SCHEMAS[table], late=flows)


def written(answer, form="json"):
    body = b"".join(render(answer, RenderOptions(format=form)).pieces)
    if isinstance(answer, Rows):
        answer.gone()
    return body, answer.warnings


async def test_rows_that_flow_are_the_same(context, packing):
    for pairs in FLOW:
        # Formats differ in how rows are written, for any request.
        for form in ("csv", "json") if pairs else ("json", "wrapped_json", "ndjson", "csv", "text"):
            flowing = await answered(packing, pairs, flows=True)
            assert isinstance(flowing.rows, RowSource), pairs
            expected = await answered(context, pairs)
            assert isinstance(expected.rows, list)
            count = len(expected.rows)
            assert written(flowing, form) == written(expected, form), (pairs, form)
            assert len(flowing.rows) == count, pairs


async def test_rows_that_a_user_may_see_are_the_same(context, packing):
    flowing = await answered(packing, (), flows=True, identity=VIEWER)
    expected = await answered(context, (), identity=VIEWER)
    assert isinstance(flowing.rows, RowSource)
    assert written(flowing) == written(expected)


async def test_what_cannot_flow_is_the_same(context, packing):
    for pairs in REST:
        for flows in (True, False):
            try:
                expected = written(await answered(context, pairs))
            except BadRequest as error:
                with pytest.raises(BadRequest, match=error.message):
                    await answered(packing, pairs, flows=flows)
                continue
            found = await answered(packing, pairs, flows=flows)
            assert isinstance(found, Document) or isinstance(found.rows, list), pairs
            assert written(found) == expected, pairs


async def test_merged_groups_are_the_same(context, packing):
    expected = written(await answered(context, (), "hostgroups"))
    assert written(await answered(packing, (), "hostgroups", flows=True)) == expected


@pytest.mark.parametrize("where", [(), (("rta[gt]", "0"),), (("q", "rta > 0 or state = 2"),)])
async def test_what_is_counted_here_needs_no_room(context, packing, where):
    """Nor does it wait for those who have it; a name that no row has is looked for in the same way."""
    holder = packing.memory.room.share()
    await holder.admit(1)
    found = await counted(packing, where)
    assert found == await counted(context, where)
    assert found["total"] > 0
    with pytest.raises(BadRequest) as mistyped:
        await counted(packing, (*where, ("nosuch_label[gt]", "0")))
    assert "nosuch_label" in mistyped.value.description
    holder.release()


async def counted(context, where):
    request = asking.request("/services/totals", *where, identity=ADMINISTRATOR)
    return (await fetch_stats(context, request, SCHEMAS["services"], SERVICE_TOTALS)).value


async def test_who_does_not_flow_waits_for_room(context, packing):
    holder = packing.memory.room.share()
    await holder.admit(1)
    waiting = Deferred.fromCoroutine(answered(packing, ()))
    flowing = await answered(packing, (), flows=True)
    assert written(flowing)[0]
    assert not waiting.called
    holder.release()
    assert written(await waiting) == written(await answered(context, ()))


async def test_who_leaves_while_waiting_for_room_leaves_nothing(context, packing):
    holder = packing.memory.room.share()
    await holder.admit(1)
    waiting = Deferred.fromCoroutine(answered(packing, ()))
    await answered(packing, (("limit", "1"),), flows=True)
    waiting.addErrback(lambda failure: failure.trap(CancelledError))
    waiting.cancel()
    await waiting
    holder.release()
    assert packing.memory.room.held == 0


async def test_rows_that_are_not_taken_leave_nothing(context, packing):
    flowing = await answered(packing, (), flows=True)
    assert packing.memory.files.stored > 0
    assert next(iter(flowing.rows))
    del flowing
    # What has just come from a core is on the stack until the reactor turns.
    await pause(reactor)
    assert packing.memory.files.stored == 0


async def test_a_full_disk_refuses_what_memory_cannot_hold(context, packing):
    most, packing.memory.files.most = packing.memory.files.most, 1000
    try:
        with pytest.raises(Unavailable, match="no room for large answers") as caught:
            await answered(packing, (), flows=True)
        assert caught.value.headers == (("Retry-After", "10"),)
    finally:
        packing.memory.files.most = most
    assert written(await answered(packing, (), flows=True)) == written(await answered(context, ()))


async def test_what_can_never_be_in_memory_is_refused(context, packing):
    small = evolve(
        packing,
        memory=evolve(packing.memory, room=RowRoom(Reactor(), most=0, largest=1000)),
    )
    everything = Deferred.fromCoroutine(answered(small, (("sort", "-plugin_output"),)))
    with pytest.raises(BadRequest, match="too many rows at once") as refused:
        await everything
    assert "server.memory_limit allows 1000" in refused.value.description
    assert (small.memory.room.held, small.memory.files.stored) == (0, 0)
    flowing = await answered(small, (), flows=True)
    assert written(flowing, "ndjson") == written(await answered(context, ()), "ndjson")
