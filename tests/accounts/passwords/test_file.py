"""The password file: how it changes, and what is none."""

import os

import pytest

from monrest.accounts.passwords import Passwords
from monrest.base.errors import Unavailable
from tests.accounts.passwords.world import sha
from tests.fakes.keystore import result


def test_a_changed_file_is_in_force_within_a_second(world):
    world.write(f"ann:{sha('right')}")
    assert world.check()
    world.write(f"ann:{sha('other')}")
    assert world.check()
    world.clock.advance(1)
    assert not world.check()
    assert world.check("ann", "other")
    world.write(f"bob:{sha('right')}")
    world.clock.advance(1)
    assert not world.check("ann", "other")
    assert world.check("bob")


def test_a_file_of_the_same_size_and_time_in_its_place(world, tmp_path):
    world.write(f"ann:{sha('right')}")
    assert world.check()
    stamp = world.stamp
    (tmp_path / "new").write_text(f"ann:{sha('other')}\n")
    (tmp_path / "new").replace(world.path)
    os.utime(world.path, (stamp, stamp))
    world.clock.advance(1)
    assert not world.check()


def test_a_file_that_was_changed_just_now_is_read_again(world):
    """Two changes within one tick of the file system's clock look like one."""
    world.write(f"ann:{sha('right')}")
    os.utime(world.path)
    assert world.check()
    seen = world.path.stat()
    world.path.write_text(f"ann:{sha('other')}\n")
    os.utime(world.path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    world.clock.advance(1)
    assert not world.check()


def test_a_file_that_vanishes_lets_nobody_in_until_it_is_back(world, warnings):
    world.write(f"ann:{sha('right')}")
    assert world.check()
    world.path.unlink()
    world.clock.advance(1)
    for _ in range(3):
        with pytest.raises(Unavailable, match="password file") as refused:
            world.check()
        assert str(world.path) not in str(refused.value)
        with pytest.raises(Unavailable):
            world.check("nobody", "x")
    assert len(warnings) == 1
    world.write(f"ann:{sha('right')}")
    with pytest.raises(Unavailable):
        world.check()
    world.clock.advance(1)
    assert world.check()
    assert "can be read again" in warnings[-1]


@pytest.mark.parametrize("kind", ["folder", "pipe", "huge"])
def test_what_is_no_password_file(world, kind):
    if kind == "folder":
        world.path.mkdir()
    elif kind == "pipe":
        os.mkfifo(world.path)
    else:
        world.path.touch()
        os.truncate(world.path, 17 * 1024 * 1024)
    with pytest.raises(Unavailable):
        world.check()


def test_an_empty_file_and_none_at_all(world):
    world.write("")
    assert not world.check()
    assert world.passwords.configured
    none = Passwords("", world.threads, world.clock)
    assert not none.configured
    assert result(none.names()) == ()


def test_names(world):
    world.write(f"b:{sha('x')}", f"a:{sha('x')}", "broken")
    assert set(result(world.passwords.names())) == {"a", "b"}
    assert result(world.passwords.knows("a"))
    assert not result(world.passwords.knows("broken"))
