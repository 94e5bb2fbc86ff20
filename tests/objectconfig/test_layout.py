"""The layout of written definitions."""

from monrest.objectconfig.document import ConfigFile
from monrest.objectconfig.grammar import comment_lines, ordered, split_command
from tests.table import each

LONG = (
    '$USER1$/check_http -H $HOSTADDRESS$ -I "$ARG1$ -x foo" --url=/abc/def --expect "200 OK" '
    "-w 10 -c 20 --timeout=30 | grep -v foo >> /x"
)


def written(kind, attributes, before=b""):
    file = ConfigFile.parse("/x.cfg", before)
    file.add(kind, attributes)
    return file.data().decode()


def test_the_long_command_of_the_description():
    assert (
        written("command", {"command_line": LONG, "command_name": "long"})
        == r"""define command {
  command_name                   long
  command_line                   $USER1$/check_http \
                                    -H $HOSTADDRESS$ \
                                    -I "$ARG1$ -x foo" \
                                    --url=/abc/def \
                                    --expect "200 OK" \
                                    -w 10 \
                                    -c 20 \
                                    --timeout=30 \
                                  | grep \
                                    -v foo \
                                    >> /x
}

"""
    )


@each(
    ("value", "pieces"),
    [
        ("a -b c", ["a ", "-b c"]),
        ("a  -b", ["a  ", "-b"]),
        ("a --long=1 -2", ["a ", "--long=1 -2"]),
        ("a '-b -c' -d", ["a '-b -c' ", "-d"]),
        ('a "x\\" -b" -d', ['a "x\\" -b" ', "-d"]),
        ("a 'open -b -c", ["a 'open -b -c"]),
        ("a | b || c >> d>>e", ["a ", "| b || c ", ">> d>>e"]),
        ("-a b", ["-a b"]),
    ],
)
def test_cuts_of_a_command_line(value, pieces):
    assert split_command(value) == pieces


def test_only_long_command_lines_are_cut():
    short = "x" * (120 - len("command_line") - 3) + " -a"
    assert written("command", {"command_line": short}).count("\n") == 4
    assert written("command", {"command_line": f"x{short}"}).count("\n") == 5
    assert written("command", {"command_line": "x" * 200}).count("\n") == 4
    assert written("host", {"alias": LONG * 2}).count("\n") == 4


def test_the_order_of_attributes():
    names = [
        "_b", "_TAGS", "__x", "_B", "_TYPE", "_APPS", "zebra", "2d_coords", "use", "name",
        "address", "check_command", "alias", "parents", "host_name", "active_checks_enabled",
    ]  # fmt: skip
    assert ordered("host", names) == [
        "name", "host_name", "alias", "address", "parents", "use", "2d_coords",
        "active_checks_enabled", "check_command", "zebra", "_TYPE", "_TAGS", "_APPS", "_B", "__x",
        "_b",
    ]  # fmt: skip


def test_date_rules_stay_in_their_order_because_it_decides():
    names = ["december 25", "january 1", "exclude", "sunday", "monday", "day 1", "timeperiod_name"]
    assert ordered("timeperiod", names) == [
        "timeperiod_name", "monday", "sunday", "exclude", "december 25", "january 1", "day 1",
    ]  # fmt: skip


@each(
    ("kind", "name", "value", "line"),
    [
        ("host", "alias", "a", "  alias                          a"),
        ("host", "alias", "", "  alias"),
        ("host", "_" + "X" * 30, "a", "  _" + "X" * 30 + " a"),
        ("host", "parents", " a , b,, c ", "  parents                        a,b,c"),
        ("host", "parents", "+a, b", "  parents                        +a,b"),
        ("host", "notification_options", "d, u", "  notification_options           d,u"),
        ("host", "alias", "a, b", "  alias                          a, b"),
        ("servicegroup", "members", "a , b, ,c", "  members                        a,b,,c"),
        ("host", "alias", "a;b", r"  alias                          a\;b"),
        ("host", "alias", r"a\;b", r"  alias                          a\;b"),
        ("host", "alias", "a\r\nb\nc", "  alias                          a b c"),
        ("host", "alias", "C:\\", "  alias                          C:\\".ljust(68) + " ;"),
        ("host", "alias", "#x", "  alias                          #x"),
    ],
)
def test_lines(kind, name, value, line):
    assert written(kind, {name: value}) == f"define {kind} {{\n{line}\n}}\n\n"


def test_inline_comments_begin_in_column_69():
    text = "define host {\nalias a; x\naddress; y\n_L " + "l" * 80 + " ;z\nuse u\n}\n"
    (block,) = ConfigFile.parse("/x.cfg", text.encode()).blocks
    assert block.lines() == [
        "define host {",
        "  alias                          a".ljust(68) + " ; x",
        "  address".ljust(68) + " ; y",
        "  use                            u",
        "  _L                             " + "l" * 80 + " ;z",
        "}",
    ]


@each(
    ("comments", "lines"),
    [
        (["#a", "# b", ";c", "; d", "## e", "###"], ["# a", "# b", "# c", "# d", "## e", "###"]),
        (["# a", "#", ";"], ["# a", "#", "#"]),
        (["#", " ;", "## "], []),
        ([], []),
    ],
)
def test_comments(comments, lines):
    assert comment_lines(comments) == lines


def test_a_disabled_definition_has_a_mark_in_front_of_every_line():
    text = f"#define command {{\n#command_name c\n## why\n#command_line {LONG}\n#}}\n"
    (block,) = ConfigFile.parse("/x.cfg", text.encode()).blocks
    block.change({**block.attributes, "command_name": "d"})
    lines = block.text.splitlines()
    assert lines[:4] == [
        "# why",
        "#define command {",
        "#  command_name                   d",
        "#  command_line                   $USER1$/check_http \\",
    ]
    assert all(line.startswith("#") for line in lines)
    (again,) = ConfigFile.parse("/x.cfg", block.text.encode()).blocks
    assert again.disabled
    assert again.attributes == {"command_name": "d", "command_line": LONG}
