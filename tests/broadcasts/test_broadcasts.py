"""What may be in a broadcast, who sees it and when, its text, several who write it at once."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import gatherResults

from monrest.base.errors import BadRequest
from monrest.broadcasts.endpoints import add, remove, replace, several
from monrest.broadcasts.markdown import LONGEST_TEXT, expanded, html, parted
from monrest.broadcasts.model import (
    Broadcast,
    broadcast_record,
    checked,
    default_file_name,
    file_name,
)
from tests.examples import examples
from tests.store.conftest import database, opened
from tests.table import each

__all__ = ["database", "opened"]

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC).timestamp()


def made(**given):
    return Broadcast(
        file="f", record=checked({"text": "x", **given}, NOW, BERLIN), changed=int(NOW)
    )


def test_defaults():
    assert checked({"text": "x"}, NOW, BERLIN) == {
        "name": "", "text": "x", "annotation": "", "contacts": [], "contactgroups": [],
        "expires": "", "hide_before": "", "loginpage": 0, "panorama": 0, "template": 0,
    }  # fmt: skip


@each(
    ("name", "value", "stored"),
    [
        ("contacts", "joe, !adm ,,joe", ["joe", "!adm"]),
        ("contacts", ["joe", "! adm", "a,b"], ["joe", "!adm", "a", "b"]),
        ("contacts", "!", []),
        ("contacts", None, []),
        ("expires", "2026-12-24 18:00", "2026-12-24 18:00:00"),
        ("expires", "2026-12-24 18:00:05", "2026-12-24 18:00:05"),
        ("expires", "2026-12-24", "2026-12-24 00:00:00"),
        ("expires", "+1d", "2026-11-22 11:00:00"),
        ("expires", "tomorrow", "2026-11-22 00:00:00"),
        ("expires", None, ""),
        ("hide_before", 1_700_000_000, "2023-11-14 23:13:20"),
        ("loginpage", "true", 1),
        ("loginpage", False, 0),
        ("template", "1", 1),
        ("name", 5, "5"),
        ("own", {"deep": [1]}, {"deep": [1]}),
    ],
)
def test_values(name, value, stored):
    assert checked({"text": "x", name: value}, NOW, BERLIN)[name] == stored


@each(
    ("name", "value"),
    [
        ("name", ["x"]), ("name", "x" * 1001), ("name", "a\0"), ("text", {}), ("text", "x" * 10_001),
        ("text", ""), ("text", " \n"), ("text", None), ("text", "---\nteam: Ops\n---\n"),
        ("text", True), ("annotation", "error"), ("contacts", {}), ("contacts", [1]),
        ("contacts", ["x"] * 1001), ("expires", "soon"), ("expires", "99999999999999"),
        ("expires", "-99999999999"), ("expires", []), ("expires", True), ("hide_before", "2026-02-30"),
        ("loginpage", 2), ("loginpage", "maybe"), ("panorama", []), ("template", 0.5), ("own", 2**70),
    ],
)  # fmt: skip
def test_wrong_values(name, value):
    with pytest.raises(BadRequest) as caught:
        checked({"text": "x", name: value}, NOW, BERLIN)
    assert name in caught.value.description or name == "own"


@each("text", ["a", "A-1_b", "a.json", "x" * 100])
def test_files(text):
    assert file_name(text) == text.removesuffix(".json")


@each("text", ["", ".a", "/a", "a/b", "a.b", "ä", "a\n", "a.json.json", "x" * 101])
def test_wrong_files(text):
    with pytest.raises(BadRequest, match="invalid file name"):
        file_name(text)


def test_usual_names():
    assert default_file_name("joe", NOW, BERLIN) == "2026-11-21-joe"
    assert default_file_name("a/../ü@b", NOW, BERLIN) == "2026-11-21-a______b"
    assert default_file_name("", NOW, BERLIN) == "2026-11-21-admin"


@each(
    ("contacts", "groups", "user", "member", "seen"),
    [
        ("", "", "joe", (), True),
        ("", "", "", (), True),
        ("joe", "", "joe", (), True),
        ("joe", "", "ann", (), False),
        ("joe", "", "", (), False),
        ("joe", "ops", "ann", ("ops",), True),
        ("", "ops", "ann", ("web",), False),
        ("!joe", "", "joe", (), False),
        ("!joe", "", "ann", (), True),
        ("joe,!joe", "", "joe", (), False),
        ("", "!ops", "joe", ("ops",), False),
        ("joe", "!ops", "joe", ("ops",), False),
        ("!joe", "ops", "joe", ("ops",), False),
        ("", "ops,!web", "ann", ("ops", "web"), False),
        ("!", "!", "ann", (), True),
    ],
)  # fmt: skip
def test_visible(contacts, groups, user, member, seen):
    assert made(contacts=contacts, contactgroups=groups).visible_to(user, member) is seen


@each(
    ("given", "active"),
    [
        ({}, True), ({"template": 1}, False),
        ({"expires": "-1s"}, False), ({"expires": "now"}, True), ({"expires": "+1s"}, True),
        ({"hide_before": "+1s"}, False), ({"hide_before": "now"}, True), ({"hide_before": "-1s"}, True),
        ({"hide_before": "-2d", "expires": "-1d"}, False),
    ],
)  # fmt: skip
def test_active(given, active):
    assert made(**given).active(NOW, BERLIN) is active


def test_what_is_shown():
    one = made(name="Title", text="---\nTitle: Mine\nx: y\n---\n{{title}} {{name}} {{x}} {{date}} {{no}}",
               expires="+1d", more=1)  # fmt: skip
    row = broadcast_record(one, NOW, BERLIN)
    assert row["text"] == "Mine Title y 11:00:00 {{no}}"
    assert row["raw_text"].startswith("---")
    assert row["frontmatter"] == {"Title": "Mine", "x": "y"}
    assert (row["author"], row["authoremail"], row["more"]) == ("none", "none", 1)
    assert (row["expires_ts"], row["hide_before_ts"], row["active"]) == (NOW + 86400, 0, 1)
    later = broadcast_record(evolve(one, changed=int(NOW)), NOW + 86400 * 2, BERLIN)
    assert later["macros"]["date"] == "2026-11-21 11:00:00"
    assert later["active"] == 0


@each(
    ("text", "front", "rest"),
    [
        ("plain", {}, "plain"),
        ("", {}, ""),
        (" \n---\na: b: c\n X :  y \nno colon\n: none\n---\n\n rest ", {"a": "b: c", "X": "y"}, "rest"),
        ("---\r\na: b\r\n---\r\nrest", {"a": "b"}, "rest"),
        ("---\n---\nrest", {}, "rest"),
        ("hello\n---\na: b\n---\nrest", {}, "hello\n---\na: b\n---\nrest"),
        ("---\na: b\n", {}, "---\na: b\n"),
        ("----\na: b\n----\nrest", {}, "----\na: b\n----\nrest"),
        ("---\na: &x [1]\nb: !!python/object 1\n---\nx", {"a": "&x [1]", "b": "!!python/object 1"}, "x"),
    ],
)  # fmt: skip
def test_front_matter(text, front, rest):
    assert parted(text) == (front, rest)


@each(
    ("text", "value"),
    [
        ("{{name}} {{ NAME }} {{Name}}", "Ann Ann Ann"),
        ("{{other}} {{}} {name} {{name}", "{{other}} {{}} {name} {{name}"),
        ("{{own}}", "{{name}}"),
        ("{{{name}}}", "{Ann}"),
    ],
)
def test_macros(text, value):
    assert expanded(text, {"name": "Ann", "Own": "{{name}}"}) == value


def test_macros_do_not_make_a_text_too_long():
    assert len(expanded("{{a}}" * 1000, {"a": "x" * 1000})) < 2 * LONGEST_TEXT


@each(
    ("text", "found"),
    [
        ("**now** [a](https://x.example/?a=1&b=2)", ["<strong>now</strong>", 'href="https://x.example/?a=1&amp;b=2"']),
        ("<b>bold</b>", ["<b>bold</b>"]),
        ("|a|b|\n|-|-|\n|1|2|", ["<td>2</td>"]),
        ("# Title\n\n* one\n* two", ["<h1>Title</h1>", "<li>two</li>"]),
        ("1 < 2 & 3", ["1 &lt; 2 &amp; 3"]),
    ],
)  # fmt: skip
def test_markdown(text, found):
    for part in found:
        assert part in html(text)


@each(
    ("text", "shown"),
    [
        ("[a]: http://h/" + "x" * 4000 + "\n" + "[a]" * 1900, "<pre>[a]: http://h/x"),
        ("a|" * 900 + "\n" + "-|" * 900 + "\n" + "b\n" * 3000, "<p>a|a|"),
        ("|a|b|\n|-|-|\n" + "|1|2|\n" * 1000, "<td>1</td>"),
    ],
)
def test_no_text_becomes_endless(text, shown):
    found = html(text)
    assert found.startswith(shown) or shown in found
    assert len(found) < 20 * LONGEST_TEXT


class Found(HTMLParser):
    """What a browser would find."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def safe(self):
        assert not self.tags & {
            "script",
            "style",
            "iframe",
            "object",
            "embed",
            "form",
            "base",
            "svg",
        }
        for name, value in self.attributes:
            assert not name.startswith("on")
            assert name != "style"
            if name in ("href", "src", "cite"):
                scheme = (value or "").strip().lower().partition(":")[0]
                assert scheme not in ("javascript", "data", "vbscript")
        return True


