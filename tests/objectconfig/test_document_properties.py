"""Any file is written as it was read, and a change moves nothing but its own definition."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from monrest.objectconfig.document import ConfigFile, Scanner, UnwritableError
from monrest.objectconfig.grammar import LineReader, clean
from tests.examples import examples

TYPES = ("host", "service", "hostgroup", "command", "timeperiod", "contact", "nonsense")
NAMES = (
    "host_name", "name", "use", "alias", "members", "checks_enabled", "_FOO", "_foo", "_", "monday",
    "day 1 - 15", "_x\\;y", "command_line", "register", "unheard_of", "failure_prediction_enabled",
)  # fmt: skip
VALUES = (
    "", "a", "a,b", " a , b", "null", "+x", "a b  c", "x # y", "00:00-24:00", "a\\", "a\\\\",
    r"a\;b", "define host {", "{", "}", "${x}", "\u00fc", "a\tb", "a\u00a0", "define",
)  # fmt: skip
BLANKS = ("", "", " ", "  ", "\t", "\t ")

blanks = st.sampled_from(BLANKS)
ends = st.sampled_from(("\n", "\n", "\n", "\r\n", " \n", "\t\r\n"))
comments = st.sampled_from(("", "", "", ";", "; note", ";a\\;b", " ; x } {"))
directives = st.builds(
    "{}{} {}{}{}{}".format,
    blanks, st.sampled_from(NAMES), blanks, st.sampled_from(VALUES), comments, ends,
)  # fmt: skip
remarks = st.builds(
    "{}{}{}".format,
    blanks,
    st.sampled_from(
        ("# note", ";note", "#", "## x", "# define host { is nice", "#}", "# a \\", "")
    ),
    ends,
)
strays = st.sampled_from(
    (
        "stray text\n",
        "}\n",
        "include_file=x.cfg\n",
        "define host\n",
        "{\n",
        "define host {}\n",
        "\\\n",
    )
)
heads = st.builds(
    "{}define{} {}{}{{{}{}".format,
    blanks, blanks, st.sampled_from(TYPES), blanks, st.sampled_from(("", "", "", " ; c", " lost")),
    ends,
)  # fmt: skip
tails = st.builds("{}}}{}{}".format, blanks, st.sampled_from(("", "", "", "; end", " # bad")), ends)
definitions = st.builds(
    lambda head, body, tail: head + "".join(body) + tail,
    heads,
    st.lists(st.one_of(directives, directives, directives, remarks), max_size=5),
    tails,
)
disabled = st.builds(
    lambda text, mark: re.sub(r"(?m)^(?=.)", mark, text),
    definitions,
    st.sampled_from(("#", ";", " # ")),
)
broken = st.one_of(heads, tails, directives, strays)
texts = st.lists(
    st.one_of(definitions, definitions, definitions, remarks, disabled, broken), max_size=8
).map("".join)
"""Files that are right for the most part."""

tidy_definitions = st.builds(
    lambda kind, body: f"define {kind} {{\n" + "".join(body) + "}\n",
    st.sampled_from(TYPES[:-1]),
    st.lists(
        st.builds("{}{} {} {}\n".format, blanks, st.sampled_from(("host_name", "alias", "_FOO")),
                  st.sampled_from(("", "a", "a,b", "x # y")), st.sampled_from(("", ";c"))),
        max_size=4,
    ),
)  # fmt: skip
tidy = st.lists(
    st.one_of(
        tidy_definitions,
        tidy_definitions,
        st.sampled_from(("\n", "# note\n", "; x\n", " \n", "##\n")),
    ),
    max_size=9,
).map("".join)
"""Files without anything that swallows what follows."""

attributes = st.dictionaries(
    st.one_of(st.sampled_from(NAMES), st.text(max_size=8)),
    st.one_of(
        st.sampled_from(VALUES), st.text(max_size=12), st.text(st.sampled_from("a;\\# -|'\"x"))
    ),
    max_size=5,
)


def shape(file):
    return [
        (
            block.type, block.line, block.attributes, block.before, block.text, block.disabled,
            dict(block.inline), list(block.inner_comments), block.opening, block.closing,
        )
        for block in file.blocks
    ]  # fmt: skip


def said(file):
    return [(block.type, block.disabled, block.attributes) for block in file.blocks]


@settings(max_examples=examples(100))
@given(st.one_of(st.binary(max_size=200), texts.map(str.encode)))
def test_bytes_read_are_bytes_written(data):
    file = ConfigFile.parse("/x.cfg", data)
    assert file.data() == data
    assert file.copy().data() == data
    assert all(problem.message for problem in file.problems)


@given(st.text(alphabet="define host{}\r\n#;\\_ a1:-,", max_size=200))
def test_letters_in_any_order_are_written_as_they_were(text):
    assert ConfigFile.parse("/x.cfg", text.encode()).data() == text.encode()


def host(*lines):
    return "define host {\n" + "\n".join(lines) + "\n}\n"


@settings(max_examples=examples(250))
@given(texts)
@example(host("alias a\r\r"))
@example(host("\ralias a"))
@example(host(r"alias a\0\;b".replace(r"\0", "\0")))
@example(host(r"_x\;y a"))
@example("# a \\\n" + host("alias a"))
@example(host("alias a \\\r", "  b\r"))
@example(host("alias a", "define host {", "alias b"))
def test_what_is_read_at_once_is_what_is_read_line_by_line(text):
    file = ConfigFile.parse("/x.cfg", text.encode())

    class Slow(Scanner):
        def _plain(self):
            return None

    scanner = Slow(LineReader(text))
    slow = ConfigFile("/x.cfg", blocks=list(scanner.blocks()))
    slow.faults = tuple(scanner.reader.faults)
    assert shape(file) == shape(slow)
    assert file.problems == slow.problems
    assert file.includes == tuple(scanner.reader.includes)


@settings(max_examples=examples(200))
@given(texts, st.data())
def test_a_change_touches_only_its_own_definition(text, data):
    file = ConfigFile.parse("/x.cfg", text.encode())
    if not file.blocks:
        return
    number = data.draw(st.integers(0, len(file.blocks) - 1))
    block = file.blocks[number]
    start = sum(len(item.before + item.text) for item in file.blocks[:number]) + len(block.before)
    before, after = text[:start], text[start + len(block.text) :]
    wanted, comments = data.draw(attributes), block.comments
    try:
        changed = block.change(wanted)
    except UnwritableError:
        assert file.data().decode() == text
        return
    assert block.attributes == {
        name: clean(block.type, name, value) for name, value in wanted.items()
    } or not changed  # fmt: skip
    assert file.text == before + block.text + after
    assert changed or file.text == text
    own = ConfigFile.parse("/x.cfg", block.text.encode())
    assert said(own) == [(block.type, block.disabled, block.attributes)]
    written, there = (
        [text for text in (line.lstrip("#; \t") for line in lines) if text]
        for lines in (block.comments, comments)
    )
    assert written == there


@settings(max_examples=examples(100))
@given(tidy, st.data())
def test_after_any_changes_the_file_reads_as_it_is_held(text, data):
    file = ConfigFile.parse("/x.cfg", text.encode())
    left = []
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(st.sampled_from(("add", "change", "remove", "copy", "share")))
        wanted = data.draw(
            st.dictionaries(st.sampled_from(("host_name", "_A", "use")), st.sampled_from(VALUES))
        )
        if step == "add":
            kind = data.draw(st.sampled_from(("host", "service", "contact")))
            file.add(kind, wanted)
        elif step in ("copy", "share"):
            left.append((file, file.data(), said(file)))
            file = file.copy() if step == "copy" else file.share()
        elif file.blocks:
            block = data.draw(st.sampled_from(file.blocks))
            if step == "remove":
                file.remove(block)
            elif block.type != "timeperiod":
                file.own(block).change(wanted)
    again = ConfigFile.parse("/x.cfg", file.data())
    assert said(again) == said(file)
    assert again.trailer == file.trailer
    assert all((old.data(), said(old)) == (text, blocks) for old, text, blocks in left)


@settings(max_examples=examples(100))
@given(st.one_of(tidy, texts), st.data())
def test_what_is_added_can_be_taken_back(text, data):
    file = ConfigFile.parse("/x.cfg", text.encode())
    added = [
        file.add("host", {"host_name": name}) for name in "abc"[: data.draw(st.integers(1, 3))]
    ]
    for block in reversed(added):
        file.remove(block)
    assert file.data() == text.encode()
