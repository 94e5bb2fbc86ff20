"""What a save makes of staged changes, and which hooks run around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.defer import gatherResults

from monrest.base.errors import Forbidden
from monrest.objectconfig import save
from monrest.objectconfig.save import ChangedOnDiskError, SaveRoom, SaveRunningError
from tests.objectconfig.staging.site import HOSTS, later


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
    assert await daemon.staging.staged_by(["prod"]) == {}
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


async def test_what_became_read_only_is_not_written(daemon, site):
    await daemon.patch("w1", alias="x")
    path = Path(site.path("hosts.cfg"))
    path.write_text("# mon: readonly\n" + HOSTS)
    with pytest.raises(Forbidden, match="readonly"):
        await daemon.save()
    assert path.read_text() == "# mon: readonly\n" + HOSTS


async def test_a_save_of_nothing_runs_no_hook(daemon, tmp_path):
    assert (await daemon.save(before=f"touch {tmp_path}/ran #")).files == ()
    assert not (tmp_path / "ran").exists()


async def test_a_save_that_may_not_write_runs_no_hook(daemon, site, tmp_path, monkeypatch):
    await daemon.patch("w1", alias="x")
    await daemon.create("new", file="conf.d/a.cfg")
    monkeypatch.setattr(
        save, "_may", lambda _mode, name, _handle: name != Path(site.path("hosts.cfg")).name
    )
    with pytest.raises(Forbidden, match=r"hosts\.cfg is not writable"):
        await daemon.save(before=f"touch {tmp_path}/ran #")
    assert not (tmp_path / "ran").exists()
    assert not Path(site.path("a.cfg")).exists()


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
    room = SaveRoom.of(tmp_path / "var", "prod")
    with room.locked():
        with monkeypatch.context() as patch:
            patch.setattr(save, "_PATIENCE", 0.15)
            with pytest.raises(SaveRunningError):
                await daemon.save()
        waiting = later(daemon.save())
        await daemon.view("bob")
        assert not waiting.called
    assert len((await waiting).files) == 1
