"""Command lines: nothing that a field holds starts a line, shifts a field or loses a backslash."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities
from monrest.demo.command_table import decode
from monrest.livestatus.command import CoreCommand
from monrest.livestatus.external import (
    decodes_backslashes,
    keeps_connection,
    line,
    pipelines,
    request,
)
from monrest.livestatus.lql import LONGEST_LINE
from tests.table import each

KINDS = ("naemon", "mk", "icinga2", "shinken", "lmd")
BARRIER = (
    b"GET status\nResponseHeader: fixed16\nKeepAlive: on\nOutputFormat: json\n"
    b"Columns: program_start\nLimit: 1\n\n"
)


def written(name, *fields, last="field", decodes=False):
    return line(CoreCommand(name, fields, last), 1700000000, decodes_backslashes=decodes)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("DISABLE_NOTIFICATIONS",), "DISABLE_NOTIFICATIONS"),
        (("ENABLE_HOST_CHECK", "h1"), "ENABLE_HOST_CHECK;h1"),
        (("ADD_HOST_COMMENT", "h1", "1", "me", "ok"), "ADD_HOST_COMMENT;h1;1;me;ok"),
        (("DEL_DOWNTIME_BY_HOST_NAME", "h1", "", "", ""), "DEL_DOWNTIME_BY_HOST_NAME;h1;;;"),
        (("ENABLE_HOST_CHECK", "Größe €"), "ENABLE_HOST_CHECK;Größe €"),
    ],
)
def test_lines(command, expected):
    assert written(*command) == f"COMMAND [1700000000] {expected}"


@each("control", ["\n", "\r", "\0", "\t", "\x1b", "\x7f", "\n\nCOMMAND [1] X"])
@each("last", ["field", "text", "output"])
@each("at", range(3))
def test_control_characters_are_refused(control, last, at):
    fields = ["a", "b", "c"]
    fields[at] = f"x{control}y"
    with pytest.raises(BadRequest, match="control characters"):
        written("LOG", *fields, last=last)


def test_semicolons_only_at_the_end_of_a_text():
    assert written("LOG", "a;b", last="text").endswith("LOG;a;b")
    assert written("PROCESS_HOST_CHECK_RESULT", "h", "0", "a;b", last="output").endswith(";0;a;b")
    for fields, last in (
        (("a;b",), "field"),
        (("a;b", "c"), "text"),
        (("h", "a;b", "c"), "output"),
    ):
        with pytest.raises(BadRequest, match="semicolon"):
            written("LOG", *fields, last=last)


@pytest.mark.parametrize("name", ["", "log", "LOG;x", "LOG\n", "LOG X", "1LOG", "LÖG", "[1] LOG"])
def test_names_that_are_none(name):
    with pytest.raises(ValueError, match="not a name"):
        written(name)


@pytest.mark.parametrize(
    ("fields", "last", "expected"),
    [
        ((r"C:\temp", r"a\nb"), "text", r"C:\\temp;a\\nb"),
        ((r"C:\temp", r"a\nb"), "output", r"C:\\temp;a\nb"),
        ((r"\n", r"C:\x\n\\"), "output", r"\\n;C:\\x\n\\\\"),
        (("h", "\\"), "field", "h;\\\\"),
    ],
)
def test_backslashes_are_doubled_for_cores_that_decode(fields, last, expected):
    assert written("X", *fields, last=last, decodes=True) == f"COMMAND [1700000000] X;{expected}"
    assert written("X", *fields, last=last) == f"COMMAND [1700000000] X;{';'.join(fields)}"


def test_what_is_too_long_or_no_unicode():
    head = len(written("LOG", "", last="text"))
    fits = "x" * (LONGEST_LINE - head)
    assert len(written("LOG", fits, last="text")) == LONGEST_LINE
    for text in (fits + "x", "€" * (LONGEST_LINE // 3)):
        with pytest.raises(BadRequest, match="longer than"):
            written("LOG", text, last="text")
    with pytest.raises(BadRequest, match="longer than"):
        written("LOG", "\\" * (LONGEST_LINE // 2), last="text", decodes=True)
    with pytest.raises(BadRequest, match="Unicode"):
        written("LOG", "\ud800", last="text")


def test_refusals_name_the_command_and_not_the_value():
    with pytest.raises(BadRequest) as raised:
        written("ADD_HOST_COMMENT", "secret\n")
    assert "ADD_HOST_COMMENT" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "version", "decodes"),
    [
        ("naemon", "1.5.1-naemon", True),
        ("mk", "1.2.8", False),
        ("icinga2", "r2.13.6-1", False),
        ("shinken", "2.4-shinken", False),
        ("lmd", "1.5.1-naemon", True),
        ("lmd", "r2.13.6-icinga2", False),
    ],
)
def test_which_cores_decode(kind, version, decodes):
    assert decodes_backslashes(Capabilities(kind=kind, livestatus_version=version)) is decodes


def test_requests_by_kind():
    text = written("LOG", "x", last="text")
    head = text.encode()
    for kind in ("naemon", "mk", "shinken"):
        assert request(text, kind) == head + b"\n\n" + BARRIER
    assert request(text, "icinga2") == head + b"\nResponseHeader: fixed16\nKeepAlive: on\n\n"
    wrapped = head + b"\nResponseHeader: fixed16\nOutputFormat: wrapped_json\n\n"
    assert request(text, "lmd") == wrapped
    assert {kind for kind in KINDS if pipelines(kind)} == {"naemon", "icinga2"}
    assert {kind for kind in KINDS if not keeps_connection(kind)} == {"lmd"}


hostile = st.text(
    alphabet=st.one_of(
        st.sampled_from("\n\r\0;\\n[] \tCOMMAND"),
        st.characters(),
        st.sampled_from("\x85\u2028\ufeff"),
    ),
    max_size=30,
)
commands = st.builds(
    CoreCommand,
    st.sampled_from(["LOG", "ADD_HOST_COMMENT", "PROCESS_SERVICE_CHECK_RESULT"]),
    st.lists(hostile, max_size=4).map(tuple),
    st.sampled_from(["field", "text", "output"]),
)


@given(commands, st.integers(0, 2**40), st.booleans(), st.sampled_from(KINDS))
@example(CoreCommand("LOG", ("a\\nb;c", "d\\\\n"), "output"), 1, True, "naemon")
def test_a_line_is_one_line_and_says_what_was_meant(command, at, decodes, kind):
    try:
        text = line(command, at, decodes_backslashes=decodes)
    except BadRequest:
        return
    # The only line breaks sent are those written here, in bytes as a core sees them.
    first, *behind = request(text, kind).split(b"\n")
    assert first == text.encode()
    assert not any(byte < 32 or byte == 127 for byte in first)
    assert behind == request("", kind).split(b"\n")[1:]
    head = f"COMMAND [{at}] {command.name}"
    assert text.startswith(head)
    read = decode(text) if decodes else text
    # As the core takes it apart: as many fields as the template has, the last one keeps its rest.
    fields = tuple(read[len(head) :].split(";", len(command.fields))[1:])
    meant = command.fields
    if decodes and meant and command.last == "output":
        meant = (*meant[:-1], meant[-1].replace("\\n", "\n"))
    assert fields == meant
