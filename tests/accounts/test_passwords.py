"""The password file: kinds of hashes, lines, changes of the file, and what is remembered of it."""

import hashlib
import os

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passlib.hash import apr_md5_crypt, sha256_crypt, sha512_crypt
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher

from monrest.accounts import htpasswd
from monrest.accounts.passwords import Passwords
from monrest.base.errors import TooManyRequests, Unavailable
from tests.fakes.accounts import sha
from tests.fakes.keystore import result
from tests.fakes.threads import NoThreads
from tests.table import each

PASSWORD = "pässwörd: \u20ac"


def blowfish(password, prefix="2b"):
    made = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    return f"${prefix}{made[3:]}"


KINDS = {
    "bcrypt 2y": blowfish(PASSWORD, "2y"),
    "bcrypt 2a": blowfish(PASSWORD, "2a"),
    "bcrypt 2b": blowfish(PASSWORD),
    "apr1": apr_md5_crypt.hash(PASSWORD),
    "sha1": sha(PASSWORD),
    "sha256": sha256_crypt.using(rounds=1000).hash(PASSWORD),
    "sha512": sha512_crypt.using(rounds=1000).hash(PASSWORD),
}


class CountedThreads(NoThreads):
    calls = 0

    def run(self, function):
        self.calls += 1
        return super().run(function)

    def release(self):
        """Do what waits, and hold what follows."""
        waiting, self.waiting = self.waiting, []
        for function, done in waiting:
            maybeDeferred(function).chainDeferred(done)


class World:
    """A password file, and what was read from it."""

    def __init__(self, folder):
        self.path = folder / "htpasswd"
        self.clock, self.threads = Clock(), CountedThreads()
        self.clock.advance(1_700_000_000)
        self.stamp = 1_600_000_000
        self.passwords = Passwords(str(self.path), self.threads, self.clock)

    def write(self, *lines):
        self.path.write_text("\n".join(lines) + "\n")
        self.stamp += 1
        os.utime(self.path, (self.stamp, self.stamp))  # old enough to be believed

    def check(self, user="ann", password="right"):
        return result(self.passwords.check(user, password))


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def warnings():
    seen = []

    def watch(event):
        if event["log_namespace"].startswith("monrest.accounts"):
            seen.append(event["log_format"].format(**event))

    globalLogPublisher.addObserver(watch)
    yield seen
    globalLogPublisher.removeObserver(watch)


@each("kind", KINDS)
def test_kinds_of_hashes(world, kind):
    world.write(f"ann:{KINDS[kind]}")
    world.clock.advance(1)
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


@each("kind", ["bcrypt 2y", "sha1", "apr1", "sha512"])
def test_much_too_long_passwords_are_wrong(world, kind):
    world.write(f"ann:{KINDS[kind]}")
    world.clock.advance(1)
    for long in ("x" * 1025, "x" * 1_000_000, "ü" * 2000):
        assert world.check("ann", long) is False


def test_bcrypt_reads_what_apache_reads(world):
    world.write(f"ann:{blowfish('x' * 72)}")
    assert world.check("ann", "x" * 72)
    assert world.check("ann", "x" * 80)
    assert not world.check("ann", "x" * 71)


def test_lines():
    good = sha("pw")
    content = "\n".join(
        [
            "\ufeff# a comment",
            "",
            "   ",
            f"ann:{good}",
            f"bob:{good}:Bob:bob@example.org\r",
            f"  carl:{good}  ",
            f"ann:{sha('second')}",
            "  # another:comment",
            f"name with blanks:{good}",
            "no colon",
            f":{good}",
            "dora:",
            "erik:plain",
            "fred:rqXexS6ZhobKA",
            "gina:{SHA}short",
            "hugo:$2y$05$short",
            "ines:$apr1$only",
            "jack:$9$unknown$x",
            "kate:$2y$99$" + "a" * 53,
            "lisa:$6$rounds=x$a$b",
        ]
    ).encode()
    hashes, problems = htpasswd.parse(content + b"\n\xff\xfe:x\n")
    assert hashes == dict.fromkeys(("ann", "bob", "carl", "name with blanks"), good)
    assert [number for number, _ in problems] == list(range(10, 22))
    assert {reason.partition(" ")[0] for _, reason in problems} == {"expected"}


@given(st.binary(max_size=300))
def test_no_content_breaks_anything(content):
    hashes, problems = htpasswd.parse(content)
    for hashed in hashes.values():
        htpasswd.matches("x", hashed)
    assert len(hashes) + len(problems) <= content.count(b"\n") + 1


@given(st.sampled_from(["$2y$05$", "$apr1$", "$5$", "$6$", "{SHA}", "$"]), st.text(max_size=70))
def test_what_is_taken_for_a_hash_can_be_compared(prefix, rest):
    if htpasswd.is_known(prefix + rest):
        htpasswd.matches("x", prefix + rest)


