"""Reading object files without losing anything."""

from monrest.objectconfig.document import ConfigFile, comments_of, place
from tests.table import each

VECTOR = b"""\
# first
### second
;third
define host {
  host_name   w1  ; inline
  alias       Web 1
  use         generic-host
  hostgroups  +web
  _foo        bar
  __x         y
}
# trailing
"""


def read(text, path="/etc/core/conf.d/x.cfg"):
    data = text if isinstance(text, bytes) else text.encode()
    file = ConfigFile.parse(path, data)
    assert file.data() == data
    return file


def block(*lines, kind="host"):
    return f"define {kind} {{\n" + "".join(f"{line}\n" for line in lines) + "}\n"


def only(*lines, kind="host"):
    file = read(block(*lines, kind=kind))
    assert file.problems == ()
    (found,) = file.blocks
    return found


def messages(text):
    return [problem.message for problem in read(text).problems]


def test_the_vector_of_the_description():
    file = read(VECTOR)
    (found,) = file.blocks
    assert (found.type, found.line, found.disabled) == ("host", 4, False)
    assert found.attributes == {
        "host_name": "w1",
        "alias": "Web 1",
        "use": "generic-host",
        "hostgroups": "+web",
        "_foo": "bar",
        "__x": "y",
    }
    assert found.inline == {"host_name": "; inline"}
    assert found.comments == ["# first", "### second", ";third"]
    assert comments_of(file.trailer) == ["# trailing"]
    assert file.problems == ()


@each(
    ("lines", "value", "comment"),
    [
        (["alias a b  c"], "a b  c", None),
        (["alias\ta b\t"], "a b", None),
        (["  alias   padded  "], "padded", None),
        (["alias"], "", None),
        (["alias ; none"], "", "; none"),
        (["alias x # kept"], "x # kept", None),
        (["alias x;tight"], "x", ";tight"),
        (["alias http://x/#a"], "http://x/#a", None),
        ([r"alias a\; b"], r"a\; b", None),
        ([r"alias a\; b ; c\; d"], r"a\; b", r"; c\; d"),
        ([r"alias a\\nb"], r"a\\nb", None),
        (["alias one \\", "   two"], "one two", None),
        (["alias one\\", "two"], "onetwo", None),
        (["alias one \\", "two \\", "  three ; c"], "one two three", "; c"),
        (["alias two \\\\", "address b"], "two \\\\", None),
        (["alias blank behind \\ ", "address b"], "blank behind \\", None),
        (["alias a\u00a0b\u00a0"], "a\u00a0b\u00a0", None),
        (["alias a\u2028b\u0085"], "a\u2028b\u0085", None),
        (["alias a\vb\x1c"], "a\vb\x1c", None),
        (["alias define host {"], "define host {", None),
        (["alias ${x} }"], "${x} }", None),
    ],
)
def test_values(lines, value, comment):
    found = only("host_name h", *lines)
    assert found.attributes["alias"] == value
    assert found.inline.get("alias") == comment


@each("head", ["define host {", "define host{", "  define\thost  {  lost text"])
def test_define_lines(head):
    (found,) = read(f"{head}\nhost_name h\n}} ; end\n").blocks
    assert found.attributes == {"host_name": "h"}


def test_lines_go_on_after_a_line_end_of_either_kind():
    found = read("define host {\r\nalias a \\\r\n  b\r\n}\r\n").blocks[0]
    assert found.attributes == {"alias": "a b"}


def test_a_comment_that_goes_on_takes_the_next_line_with_it():
    file = read("# note \\\ndefine host {\nhost_name a\n}\n" + block("host_name b"))
    assert [found.attributes["host_name"] for found in file.blocks] == ["b"]


def test_names_become_canonical_and_unknown_ones_are_kept():
    file = read(block("checks_enabled 0", "hosts x", "_Foo a", "failure_prediction_enabled 1"))
    (found,) = file.blocks
    assert found.attributes == {
        "active_checks_enabled": "0",
        "hosts": "x",
        "_Foo": "a",
        "failure_prediction_enabled": "1",
    }
    assert [problem.text for problem in file.problems] == [
        "unknown attribute: hosts for object type host"
    ]


