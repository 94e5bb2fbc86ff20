"""Values between JSON and the text of a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.objectconfig.attributes import core_text, object_type, texts, to_json
from monrest.objectconfig.document import ConfigFile, UnwritableError
from tests.table import each


@each(
    ("kind", "name", "value", "text"),
    [
        ("host", "alias", "Web 1", "Web 1"),
        ("host", "max_check_attempts", 5, "5"),
        ("host", "check_interval", 0.5, "0.5"),
        ("host", "check_interval", 3.0, "3"),
        ("host", "active_checks_enabled", True, "1"),
        ("host", "active_checks_enabled", False, "0"),
        ("host", "parents", ["a", " b ", ""], "a,b"),
        ("host", "parents", "a , b,,c", "a,b,c"),
        ("host", "parents", [], ""),
        ("host", "use", ["t1", "t2"], "t1,t2"),
        ("host", "hostgroups", "+web", "+web"),
        ("host", "alias", ["a", "b"], "a,b"),
        ("host", "alias", "two\r\nlines", "two lines"),
        ("host", "notes", "a;b", r"a\;b"),
        ("host", "notes", r"a\;b", r"a\;b"),
        ("host", "notes", "  x  ", "x"),
        ("host", "_VAR", 7, "7"),
        ("host", "event_handler", "h!a", "h!a"),
        ("service", "parents", "h,s", "h,s"),
        ("servicegroup", "members", ["h", "s"], "h,s"),
        ("host", "alias", "", ""),
        ("host", "alias", None, None),
        ("timeperiod", "december  25", "00:00-00:00", "00:00-00:00"),
    ],
)
def test_values_of_requests(kind, name, value, text):
    (found,) = texts(kind, {name: value}).values()
    assert found == text


@each(
    ("kind", "given_name", "name"),
    [
        ("contact", "contact_groups", "contactgroups"),
        ("service", "hosts", "host_name"),
        ("host", "checks_enabled", "active_checks_enabled"),
        ("host", "whatever", "whatever"),
        ("timeperiod", " december   25 ", "december 25"),
    ],
)
def test_names_of_requests(kind, given_name, name):
    assert texts(kind, {given_name: "1"}) == {name: "1"}


def test_meta_attributes_are_left_out():
    assert texts("host", {":ID": "x", ":FILE": {}, ":anything": 1, "alias": "a"}) == {"alias": "a"}


@each(
    ("name", "value"),
    [
        ("alias", {"a": 1}),
        ("parents", [["a"]]),
        ("parents", ["a", None]),
        ("alias", float("nan")),
        ("alias", "a\x00b"),
        ("alias", "\x1b[0m"),
        ("alias", "\ud800"),
        ("", "x"),
        ("a b", "x"),
        ("a\nb", "x"),
        ("#x", "x"),
        (";x", "x"),
        ("a;b", "x"),
        ("}", "x"),
        ("define", "x"),
        ("x" * 300, "x"),
    ],
)
def test_what_is_refused(name, value):
    with pytest.raises(BadRequest) as caught:
        texts("host", {name: value})
    assert caught.value.description.startswith(name[:200].encode("utf-8", "replace").decode())


def test_an_attribute_and_its_alias():
    with pytest.raises(BadRequest, match="obsess"):
        texts("host", {"obsess_over_host": 1, "obsess": 0})


def test_the_core_reads_an_escaped_semicolon():
    assert core_text(r"a\; b\\n") == r"a; b\\n"


def test_types():
    assert object_type("host").name == "host"
    for word in ("nothing", "", None, 5, ["host"]):
        with pytest.raises(BadRequest, match=":TYPE"):
            object_type(word)


@each(
    ("kind", "name", "text", "value"),
    [
        ("host", "parents", "a, b,", ["a", "b"]),
        ("host", "notification_options", "d,u", ["d", "u"]),
        ("host", "2d_coords", "1,2", "1,2"),
        ("host", "max_check_attempts", "5", "5"),
        ("host", "contacts", "null", ["null"]),
        ("host", "contacts", "", []),
        ("host", "check_command", "c!a,b", "c!a,b"),
        ("host", "event_handler", "c", ["c"]),
        ("contact", "host_notification_commands", "a,b", ["a", "b"]),
        ("service", "parents", "h,s", "h,s"),
        ("servicegroup", "members", "h,s", ["h", "s"]),
        ("hostextinfo", "host_name", "a,b", "a,b"),
        ("hostextinfo", "use", "a,b", ["a", "b"]),
        ("timeperiod", "monday", "09:00-10:00,11:00-12:00", "09:00-10:00,11:00-12:00"),
        ("timeperiod", "december 25", "00:00-00:00", "00:00-00:00"),
        ("host", "_X", "a,b", "a,b"),
        ("host", "unknown", "a,b", "a,b"),
    ],
)
def test_values_in_answers(kind, name, text, value):
    assert to_json(kind, name, text) == value


NAMES = st.sampled_from(["alias", "parents", "check_command", "_x", "notes", "use", "unknown"])
VALUES = st.recursive(
    st.text() | st.integers() | st.booleans() | st.floats(), st.lists, max_leaves=4
)


@given(st.dictionaries(NAMES | st.text(max_size=8), VALUES, max_size=4))
def test_what_is_accepted_reads_back_as_it_is(values):
    """For any request the file has exactly the definition that was meant."""
    try:
        wanted = {name: text for name, text in texts("host", values).items() if text is not None}
        file = ConfigFile.parse("x.cfg", b"")
        file.add("host", wanted)
    except (BadRequest, UnwritableError):
        return
    again = ConfigFile.parse("x.cfg", file.data())
    assert [(block.type, block.attributes) for block in again.blocks] == [("host", wanted)]
    assert not [p for p in again.problems if not p.text.startswith("unknown attribute")]
