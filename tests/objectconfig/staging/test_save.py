"""Writing the files of a save: what is written, kept, refused and left behind, and what has to wait."""

from __future__ import annotations

import errno
import os
import stat

import orjson
import pytest
from attrs import evolve

from monrest.base.errors import Conflict, Forbidden, Unavailable
from monrest.objectconfig import save
from monrest.objectconfig.save import (
    ChangedOnDiskError,
    SaveRoom,
    SaveRunningError,
    Writable,
    Write,
    recover_all,
    write,
)
from tests.objectconfig.staging.files import sha256, tree, untouched


def test_files_are_changed_made_and_deleted_together(conf, saved):
    saved({"a.cfg": b"new a", "sub/b.cfg": None, "new/deep/c.cfg": b"new c"})
    assert tree(conf) == {"a.cfg": b"new a", "new/deep/c.cfg": b"new c"}
    assert not (conf / "sub").exists()


def test_a_folder_with_something_else_in_it_and_a_configured_one_stay(conf, saved):
    (conf / "sub" / "notes.txt").write_text("mine")
    saved({"sub/b.cfg": None, "a.cfg": None})
    assert tree(conf) == {"sub/notes.txt": b"mine"}
    saved({"new.cfg": b""})
    (conf / "sub" / "notes.txt").unlink()
    (conf / "sub").rmdir()
    saved({"new.cfg": None})
    assert conf.is_dir()