@each(
    ("kind", "lines", "name", "value"),
    [
        ("hostgroup", ["members a", "members b,c"], "members", "a,b,c"),
        ("hostgroup", ["members", "members b"], "members", "b"),
        ("hostgroup", ["members a", "members"], "members", "a"),
        ("host", ["alias one", "alias two"], "alias", "two"),
        ("host", ["check_interval 1", "normal_check_interval 2"], "check_interval", "2"),
    ],
)
def test_repeated_lines(kind, lines, name, value):
    (found,) = read(block(*lines, kind=kind)).blocks
    assert found.attributes == {name: value}


def test_only_repeated_lines_that_differ_and_are_not_joined_are_duplicates():
    file = read(
        block("alias one", "alias two", "alias two")
        + block("members a", "members b", kind="hostgroup")
    )
    (problem,) = file.problems
    assert problem.message == "duplicate attribute alias in 'alias two' in x.cfg:3"
    assert not problem.fatal


def test_date_rules_are_split_before_the_first_range():
    found = only(
        "timeperiod_name t",
        "alias Always 00:00-24:00",
        "december 25            00:00-00:00",
        "monday 1 january - friday 2 march / 2\t01:00-02:00",
        "2025-01-01 - 2025-02-01 / 3 01:00-02:00,03:00-04:00 ; some",
        "sunday  7:00-8:00, 9:00-10:00",
        kind="timeperiod",
    )
    assert found.attributes == {
        "timeperiod_name": "t",
        "alias": "Always 00:00-24:00",
        "december 25": "00:00-00:00",
        "monday 1 january - friday 2 march / 2": "01:00-02:00",
        "2025-01-01 - 2025-02-01 / 3": "01:00-02:00,03:00-04:00",
        "sunday": "7:00-8:00, 9:00-10:00",
    }


@each("mark", ["#", ";", " # ", "#\t"])
def test_disabled_definitions(mark):
    lines = ["define command {", "  command_name c ; x", "# why", "command_line a \\", "  b", "}"]
    file = read(
        "# in front\n" + "".join(f"{mark}{line}\n" for line in lines) + block("host_name h")
    )
    off, on = file.blocks
    assert (off.disabled, off.line, on.disabled, on.line) == (True, 2, False, 8)
    assert off.attributes == {"command_name": "c", "command_line": "a b"}
    assert off.comments == ["# in front", "# why"]
    assert file.problems == ()


@each(
    "text",
    [
        "# define host { as you like\n#   host_name x\n# }\n",
        "# define nonsense {\n# x y\n# }\n",
        "# define host\n# {\n# }\n",
        "# define host { host_name x }\n",
        "#define host {\n#host_name x\n",
        "#define host {\n#host_name x\n\n; }x\n",
    ],
)
def test_comments_that_only_look_like_disabled_definitions(text):
    file = read(text + block("host_name h"))
    (found,) = file.blocks
    assert (found.attributes, file.problems) == ({"host_name": "h"}, ())


def test_a_disabled_definition_is_one_only_when_all_of_its_lines_are_comments():
    file = read("#define host {\n#host_name x\nalias y\n#}\n")
    assert file.blocks == []
    assert [problem.message for problem in file.problems] == [
        "syntax invalid: 'alias y' in x.cfg:3"
    ]


def test_unknown_attributes_of_a_disabled_definition_are_no_problem():
    file = read("#define host {\n#nonsense x\n#}\n")
    assert file.blocks[0].attributes == {"nonsense": "x"}
    assert file.problems == ()


def test_a_comment_in_a_definition_may_look_like_a_definition():
    found = only("host_name h", "#define host {", "alias a")
    assert found.attributes == {"host_name": "h", "alias": "a"}


