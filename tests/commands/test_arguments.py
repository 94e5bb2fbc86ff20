"""Arguments of commands: which there are, their defaults and types, and what none of them may do."""

from datetime import UTC

import pytest
from attrs import evolve

from monrest.base.errors import BadRequest
from monrest.commands.arguments import LARGEST, Defaults, parse, unused
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import ALL, find
from tests.commands.reading import sample, values_of
from tests.table import each

NOW = 1795000000
PLAIN = Defaults(user="omar", now=NOW + 0.7, zone=UTC, config=CommandsConfig())


def configured(**settings):
    return evolve(PLAIN, config=CommandsConfig(**settings))


def read(kind, name, defaults=PLAIN, **given):
    return dict(parse(find(kind, name), values_of(given), defaults))


def refused(kind, name, defaults=PLAIN, **given):
    with pytest.raises(BadRequest) as raised:
        parse(find(kind, name), values_of(given), defaults)
    return raised.value.message, raised.value.description


def argument(kind, name, argument_name, value, **others):
    return read(kind, name, **{argument_name: value}, **others)[argument_name]


def test_defaults_of_a_downtime():
    assert read("hosts", "schedule_host_downtime", comment_data="x") == {
        "start_time": str(NOW),
        "end_time": str(NOW + 7200),
        "fixed": "1",
        "triggered_by": "0",
        "duration": "0",
        "comment_author": "omar",
        "comment_data": "x",
    }


def test_defaults_of_acknowledgements_and_comments():
    found = read("hosts", "acknowledge_host_problem", comment_data="x")
    assert (found["sticky_ack"], found["send_notification"], found["persistent_comment"]) == (
        *("1", "1", "0"),
    )
    assert read("hosts", "add_host_comment", comment_data="x")["persistent_comment"] == "1"
    expire = read("services", "acknowledge_svc_problem_expire", comment_data="x")
    assert expire["end_time"] == str(NOW + 7200)


def test_defaults_from_the_configuration():
    defaults = configured(
        sticky_ack=2,
        send_notification=0,
        persistent_ack=1,
        persistent_comments=0,
        downtime_duration=60.0,
    )
    found = read("hosts", "acknowledge_host_problem", defaults, comment_data="x")
    assert (found["sticky_ack"], found["send_notification"], found["persistent_comment"]) == (
        *("2", "0", "1"),
    )
    comment = read("hosts", "add_host_comment", defaults, comment_data="x")
    assert comment["persistent_comment"] == "0"
    downtime = read("hosts", "schedule_host_downtime", defaults, comment_data="x")
    assert downtime["end_time"] == str(NOW + 60)


def test_filters_of_downtimes_are_empty_by_default_whatever_was_asked_before():
    for _ in range(2):
        assert read("sites", "del_downtime_by_host_name", hostname="h") == {
            "hostname": "h",
            "service_desc": "",
            "start_time": "",
            "comment": "",
        }


def test_other_defaults():
    assert read("hosts", "process_host_check_result", plugin_output="ok") == {
        "plugin_state": "0",
        "plugin_output": "ok",
        "performance_data": "",
    }
    assert read("hosts", "send_custom_host_notification", comment_data="x")["options"] == "0"
    assert read("hosts", "schedule_host_check") == {"start_time": str(NOW)}
    assert read("hosts", "enable_host_check") == {}


def test_an_empty_optional_argument_is_the_default():
    found = read("hosts", "schedule_host_downtime", comment_data="x", start_time="", duration=" ")
    assert (found["start_time"], found["duration"]) == (str(NOW), "0")


def test_a_required_text_must_not_be_empty_where_the_core_wants_one():
    assert refused("hosts", "add_host_comment", comment_data=" ")[0] == (
        "missing argument: comment_data"
    )
    assert refused("sites", "log", log="")[0] == "missing argument: log"
    assert refused("hosts", "set_host_notification_number", number="")[0] == (
        "missing argument: number"
    )
    variable = find("hosts", "change_custom_host_var")
    assert parse(variable, {"name": ("X",), "value": ("",)}, PLAIN)["value"] == ""
    assert argument("hosts", "process_host_check_result", "plugin_output", "") == ""


