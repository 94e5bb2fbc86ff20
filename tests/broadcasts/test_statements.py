"""Several who write broadcasts at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC

from twisted.internet.defer import gatherResults

from monrest.broadcasts.endpoints import add, remove, replace, several
from monrest.broadcasts.model import checked

MANY = range(12)


def named(name):
    return checked({"name": name, "text": "x"}, 0, UTC)


async def test_each_new_one_has_a_file_of_its_own(database):
    works = [add("day", named(str(n)), n, exact=False) for n in MANY]
    files = await gatherResults([database.change(work) for work in works])
    assert sorted(files) == sorted(["day", *(f"day_{n}" for n in MANY[1:])])
    stored = {one.file: one for one in await database.run(several())}
    assert {stored[file].record["name"] for file in files} == {str(n) for n in MANY}


async def test_a_wanted_file_is_given_once(database):
    works = [add("mine", named(str(n)), n, exact=True) for n in MANY]
    files = await gatherResults([database.change(work) for work in works])
    assert sorted(files, key=str) == [*([None] * (len(MANY) - 1)), "mine"]
    (stored,) = await database.run(several())
    assert stored.record["name"] == str(files.index("mine"))


async def test_one_change_wins_and_the_others_are_told(database):
    await database.change(add("one", named("first"), 0, exact=True))
    (old,) = await database.run(several("one"))
    works = [replace(old, named(str(n)), 5, None) for n in MANY]
    done = await gatherResults([database.change(work) for work in works])
    assert done.count(True) == 1
    (now,) = await database.run(several("one"))
    assert (now.record["name"], now.version, now.changed) == (
        str(done.index(True)), old.version + 1, 5,
    )  # fmt: skip
    assert await gatherResults([database.change(remove(now)) for _ in MANY]).addCallback(
        sorted
    ) == [False] * (len(MANY) - 1) + [True]


async def test_another_one_of_the_same_name_is_left_alone(database):
    await database.change(add("one", named("first"), 0, exact=True))
    (old,) = await database.run(several("one"))
    assert await database.change(remove(old))
    await database.change(add("one", named("second"), 0, exact=True))
    assert not await database.change(remove(old))
    assert not await database.change(replace(old, named("late"), 5, None))
    (new,) = await database.run(several("one"))
    assert new.record["name"] == "second"
