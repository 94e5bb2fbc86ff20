"""Writing the files of a save: what is written, kept and told, and who has to wait."""

from __future__ import annotations

import os
import stat

import orjson
import pytest
from attrs import evolve

from monrest.base.errors import Conflict, Forbidden
from monrest.objectconfig import save
from monrest.objectconfig.save import (
    SaveRoom,
    SaveRunningError,
    Writable,
    Write,
    recover_all,
    write,
)
from tests.objectconfig.staging.files import NO_CONTACT, sha256, tree, untouched


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


def test_mode_owner_and_group_of_a_file_are_kept(conf, saved):
    path = conf / "a.cfg"
    if os.getuid() == 0:
        os.chown(path, NO_CONTACT, NO_CONTACT)
    path.chmod(0o2640)
    before = path.stat()
    assert saved({"a.cfg": b"new"}) == ()
    after = path.stat()
    for what in ("st_mode", "st_uid", "st_gid"):
        assert getattr(after, what) == getattr(before, what)


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


def test_what_somebody_changed_after_a_kill_is_left_alone(conf, room, saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(save, "_replace", None)
        with pytest.raises(TypeError):
            saved({"a.cfg": b"x", "sub/b.cfg": b"y"})
    (conf / "a.cfg").write_bytes(b"an administrator was here")
    recover_all(room.folder.parents[1])
    assert tree(conf) == {"a.cfg": b"an administrator was here", "sub/b.cfg": b"y"}
    assert room.journal() is None


def test_the_journal_is_read_back(room):
    entry = save.JournalEntry(
        path="/x/a.cfg", folder="/x", name="a.cfg", temporary=".t", old=None, new="ff"
    )
    written = save.Journal(state="commit", backup="b", entries=(entry,), made=("/x",))
    room.write(written)
    assert room.journal() == written
    room.forget()
    assert room.journal() is None
