"""Front matter, macros and Markdown that is safe to show."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monrest.broadcasts.markdown import LONGEST_TEXT, expanded, html, parted
from tests.examples import examples


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("text", ["[" * 1001, "*a_" * 501, "- a\n" * 1001, "1. a\n" * 1001])
def test_what_is_all_marks_is_shown_as_it_was_written(text):
    assert html(text) == f"<pre>{text}</pre>"
    assert "<pre>" not in html(text[: len(text) // 3])
