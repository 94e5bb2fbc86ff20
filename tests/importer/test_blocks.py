"""The syntax of the old configuration, a line at a time and whole."""

from hypothesis import given
from hypothesis import strategies as some

from monrest.importer.blocks import items, parse
from tests.table import each


def pairs(text):
    block, problems = parse(text.encode(), "x")
    assert not problems
    return [(one.key, one.value) for one in block.settings]


@each(
    "text, expected",
    [
        ("a = b", ("a", "b")),
        ("a=b", ("a", "b")),
        ("a =b c ", ("a", "b c")),
        ("a= b", ("a", "b")),
        ("a b  c", ("a", "b  c")),
        ("n=a=b", ("n=a", "b")),
        ("n = a=b", ("n", "a=b")),
        ("l == x", ("l", "= x")),
        ("k != x", ("k", "!= x")),
        ("m ~ ^re$", ("m", "~ ^re$")),
        ("e =", ("e", "")),
        ('q = " two "', ("q", " two ")),
        ("q = 'two'", ("q", "two")),
        ('q = "open', ("q", '"open')),
        ("c = a # b", ("c", "a")),
        ('c = "a # b"', ("c", '"a')),
        ("c = a#b", ("c", "a#b")),
        (r"c = a\#b", ("c", "a#b")),
        ("j = one \\\n   two", ("j", "one two")),
        ("j = one \\\n# no\n", ("j", "one")),
        ("include = /etc/passwd", ("include", "/etc/passwd")),
        ("ü = ß", ("ü", "ß")),
    ],
)
def test_a_line_is_a_key_and_a_value(text, expected):
    assert pairs(text) == [expected]


def test_blocks_nest_and_those_of_a_name_are_joined():
    text = """
        <Component A>
          <peer>
            name = one
            <options>
              peer = x
            </OPTIONS>
          </peer>
          k = 1
        </component>
        <Component A>
          k = 2
        </Component>
    """
    block, problems = parse(text.encode(), "x")
    assert problems == []
    whole = block.joined("Component", "A")
    assert (whole.text("k"), [one.value for one in whole.all("k")]) == ("2", ["1", "2"])
    (peer,) = whole.inner("peer")
    assert (peer.text("name"), peer.joined("options").text("peer")) == ("one", "x")
    assert peer.where == "x:3"


@each(
    "content, where, reason",
    [
        (b"alone", "x:1", "a key and a value"),
        (b"\n= x", "x:2", "a key and a value"),
        (b"a = 1\n</peer>", "x:2", "not open"),
        (b"<peer>\na = 1", "x:1", "</peer>"),
        (b"<>", "x:1", "<word>"),
        (b"a = \xff", "x:1", "UTF-8"),
        (b"a\0b", "x", "binary"),
        (b"a = " + b"x" * 70_000, "x:1", "at most"),
        (b"a = 1\\\n" * 20_000, "x:", "at most"),
        (b"<a" + b" " * 60_000 + b"b", "x:1", "<word>"),
        (b"<a>" + b"\n<a>" * 40, "x:21", "blocks in blocks"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(content, where, reason):
    _, problems = parse(content, "x")
    assert any(
        (one.where == where or (where[-1] == ":" and where in one.where)) and reason in one.reason
        for one in problems
    ), problems


def test_a_problem_does_not_show_the_line():
    _, problems = parse(b"pass-word\n<pass-word", "x")
    assert len(problems) == 2
    assert "pass-word" not in str(problems)


def test_a_list_is_what_comes_after_the_last_empty_one():
    block, _ = parse(b"k = a, b\nk =\nk = c\nk = d,c", "x")
    assert items(block.all("k")) == ["c", "d"]
    assert items(block.all("k"), commas=False) == ["c", "d,c"]


@given(some.binary(max_size=300))
def test_no_content_breaks_it(content):
    parse(content, "x")
    parse(content.replace(b"\0", b"<").replace(b"a", b"\n"), "x")
