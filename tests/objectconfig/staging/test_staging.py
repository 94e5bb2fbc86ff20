"""What is staged: for whom, how long, against which file on disk; and what a save makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, DeferredList, gatherResults

from monrest.errors import BadRequest, Forbidden, Unavailable
from monrest.objectconfig import saving, stash
from monrest.objectconfig.hooks import environment
from monrest.objectconfig.journal import BusyError, Room
from monrest.objectconfig.save import ChangedOnDiskError
from monrest.objectconfig.saving import SavedFile
from tests.objectconfig.staging.site import GROUPS, HOSTS

OUTSIDE = "# somebody else was here\n"


def later(coroutine):
    return Deferred.fromCoroutine(coroutine)


async def test_who_made_a_change_sees_it_and_nobody_else(daemon, site):
    await daemon.patch("w1", address="192.0.2.9")
    assert (await daemon.host("w1")).attributes["address"] == "192.0.2.9"
    assert (await daemon.host("w1", "bob")).attributes["address"] == "127.0.0.1"
    assert site.read("hosts.cfg") == HOSTS
    diff = await daemon.diff()
    assert list(diff) == ["hosts.cfg"]
    assert "-  address                        127.0.0.1\n+  address" in diff["hosts.cfg"]
    assert await daemon.diff("bob") == {}


async def test_changes_and_ids_survive_a_restart(started, daemon, site):
    created = await daemon.create("new")
    await daemon.delete("host", "w1")
    ids = {item.id: item.attributes for item in (await daemon.view()).model.objects}
    diff = await daemon.diff()
    await daemon.stop()

    again = started()
    assert {item.id: item.attributes for item in (await again.view()).model.objects} == ids
    assert await again.diff() == diff
    assert (await again.host("new")).id == created
    assert (await again.host("new")).line == 0
    assert (await again.create("another")) not in ids


async def test_who_staged_what(daemon, site):
    await daemon.create("one", file="conf.d/new/one.cfg")
    await daemon.delete("hostgroup", "all")
    await daemon.patch("w1", "bob", alias="x")
    found = await daemon.staging.overview(["prod", "other"])
    assert [(row.user, Path(row.path).name, row.action) for row in found] == [
        ("ann", "groups.cfg", "deleted"),
        ("ann", "one.cfg", "created"),
        ("bob", "hosts.cfg", "changed"),
    ]
    assert all(row.site == "prod" and row.staged > 1_700_000_000 for row in found)
    assert await daemon.staging.overview(["other"]) == []
    await daemon.revert()
    assert [row.user for row in await daemon.staging.overview(["prod"])] == ["bob"]


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


async def test_300_objects_created_at_once_are_300_objects(daemon, site):
    ids = await gatherResults([later(daemon.create(f"n{number}")) for number in range(300)])
    assert len(set(ids)) == 300
    names = await daemon.names()
    assert len(names) == 303
    assert set(names) >= {f"n{number}" for number in range(300)}
    await daemon.save()
    assert site.read("hosts.cfg").count("define host {") == 303


async def test_300_objects_by_one_person_through_two_daemons(started, daemon):
    other = started("other")
    ids = await gatherResults(
        [later((daemon, other)[number % 2].create(f"n{number}")) for number in range(300)]
    )
    assert len(set(ids)) == 300
    assert len(await daemon.names()) == len(await other.names()) == 303


async def test_two_people_in_different_files_and_parts(daemon, site):
    await daemon.patch("w1", "ann", alias="of ann")
    await daemon.patch("w3", "bob", alias="of bob")
    await daemon.create("new", "bob", file="conf.d/bob.cfg")
    await daemon.save("ann")
    view = await daemon.view("bob")
    assert view.conflicts == ()
    assert (await daemon.host("w1", "bob")).attributes["alias"] == "of ann"
    diff = await daemon.diff("bob")
    assert "of ann" not in "".join(
        line for line in diff["hosts.cfg"].split("\n") if line.startswith(("+", "-"))
    )
    await daemon.save("bob")
    text = site.read("hosts.cfg")
    assert "of ann" in text
    assert "of bob" in text
    assert "new" in site.read("bob.cfg")


async def test_two_people_in_the_same_place_are_a_conflict(daemon, site):
    await daemon.patch("w1", "ann", alias="of ann")
    await daemon.patch("w1", "bob", alias="of bob")
    await daemon.create("new", "bob", file="conf.d/bob.cfg")
    await daemon.save("ann")
    before = site.read("hosts.cfg")

    view = await daemon.view("bob")
    assert view.conflicts == (site.path("hosts.cfg"),)
    assert (await daemon.host("w1", "bob")).attributes["alias"] == "of bob"
    assert "-  alias                          of ann" in (await daemon.diff("bob"))["hosts.cfg"]
    for _ in range(2):
        with pytest.raises(ChangedOnDiskError) as caught:
            await daemon.save("bob")
        assert caught.value.code == 409
        assert site.path("hosts.cfg") in caught.value.description
    assert site.read("hosts.cfg") == before
    assert not Path(site.path("bob.cfg")).exists()

    await daemon.patch("w2", "bob", alias="further")
    assert (await daemon.view("bob")).conflicts == (site.path("hosts.cfg"),)
    assert await daemon.refresh("bob") == (site.path("hosts.cfg"),)
    assert await daemon.names("bob") == ["new", "w1", "w2", "w3"]
    assert (await daemon.save("bob")).files == (
        SavedFile(path=site.path("bob.cfg"), action="created"),
    )


async def test_300_objects_by_two_people_none_lost_in_silence(daemon, site):
    users = ("ann", "bob")
    await gatherResults(
        [
            later(daemon.create(f"{users[number % 2]}{number}", users[number % 2]))
            for number in range(300)
        ]
    )
    await daemon.save("ann")
    with pytest.raises(ChangedOnDiskError):
        await daemon.save("bob")
    assert site.read("hosts.cfg").count("host_name                      ann") == 150
    assert len([name for name in await daemon.names("bob") if name.startswith("bob")]) == 150


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
    assert await daemon.staging.overview(["prod"]) == []
    # Taken back by somebody, it does not come back as a change.
    Path(site.path("hosts.cfg")).write_text(HOSTS)
    assert await daemon.diff() == {}


async def test_changes_that_are_undone_end_the_stash(daemon, site):
    await daemon.create("new", file="conf.d/new.cfg")
    await daemon.patch("w1", alias="x")
    await daemon.delete("host", "new")
    await daemon.patch("w1", alias=None)
    assert await daemon.diff() == {}
    assert await daemon.staging.overview(["prod"]) == []


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


async def test_files_on_disk_that_nobody_staged_are_read_again(daemon, site):
    await daemon.patch("w1", alias="x")
    Path(site.path("more.cfg")).write_text("define host {\n  host_name  more\n}\n")
    assert "more" in await daemon.names()
    Path(site.path("more.cfg")).unlink()
    Path(site.path("groups.cfg")).unlink()
    assert "more" not in await daemon.names()
    assert await daemon.names(kind="hostgroup") == []


async def test_a_save_writes_everything_and_ids_stay(started, daemon, site):
    new = await daemon.create("n1", file="conf.d/new/one.cfg")
    await daemon.delete("host", "w1")
    await daemon.delete("hostgroup", "all")
    ids = {
        item.attributes.get("host_name"): item.id for item in (await daemon.view()).model.objects
    }
    saved = await daemon.save()
    assert [(Path(file.path).name, file.action) for file in saved.files] == [
        ("groups.cfg", "deleted"),
        ("hosts.cfg", "changed"),
        ("one.cfg", "created"),
    ]
    assert saved.problem == ""
    assert not Path(site.path("groups.cfg")).exists()
    assert "w1" not in site.read("hosts.cfg").replace("parents                        w1", "")
    assert await daemon.diff() == {}
    assert await daemon.staging.overview(["prod"]) == []
    for user in ("ann", "bob"):
        found = await daemon.host("n1", user)
        assert (found.id, found.line) == (new, 1)
    await daemon.stop()

    again = started("a new state folder")
    objects = (await again.view()).model.objects
    assert {item.attributes.get("host_name"): item.id for item in objects} == ids
    await again.delete("host", "n1")
    await again.save()
    assert not Path(site.path("new")).exists()
    assert (await again.save()).files == ()


async def test_what_another_daemon_saved_keeps_its_ids_here(started, daemon):
    other = started("other")
    await other.view()
    await daemon.create("new", file="conf.d/a.cfg")
    await daemon.delete("host", "w1")
    ids = {
        item.attributes.get("host_name"): item.id for item in (await daemon.view()).model.objects
    }
    await daemon.save()
    objects = (await other.view()).model.objects
    assert {item.attributes.get("host_name"): item.id for item in objects} == ids


async def test_a_named_file_that_loses_its_last_object_stays(started, daemon, site):
    named = site.folder / "named.cfg"
    await daemon.delete("command", "c")
    assert "-define command {" in (await daemon.diff())["named.cfg"]
    await daemon.stop()
    again = started()
    await again.save()
    assert named.exists()
    assert "define" not in named.read_text()
    await again.edit(lambda editor: editor.create("command", str(named), {"command_name": "d"}).id)
    await again.save()
    assert "command_name                   d" in named.read_text()


async def test_a_database_that_is_lost_after_the_files_were_written(daemon, site, monkeypatch):
    await daemon.patch("w1", alias="x")

    def lost(*_):
        def work(_connection):
            raise Unavailable("cannot store", "no connection to the database")

        return work

    with monkeypatch.context() as patch:
        patch.setattr(stash, "saved", lost)
        assert len((await daemon.save()).files) == 1
    assert "alias" in site.read("hosts.cfg")
    assert await daemon.diff() == {}
    assert await daemon.staging.overview(["prod"]) == []


async def test_only_the_callers_changes_are_saved(daemon, site):
    await daemon.patch("w1", "ann", alias="of ann")
    await daemon.create("new", "bob", file="conf.d/bob.cfg")
    await daemon.save("ann")
    assert not Path(site.path("bob.cfg")).exists()
    assert list(await daemon.diff("bob")) == ["bob.cfg"]


async def test_what_became_read_only_is_not_written(daemon, site):
    await daemon.patch("w1", alias="x")
    path = Path(site.path("hosts.cfg"))
    path.write_text("# mon: readonly\n" + HOSTS)
    with pytest.raises(Forbidden, match="readonly"):
        await daemon.save()
    assert path.read_text() == "# mon: readonly\n" + HOSTS


async def test_a_link_put_in_place_of_a_file_is_not_followed(daemon, site, tmp_path):
    await daemon.patch("w1", alias="x")
    path = Path(site.path("hosts.cfg"))
    path.rename(tmp_path / "elsewhere.cfg")
    path.symlink_to(tmp_path / "elsewhere.cfg")
    with pytest.raises(Forbidden):
        await daemon.save()
    assert (tmp_path / "elsewhere.cfg").read_text() == HOSTS


async def test_hooks_run_around_the_save(daemon, site, tmp_path):
    await daemon.patch("w1", alias="x")
    out = tmp_path / "out"
    given = environment(
        site="prod", name="Prod", user="ann", groups=("a", "b"), email="ann@x", url="/r/config/save"
    )
    script = (
        'echo "$REMOTE_USER $REMOTE_USER_GROUPS $MON_BACKEND_ID $MON_REQ_URL $1 $2'
        f" $(grep -c alias '{site.path('hosts.cfg')}')\" >> {out}; true"
    )
    hook = f"f() {{ {script}; }}; f"
    saved = await daemon.save(before=hook, after=hook, environment=given)
    assert saved.problem == ""
    assert out.read_text().splitlines() == [
        f"ann a;b prod /r/config/save pre {site.folder} 0",
        f"ann a;b prod /r/config/save post {site.folder} 1",
    ]
    out.unlink()
    await daemon.save(before=hook, after=hook, environment=given)
    assert not out.exists()


async def test_a_hook_before_the_save_can_refuse_it(daemon, site):
    await daemon.patch("w1", alias="x")
    saved = await daemon.save(before="echo not today; exit 3 #")
    assert saved.files == ()
    assert "not today" in saved.problem
    assert site.read("hosts.cfg") == HOSTS
    assert list(await daemon.diff()) == ["hosts.cfg"]


async def test_a_hook_after_the_save_that_fails_is_told(daemon, site):
    await daemon.patch("w1", alias="x")
    saved = await daemon.save(after="echo no commit; exit 1 #")
    assert len(saved.files) == 1
    assert "no commit" in saved.problem
    assert "alias" in site.read("hosts.cfg")
    assert await daemon.diff() == {}


async def test_a_hook_that_changes_a_staged_file_stops_the_save(daemon, site):
    await daemon.patch("w1", alias="x")
    with pytest.raises(ChangedOnDiskError):
        await daemon.save(before=f"echo '# hook' >> {site.path('hosts.cfg')} #")
    assert site.read("hosts.cfg") == HOSTS + "# hook\n"


async def test_saves_of_two_people_wait_for_each_other(daemon, site):
    await daemon.patch("w1", "ann", alias="x")
    await daemon.create("new", "bob", file="conf.d/bob.cfg")
    first, second = await gatherResults(
        [later(daemon.save("ann", before="sleep 0.2 #")), later(daemon.save("bob"))]
    )
    assert len(first.files) == len(second.files) == 1


async def test_a_save_waits_for_another_process_but_not_for_ever(daemon, tmp_path, monkeypatch):
    await daemon.patch("w1", alias="x")
    room = Room.of(tmp_path / "var", "prod")
    with room.locked():
        with monkeypatch.context() as patch:
            patch.setattr(saving, "_PATIENCE", 0.15)
            with pytest.raises(BusyError):
                await daemon.save()
        waiting = later(daemon.save())
        await daemon.view("bob")
        assert not waiting.called
    assert len((await waiting).files) == 1


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


async def test_who_gives_up_waiting_harms_nobody(daemon):
    first, second = later(daemon.create("a")), later(daemon.create("b"))
    first.addErrback(lambda failure: failure.trap(Exception))
    first.cancel()
    await second
    assert "b" in await daemon.names()


async def test_two_sites_have_nothing_to_do_with_each_other(daemon, tmp_path):
    from tests.objectconfig.staging.site import Site

    other = Site(tmp_path / "second core", "second")
    await daemon.patch("w1", alias="x")
    assert await daemon.staging.diff(other.site, "ann") == []
    await daemon.staging.revert(other.site, "ann")
    assert list(await daemon.diff()) == ["hosts.cfg"]


async def test_a_file_of_latin1_stays_one(daemon, site):
    path = Path(site.path("latin.cfg"))
    path.write_bytes(b"define host {\n  host_name  l1\n  alias  caf\xe9\n}\n")
    await daemon.patch("l1", notes="x")
    await daemon.save()
    assert b"caf\xe9" in path.read_bytes()