def test_reading_the_file_compares_nothing(monkeypatch):
    def verify(*_):
        raise AssertionError

    for crypt in (sha512_crypt, sha256_crypt, apr_md5_crypt):
        monkeypatch.setattr(crypt, "verify", verify)
    slow = "$6$rounds=999999999$salt$" + "a" * 86
    assert htpasswd.parse(f"ann:{slow}".encode()) == ({"ann": slow}, ())
    assert not htpasswd.is_known("$6$salt")


def test_broken_lines_are_told_once_and_without_what_is_in_them(world, warnings):
    world.write("eve:s3cret", f"ann:{sha('right')}")
    assert world.check()
    (line,) = warnings
    assert "line 1 is left out" in line
    assert "s3cret" not in line
    assert "eve" not in line
    world.clock.advance(60)
    world.write("eve:s3cret", f"ann:{sha('right')}", f"bob:{sha('right')}")
    assert world.check("bob")
    assert len(warnings) == 1
    world.clock.advance(60)
    world.write(*["x"] * 100)
    world.check()
    assert len(warnings) == 21


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


def test_a_file_that_vanishes_lets_no_user_in_until_it_is_back(world, warnings):
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


def test_results_are_good_for_a_while(world):
    world.write(f"ann:{sha('right')}")
    for password in ("right", "wrong"):
        world.check("ann", password)
        calls = world.threads.calls
        expected = password == "right"
        assert world.check("ann", password) is expected
        assert world.threads.calls == calls
        world.clock.advance(31)
        assert world.check("ann", password) is expected
        assert world.threads.calls > calls


def test_no_password_is_kept(world):
    world.write(f"ann:{KINDS['sha1']}")
    world.check("ann", PASSWORD)
    world.check("ann", "s3cret-typo")
    kept = repr(world.passwords._results) + repr(world.passwords)
    for secret in (PASSWORD, "s3cret-typo", KINDS["sha1"]):
        assert secret not in kept
        for digest in (hashlib.sha1, hashlib.sha256, hashlib.blake2b):
            assert digest(secret.encode()).hexdigest() not in kept
    other = Passwords(str(world.path), world.threads, world.clock)
    assert other._key("ann", "x") != world.passwords._key("ann", "x")
    assert other._key("ann", "bx") != other._key("annb", "x")


def test_unknown_users_cost_a_comparison(world, monkeypatch):
    hashes = {f"user{number}": sha(f"pw{number}") for number in range(50)}
    world.write(*(f"{name}:{hashed}" for name, hashed in hashes.items()))
    compared = []

    def matches(password, hashed):
        compared.append(hashed)
        return True

    monkeypatch.setattr(htpasswd, "matches", matches)
    for number in range(200):
        assert world.check(f"nobody{number}", "x") is False
    assert len(compared) == 200
    assert len(set(compared)) > 20  # spread over the kinds of hashes that known ones have
    for _ in range(3):
        world.clock.advance(31)
        world.check("nobody0", "x")
    assert set(compared[200:]) == {compared[0]}


def test_a_flood_occupies_two_threads_and_is_refused_in_the_end(world):
    world.write(f"ann:{sha('right')}")
    world.check()
    world.threads.holds = True
    outcomes = []
    for number in range(300):
        Deferred.fromCoroutine(world.passwords.check("ann", f"guess{number}")).addBoth(
            outcomes.append
        )
    assert len(world.threads.waiting) == 2
    assert len(outcomes) == 98
    for outcome in outcomes:
        outcome.trap(TooManyRequests)
    assert world.check()  # what is known needs no thread
    while world.threads.waiting:
        world.threads.release()
    assert len(outcomes) == 300


def test_clients_that_leave_do_not_free_threads(world):
    world.write(f"ann:{sha('right')}")
    world.check()
    world.threads.holds = True
    gone = []
    for number in range(20):
        asking = Deferred.fromCoroutine(world.passwords.check("ann", f"guess{number}"))
        asking.addBoth(gone.append)
        asking.cancel()
    assert len(gone) == 20
    assert len(world.threads.waiting) == 2


def test_the_same_password_at_the_same_time_is_compared_once(world):
    world.write(f"ann:{sha('right')}")
    world.check("bob")
    world.threads.holds, before = True, world.threads.calls
    outcomes = []
    for _ in range(100):
        Deferred.fromCoroutine(world.passwords.check("ann", "right")).addBoth(outcomes.append)
    world.threads.go_on()
    assert outcomes == [True] * 100
    assert world.threads.calls - before == 1


def test_a_flood_of_names_takes_bounded_memory(world, monkeypatch):
    monkeypatch.setattr("monrest.accounts.passwords._MOST_REMEMBERED", 40)
    world.write(f"ann:{sha('right')}")
    for number in range(100):
        assert not world.check(f"user{number}", "x")
    assert len(world.passwords._results) <= 40
