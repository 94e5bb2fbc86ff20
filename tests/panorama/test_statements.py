"""Several who write the same dashboard at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

from twisted.internet.defer import Deferred, gatherResults

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
