"""Saving as a separate user: group and mode stay, and the core can read its files afterwards."""

from __future__ import annotations

import os
import pwd
import stat

import pytest

from monrest.base.errors import Forbidden
from monrest.objectconfig.save import Writable, Write, write
from tests.objectconfig.staging.files import NO_CONTACT, sha256, tree, untouched

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")

CORE = pwd.getpwnam("daemon")
"""The core's user, whose group has no other name and no other member."""

OTHER = pwd.getpwnam("bin")


@pytest.fixture
def attempt(conf, room, asuser):
    """A function that saves ``a.cfg``, which it makes first; the warnings and the file after it."""

    def save(owner, group, mode, folder=0o775):
        path = conf / "a.cfg"
        os.chown(conf, 0, CORE.pw_gid)
        conf.chmod(folder)
        path.write_bytes(b"old a")
        os.chown(path, owner, group)
        path.chmod(mode)
        one = Write(path=str(path), base_hash=sha256(b"old a"), content=b"new")

        def work():
            with room.locked():
                return write(room, [one], Writable(folders=(str(conf),)), note={})

        warnings = asuser(work, (CORE.pw_gid,))
        after = path.stat()
        assert path.read_bytes() == b"new"
        assert (after.st_uid, after.st_gid) == (NO_CONTACT, group)
        assert stat.S_IMODE(after.st_mode) == mode
        return [text.removeprefix(f"{path}: ") for text in warnings]

    return save


def warning(owner):
    return [f"owner {owner} cannot be kept, it is nobody now"]


@pytest.mark.parametrize(
    ("owner", "group", "mode", "folder", "expected"),
    [
        # As documented: files of root or of the core, writable for its group.
        (0, CORE.pw_gid, 0o660, 0o775, warning("root")),
        (0, CORE.pw_gid, 0o664, 0o2775, warning("root")),
        (CORE.pw_uid, CORE.pw_gid, 0o660, 0o2775, warning("daemon")),
        (CORE.pw_uid, CORE.pw_gid, 0o664, 0o775, warning("daemon")),
        # What all users may read, its old owner may read as well.
        (OTHER.pw_uid, CORE.pw_gid, 0o664, 0o775, warning("bin")),
        # A file of our own loses nothing.
        (NO_CONTACT, CORE.pw_gid, 0o640, 0o775, []),
        (NO_CONTACT, NO_CONTACT, 0o600, 0o775, []),
        (NO_CONTACT, CORE.pw_gid, 0o664, 0o1775, []),
    ],
)
def test_group_and_mode_are_kept(attempt, owner, group, mode, folder, expected):
    assert attempt(owner, group, mode, folder) == expected


@pytest.mark.parametrize(
    ("owner", "group", "mode", "folder", "expected"),
    [
        (NO_CONTACT, OTHER.pw_gid, 0o660, 0o775, ": group bin cannot be kept"),
        (CORE.pw_uid, OTHER.pw_gid, 0o666, 0o775, ": group bin cannot be kept"),
        # Its owner is no member of the group, and could not start the core on it any more.
        (OTHER.pw_uid, CORE.pw_gid, 0o660, 0o775, ": owner bin cannot be kept, and could not"),
        (54321, CORE.pw_gid, 0o660, 0o775, ": owner 54321 cannot be kept, and could not read it"),
        (CORE.pw_uid, CORE.pw_gid, 0o664, 0o1775, " belongs to another user, in a folder where"),
    ],
)
def test_a_file_that_is_not_written(attempt, conf, room, owner, group, mode, folder, expected):
    before = tree(conf)
    with pytest.raises(Forbidden) as caught:
        attempt(owner, group, mode, folder)
    assert caught.value.description.startswith(f"{conf / 'a.cfg'}{expected}")
    assert untouched(conf, room, before)


def test_a_system_that_keeps_no_owner(conf, saved, monkeypatch):
    """For root without the right to give files away, as in some containers."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    (conf / "a.cfg").chmod(0o644)
    os.chown(conf / "a.cfg", CORE.pw_uid, 0)
    monkeypatch.setattr(os, "fchown", refuse)
    assert saved({"a.cfg": b"new"}) == (
        f"{conf / 'a.cfg'}: owner daemon cannot be kept, it is root now",
    )
    os.chown(conf / "a.cfg", 0, CORE.pw_gid)
    with pytest.raises(Forbidden, match="group daemon cannot be kept"):
        saved({"a.cfg": b"newer"})


def test_a_mode_that_the_system_does_not_keep(conf, room, saved, monkeypatch):
    before = tree(conf)
    (conf / "a.cfg").chmod(0o2640)
    real = os.fchmod
    monkeypatch.setattr(os, "fchmod", lambda file, mode: real(file, mode & 0o777))
    with pytest.raises(Forbidden, match="mode 2640 cannot be kept"):
        saved({"a.cfg": b"new"})
    assert untouched(conf, room, before)
