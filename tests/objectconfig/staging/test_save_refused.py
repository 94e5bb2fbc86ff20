"""Writing the files of a save: what is refused, and what a refusal leaves behind."""

from __future__ import annotations

import errno
import os

import pytest

from monrest.base.errors import Forbidden, Unavailable
from monrest.objectconfig import save
from monrest.objectconfig.save import ChangedOnDiskError, Writable, Write, write
from tests.objectconfig.staging.files import sha256, tree, untouched


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