def test_the_author_is_the_user_while_names_are_locked():
    found = read("hosts", "add_host_comment", comment_data="x", comment_author="somebody")
    assert found["comment_author"] == "omar"


def test_the_author_may_be_another_when_names_are_not_locked():
    defaults = configured(lock_author_names=False)
    for name in ("comment_author", "author"):
        found = read("hosts", "add_host_comment", defaults, comment_data="x", **{name: "somebody"})
        assert found["comment_author"] == "somebody"
    assert read("hosts", "add_host_comment", defaults, comment_data="x")["comment_author"] == "omar"


def test_somebody_signs_when_nobody_in_particular_asks():
    found = read("hosts", "add_host_comment", evolve(PLAIN, user=""), comment_data="x")
    assert found["comment_author"] == "(api)"


@pytest.mark.parametrize("user", ["a;b", "a\nCOMMAND [1] X", "a\x00"])
def test_a_user_name_that_would_break_the_line_is_refused(user):
    message, description = refused(
        "hosts", "add_host_comment", evolve(PLAIN, user=user), comment_data="x"
    )
    assert message == "invalid value for comment_author"
    assert description.startswith("comment_author: ")


def test_an_argument_has_one_value():
    assert refused("hosts", "add_host_comment", comment_data=("a", "b")) == (
        "invalid value for comment_data",
        "comment_data: expected one value, got several",
    )


def test_unknown_arguments_are_named():
    message, description = refused("hosts", "add_host_comment", comment_data="x", comment_date="y")
    assert message == "unknown argument: comment_date"
    assert description.endswith("takes persistent_comment, comment_author, comment_data")
    assert refused("hosts", "enable_host_check", foo="")[1].endswith("takes no arguments")


def test_parameters_of_every_request_are_no_arguments():
    assert (
        read("hosts", "enable_host_check", backends="a,b", test_only="1", wait="1", token="x") == {}
    )


def test_aliases():
    assert read("hosts", "schedule_host_downtime", comment="x")["comment_data"] == "x"
    for name in ("interval", "attempts"):
        assert read("hosts", "change_max_host_check_attempts", **{name: "4"}) == {"interval": "4"}
        assert read("services", "change_max_svc_check_attempts", **{name: "4"}) == {"attempts": "4"}
    acknowledged = {"comment_data": "x", "sticky": "2", "notify": "0", "persistent": "1"}
    found = read("hosts", "acknowledge_host_problem", **acknowledged)
    assert (found["sticky_ack"], found["send_notification"], found["persistent_comment"]) == (
        *("2", "0", "1"),
    )
    # Here the comment is an argument of its own.
    assert read("sites", "del_downtime_by_host_name", comment="x")["comment"] == "x"


def test_arguments_of_other_commands_are_left_out():
    command = find("hosts", "enable_host_check")
    given = values_of({"sticky": "1", "notify": "1", "persistent": "1", "backends": "s1"})
    assert parse(command, given, PLAIN) == {}
    assert unused(command, given) == ("sticky", "notify", "persistent")
    assert refused("hosts", "enable_host_check", sticki="1") == (
        "unknown argument: sticki",
        "sticki: enable_host_check takes no arguments",
    )


def test_a_flexible_downtime_needs_a_length():
    given = {"comment_data": "x", "fixed": "0"}
    for name in ("schedule_host_downtime", "schedule_host_svc_downtime"):
        for duration in ({}, {"duration": "0"}):
            message, description = refused("hosts", name, **given, **duration)
            assert message == "invalid value for duration"
            assert description.startswith("duration: expected the length of a flexible downtime")
        assert read("hosts", name, **given, duration="1h")["duration"] == "3600"


def test_an_argument_under_two_names_is_refused():
    message, description = refused("hosts", "add_host_comment", comment_data="x", comment="y")
    assert message == "invalid value for comment_data"
    assert description == "comment_data: expected one value, got comment_data and comment"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("1", "1"),
        ("true", "1"),
        ("false", "0"),
        ("TRUE", "1"),
        (" 1 ", "1"),
        ("yes", "1"),
        ("Off", "0"),
    ],
)
def test_booleans(text, expected):
    given = {"comment": "x", "duration": "60"}
    assert argument("hosts", "schedule_host_downtime", "fixed", text, **given) == expected