@each(
    ("text", "expected"),
    [
        ("host_name h\n", ["syntax invalid: 'host_name h' in x.cfg:1"]),
        ("\n}\n", ["unexpected end of object in x.cfg:2"]),
        ("} ; c\n", ["unexpected end of object in x.cfg:1"]),
        ("define nonsense {\nx y\n}\n", ["unknown object type 'nonsense' in x.cfg:1"]),
        (
            "define host {\nnonsense 1\n}\n",
            ["unknown attribute: nonsense for object type host in x.cfg:2"],
        ),
        ("define host {\n_ 1\n}\n", ["unknown attribute: _ for object type host in x.cfg:2"]),
        (
            "define command {\n_x 1\n}\n",
            ["unknown attribute: _x for object type command in x.cfg:2"],
        ),
        (
            "define host {\nalias a\nalias b ; c\n}\n",
            ["duplicate attribute alias in 'alias b' in x.cfg:3"],
        ),
        (
            "define host {\nhost_name h\n",
            ["expected end of object in /etc/core/conf.d/x.cfg:2"],
        ),
        ("define nonsense {\n", [
            "unknown object type 'nonsense' in x.cfg:1",
            "expected end of object in /etc/core/conf.d/x.cfg:1",
        ]),
        (
            "define timeperiod {\nsomeday soon\n}\n",
            ["unknown time definition 'someday soon' in x.cfg:2"],
        ),
        (
            "define host { host_name h }\n",
            [
                "syntax invalid: 'define host { host_name h }' (a definition needs more than one "
                "line) in x.cfg:1"
            ],
        ),
        (
            "define host\n{\nhost_name h\n}\n",
            ["syntax invalid: 'define host' (the brace is missing on the define line) in x.cfg:1"],
        ),
        (
            "define host {\nhost_name a\ndefine host {\nhost_name b\n}\n",
            [
                "syntax invalid: 'define host {' (a definition begins inside another one) "
                "in x.cfg:3"
            ],
        ),
        (
            "define host {\n} # end\n}\n",
            ["unknown attribute: } for object type host in x.cfg:2"],
        ),
        (
            "\ufeffdefine host {\nhost_name h\n}\n",
            ["syntax invalid: '\ufeffdefine host {' (byte order mark) in x.cfg:1"],
        ),
    ],
)  # fmt: skip
def test_problems(text, expected):
    assert messages(text) == expected


def test_what_is_wrong_leaves_the_other_definitions_alone():
    file = read(
        "define nonsense {\nhost_name x\n}\n" + block("host_name a") + "stray\n"
        + "define host {\nhost_name lost\n" + block("host_name b") + "}\n" + block("host_name c")
    )  # fmt: skip
    assert [found.attributes["host_name"] for found in file.blocks] == ["a", "b", "c"]
    assert [problem.line for problem in file.problems] == [1, 7, 10, 13]


def test_a_problem_names_file_and_line():
    problem = read("stray\n").problems[0]
    assert str(problem) == "/etc/core/conf.d/x.cfg:1: syntax invalid: 'stray'"
    assert place("/a/b.cfg", 0) == "b.cfg"


def test_includes_are_known_and_no_problem():
    file = read("include_file=one.cfg\ninclude_dir = two\n" + block("host_name h"))
    assert [(item.kind, item.path, item.line) for item in file.includes] == [
        ("include_file", "one.cfg", 1),
        ("include_dir", "two", 2),
    ]
    assert file.problems == ()


@each(
    ("data", "encoding", "alias"),
    [
        (block("alias M\u00fcnchen \u2713").encode(), "utf-8", "M\u00fcnchen \u2713"),
        (block("alias M\u00fcnchen").encode("latin-1"), "latin-1", "M\u00fcnchen"),
        (block("alias \u2713").encode() + b"# \xff\n", "latin-1", "\u00e2\u009c\u0093"),
        (b"\xef\xbb\xbf" + block("alias bom").encode(), "utf-8", "bom"),
        (block("alias lines").replace("\n", "\r\n").encode(), "utf-8", "lines"),
        (b"define host {\r\nalias mixed\n}\r\n", "utf-8", "mixed"),
        (b"define host {\nalias no end\n}", "utf-8", "no end"),
        (b"define host {\n\talias\0zero\n}", "utf-8", None),
    ],
)
def test_bytes_are_kept(data, encoding, alias):
    file = read(data)
    assert file.encoding == encoding
    assert file.blocks[0].attributes.get("alias") == alias


def test_what_the_encoding_of_a_file_can_express():
    latin = read(b"# \xe9\n")
    assert (latin.encodable("\u00e9"), latin.encodable("\u2713")) == (True, False)
    assert read(b"# e\n").encodable("\u2713")
    assert not read(b"").encodable("\ud800")


@each(
    ("text", "empty"),
    [
        ("", True),
        ("# note\n\n", True),
        (block("host_name h"), False),
        ("#" + block("host_name h").replace("\n", "\n#"), False),
        ("stray\n", False),
        ("include_file=x.cfg\n", False),
    ],
)
def test_a_file_is_empty_without_anything_to_keep(text, empty):
    assert read(text).empty is empty


def test_the_lines_of_attributes():
    file = read("#\n\n" + block("", "host_name h", "alias a \\", "b", "address c"))
    assert file.blocks[0].places() == {"host_name": 5, "alias": 6, "address": 8}
