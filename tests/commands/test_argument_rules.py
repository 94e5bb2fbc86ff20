"""What no argument may do: break a line, be too long, end too early, come without a comment."""

import pytest

from monrest.base.errors import BadRequest
from monrest.commands.arguments import parse
from monrest.livestatus.catalogue import ALL, find
from tests.commands.reading import NOW, PLAIN, argument, configured, read, refused, values_of
from tests.table import each

CONTROL = [*map(chr, range(32)), "\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ud800"]
SOME = {
    "boolean": "1",
    "integer": "1",
    "timestamp": "now",
    "duration": "5m",
    "timeperiod": "p",
    "hostgroup": "g",
    "string": "s",
}


def _good(command):
    good = {one.name: SOME[one.type] for one in command.arguments}
    return {**good, "end_time": "+1h"} if "end_time" in good else good


@each("command", ALL, ids=lambda one: f"{one.kind}-{one.name}")
def test_control_characters_reach_no_argument(command):
    unlocked = configured(lock_author_names=False)
    good = _good(command)
    parse(command, values_of(good), unlocked)
    for one in command.arguments:
        for character in CONTROL:
            given = {**good, one.name: f"{good[one.name]}{character}{good[one.name]}"}
            if one.name in ("comment_data", "plugin_output", "log") and character in "\t\r\n":
                found = parse(command, values_of(given), unlocked)[one.name]
                line_end = "\\n" if one.name == "plugin_output" and character != "\t" else " "
                assert found == f"s{line_end}s"
            else:
                with pytest.raises(BadRequest) as raised:
                    parse(command, values_of(given), unlocked)
                assert one.name in raised.value.message + raised.value.description


def test_a_line_end_of_two_characters_is_one():
    assert argument("sites", "log", "log", "a\r\nb\rc\td") == "a b c d"
    found = argument("hosts", "process_host_check_result", "plugin_output", "a\r\nb\nc\\nd\te")
    assert found == "a\\nb\\nc\\nd e"


def test_downtimes_that_are_too_long():
    defaults = configured(downtime_max_duration=86400.0)
    text = "Downtime duration exceeds maximum allowed duration: 1d 0h 0m 0s"
    exactly = {"comment": "x", "start_time": "now", "end_time": "+1d"}
    for kind, name in (
        ("hosts", "schedule_host_downtime"),
        ("hosts", "schedule_and_propagate_triggered_host_downtime"),
        ("services", "schedule_svc_downtime"),
        ("servicegroups", "schedule_servicegroup_host_downtime"),
    ):
        read(kind, name, defaults, **exactly, duration="1d")
        assert refused(kind, name, defaults, **{**exactly, "end_time": "+1d + 1s"})[0] == text
        assert refused(kind, name, defaults, **exactly, duration="25h")[0] == text
        read(kind, name, PLAIN, **{**exactly, "end_time": "+1y"}, duration="1y")
    expire = {"comment": "x", "end_time": "+30d"}
    read("hosts", "acknowledge_host_problem_expire", defaults, **expire)


@pytest.mark.parametrize("end", ["now", "-1h", "today"])
def test_downtimes_that_end_before_they_start(end):
    message, description = refused(
        "hosts", "schedule_host_downtime", comment="x", start_time="now", end_time=end
    )
    assert message == "invalid value for end_time"
    assert description.startswith(f"end_time: expected a time after start_time ({NOW}), got ")


def test_comments_of_disabling_commands():
    assert read("hosts", "disable_host_check") == {}
    assert read("hosts", "disable_host_check", comment="why") == {
        "comment_author": "omar",
        "comment_data": "why",
    }
    required = configured(require_comments_for_disable=True)
    assert refused("hosts", "disable_host_check", required) == (
        "missing argument: comment_data",
        "comment_data is a required argument",
    )
    assert read("services", "disable_svc_check", required, comment_data="a; b") == {
        "comment_author": "omar",
        "comment_data": "a; b",
    }
    assert read("hosts", "disable_host_flap_detection", required) == {}
    assert read("hosts", "enable_host_check", required, comment="x") == {}


@pytest.mark.parametrize(
    ("sent", "name"), [("SIZE", "SIZE"), ("_SIZE", "SIZE"), ("__SIZE", "_SIZE"), ("_", "_")]
)
@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("hosts", "change_custom_host_var"),
        ("services", "change_custom_svc_var"),
        ("contacts", "change_custom_contact_var"),
    ],
)
def test_custom_variables_by_the_names_of_their_columns(kind, command, sent, name):
    found = parse(find(kind, command), {"name": (sent,), "value": ("_x",)}, PLAIN)
    assert found == {"name": name, "value": "_x"}


def test_end_before_the_start_that_nobody_asked_for():
    _, text = refused(
        "hosts", "schedule_host_downtime", comment_data="x", start_time="tomorrow 23:00"
    )
    assert text.endswith("; without one it is 7200 seconds from now")
