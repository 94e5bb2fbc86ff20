"""The password file: its lines, and broken ones."""

from hypothesis import given
from hypothesis import strategies as st
from passlib.hash import apr_md5_crypt, sha256_crypt, sha512_crypt

from monrest.accounts import htpasswd
from tests.accounts.passwords.world import sha


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
