"""Object files to definitions: the grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.objectconfig.attributes import core_text
from monrest.objectconfig.document import ConfigFile, comments_of


def block(*lines, kind="host"):
    return f"define {kind} {{\n" + "\n".join(lines) + "\n}\n"


def parse(text):
    return ConfigFile.parse_text("x.cfg", text)


def only(text):
    parsed = parse(text)
    assert [problem for problem in parsed.problems if problem.fatal] == []
    (found,) = parsed.blocks
    return found.attributes


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("alias a b  c", "a b  c"),
        ("alias\ta b", "a b"),
        ("   alias   padded   ", "padded"),
        ("alias", ""),
        ("alias value # not a comment", "value # not a comment"),
        ("alias value ; a comment", "value"),
        ("alias value;tight", "value"),
        (r"alias a\; b", r"a\; b"),
        (r"alias a\\nb", r"a\\nb"),
        ("alias one \\\n   two", "one two"),
        ("alias ends with two \\\\", "ends with two \\\\"),
    ],
)
def test_values(line, value):
    assert only(block(line))["alias"] == value


def test_the_core_reads_an_escaped_semicolon():
    assert core_text(r"a\; b\\n") == r"a; b\\n"


@pytest.mark.parametrize("head", ["define host {", "define host{", "  define\thost  {  lost text"])
def test_define_lines(head):
    assert only(f"{head}\nhost_name h\n}} ; end\n")["host_name"] == "h"


def test_aliases_become_canonical_names():
    found = only(block("host_groups a", "normal_check_interval 3", "_Foo bar"))
    assert list(found) == ["hostgroups", "check_interval", "_Foo"]


def test_places_and_comments_are_kept():
    text = "# one\n; two\n" + block("# three", "host_name h ; four") + "# after\n"
    parsed = parse(text)
    (found,) = parsed.blocks
    assert found.line == 3
    assert found.comments == ["# one", "; two", "# three"]
    assert found.places()["host_name"] == 5
    assert found.inline == {"host_name": "; four"}
    assert comments_of(parsed.trailer) == ["# after"]


def test_repeated_lines_join_where_the_core_joins_them():
    group = only(block("hostgroup_name g", "members a", "members b", kind="hostgroup"))
    assert group["members"] == "a,b"
    assert only(block("alias one", "alias two"))["alias"] == "two"


def test_disabled_definitions_are_flagged():
    text = "#define host {\n#  host_name off\n#}\n" + block("host_name on")
    first, second = parse(text).blocks
    assert (first.disabled, first.attributes["host_name"]) == (True, "off")
    assert (second.disabled, second.attributes["host_name"]) == (False, "on")


def test_date_rules_are_split_before_the_first_range():
    period = only(
        block("sunday 1  02:00-06:00", "sunday 00:00-24:00", "december 25 00:00-00:00",
              "monday 1 january - friday 2 march / 2 1:00-2:00,3:00-4:00", kind="timeperiod")
    )  # fmt: skip
    assert period == {
        "sunday 1": "02:00-06:00",
        "sunday": "00:00-24:00",
        "december 25": "00:00-00:00",
        "monday 1 january - friday 2 march / 2": "1:00-2:00,3:00-4:00",
    }


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("host_name h\n", 1, "syntax invalid: 'host_name h'"),
        ("define nonsense {\nx y\n}\n", 1, "unknown object type 'nonsense'"),
        ("define host {\nnonsense 1\n}\n", 2, "unknown attribute: nonsense for object type host"),
        ("define host {\nhost_name a\ndefine host {\nhost_name b\n}\n", 3, "inside"),
        ("define host\n{\n", 1, "brace"),
        ("define host { host_name h }\n", 1, "more than one line"),
        ("define host {\nhost_name h\n", 2, "expected end of object"),
        ("define host {\nhost_name h\n} # end\n", 3, "unknown attribute: }"),
        ("define command {\n_foo bar\n}\n", 2, "unknown attribute: _foo"),
        ("define host {\n_ bar\n}\n", 2, "unknown attribute: _ "),
        ("define timeperiod {\nsomeday soon\n}\n", 2, "unknown time definition"),
    ],
)
def test_problems_name_the_line(text, line, says):
    problem = parse(text).problems[0]
    assert problem.line == line
    assert says in problem.text
    assert str(problem).startswith(f"x.cfg:{line}: ")


@given(st.text(alphabet="define host{}\n#;\\_ a1:-,", max_size=200))
def test_no_text_breaks_the_parser(text):
    parsed = parse(text)
    assert all(problem.text for problem in parsed.problems)
