"""What cores say about commands, in whatever pieces it arrives."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.verdicts import ACCEPTED, Verdict, core_text, reader_for
from tests.fakes.livestatus import framed
from tests.table import each

ROW = framed(b"[[1700000000]]\n")
TRACE = (
    b"Error: The external command 'X' does not exist.\n\nStacktrace:\n 0# __cxa_throw in /usr/lib\n"
)


def failed(**sites):
    return framed(json.dumps({"failed": sites}).encode() + b"\n")


def read(kind, *pieces):
    """The verdicts, and the text of the error that ended it."""
    reader = reader_for(kind)
    try:
        for piece in pieces:
            reader.feed(piece)
    except ProtocolError as error:
        return reader.verdicts, error.reason
    return reader.verdicts, reader.rest


HONEST = {
    "naemon": [
        (ROW, ACCEPTED),
        (b"400: Unknown command 'X'\n" + ROW, Verdict("400: Unknown command 'X'")),
        (b"400: one\ntwo\n\n" + ROW, Verdict("400: one")),
        (b"400: one\n451: two\n" + ROW, Verdict("400: one")),
        (b"400: \xff\n" + ROW, Verdict("400: \ufffd")),
    ],
    "icinga2": [
        (framed(b""), ACCEPTED),
        (framed(TRACE, 452), Verdict("452: The external command 'X' does not exist.")),
        (framed(b"", 452), Verdict("452: ")),
    ],
    "lmd": [
        (failed(), ACCEPTED),
        (failed(a="400: no", b="400: not"), Verdict("a: 400: no; b: 400: not")),
        (failed(a="400: no", b="cannot connect"), Verdict(doubt="a: 400: no; b: cannot connect")),
        (framed(b"later", 202), Verdict(doubt="202: still being sent to slow sites")),
        (framed(b"bad request: no\n", 400), Verdict("400: bad request: no")),
    ],
}
HONEST["mk"] = HONEST["shinken"] = HONEST["naemon"]


@given(st.data(), st.sampled_from(sorted(HONEST)))
def test_any_answers_in_any_pieces(data, kind):
    said = data.draw(st.lists(st.sampled_from(HONEST[kind]), max_size=6))
    text = b"".join(one for one, _ in said)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(kind, *pieces) == ([verdict for _, verdict in said], b"")


@pytest.mark.parametrize("kind", sorted(HONEST))
def test_every_honest_answer(kind):
    for text, verdict in HONEST[kind]:
        assert read(kind, text) == ([verdict], b"")
        assert read(kind, text + text[:-1])[0] == [verdict]


@each(
    ("kind", "lie", "reason"),
    [
        ("naemon", b"Invalid request method\n", "no header but 'Invalid request method'"),
        ("naemon", framed(b"no such table\n", 404), "answered with 404"),
        ("naemon", framed(b"[]\n"), "not answered with one row"),
        ("naemon", framed(b"[[1],[2]]\n"), "not answered with one row"),
        ("naemon", framed(b"[[1,2]]\n"), "2 columns instead of 1"),
        ("naemon", framed(b"{}\n"), "not a list of rows"),
        ("naemon", framed(b"[[1"), "ends too early"),
        ("naemon", framed(b""), "no body"),
        ("naemon", b"200    99999999\n", "99999999 bytes"),
        ("naemon", b"200 99999999999\n", "99999999999 bytes"),
        ("naemon", b"x" * 70_000, "without an end"),
        ("naemon", b"400: " + b"x" * 70_000, "without an end"),
        ("icinga2", b"400: reason\n", "no header but '400: reason'"),
        ("icinga2", b"\n", "no header"),
        ("icinga2", b"2OO abcdefghijk\n[]", "no header"),
        ("icinga2", b"200         -12\n[]", "no header"),
        ("icinga2", framed(b"x" * 70_000, 452), "70000 bytes"),
        ("lmd", framed(b"[]\n"), "no list of failed sites"),
        ("lmd", framed(b'{"failed":[1]}\n'), "no list of failed sites"),
        ("lmd", framed(b"{"), "no list of failed sites"),
        ("lmd", framed(b"[[1700000000]]\n"), "no list of failed sites"),
    ],
)
def test_nonsense_leaves_the_verdicts_before_it(kind, lie, reason):
    honest, verdict = HONEST[kind][0]
    for pieces in ((honest, lie), (honest + lie,)):
        verdicts, said = read(kind, *pieces)
        assert verdicts == [verdict]
        assert reason in said


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Failed validation of host_name as type host (argument 0)", None),
        ("Couldn't parse ulong argument x (argument 4): No digits found in ulong 'xxx'", None),
        ("Invalid characters (.5) in ulong '1.5'", None),
        ("Too many arguments to command - expected 1", None),
        ("no service 'Disk /var/log/x.c:12' on host 'web01'", None),
        ("see http://example.org/a/b/c", None),
        ("refused at /usr/lib/naemon/x.so line 12.", "refused"),
        ("refused in /usr/share/perl/Livestatus.pm:77", "refused"),
        ("refused (in /etc/icinga2/conf.d/x.conf: 12:3-12:40)", "refused"),
        ("commands.c:1234: refused", "refused"),
        ("refused [src/naemon/commands.c:12]", "refused"),
        ("refused (commands.c:12) twice", "refused twice"),
        ("Error: no\nStacktrace:\n 0# x in /usr/lib", "no"),
        ("\x1b[1mno\x07", "[1mno"),
    ],
)
def test_no_places_in_files(said, shown):
    assert core_text(said) == (said if shown is None else shown)


@given(st.text(max_size=300))
def test_texts_of_cores_are_one_short_printable_line(text):
    found = core_text(text)
    assert found.isprintable()
    assert len(found) <= 200