BAD = st.sampled_from(
    [
        "<script>alert(1)</script>", "[x](javascript:alert(1))", "<img src=x onerror=alert(1)>",
        "<a href='java&#10;script:alert(1)'>", "<svg><script>1</script></svg>", "<style>b{}",
        "![x](data:text/html;base64,AAAA)", "<iframe src=//x>", "<base href=//x>", "<form action=x>",
        '<a href="JaVaScRiPt:1">', "<math><mi//xlink:href='data:x,1'>", "<!--", "-->", "`", "```\n",
        "<b style=x:y onclick=1>", "\n\n", "> ", "<", ">", "'", '"', "</p>", "[a]: javascript:1\n\n[a]",
    ]
)  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.one_of(BAD, st.text(max_size=20)), max_size=8).map("".join))
@example("<script>alert(1)</script>")
def test_nothing_that_could_run(text):
    assert Found(html(text)).safe()


@each(
    ("source", "kept"),
    [
        ("/mon/logo.png", True),
        ("images/a%20b.png?x=1", True),
        ("https://tracker.example/p.gif", False),
        ("//tracker.example/p.gif", False),
        ("/\\tracker.example/p.gif", False),
        ("\\\\tracker.example/p.gif", False),
        ("/\t/tracker.example/p.gif", False),
        ("data:image/png;base64,AAAA", False),
    ],
)
def test_pictures_are_from_this_server(source, kept):
    """One from elsewhere would tell its server who reads the message, and when."""
    found = html(f'<img alt="a" src="{source}">')
    assert ("src=" in found) == kept
    assert 'alt="a"' in found
    assert "tracker" not in html("![a](https://tracker.example/p.gif)")


