"""Dashboards: records, relaxed JSON, housekeeping, several who write at once; on both databases."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import gatherResults

from monrest.base.errors import BadRequest, Conflict
from monrest.panorama import store as statements
from monrest.panorama.model import Dashboard, Level, checked, dashboard_record, level, parted
from monrest.panorama.service import header, relaxed
from tests.store.conftest import database, opened
from tests.table import each

__all__ = ["database", "opened"]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
NAMES = st.sampled_from(
    ["tab", "user", "public", "file_version", "panlet_1", "a_panlet_2", "ts", "nr", "x"]
)


@given(st.dictionaries(NAMES, VALUES))
def test_anything_is_refused_or_becomes_a_record(given_):
    before = json.dumps(given_, sort_keys=True)
    try:
        record = checked(given_, "ann")
    except BadRequest as error:
        record, refusal = None, error
    assert json.dumps(given_, sort_keys=True) == before
    if record is None:
        assert "expected" in refusal.description
        return
    kept, present = parted(record)
    row = dashboard_record(Dashboard(nr="1", record=kept), Level.OWNER, present, None)
    again = checked(row, "ann")
    assert again == record


@given(VALUES)
def test_relaxed_json_reads_all_json(value):
    for text in (
        json.dumps(value),
        json.dumps(value, indent=2),
        json.dumps(value, ensure_ascii=False),
    ):
        assert relaxed(text) == value


@each(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ("# one\n{ # two\n\"a\": \"#,]\", # three\n}", {"a": "#,]"}),
        ('{"a": [1,\n# x\n],}', {"a": [1]}),
        ('["\\",]"]', ['",]']),
    ],
)  # fmt: skip
def test_relaxed(text, value):
    assert relaxed(text) == value


def test_header():
    head = header(b'#!/bin/sh\n# title: A b \n#user:joe\n  # groups: [{"*": "read-only"}]\necho')
    assert (head["user"], head["tab"]["xdata"]["title"]) == ("joe", "A b")
    assert head["tab"]["xdata"]["groups"] == [{"*": "read-only"}]


@each(
    ("settings", "user", "groups", "readonly", "found"),
    [
        ({}, "ann", (), False, Level.OWNER),
        ({}, "ann", (), True, Level.READ),
        ({"groups": [{"g": "read-write"}]}, "bob", ("g",), True, Level.READ),
        (
            {"groups": [{"g": "read-only", "h": "read-write"}]},
            "bob",
            ("g", "h"),
            False,
            Level.WRITE,
        ),
        ({"users": [{"": "read-write"}]}, "", (), False, Level.NONE),
    ],
)
def test_levels(settings, user, groups, readonly, found):
    record = checked({"tab": {"xdata": settings}}, "ann")
    assert level(record, user, groups, admin=False, readonly=readonly) is found
    assert level(record, user, groups, admin=True, readonly=readonly) is Level.OWNER


DAY = 86400


async def test_housekeeping(database):
    async def add(title, age, panels=0):
        record = checked(
            {"tab": {"xdata": {"title": title}}, **{f"panlet_{n}": {} for n in range(panels)}},
            "ann",
        )
        return await database.change(statements.add(1, (), record, ("ann", {}), 100 * DAY - age))

    expected = {}
    for title, age, panels, kept in (
        ("Dashboard", DAY - 1, 0, True), ("Dashboard", DAY, 0, False), ("Dashboard", 99 * DAY, 1, True),
        ("Mine", 14 * DAY - 1, 0, True), ("Mine", 14 * DAY, 0, False), ("Mine", 99 * DAY, 1, True),
    ):  # fmt: skip
        expected[await add(title, age, panels)] = kept
    gone = await database.change(statements.clean(100 * DAY))
    assert gone == sorted(nr for nr, kept in expected.items() if not kept)
    left = await database.run(statements.read("ann"))
    assert {one.nr for one in left.dashboards} == {nr for nr, kept in expected.items() if kept}


async def test_backups(database):
    await database.change(statements.add(1, (), checked({}, "ann"), ("", {}), 0))
    for now in range(0, 10_000, 200):
        (old,) = (await database.run(statements.read(""))).dashboards
        record = checked({"tab": {"xdata": {"title": str(now)}}}, "ann")
        assert await database.change(statements.replace(old, record, ("", {}), now))
        assert not await database.change(statements.replace(old, record, ("", {}), now))
    times = [at for at, _ in await database.run(statements.former("1"))]
    assert times == [9600, 9000, 8400, 7800, 7200]
    (old,) = (await database.run(statements.read(""))).dashboards
    assert await database.change(statements.remove(old))
    assert await database.run(statements.former("1")) == []


async def test_another_one_of_the_same_number_has_nothing_of_the_one_before(database):
    async def only():
        (found,) = (await database.run(statements.read("ann"))).dashboards
        return found

    add = statements.add(1, (), checked({}, "ann"), ("", {}), 0)
    await database.change(statements.halt("1", "of a file that is gone"))
    assert await database.change(add) == "1"
    assert (await database.run(statements.read("ann"))).maintenance == {}
    old = await only()
    await database.change(statements.halt("1", "soon"))
    assert await database.change(statements.remove(old))
    assert await database.change(add) == "1"
    assert (await database.run(statements.read("ann"))).maintenance == {}
    new = await only()
    assert not await database.change(statements.remove(old))
    assert not await database.change(statements.replace(old, old.record, ("", {}), 5))
    assert await only() == new


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


async def test_what_panels_show_is_in_no_writers_way(database):
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
    # What does not grow may be changed beyond the limits as well.
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
