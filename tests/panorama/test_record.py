"""Records, relaxed JSON and the housekeeping of dashboards."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.panorama import store as statements
from monrest.panorama.model import Dashboard, Level, checked, dashboard_record, level, parted
from monrest.panorama.service import header, relaxed

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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