def test_the_last_version_is_kept(conf, room, saved):
    saved({"a.cfg": b"1", "new.cfg": b"2", "sub/b.cfg": None})
    (backup,) = room.folder.glob("backup-*")
    told = orjson.loads((backup / "files.json").read_bytes())
    assert told["user"] == "ann"
    assert {
        entry["path"]: entry["file"] and (backup / entry["file"]).read_bytes()
        for entry in told["files"]
    } == {
        str(conf / "a.cfg"): b"old a",
        str(conf / "new.cfg"): None,
        str(conf / "sub/b.cfg"): b"old b",
    }
    saved({"a.cfg": b"3"})
    (backup,) = room.folder.glob("backup-*")
    assert (backup / "0").read_bytes() == b"1"
    assert stat.S_IMODE(room.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((backup / "0").stat().st_mode) == 0o600


def test_new_files_and_folders_have_the_mode_of_the_process(conf, saved):
    mask = os.umask(0o027)
    try:
        saved({"new/c.cfg": b"c"})
    finally:
        os.umask(mask)
    assert stat.S_IMODE((conf / "new").stat().st_mode) == 0o750
    assert stat.S_IMODE((conf / "new/c.cfg").stat().st_mode) == 0o640


def test_a_change_at_the_last_moment_is_left_alone_and_told(conf, room, saved, monkeypatch):
    real = save._replace

    def replace(handle, entry):
        if entry.name == "a.cfg":
            (conf / "a.cfg").write_bytes(b"an editor was faster")
        return real(handle, entry)

    monkeypatch.setattr(save, "_replace", replace)
    with pytest.raises(Conflict, match="changed on disk during the save"):
        saved({"a.cfg": b"x", "sub/b.cfg": b"y"})
    assert untouched(conf, room, {"a.cfg": b"an editor was faster", "sub/b.cfg": b"y"})


def test_a_configured_folder_may_be_a_link_and_a_named_file_may_be_anywhere(conf, room, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(conf)
    named = tmp_path / "named.cfg"
    named.write_bytes(b"old")
    writes = [
        Write(path=f"{link}/a.cfg", base_hash=sha256(b"old a"), content=b"new"),
        Write(path=str(named), base_hash=sha256(b"old"), content=b"new"),
    ]
    write(room, writes, Writable(folders=(str(link),), files={str(named)}), note={})
    assert (conf / "a.cfg").read_bytes() == named.read_bytes() == b"new"
    again = evolve(writes[0], base_hash=sha256(b"new"), content=b"x")
    both = [again, evolve(again, path=str(conf / "a.cfg"))]
    with pytest.raises(Forbidden, match="the same one"):
        write(room, both, Writable(folders=(str(link), str(conf))), note={})


def test_saves_keep_each_other_out(conf, room, tmp_path):
    elsewhere = SaveRoom.of(tmp_path / "other var", "prod")
    with room.locked([str(conf)]):
        with pytest.raises(SaveRunningError), room.locked():
            pass
        with pytest.raises(SaveRunningError), elsewhere.locked([str(conf), str(conf / "missing")]):
            pass
        with elsewhere.locked():
            recover_all(tmp_path / "var")
    with room.locked(), elsewhere.locked([str(conf)]):
        pass


def test_rooms_of_strange_sites_are_inside_the_state_folder(tmp_path):
    for site in ("..", "a/b", "../../x", ".", "\u00e4 \n"):
        room = SaveRoom.of(tmp_path / "var", site)
        assert room.folder.resolve().parent == (tmp_path / "var/objectconfig").resolve()
    assert len(SaveRoom.all(tmp_path / "var")) == 5


def test_a_change_after_a_kill_is_left_alone(conf, room, saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(save, "_replace", None)
        with pytest.raises(TypeError):
            saved({"a.cfg": b"x", "sub/b.cfg": b"y"})
    (conf / "a.cfg").write_bytes(b"an administrator was here")
    recover_all(room.folder.parents[1])
    assert tree(conf) == {"a.cfg": b"an administrator was here", "sub/b.cfg": b"y"}
    assert room.journal() is None


@pytest.mark.parametrize(
    "base", [{"a.cfg": b"something else"}, {"a.cfg": None}, {"new.cfg": b"was there"}]
)
def test_a_file_that_is_not_as_it_was_refuses_the_whole_save(conf, room, saved, base):
    before = tree(conf)
    contents = {"sub/b.cfg": b"x", **dict.fromkeys(base, b"y")}
    with pytest.raises(ChangedOnDiskError) as caught:
        saved(contents, base)
    assert caught.value.paths == tuple(str(conf / name) for name in base)
    assert caught.value.code == 409
    assert caught.value.extra == {"files": list(caught.value.paths)}
    assert untouched(conf, room, before)


def test_a_change_while_the_save_prepares_refuses_it(conf, room, saved, monkeypatch):
    real = save._prepare

    def prepare(*arguments):
        real(*arguments)
        (conf / "a.cfg").write_bytes(b"an editor was faster")

    monkeypatch.setattr(save, "_prepare", prepare)
    before = {**tree(conf), "a.cfg": b"an editor was faster"}
    with pytest.raises(ChangedOnDiskError):
        saved({"sub/b.cfg": b"x", "a.cfg": b"y", "new/c.cfg": b"z"})
    assert untouched(conf, room, before)
    assert not (conf / "new").exists()


def test_links_are_never_followed(conf, room, saved, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.cfg").write_bytes(b"precious")
    (conf / "file.cfg").symlink_to(outside / "x.cfg")
    (conf / "dangling.cfg").symlink_to(outside / "y.cfg")
    (conf / "folder").symlink_to(outside)
    before = tree(conf), tree(outside)
    for name, base in {
        "file.cfg": b"precious",
        "dangling.cfg": None,
        "folder/x.cfg": b"precious",
        "folder/new.cfg": None,
        "folder/sub/new.cfg": None,
    }.items():
        with pytest.raises(Forbidden):
            saved({"a.cfg": b"y", name: b"z"}, {name: base})
        if base is not None:
            with pytest.raises(Forbidden):
                saved({name: None}, {name: base})
        assert (tree(conf), tree(outside)) == before


@pytest.mark.parametrize(
    "path",
    [
        "{conf}/../x.cfg",
        "{conf}/sub/../../x.cfg",
        "{conf}x/x.cfg",
        "{conf}",
        "/x.cfg",
        "x.cfg",
        "{conf}//x.cfg",
        "{conf}/x\0.cfg",
        "",
    ],
)
def test_other_places_are_refused(conf, room, path):
    before = tree(conf.parent)
    with pytest.raises(Forbidden):
        write(
            room,
            [Write(path=path.format(conf=conf), base_hash=None, content=b"x")],
            Writable(folders=(str(conf),)),
            note={},
        )
    assert tree(conf.parent) == before


def test_something_that_is_no_file_refuses(conf, room, saved):
    (conf / "folder.cfg").mkdir()
    os.mkfifo(conf / "pipe.cfg")
    for name in ("folder.cfg", "pipe.cfg", "a.cfg/x.cfg"):
        with pytest.raises(Forbidden):
            saved({name: b"x"}, {name: None})


@pytest.mark.parametrize("what", ["conf.d", "conf.d/sub", "conf.d/a.cfg"])
def test_what_is_not_writable_refuses_before_anything_is_written(
    tmp_path, conf, room, what, asuser
):
    (tmp_path / what).chmod(0o555 if (tmp_path / what).is_dir() else 0o444)
    before = tree(conf)

    def attempt():
        writes = [
            Write(path=str(conf / "sub/b.cfg"), base_hash=sha256(b"old b"), content=b"x"),
            Write(path=str(conf / "a.cfg"), base_hash=sha256(b"old a"), content=b"x"),
            Write(path=str(conf / "n/c.cfg"), base_hash=None, content=b"x"),
        ]
        write(room, writes, Writable(folders=(str(conf),)), note={})

    with pytest.raises(Forbidden, match="not writable"):
        asuser(attempt)
    assert untouched(conf, room, before)


@pytest.mark.parametrize("number", range(12))
def test_a_full_disk_at_any_moment_leaves_the_old_files(conf, room, saved, monkeypatch, number):
    before = tree(conf)
    calls = 0

    def sync(file, real=os.fsync):
        nonlocal calls
        calls += 1
        if calls == number + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        with pytest.raises(Unavailable, match="no room"):
            saved({"a.cfg": b"x", "sub/b.cfg": None, "new/c.cfg": b"z"})
    assert untouched(conf, room, before)
    assert not (conf / "new").exists()
    assert not list(room.folder.glob("backup-*"))
