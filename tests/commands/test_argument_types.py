"""What arguments of each type may be."""

import pytest

from monrest.commands.arguments import LARGEST
from monrest.livestatus.catalogue import find
from tests.commands.reading import NOW, argument, refused


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


@pytest.mark.parametrize(
    ("kind", "name", "time"),
    [
        ("hosts", "schedule_host_check", "start_time"),
        ("hosts", "delay_host_notification", "notification_time"),
        # Without it more downtimes than meant would be deleted.
        ("sites", "del_downtime_by_host_name", "start_time"),
    ],
)
def test_other_times_are_refused(kind, name, time):
    assert refused(kind, name, **{time: " foobar "}) == (
        f"failed to parse time in {time}",
        "foobar is not a valid time definition",
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
