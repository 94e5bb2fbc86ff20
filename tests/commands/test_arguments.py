"""Which arguments there are, their defaults, and in which shapes they come."""

import pytest
from attrs import evolve

from monrest.commands.arguments import parse, unused
from monrest.livestatus.catalogue import find
from tests.commands.reading import NOW, PLAIN, argument, configured, read, refused, values_of


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
