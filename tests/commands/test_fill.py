"""From arguments to lines: every template, comments that go along, what is deleted by lookup."""

import re
import unicodedata
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.commands.arguments import Defaults, parse
from monrest.commands.fill import LONGEST_ARGUMENTS, orders, removal
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import ALL, find
from monrest.livestatus.command import CoreCommand, Target
from monrest.livestatus.external import line
from tests.commands.reading import VALUES, sample, values_of
from tests.examples import examples
from tests.table import each

NOW = 1795000000
UNLOCKED = Defaults(user="omar", now=NOW, zone=UTC, config=CommandsConfig(lock_author_names=False))
UNDOING = [one for one in ALL if not one.lookup and removal(one, Target(one.kind, "own"), {}, NOW)]


def target_of(kind, name="own", service="svc"):
    if kind == "sites":
        return Target("sites")
    return Target(kind, name, service if kind == "services" else "")


def test_braces_in_values_are_no_placeholders():
    command = find("hosts", "add_host_comment")
    given = {
        "persistent_comment": "1",
        "comment_author": "{comment_data}",
        "comment_data": "{host}",
    }
    (order,) = orders(command, Target("hosts", "[|{comment_data}]"), given)
    assert order.fields == ("[|{comment_data}]", "1", "{comment_data}", "{host}")


def test_performance_data_only_when_there_is_some():
    command = find("services", "process_service_check_result")
    given = {"plugin_state": "2", "plugin_output": "bad", "performance_data": ""}
    (order,) = orders(command, target_of("services"), given)
    assert order == CoreCommand(
        "PROCESS_SERVICE_CHECK_RESULT", ("own", "svc", "2", "bad"), "output"
    )
    (order,) = orders(command, target_of("services"), {**given, "performance_data": "a=1;2"})
    assert order.fields[-1] == "bad|a=1;2"


@each("kind", ["hosts", "hostgroups", "servicegroups", "contacts"])
@each("name", ["", "a;b", "a\nb", "a\rb", "a\x00b", "a\x85b", "\ud800"])
def test_names_that_would_break_a_line(kind, name):
    command = next(one for one in ALL if one.kind == kind)
    with pytest.raises(BadRequest) as raised:
        orders(command, Target(kind, name), sample(command))
    assert kind.removesuffix("s") in raised.value.message


@pytest.mark.parametrize(("host", "service"), [("", "s"), ("h", ""), ("h;", "s"), ("h", "s\n")])
def test_names_of_services_that_would_break_a_line(host, service):
    command = find("services", "enable_svc_check")
    with pytest.raises(BadRequest):
        orders(command, Target("services", host, service), {})


def test_names_are_not_changed():
    command = find("services", "enable_svc_check")
    (order,) = orders(command, Target("services", " C:\\x ", "Größe 😀|*"), {})
    assert order.fields == (" C:\\x ", "Größe 😀|*")


