"""Emoji that a Naemon destroys come back, and nothing else changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor

from monrest.base.clock import MachineClock
from monrest.config.sections import SiteConfig
from monrest.demo.answer import spoil
from monrest.demo.command_table import run
from monrest.demo.service import DemoCore
from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.framing import (
    AnswerReader,
    Damaged,
    RowParser,
    looks_damaged,
    parse_rows,
    parse_texts,
)
from monrest.livestatus.pool import CoreRequest
from monrest.query.model import Pushed
from monrest.sites.naemon_emoji import as_texts, mend
from monrest.sites.site import Site
from tests.fakes.livestatus import Script, body
from tests.fakes.sites import Town, outcome

ROCKET, SMILE, PILE = "\U0001f680", "\U0001f600", "\U0001f4a9"
LETTER, OTHER = "\u07c0", "\u07e9"


def mended(rows, texts):
    for _ in mend(rows, texts):
        pass
    return rows


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (f"go {LETTER}", f"go {ROCKET}", f"go {ROCKET}"),
        (f"{LETTER}{OTHER}", f"{SMILE}{PILE}", f"{SMILE}{PILE}"),
        ("\u0fe1", "\U0001f921", "\U0001f921"),
        # Really of that alphabet, or changed between the two questions.
        (f"{LETTER}", f"{LETTER}", f"{LETTER}"),
        (f"go {LETTER}", f"no {ROCKET}", f"go {LETTER}"),
        (f"go {OTHER}", f"go {ROCKET}", f"go {OTHER}"),
        (f"go {LETTER}", "go", f"go {LETTER}"),
        ("plain", f"plai{ROCKET}", "plain"),
        (7, "7", 7),
        (None, "", None),
        ([], "", []),
        ([f"a{LETTER}", "b"], f"a{SMILE}\x02b", [f"a{SMILE}", "b"]),
        ([f"a{LETTER}", "b"], f"a{SMILE}", [f"a{LETTER}", "b"]),
        ([[1, "x", LETTER], [2, "y", "z"]], f"1\x03x\x03{PILE}\x022\x03y\x03z",
         [[1, "x", LETTER], [2, "y", "z"]]),
        ([[1, "x", OTHER]], f"1\x03x\x03{PILE}", [[1, "x", PILE]]),
        ({"A": f"{LETTER}!", "B": "b"}, f"A\x03{ROCKET}!\x02B\x03b", {"A": f"{ROCKET}!", "B": "b"}),
    ],
)  # fmt: skip
def test_one_value(value, text, expected):
    assert mended([["same", value]], [["same", text]]) == [["same", expected]]


def test_as_many_rows_as_there_are():
    rows = [[LETTER], [LETTER], [LETTER]]
    assert mended(rows, [[SMILE], ["gone"]]) == [[SMILE], [LETTER], [LETTER]]


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=20))
def test_what_the_embedded_core_destroys_is_found(text):
    """Its own spoiling is that of a Naemon for the block of the emoji."""
    sent = spoil(json.dumps([[text]]))
    rows = parse_rows(sent.encode())
    if any("\U0001f000" <= sign <= "\U0001ffff" for sign in text):
        assert looks_damaged(sent.encode())
    if all(sign < "\U00010000" or "\U0001f000" <= sign <= "\U0001ffff" for sign in text):
        assert mended(rows, [[text]]) == [[text]]


@pytest.mark.parametrize("size", [1, 7, 4000])
def test_rows_say_that_they_may_be_damaged(size):
    raw = b"[" + b",\n".join([b'["a","x\\u00fc"]'] * 6000 + [b'["b","\\u07c0"]']) + b"]\n"
    clean = raw.replace(b"\\u07c0", b"\\u07b0")
    for content, kind in ((raw, Damaged), (clean, list)):
        parser = RowParser(2)
        for start in range(0, len(content), size * 16):
            parser.feed(content[start : start + size * 16])
        rows = parser.finish()
        assert type(rows) is kind
        assert len(rows) == 6001
        reader = AnswerReader(2)
        whole = b"200 %11d\n" % len(content) + content
        assert type(reader.feed(whole)) is kind


def test_rows_as_text():
    assert parse_texts(b"a\x01b\nc\x01\n", 2) == [["a", "b"], ["c", ""]]
    assert parse_texts(b"") == []
    for broken in (b"a\x01b", b"a\n", b"a\x01b\x01c\n"):
        with pytest.raises(ProtocolError):
            parse_texts(broken, 2)
    reader = AnswerReader(1, None, True)
    content = "a\U0001f600\n".encode()
    whole = b"200 %11d\n" % len(content) + content
    assert reader.feed(whole[:20]) is None
    assert reader.feed(whole[20:]) == [[f"a{SMILE}"]]


@pytest.mark.parametrize("size", [1000, 65_537, 10_000_000])
def test_many_rows_as_text(size):
    rows = [[f"{at} {SMILE}" * (at % 50), "b"] for at in range(5000)]
    content = "".join("\x01".join(row) + "\n" for row in rows).encode()
    whole, found = b"200 %11d\n" % len(content) + content, None
    reader = AnswerReader(2, None, True)
    for start in range(0, len(whole), size):
        found = reader.feed(whole[start : start + size])
    assert found == rows


def test_a_row_as_text_that_is_longer_than_a_slice():
    content = b"a" * 300_000 + b"\x01b\nc\x01d\n"
    reader = AnswerReader(2, None, True)
    assert reader.feed(b"200 %11d\n" % len(content)) is None
    assert reader.feed(content) == [["a" * 300_000, "b"], ["c", "d"]]


def test_the_request_for_text():
    request = b"GET hosts\nKeepAlive: on\nOutputFormat: json\nColumns: name\n\n"
    assert as_texts(request) == (
        b"GET hosts\nKeepAlive: on\nOutputFormat: csv\nSeparators: 10 1 2 3\nColumns: name\n\n"
    )


async def test_comments_of_the_embedded_core_keep_their_emoji(tmp_path):
    core = DemoCore(reactor, MachineClock(), str(tmp_path / "live"), history_days=0)
    site = Site(reactor, SiteConfig(id="a", name="A", address=f"unix:{tmp_path / 'live'}"))
    core.startService()
    site.startService()
    try:
        text = f"to the {ROCKET}, {SMILE} not \u00fc{PILE}"
        await site.breaker.verdict()
        run(core._simulation, f"[1] ADD_HOST_COMMENT;router-core;1;me;{text}")
        layout = (("comment", "string"), ("gone", "dict"), ("id", "int"))
        asked = Pushed(table="comments", columns=("comment", "id"))
        rows = await site.ask(asked, layout)
        assert [text, {}] in [row[:2] for row in rows]
        asked = Pushed(table="hosts", columns=("name", "comments_with_info"))
        found = {row[0]: row[1] for row in await site.ask(asked)}
        assert text in [entry[2] for entry in found["router-core"]]
    finally:
        await site.stopService()
        await core.stopService()


@pytest.fixture
def town():
    made = Town()
    yield made
    made.stop()


JSON = body(b'[["x","\\u07c0"]]\n')


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ([JSON, body("x\x01\U0001f680\n".encode())], ROCKET),
        ([JSON, body(b"nonsense")], LETTER),
        ([body(b"nonsense")], LETTER),
        ([JSON, body(b"y\n")], LETTER),
    ],
)
def test_what_cannot_be_read_again_stays_as_it_is(town, again, expected):
    script = Script()
    site = town.site("a", script)
    assert site.capabilities.kind == "naemon"
    script.plan.extend([JSON, *again])
    found = outcome(Site.query(site, _ask()))
    town.pass_time(1)
    assert found == [[["x", expected]]]


def _ask():
    return CoreRequest(b"GET hosts\nOutputFormat: json\nColumns: a b\n\n", 2)