@pytest.mark.parametrize("text", ["2", "-1", "y", "x", "1;1", "01"])
def test_other_booleans_are_refused(text):
    assert refused("hosts", "schedule_host_downtime", comment="x", fixed=text) == (
        "invalid value for fixed",
        "fixed: expected 0 or 1 (or false, no, off, true, yes, on)",
    )


_INTEGERS = [
    ("hosts", "acknowledge_host_problem", "sticky_ack", 0, 2),
    ("hosts", "send_custom_host_notification", "options", 0, 7),
    ("hosts", "process_host_check_result", "plugin_state", 0, 2),
    ("services", "process_service_check_result", "plugin_state", 0, 3),
    ("hosts", "schedule_host_downtime", "triggered_by", 0, LARGEST),
    ("sites", "del_host_comment", "comment_id", 1, LARGEST),
    ("services", "del_downtime", "downtime_id", 1, LARGEST),
    ("hosts", "set_host_notification_number", "number", 0, LARGEST),
    ("hosts", "change_max_host_check_attempts", "interval", 1, LARGEST),
    ("services", "change_max_svc_check_attempts", "attempts", 1, LARGEST),
    ("hosts", "change_normal_host_check_interval", "interval", 0, LARGEST),
    ("hosts", "change_retry_host_check_interval", "interval", 1, LARGEST),
    ("services", "change_retry_svc_check_interval", "interval", 1, LARGEST),
]


@pytest.mark.parametrize(("kind", "name", "integer", "low", "high"), _INTEGERS)
def test_integers_have_a_range(kind, name, integer, low, high):
    command = find(kind, name)
    others = {one.name: "x" for one in command.arguments if one.required and one.type == "string"}
    for number in (low, high):
        assert argument(kind, name, integer, str(number), **others) == str(number)
    assert argument(kind, name, integer, f" 00{high} ", **others) == str(high)
    for number in (low - 1, high + 1):
        message, description = refused(kind, name, **{integer: str(number)}, **others)
        assert message == f"invalid value for {integer}"
        assert description == f"{integer}: expected a number from {low} to {high}, got {number}"
    for text in ("x", "1.5", "1e3", "+1", "1 2", "0x1", "\u0661", "9" * 30):
        message, description = refused(kind, name, **{integer: text}, **others)
        assert message == f"invalid value for {integer}"
        assert description.startswith(f"{integer}: expected a")


def test_times():
    assert argument("hosts", "delay_host_notification", "notification_time", "+60m") == str(
        NOW + 3600
    )
    assert argument("sites", "del_downtime_by_host_name", "start_time", "1795000123") == (
        "1795000123"
    )


def test_durations():
    def of(text):
        return argument("hosts", "schedule_host_downtime", "duration", text, comment="x")

    assert (of("2h"), of("90"), of("1.5h")) == ("7200", "90", "5400")
    assert refused("hosts", "schedule_host_downtime", comment="x", duration="soon") == (
        "failed to parse time in duration",
        "soon is not a valid duration definition",
    )
    assert refused("hosts", "schedule_host_downtime", comment="x", duration="-5m")[1] == (
        f"duration: expected a number from 0 to {LARGEST}, got -300"
    )


def test_errors_repeat_only_what_can_be_shown():
    _, description = refused("hosts", "schedule_host_check", start_time="\u202e" + "x" * 500)
    assert description == "?" + "x" * 99 + "... is not a valid time definition"


@pytest.mark.parametrize("name", ["24x7", "Größe ü", "a b"])
def test_names_of_time_periods(name):
    assert argument("hosts", "change_host_check_timeperiod", "timeperiod", name) == name


CONTROL = [*map(chr, range(32)), "\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ud800"]


@each("command", ALL, ids=lambda one: f"{one.kind}-{one.name}")
def test_control_characters_reach_no_argument(command):
    unlocked = configured(lock_author_names=False)
    good = sample(command, string="s", end_time="+1h", start_time="now")
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