def test_commands_have_a_longest_length():
    command = find("sites", "log")
    orders(command, Target("sites"), {"log": "x" * LONGEST_ARGUMENTS})
    with pytest.raises(BadRequest, match="too long"):
        orders(command, Target("sites"), {"log": "x" * (LONGEST_ARGUMENTS + 1)})
    with pytest.raises(BadRequest, match="too long"):
        orders(command, Target("sites"), {"log": "ü" * (LONGEST_ARGUMENTS // 2 + 1)})


TEXTS = st.text(st.characters(), max_size=12) | st.text(
    st.sampled_from(["a", ";", "\n", "\r", "\\", "n", "|", "{", "}", "\x00", " ", "[", "é", "😀"]),
    max_size=12,
)


@settings(max_examples=examples(400))
@given(st.data())
def test_any_text_is_refused_or_stays_one_field(data):
    """What a core splits a line into is what was sent; nothing shifts and nothing is added."""
    command = data.draw(st.sampled_from(ALL))
    sent = {}
    for one in command.arguments:
        sound = st.just("+1h" if one.name == "end_time" else VALUES.get(one.type, "text"))
        sent[one.name] = data.draw(sound | TEXTS)
    target = Target(command.kind)
    if command.kind != "sites":
        target = Target(command.kind, data.draw(TEXTS | st.just("own")))
    if command.kind == "services":
        target = Target("services", target.name, data.draw(TEXTS | st.just("svc")))
    try:
        arguments = parse(command, values_of(sent), UNLOCKED)
        found = orders(command, target, arguments)
    except BadRequest:
        return
    for order in found:
        _check_line(order)
        names = [name for name in (target.name, target.service) if name]
        assert list(order.fields[: len(names)]) == names or command.frontend
        _check_texts(command, sent, arguments)


def _check_line(order):
    text = line(order, NOW, decodes_backslashes=False)
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
    head, _, rest = text.partition(";")
    assert head == f"COMMAND [{NOW}] {order.name}"
    split = rest.split(";") if order.last == "field" else rest.split(";", len(order.fields) - 1)
    assert tuple(split) == (order.fields or ("",))
    doubled = line(order, NOW, decodes_backslashes=True)
    # A core that decodes gets the same, apart from the newlines of plugin output.
    decoded = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], doubled)
    assert decoded.replace("\n", "\\n") == text


def _check_texts(command, sent, arguments):
    for one in command.arguments:
        if one.type == "string" and one.name not in ("comment_data", "plugin_output", "log"):
            default = "omar" if one.name == "comment_author" else ""
            assert arguments[one.name] in (sent[one.name], default)


def test_the_comment_of_a_disabling_command():
    given = {"comment_author": "omar", "comment_data": "why; not"}
    assert orders(find("hosts", "disable_host_check"), Target("hosts", "h"), given) == (
        CoreCommand("DISABLE_HOST_CHECK", ("h",)),
        CoreCommand("ADD_HOST_COMMENT", ("h", "1", "omar", "DISABLE_HOST_CHECK: why; not"), "text"),
    )
    assert orders(find("services", "disable_svc_check"), target_of("services"), given)[1] == (
        CoreCommand(
            "ADD_SVC_COMMENT", ("own", "svc", "1", "omar", "DISABLE_SVC_CHECK: why; not"), "text"
        )
    )
    assert len(orders(find("hosts", "disable_host_check"), Target("hosts", "h"), {})) == 1


def test_enabling_takes_the_comments_of_disabling_away():
    assert {(one.name, removal(one, target_of(one.kind), {}, NOW).about) for one in UNDOING} == {
        ("enable_host_check", "DISABLE_HOST_CHECK"),
        ("enable_host_svc_checks", "DISABLE_HOST_SVC_CHECKS"),
        ("enable_host_and_child_notifications", "DISABLE_HOST_AND_CHILD_NOTIFICATIONS"),
        ("enable_host_notifications", "DISABLE_HOST_NOTIFICATIONS"),
        ("enable_host_svc_notifications", "DISABLE_HOST_SVC_NOTIFICATIONS"),
        ("enable_host_event_handler", "DISABLE_HOST_EVENT_HANDLER"),
        ("enable_svc_check", "DISABLE_SVC_CHECK"),
        ("enable_svc_notifications", "DISABLE_SVC_NOTIFICATIONS"),
        ("enable_svc_event_handler", "DISABLE_SVC_EVENT_HANDLER"),
    }
    # Each has its opposite, which makes the comment.
    opposites = {(one.kind, one.name.replace("enable", "disable")) for one in UNDOING}
    assert opposites == {(one.kind, one.name) for one in ALL if one.wants_comment}


def test_only_comments_of_the_command_are_taken_away():
    found = removal(find("hosts", "enable_host_check"), Target("hosts", "h"), {}, NOW)
    assert found.table == "comments"
    assert found.matches(1, "DISABLE_HOST_CHECK: why", 0)
    assert found.matches(1, "DISABLE_HOST_CHECK", 0)
    assert not found.matches(1, "DISABLE_HOST_CHECKS: why", 0)
    assert not found.matches(1, "see DISABLE_HOST_CHECK: why", 0)
    assert found.orders([4, 5]) == (
        CoreCommand("DEL_HOST_COMMENT", ("4",)),
        CoreCommand("DEL_HOST_COMMENT", ("5",)),
    )
