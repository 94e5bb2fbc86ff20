"""Expressions of the configuration: which user macros, and what is hidden."""

import pytest

from monrest.config.patterns import MacroNames, Replacement


@pytest.mark.parametrize(
    ("entries", "named", "others"),
    [
        (("ALL",), ["USER1", "X"], []),
        (("NONE",), [], ["USER1", "NONE"]),
        ((), [], ["USER1"]),
        (("USER1",), ["USER1"], ["USER10", "USER", "user1", "XUSER1"]),
        (("$USER1$",), ["USER1"], ["USER2"]),
        (
            ("USER10-20",),
            ["USER10", "USER15", "USER20"],
            ["USER9", "USER21", "USER015", "USER1\u0665"],
        ),
        (("USER10-20",), [], ["USER", "USER-15", "X15", "USER1.5"]),
        (("USER1*",), ["USER1", "USER17"], ["USER2", "XUSER1"]),
        (("*5", "USER1"), ["USER5", "USER15", "USER1"], ["USER51"]),
        (("U.ER1",), [], ["USER1"]),
    ],
)
def test_user_macros(entries, named, others):
    wanted = MacroNames(entries)
    assert [name for name in [*named, *others] if wanted.has(name)] == named


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("secret", "x -p *** /a/b"),
        (r"-p \S+", "x *** /a/b"),
        (r"/(-p )\S+/\1hidden/", "x -p hidden /a/b"),
        ("/secret//", "x -p  /a/b"),
        ("#/a/#/c/#", "x -p secret /c/b"),
        ("/a/b", "x -p secret ***"),
        ("/a/", "x -p secret ***b"),
        ("nothing", "x -p secret /a/b"),
    ],
)
def test_replacements(text, shown):
    assert Replacement(text).apply("x -p secret /a/b") == shown


@pytest.mark.parametrize("text", ["", "(", "/(/x/", "//x/", r"/(a)/\2/", r"/a/\1/"])
def test_replacements_that_cannot_be(text):
    with pytest.raises(ValueError, match="expected"):
        Replacement(text)
