"""Changing, adding and removing definitions: nothing else in the file moves."""

import pytest

from monrest.objectconfig.document import ConfigFile, UnwritableError
from tests.objectconfig.test_document import VECTOR, block, read
from tests.table import each

MESSY = """\
; header
\tdefine host{   ; opened
# inside
host_name   a   ; the name
   alias    A \\
       and more
checks_enabled 0; why


nonsense    x y
} ; closed


include_file=more.cfg
stray text
# about b
define host {
 host_name b
}
define service {
 service_description c ; c
 host_name a , b
}"""


def test_the_vector_of_the_description():
    file = read(VECTOR)
    file.blocks[0].change({**file.blocks[0].attributes, "alias": "Web One"})
    assert (
        file.data().decode()
        == """\
# first
### second
;third
define host {
  host_name                      w1                                  ; inline
  alias                          Web One
  use                            generic-host
  hostgroups                     +web
  __x                            y
  _foo                           bar
}
# trailing
"""
    )


def test_a_change_keeps_what_stands_in_and_around_the_definition():
    file = read(MESSY)
    found = file.blocks[0]
    assert found.change({**found.attributes, "address": "1.2.3.4"})
    start, end = MESSY.index("\tdefine"), MESSY.index("\n\ninclude_file")
    assert file.data().decode() == (
        MESSY[:start]
        + """\
# inside
define host { ; opened
  host_name                      a                                   ; the name
  alias                          A and more
  address                        1.2.3.4
  active_checks_enabled          0                                   ; why
  nonsense                       x y
} ; closed

"""
        + MESSY[end + 1 :]
    )
    assert found.comments == ["; header", "# inside"]
    assert (found.line, found.inline["active_checks_enabled"]) == (2, "; why")
    again = read(file.data())
    assert [item.attributes for item in again.blocks] == [item.attributes for item in file.blocks]
    assert again.blocks[0].comments == found.comments


def test_inline_comments_go_with_their_attribute():
    (found,) = read(block("host_name h ; a", "alias b ; c")).blocks
    found.change({"host_name": "h"})
    assert found.inline == {"host_name": "; a"}
    assert "; c" not in found.text


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_line_ends_stay_as_they_were(eol, ending):
    text = ("# x\n" + block("host_name h").rstrip("\n") + ending).replace("\n", eol)
    file = read(text)
    file.blocks[0].change({"host_name": "i"})
    expected = f"# x\ndefine host {{\n  host_name                      i\n}}{ending}"
    assert file.data().decode() == expected.replace("\n", eol)


@each(
    "same",
    [
        {"host_name": "b", "parents": "x , y", "alias": r"a\;b"},
        {"alias": r"a\;b", "parents": "x,y", "host_name": "b"},
        {"alias": " a;b", "parents": "x,y", "host_name": "b"},
    ],
)
def test_a_change_that_changes_nothing_leaves_the_bytes_alone(same):
    text = block("parents   x , y", "host_name b", r"alias a\;b")
    file = read(text)
    assert not file.blocks[0].change(same)
    assert file.data().decode() == text


def test_changing_back_gives_the_original_text():
    file = read(MESSY)
    found = file.blocks[0]
    before = found.attributes
    found.change({"host_name": "other"})
    found.change({"host_name": "another"})
    assert found.change(before)
    assert file.data().decode() == MESSY
    assert [problem.line for problem in file.problems] == [10, 15]


def test_a_change_clears_what_was_wrong_and_finds_what_is_wrong_now():
    file = read(block("alias one", "alias two", "nonsense x"))
    assert len(file.problems) == 2
    file.blocks[0].change({"alias": "two"})
    assert file.problems == ()
    file.blocks[0].change({"alias": "two", "stuff": "x"})
    assert [problem.message for problem in file.problems] == [
        "unknown attribute: stuff for object type host in x.cfg:1"
    ]


def test_a_missing_brace_is_written_with_the_change():
    file = read("define host\n{\nhost_name h\n}\n")
    file.blocks[0].change({"host_name": "i"})
    assert file.problems == ()
    assert file.data() == b"define host {\n  host_name                      i\n}\n"


def test_the_order_of_date_rules_is_a_change_that_of_others_is_not():
    rules = {"timeperiod_name": "t", "day 2": "00:00-24:00", "day 1": "01:00-02:00"}
    lines = [f"{name} {value}" for name, value in rules.items()]
    (found,) = read(block(*lines, kind="timeperiod")).blocks
    assert not found.change(rules)
    assert found.change(dict(sorted(rules.items())))
    assert list(found.attributes) == ["timeperiod_name", "day 1", "day 2"]


