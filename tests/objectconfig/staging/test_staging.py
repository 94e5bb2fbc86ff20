"""What is staged: for whom, how long, against which file on disk; and what a save makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.defer import DeferredList, gatherResults

from monrest.base.errors import BadRequest, Unavailable
from monrest.objectconfig.save import ChangedOnDiskError
from tests.objectconfig.staging.site import GROUPS, HOSTS, OUTSIDE, later


async def test_files_and_the_users_who_staged_them(daemon, site):
    await daemon.create("one", file="conf.d/new/one.cfg")
    await daemon.delete("hostgroup", "all")
    for user in ("bob", "al"):
        await daemon.patch("w1", user, alias="x")
    staged_by = daemon.staging.staged_by
    assert await staged_by(["prod", "other"]) == {
        "prod": {
            site.path("groups.cfg"): ["ann"],
            site.path("hosts.cfg"): ["al", "bob"],
            site.path("new/one.cfg"): ["ann"],
        }
    }
    assert await staged_by(["other"]) == {}
    await daemon.revert()
    assert await staged_by(["prod"]) == {"prod": {site.path("hosts.cfg"): ["al", "bob"]}}


async def test_a_change_that_fails_leaves_nothing_behind_and_harms_no_other(daemon):
    def fail(editor):
        editor.create("host", "conf.d/hosts.cfg", {"host_name": "half"})
        raise BadRequest("bad request", "on purpose")

    results = await DeferredList(
        [
            later(daemon.create("a")),
            later(daemon.edit(fail)),
            later(daemon.edit(lambda editor: 1 // 0)),
            later(daemon.create("b", file="../x.cfg")),
            later(daemon.create("c")),
        ],
        consumeErrors=True,
    )
    assert [ok for ok, _ in results] == [True, False, False, False, True]
    assert [failure.type for ok, failure in results if not ok] == [
        BadRequest,
        ZeroDivisionError,
        BadRequest,
    ]
    assert await daemon.names() == ["w1", "w2", "w3", "a", "c"]


async def test_60_objects_by_one_person_through_two_daemons(started, daemon):
    other = started("other")
    ids = await gatherResults(
        [later((daemon, other)[number % 2].create(f"n{number}")) for number in range(60)]
    )
    assert len(set(ids)) == 60
    assert len(await daemon.names()) == len(await other.names()) == 63


@pytest.mark.parametrize("how", ["in place", "renamed"])
async def test_a_change_on_disk_in_another_place_is_merged(started, daemon, site, how):
    ids = {
        item.attributes.get("host_name"): item.id for item in (await daemon.view()).model.objects
    }
    await daemon.patch("w3", alias="mine")
    changed = OUTSIDE + HOSTS.replace("127.0.0.1", "127.0.0.7")
    path = Path(site.path("hosts.cfg"))
    if how == "in place":
        path.write_text(changed)
    else:
        path.with_suffix(".new").write_text(changed)
        path.with_suffix(".new").rename(path)
    assert (await daemon.host("w1")).attributes["address"] == "127.0.0.7"
    assert (await daemon.host("w3")).attributes["alias"] == "mine"
    assert (await daemon.host("w3")).id == ids["w3"]
    assert OUTSIDE not in "".join(
        line[1:] for line in (await daemon.diff())["hosts.cfg"].splitlines(True) if line[0] in "+-"
    )
    await daemon.patch("w3", notes="more")
    await daemon.stop()
    again = started()
    await again.save()
    text = site.read("hosts.cfg")
    assert text.startswith(OUTSIDE)
    for part in ("127.0.0.7", "mine", "more"):
        assert part in text


async def test_the_same_change_on_disk_ends_the_stash(daemon, site):
    await daemon.patch("w1", alias="same")
    view = await daemon.view()
    data = view.model.loaded[site.path("hosts.cfg")].document.data()
    Path(site.path("hosts.cfg")).write_bytes(data)
    assert await daemon.diff() == {}
    assert await daemon.staging.staged_by(["prod"]) == {}
    # Taken back on disk, it does not come back as a change.
    Path(site.path("hosts.cfg")).write_text(HOSTS)
    assert await daemon.diff() == {}


async def test_changes_that_are_undone_end_the_stash(daemon, site):
    await daemon.create("new", file="conf.d/new.cfg")
    await daemon.patch("w1", alias="x")
    await daemon.delete("host", "new")
    await daemon.patch("w1", alias=None)
    assert await daemon.diff() == {}
    assert await daemon.staging.staged_by(["prod"]) == {}


@pytest.mark.parametrize(
    ("change", "outside"),
    [
        (lambda daemon: daemon.patch("w1", alias="x"), ("hosts.cfg", None)),
        (lambda daemon: daemon.delete("hostgroup", "all"), ("groups.cfg", GROUPS + OUTSIDE)),
        (lambda daemon: daemon.create("n", file="conf.d/n.cfg"), ("n.cfg", OUTSIDE)),
    ],
    ids=["deleted on disk", "deleted here", "made on disk"],
)
async def test_conflicts_with_the_disk(daemon, site, change, outside):
    name, text = outside
    await change(daemon)
    path = Path(site.path(name))
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert (await daemon.view()).conflicts == (str(path),)
    with pytest.raises(ChangedOnDiskError):
        await daemon.save()
    assert (path.read_text() if path.exists() else None) == text
    await daemon.revert()
    assert (await daemon.view()).conflicts == ()
    assert await daemon.diff() == {}
    assert (path.read_text() if path.exists() else None) == text


async def test_lines_that_merge_to_no_definitions_are_a_conflict(daemon, site):
    """Lines that came from both sides may fit together as lines and say nothing together."""
    path = Path(site.path("hosts.cfg"))
    text = HOSTS + "\n# one\n# two\n"
    path.write_text(text)
    await daemon.create("new")
    path.write_text(text.replace("}\n\n# one", "\n# one"))
    view = await daemon.view()
    assert view.conflicts == (str(path),)
    assert "new" in await daemon.names()
    with pytest.raises(ChangedOnDiskError):
        await daemon.save()
    path.write_text(text.replace("127.0.0.1", "127.0.0.7"))
    await daemon.save()
    assert {"127.0.0.7", "new"} <= set(path.read_text().split())


async def test_a_revert_while_edits_wait_is_one_of_them(daemon):
    results = await gatherResults(
        [later(daemon.create("a")), later(daemon.revert()), later(daemon.create("b"))]
    )
    assert results[1] is None
    assert await daemon.names() in (["w1", "w2", "w3", "b"], ["w1", "w2", "w3"])


async def test_stopping_waits_for_what_was_begun_and_takes_no_more(started, daemon):
    waiting = [later(daemon.create(f"n{number}")) for number in range(20)]
    stopping = daemon.staging.stopService()
    with pytest.raises(Unavailable):
        await daemon.create("late")
    with pytest.raises(Unavailable):
        await daemon.save()
    await stopping
    assert all(one.called for one in waiting)
    await daemon.database.stopService()
    assert len(await started().names()) == 23


async def test_an_edit_that_is_cancelled_leaves_the_next_one_alone(daemon):
    first, second = later(daemon.create("a")), later(daemon.create("b"))
    first.addErrback(lambda failure: failure.trap(Exception))
    first.cancel()
    await second
    assert "b" in await daemon.names()


async def test_two_sites_have_nothing_to_do_with_each_other(daemon, tmp_path):
    from tests.objectconfig.staging.site import Site

    other = Site(tmp_path / "second core", "second")
    await daemon.patch("w1", alias="x")
    assert await daemon.staging.diff(other.site, "ann") == {}
    await daemon.staging.revert(other.site, "ann")
    assert list(await daemon.diff()) == ["hosts.cfg"]
