"""Saving as a user of one's own: owner and group stay where possible, and the core reads on."""

from __future__ import annotations

import grp
import os
import pwd
import stat

import pytest

from monrest.base.errors import Forbidden
from monrest.objectconfig.save import Writable, Write, write
from tests.objectconfig.staging.files import NOBODY, sha256, tree, untouched

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")

CORE = pwd.getpwnam("daemon")
"""The core's user, whose group has no other name and no other member."""

OTHER = pwd.getpwnam("bin")


@pytest.fixture
def attempt(conf, room, asuser):
    """A function that saves ``a.cfg``, which it makes first; the warnings and the file after it."""

    def save(owner, group, mode, groups=(CORE.pw_gid,), folder=0o775):
        path = conf / "a.cfg"
        os.chown(conf, 0, CORE.pw_gid if CORE.pw_gid in groups else NOBODY)
        conf.chmod(folder)
        path.write_bytes(b"old a")
        os.chown(path, owner, group)
        path.chmod(mode)
        one = Write(path=str(path), base_hash=sha256(b"old a"), content=b"new")

        def work():
            with room.locked():
                return write(room, [one], Writable(folders=(str(conf),)), note={})

        told = asuser(work, groups)
        after = path.stat()
        assert path.read_bytes() == b"new"
        texts = [text.removeprefix(f"{path}: ") for text in told]
        return texts, (after.st_uid, after.st_gid, stat.S_IMODE(after.st_mode))

    return save


def lost(what, name, ours="nobody"):
    return f"{what} {name} cannot be kept, it is {ours} now"


def test_as_documented_files_of_the_core_are_saved(attempt):
    """Files of root or of the core, writable for its group, of which the daemon is a member."""
    for owner, mode in ((0, 0o660), (0, 0o664), (CORE.pw_uid, 0o660), (CORE.pw_uid, 0o664)):
        name = pwd.getpwuid(owner).pw_name
        for folder in (0o775, 0o2775):
            found = attempt(owner, CORE.pw_gid, mode, folder=folder)
            assert found == ([lost("owner", name)], (NOBODY, CORE.pw_gid, mode))


def test_a_file_of_our_own_loses_nothing(attempt):
    assert attempt(NOBODY, CORE.pw_gid, 0o640) == ([], (NOBODY, CORE.pw_gid, 0o640))
    assert attempt(NOBODY, NOBODY, 0o600) == ([], (NOBODY, NOBODY, 0o600))


def test_what_everybody_may_read_may_change_its_group(attempt):
    group = grp.getgrgid(NOBODY).gr_name
    told, after = attempt(CORE.pw_uid, OTHER.pw_gid, 0o666)
    assert told == [lost("owner", "daemon"), lost("group", "bin", group)]
    assert after == (NOBODY, NOBODY, 0o666)


@pytest.mark.parametrize(
    ("owner", "group", "mode", "expected"),
    [
        (NOBODY, OTHER.pw_gid, 0o660, "group bin cannot be kept, and could not read it"),
        # Its owner is no member of the group, and could not start the core on it any more.
        (OTHER.pw_uid, CORE.pw_gid, 0o660, "owner bin cannot be kept, and could not read it"),
        (54321, CORE.pw_gid, 0o660, "owner 54321 cannot be kept, and could not read it"),
    ],
)
def test_a_file_that_the_core_could_not_read_any_more_is_not_written(
    attempt, conf, room, owner, group, mode, expected
):
    before = tree(conf)
    with pytest.raises(Forbidden) as caught:
        attempt(owner, group, mode)
    assert caught.value.description == f"{conf / 'a.cfg'}: {expected}"
    assert untouched(conf, room, before)


def test_a_folder_where_only_owners_replace_files(attempt, conf, room):
    before = tree(conf)
    with pytest.raises(Forbidden, match="belongs to another user"):
        attempt(CORE.pw_uid, CORE.pw_gid, 0o664, folder=0o1775)
    assert untouched(conf, room, before)
    assert attempt(NOBODY, CORE.pw_gid, 0o664, folder=0o1775)[0] == []


def test_a_system_that_keeps_no_owner_says_so(conf, saved, monkeypatch):
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
    (conf / "a.cfg").chmod(0o640)
    with pytest.raises(Forbidden, match="group daemon cannot be kept"):
        saved({"a.cfg": b"newer"})