@each(
    ("name", "value"),
    [
        ("", "x"),
        ("}", ""),
        ("{ a", "x"),
        ("a b", "x"),
        ("#a", "x"),
        (";a", "x"),
        ("a;b", "x"),
        ("a\nb", "x"),
        ("define", "host {"),
        ("define", "host"),
        ("checks_enabled", "1"),
        ("a\\", ""),
    ],
)
def test_what_would_not_read_back_is_not_written(name, value):
    file = read(MESSY)
    found = file.blocks[1]
    with pytest.raises(UnwritableError):
        found.change({**found.attributes, name: value})
    with pytest.raises(UnwritableError):
        file.add("host", {"host_name": "h", name: value})
    assert file.data().decode() == MESSY


def test_a_date_rule_without_ranges_is_kept_and_a_problem():
    file = read("")
    added = file.add("timeperiod", {"timeperiod_name": "t", "monday": "none"})
    assert added.attributes["monday"] == "none"
    (problem,) = file.problems
    assert problem.message.startswith("unknown time definition 'monday")
    assert problem.message.endswith(" in x.cfg")


NEW = "define host {\n  host_name                      n\n}\n"


@each(
    ("before", "after"),
    [
        ("", NEW + "\n"),
        ("# note\n", "# note\n\n" + NEW),
        ("# note\n\n", "# note\n\n" + NEW + "\n"),
        (block("host_name h"), block("host_name h") + "\n" + NEW),
        (block("host_name h") + "\n", block("host_name h") + "\n" + NEW + "\n"),
        (block("host_name h").rstrip(), block("host_name h") + "\n" + NEW),
        (block("host_name h") + " \t\n", block("host_name h") + " \t\n" + NEW + "\n"),
        ("\r\n".join(["# note", "", ""]), "# note\r\n\r\n" + (NEW + "\n").replace("\n", "\r\n")),
        ("\ufeff# note\n", "\ufeff# note\n\n" + NEW),
        ("# ends open \\\n", "# ends open \\\n\n" + NEW),
    ],
)
def test_a_new_definition_comes_last_and_can_be_taken_back(before, after):
    file = read(before)
    added = file.add("host", {"host_name": "n"})
    assert (added.line, added.attributes) == (0, {"host_name": "n"})
    assert file.data().decode() == after
    again = read(after)
    assert again.blocks[-1].attributes == added.attributes
    copy = file.copy()
    for taken, item in ((file, added), (copy, copy.blocks[-1])):
        taken.remove(item)
        assert taken.data().decode() == before
    if before.endswith("\n") or not before:
        again.remove(again.blocks[-1])
        assert again.data().decode() == before


def test_what_is_added_is_a_change_away():
    file = read("")
    added = file.add("host", {"host_name": "n"})
    added.change({"host_name": "m", "alias": "x"})
    added.change({"host_name": "n"})
    assert file.data().decode() == NEW + "\n"


A, B, C = (block(f"host_name {name}") for name in "abc")


@each(
    ("text", "index", "expected"),
    [
        (f"{A}\n{B}\n{C}\n", 1, f"{A}\n{C}\n"),
        (f"{A}\n{B}\n{C}\n", 0, f"{B}\n{C}\n"),
        (f"{A}\n{B}\n{C}\n", 2, f"{A}\n{B}\n"),
        (f"{A}\n{B}\n{C}", 2, f"{A}\n{B}"),
        (f"{A}{B}{C}", 1, f"{A}{C}"),
        (f"{A}{B}\n{C}", 1, f"{A}\n{C}"),
        (f"{A}\n{B}{C}", 1, f"{A}\n{C}"),
        (f"# head\n\n# a\n; more\n{A}\n# b\n{B}", 0, f"# head\n\n# b\n{B}"),
        (f"# head\n\n{A}\n# b\n{B}", 1, f"# head\n\n{A}"),
        (f"{A}stray\n# b\n{B}\n{C}", 1, f"{A}stray\n\n{C}"),
        (f"{A}\n# b\n{B}\n\n\n# end\n", 1, f"{A}\n\n\n# end\n"),
        (f"{A}\n# b \\\n# c\n{B}\n", 1, f"{A}\n"),
    ],
)
def test_a_definition_goes_with_the_comments_directly_in_front_of_it(text, index, expected):
    file = read(text)
    file.remove(file.blocks[index])
    assert file.data().decode() == expected
    again = read(text)
    again.remove_all({again.blocks[index]})
    assert again.data().decode() == expected


def test_all_definitions_can_go():
    file = read(f"# head\n\n{A}\n# b\n{B}\n{C}\n# end\n")
    file.remove_all(file.blocks)
    assert file.data() == b"# head\n\n# end\n"
    assert file.empty


def test_a_latin_file_stays_one():
    data = block("alias M\u00fcnchen", "host_name h").encode("latin-1")
    file = ConfigFile.parse("/x.cfg", data)
    file.blocks[0].change({**file.blocks[0].attributes, "host_name": "\u00e9"})
    assert file.data().decode("latin-1") == (
        "define host {\n  host_name                      \u00e9\n"
        "  alias                          M\u00fcnchen\n}\n"
    )
    file.add("host", {"host_name": "\u2713"})
    with pytest.raises(UnicodeEncodeError):
        file.data()
