"""The password file: kinds of hashes."""

import pytest

from monrest.accounts import htpasswd
from tests.accounts.passwords.world import KINDS, PASSWORD, blowfish


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_hashes(world, kind):
    world.write(f"ann:{KINDS[kind]}")
    assert world.check("ann", PASSWORD) is True
    for wrong in ("", PASSWORD + "x", PASSWORD[:-1], PASSWORD.upper(), KINDS[kind], "\0", "\ud800"):
        assert world.check("ann", wrong) is False
    assert world.check("bob", PASSWORD) is False
    assert world.check("Ann", PASSWORD) is False
    assert world.check("", PASSWORD) is False


def test_passwords_of_known_programs():
    """What ``htpasswd`` and ``openssl passwd`` made from these."""
    assert htpasswd.matches("admin", "{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc=")
    assert htpasswd.matches("password", "$apr1$xxxxxxxx$dxHfLAsjHkDRmG83UXe8K0")
    assert htpasswd.matches(
        "Hello world!", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"
    )


@pytest.mark.parametrize("kind", ["bcrypt 2y", "sha1", "apr1", "sha512"])
@pytest.mark.parametrize("long", ["x" * 1025, "x" * 1_000_000, "ü" * 2000])
def test_much_too_long_passwords_are_wrong(world, kind, long):
    world.write(f"ann:{KINDS[kind]}")
    assert world.check("ann", long) is False


def test_bcrypt_reads_what_apache_reads(world):
    world.write(f"ann:{blowfish('x' * 72)}")
    assert world.check("ann", "x" * 72)
    assert world.check("ann", "x" * 80)
    assert not world.check("ann", "x" * 71)
