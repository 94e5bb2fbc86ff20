"""Several who write the same dashboard at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred, gatherResults

from monrest.base.errors import Conflict
from monrest.panorama import store as statements
from monrest.panorama.model import checked

MANY = range(12)


def titled(title):
    return checked({"tab": {"xdata": {"title": title}}}, "ann")


async def made(database):
    await database.change(statements.add(1, (), titled("first"), ("", {}), 0))
    return await only(database)


async def only(database, user=""):
    (found,) = (await database.run(statements.read(user))).dashboards
    return found


async def test_one_wins_and_the_others_are_told(database):
    old = await made(database)
    works = [statements.replace(old, titled(str(n)), ("", {}), 10) for n in MANY]
    done = await gatherResults([database.change(work) for work in works])
    assert done.count(True) == 1
    now = await only(database)
    assert (now.title, now.version, now.changed) == (str(done.index(True)), old.version + 1, 10)
    assert [record for _, record in await database.run(statements.former("1"))] == [old.record]


async def test_all_who_read_again_get_in(database):
    """Nobody's panel is lost."""
    await made(database)

    async def put(n):
        while True:
            old = await only(database)
            record = {**old.record, f"panlet_{n}": {"xdata": {}}}
            if await database.change(statements.replace(old, record, ("", {}), n)):
                return

    await gatherResults([Deferred.fromCoroutine(put(n)) for n in MANY])
    assert (await only(database)).panels == len(MANY)


async def test_what_panels_show_is_in_nobodys_way(database):
    old = await made(database)
    works = [
        statements.replace(old, old.record, (f"user{n}", {"panlet_1": {"currentPage": n}}), 50)
        for n in MANY
    ]
    assert all(await gatherResults([database.change(work) for work in works]))
    now = await only(database)
    assert (now.version, now.changed) == (old.version, old.changed)
    assert await database.change(statements.replace(old, titled("next"), ("", {}), 60))
    late = statements.replace(old, old.record, ("user1", {"panlet_1": {"currentPage": 9}}), 70)
    assert not await database.change(late)
    stored = await database.run(statements.read("user1", "1"))
    assert stored.runtime == {"1": {"panlet_1": {"currentPage": 1}}}


async def test_maintenance_begun_and_ended_by_many(database):
    await made(database)
    for texts in ([str(n) for n in MANY], [str(n) if n % 2 else None for n in MANY]):
        await gatherResults([database.change(statements.halt("1", text)) for text in texts])
        found = (await database.run(statements.read(""))).maintenance
        assert found.get("1") in texts


async def test_each_new_one_has_a_number_of_its_own(database):
    works = [statements.add(1, {"3"}, titled(str(n)), ("", {}), 0) for n in MANY]
    numbers = await gatherResults([database.change(work) for work in works])
    assert sorted(map(int, numbers)) == [1, 2, *range(4, 4 + len(MANY) - 2)]


async def test_limits_hold_for_an_owner_and_for_all(database):
    limits = evolve(statements.LIMITS, owned=2, count=4, size=400_000)

    def add(user, text="", owner=None):
        record = {**titled("x"), "user": user, "panlet_1": {"xdata": {"x": text}}}
        return database.change(statements.add(1, (), record, ("", {}), 0, owner, limits))

    await add("ann", owner="ann")
    await add("ann", "a" * 40_000, owner="ann")
    with pytest.raises(Conflict, match="too many dashboards"):
        await add("ann", owner="ann")
    with pytest.raises(Conflict, match="too large together"):
        await add("bob", "b" * 60_000, owner="bob")
    # Administrators are bound by the limits for all.
    await add("ann", "a" * 60_000)
    await add("ann")
    with pytest.raises(Conflict, match="too many dashboards"):
        await add("bob")
    # What does not grow may be changed, whatever there is.
    stored = (await database.run(statements.read("", "3"))).dashboards[0]
    limits = evolve(limits, count=1, size=1000)
    smaller = {**stored.record, "panlet_1": {"xdata": {"x": "a"}}}
    assert await database.change(statements.replace(stored, smaller, ("", {}), 5, "ann", limits))
    assert len((await database.run(statements.read(""))).dashboards) == 4


async def test_documents_are_read_for_who_wants_them(database):
    record = {**titled("x"), "user": "ann", "panlet_1": {"xdata": {"x": "y" * 1000}}}
    await database.change(statements.add(1, (), record, ("", {}), 0))
    for_bob = statements.read("bob", may=lambda one: one["user"] == "bob")
    assert (await database.run(for_bob)).dashboards == []
    (found,) = (await database.run(statements.read("ann", documents=False))).dashboards
    assert (found.title, found.record["user"], found.panels) == ("x", "ann", 0)
    assert found.record["tab"]["xdata"]["groups"] == record["tab"]["xdata"].get("groups")
    (found,) = (await database.run(statements.read("ann"))).dashboards
    assert found.record == record


async def test_what_panels_show_is_bounded(database):
    await database.change(statements.add(1, (), titled("x"), ("", {}), 0))
    (old,) = (await database.run(statements.read(""))).dashboards
    present = ("ann", {"panlet_1": {"state": "x" * 4_000_000}})
    with pytest.raises(Conflict, match="too much is shown"):
        await database.change(statements.replace(old, old.record, present, 5))
