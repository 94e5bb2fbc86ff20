"""Names of users: what is none, and how they are changed on the way in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.accounts.usernames import LONGEST_USER, UserNames
from monrest.base.errors import BadRequest
from monrest.base.values import INTERNAL
from monrest.config import AuthConfig

NAMES = UserNames(AuthConfig())


@pytest.mark.parametrize(
    "text",
    [
        *("", "..", "../x", "a..b", "/", "a/b", "/etc/passwd", "a\nb", "a\r", "a\0", "\x7f"),
        *("a\x1b[31m", "a\u2028b", "a\u202eb", "a" * 256, "(api)", "(cli)", "(cron)", "\ud800"),
    ],
)
def test_no_names(text):
    with pytest.raises(BadRequest, match="invalid user name: X-Mon-Auth-User: expected") as refused:
        NAMES.read(text, "X-Mon-Auth-User")
    assert refused.value.description.isprintable()


@pytest.mark.parametrize(
    "text", ["ann", "a" * 255, "Ü. Müller", "ann@example.com", "a.b", "DOM\\ann", "(x)", "a;b", "*"]
)
def test_names(text):
    assert NAMES.read(text, "x").name == NAMES.read(text, "x").original == text


@pytest.mark.parametrize(
    ("config", "text", "name"),
    [
        ({"lowercase_user": True}, "Ann@Example", "ann@example"),
        ({"uppercase_user": True}, "Ann", "ANN"),
        ({"user_replace": ("@example\\.com$", "")}, "ann@example.com", "ann"),
        ({"user_replace": ("@example\\.com$", "")}, "ann@exampleXcom", "ann@exampleXcom"),
        ({"user_replace": ("^.*\\\\", "")}, "DOM\\ann", "ann"),
        ({"user_replace": ("^(\\w+)@(\\w+)$", "\\2-\\1")}, "ann@home", "home-ann"),
        ({"user_replace": ("n", "m")}, "ann", "amm"),
        ({"lowercase_user": True, "user_replace": ("@x$", "")}, "ANN@X", "ann"),
    ],
)
def test_changes(config, text, name):
    read = UserNames(AuthConfig(**config)).read(text, "x")
    assert (read.name, read.original) == (name, text)


@pytest.mark.parametrize(
    ("replace", "text"),
    [
        (("^.*$", ""), "ann"),
        (("x", "/"), "axb"),
        (("^x$", "(cli)"), "x"),
        (("x", "."), "axxb"),
        (("x", "xx"), "x" * 200),
    ],
)
def test_a_change_cannot_make_what_is_no_name(replace, text):
    with pytest.raises(BadRequest, match="invalid user name"):
        UserNames(AuthConfig(user_replace=replace)).read(text, "x")


@given(st.text(max_size=300), st.booleans())
def test_whatever_is_read_is_a_name(text, lower):
    try:
        read = UserNames(AuthConfig(lowercase_user=lower)).read(text, "x")
    except BadRequest:
        return
    assert read.original == text
    assert 0 < len(read.name) <= LONGEST_USER
    assert read.name.isprintable()
    assert "/" not in read.name
    assert ".." not in read.name
    assert read.name not in INTERNAL