@each("text", ["[" * 1001, "*a_" * 501, "- a\n" * 1001, "1. a\n" * 1001])
def test_what_is_all_marks_is_shown_as_it_was_written(text):
    assert html(text) == f"<pre>{text}</pre>"
    assert "<pre>" not in html(text[: len(text) // 3])


MANY = range(12)


def named(name):
    return checked({"name": name, "text": "x"}, 0, UTC)


async def test_each_new_one_has_a_file_of_its_own(database):
    works = [add("day", named(str(n)), n, exact=False) for n in MANY]
    files = await gatherResults([database.change(work) for work in works])
    assert sorted(files) == sorted(["day", *(f"day_{n}" for n in MANY[1:])])
    stored = {one.file: one for one in await database.run(several())}
    assert {stored[file].record["name"] for file in files} == {str(n) for n in MANY}


async def test_a_wanted_file_is_given_once(database):
    works = [add("mine", named(str(n)), n, exact=True) for n in MANY]
    files = await gatherResults([database.change(work) for work in works])
    assert sorted(files, key=str) == [*([None] * (len(MANY) - 1)), "mine"]
    (stored,) = await database.run(several())
    assert stored.record["name"] == str(files.index("mine"))


async def test_one_change_wins_and_the_others_are_told(database):
    await database.change(add("one", named("first"), 0, exact=True))
    (old,) = await database.run(several("one"))
    works = [replace(old, named(str(n)), 5, None) for n in MANY]
    done = await gatherResults([database.change(work) for work in works])
    assert done.count(True) == 1
    (now,) = await database.run(several("one"))
    assert (now.record["name"], now.version, now.changed) == (
        str(done.index(True)), old.version + 1, 5,
    )  # fmt: skip
    assert await gatherResults([database.change(remove(now)) for _ in MANY]).addCallback(
        sorted
    ) == [False] * (len(MANY) - 1) + [True]


async def test_another_one_of_the_same_name_is_left_alone(database):
    await database.change(add("one", named("first"), 0, exact=True))
    (old,) = await database.run(several("one"))
    assert await database.change(remove(old))
    await database.change(add("one", named("second"), 0, exact=True))
    assert not await database.change(remove(old))
    assert not await database.change(replace(old, named("late"), 5, None))
    (new,) = await database.run(several("one"))
    assert new.record["name"] == "second"
