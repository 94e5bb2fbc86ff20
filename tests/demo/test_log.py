"""The log table: what is read out of a line, and which lines a query finds."""

import pytest

from tests.table import each

FIELDS = (
    "class type state state_type attempt host_name service_description contact_name command_name "
    "plugin_output comment options"
)


def parsed(bench, text):
    bench.core.log.past(bench.core.now(), text)
    row = bench.ask("GET log", f"Columns: {FIELDS}", "Limit: 1")[0]
    return {name: value for name, value in zip(FIELDS.split(), row, strict=True) if value}


@each(
    ("text", "fields"),
    [
        ("HOST ALERT: h;DOWN;HARD;3;no; way",
         {"class": 1, "type": "HOST ALERT", "state": 1, "state_type": "HARD", "attempt": 3,
          "host_name": "h", "plugin_output": "no", "options": "h;DOWN;HARD;3;no; way"}),
        ("SERVICE ALERT: h;s s;CRITICAL;SOFT;1;out",
         {"class": 1, "type": "SERVICE ALERT", "state": 2, "state_type": "SOFT", "attempt": 1,
          "host_name": "h", "service_description": "s s", "plugin_output": "out",
          "options": "h;s s;CRITICAL;SOFT;1;out"}),
        ("CURRENT HOST STATE: h;PENDING;HARD;1;",
         {"class": 6, "type": "CURRENT HOST STATE", "state": 3, "state_type": "HARD", "attempt": 1,
          "host_name": "h", "options": "h;PENDING;HARD;1;"}),
        ("CURRENT SERVICE STATE: h;s;PENDING;HARD;1;",
         {"class": 6, "type": "CURRENT SERVICE STATE", "state": 1, "state_type": "HARD",
          "attempt": 1, "host_name": "h", "service_description": "s",
          "options": "h;s;PENDING;HARD;1;"}),
        ("INITIAL HOST STATE: h;UNREACHABLE;HARD;1;x",
         {"class": 6, "type": "INITIAL HOST STATE", "state": 2, "state_type": "HARD", "attempt": 1,
          "host_name": "h", "plugin_output": "x", "options": "h;UNREACHABLE;HARD;1;x"}),
        ("HOST DOWNTIME ALERT: h;STARTED; Host has entered",
         {"class": 1, "type": "HOST DOWNTIME ALERT", "state_type": "STARTED", "host_name": "h",
          "comment": " Host has entered", "options": "h;STARTED; Host has entered"}),
        ("SERVICE FLAPPING ALERT: h;s;STOPPED; text",
         {"class": 1, "type": "SERVICE FLAPPING ALERT", "state_type": "STOPPED", "host_name": "h",
          "service_description": "s", "comment": " text", "options": "h;s;STOPPED; text"}),
        ("HOST ACKNOWLEDGE ALERT: h;STARTED;ann;fine",
         {"class": 1, "type": "HOST ACKNOWLEDGE ALERT", "state_type": "STARTED", "host_name": "h",
          "contact_name": "ann", "comment": "fine", "options": "h;STARTED;ann;fine"}),
        ("HOST NOTIFICATION: ann;h;ACKNOWLEDGEMENT (DOWN);mail;out;ann;why",
         {"class": 3, "type": "HOST NOTIFICATION", "state": 1,
          "state_type": "ACKNOWLEDGEMENT (DOWN)", "host_name": "h", "contact_name": "ann",
          "command_name": "mail", "plugin_output": "out",
          "options": "ann;h;ACKNOWLEDGEMENT (DOWN);mail;out;ann;why"}),
        ("SERVICE NOTIFICATION: ann;h;s;WARNING;mail;out",
         {"class": 3, "type": "SERVICE NOTIFICATION", "state": 1, "state_type": "WARNING",
          "host_name": "h", "service_description": "s", "contact_name": "ann",
          "command_name": "mail", "plugin_output": "out", "options": "ann;h;s;WARNING;mail;out"}),
        ("SERVICE NOTIFICATION SUPPRESSED: h;s;because",
         {"type": "SERVICE NOTIFICATION SUPPRESSED", "host_name": "h", "service_description": "s",
          "comment": "because", "options": "h;s;because"}),
        ("HOST NOTE: h;hello",
         {"type": "HOST NOTE", "host_name": "h", "options": "h;hello"}),
        ("PASSIVE SERVICE CHECK: h;s;2;out",
         {"class": 4, "type": "PASSIVE SERVICE CHECK", "state": 2, "host_name": "h",
          "service_description": "s", "plugin_output": "out", "options": "h;s;2;out"}),
        ("EXTERNAL COMMAND: DISABLE_SVC_CHECK;h;s",
         {"class": 5, "type": "EXTERNAL COMMAND", "host_name": "h", "service_description": "s",
          "options": "DISABLE_SVC_CHECK;h;s"}),
        ("EXTERNAL COMMAND: DISABLE_HOST_CHECK;h",
         {"class": 5, "type": "EXTERNAL COMMAND", "host_name": "h",
          "options": "DISABLE_HOST_CHECK;h"}),
        ("EXTERNAL COMMAND: DISABLE_HOSTGROUP_HOST_CHECKS;g",
         {"class": 5, "type": "EXTERNAL COMMAND", "options": "DISABLE_HOSTGROUP_HOST_CHECKS;g"}),
        ("EXTERNAL COMMAND: DISABLE_HOSTGROUP_SVC_CHECKS;g",
         {"class": 5, "type": "EXTERNAL COMMAND", "host_name": "g",
          "options": "DISABLE_HOSTGROUP_SVC_CHECKS;g"}),
        ("EXTERNAL COMMAND: PROCESS_SERVICE_CHECK_RESULT;h;s;0;x",
         {"class": 5, "type": "EXTERNAL COMMAND",
          "options": "PROCESS_SERVICE_CHECK_RESULT;h;s;0;x"}),
        ("EXTERNAL COMMAND: DEL_DOWNTIME_BY_HOST_NAME;h",
         {"class": 5, "type": "EXTERNAL COMMAND", "host_name": "h",
          "options": "DEL_DOWNTIME_BY_HOST_NAME;h"}),
        ("TIMEPERIOD TRANSITION: p;-1;1",
         {"class": 6, "type": "TIMEPERIOD TRANSITION: p;-1;1", "options": "p;-1;1"}),
        ("HOST EVENT HANDLER: h;UP;HARD;1;x",
         {"type": "HOST EVENT HANDLER: h;UP;HARD;1;x", "options": "h;UP;HARD;1;x"}),
        ("LOG VERSION: 2.0", {"class": 2, "type": "LOG VERSION: 2.0", "options": "2.0"}),
        ("LOG ROTATION: DAILY", {"type": "LOG ROTATION: DAILY", "options": "DAILY"}),
        ("Naemon 1.5.2 starting... (PID=7)", {"class": 2,
                                              "type": "Naemon 1.5.2 starting... (PID=7)"}),
        ("Successfully shutdown... (PID=7)", {"type": "Successfully shutdown... (PID=7)"}),
        ("at 10:15 it rained", {"type": "at 10:15 it rained", "options": "15 it rained"}),
    ],
)  # fmt: skip
def test_lines(bench, text, fields):
    assert parsed(bench, text) == fields


def test_messages_hold_the_complete_line_and_line_numbers_begin_anew(bench):
    log = bench.core.log
    log.past(1794999000, "one")
    log.rotate(1794999500)
    log.past(1794999600, "two\nlines")
    rows = bench.ask("GET log", "Columns: time lineno message")
    assert rows == [
        [1794999600, 3, "[1794999600] two\\nlines"],
        [1794999500, 2, "[1794999500] LOG VERSION: 2.0"],
        [1794999500, 1, "[1794999500] LOG ROTATION: DAILY"],
        [1794999000, 1, "[1794999000] one"],
    ]


@pytest.fixture
def filled(bench):
    for number in range(100):
        bench.core.log.past(1794990000 + number, f"line {number}")
    return bench


@each(
    ("lines", "expected"),
    [
        (["Filter: time >= 1794990098"], [99, 98]),
        (["Filter: time > 1794990098"], [99]),
        (["Filter: time <= 1794990001"], [1, 0]),
        (["Filter: time < 1794990001"], [0]),
        (["Filter: time = 1794990050"], [50]),
        (["Filter: time >= 1794990050", "Filter: time < 1794990053"], [52, 51, 50]),
        (["Filter: time >= 1794990050", "Limit: 2"], [99, 98]),
        (["Filter: time >= 1794990050", "Sort: time", "Limit: 2"], [50, 51]),
        (["Filter: time < 1794990098", "Negate:"], [99, 98]),
        # The known defect: two spans joined by Or meet in their intersection.
        (
            ["Filter: time < 1794990002", "Filter: time >= 1794990098", "Or: 2"],
            [],
        ),
    ],
)
def test_times(filled, lines, expected):
    texts = filled.column("GET log", "Columns: message", *lines)
    assert [int(text.rpartition(" ")[2]) for text in texts] == expected


def test_present_objects_are_joined(bench):
    bench.result("alpha", 1, service="load")
    bench.command("LOG;SERVICE NOTIFICATION: ann;alpha;load;OK;mail;out")
    bench.command("LOG;HOST ALERT: gone;DOWN;HARD;1;x")
    columns = (
        "current_host_address current_service_state current_contact_email current_command_line "
        "current_host_contacts"
    )
    rows = bench.ask("GET log", f"Columns: {columns}", "Limit: 2")
    assert rows == [
        ["", 0, "", "", []],
        ["10.0.0.1", 1, "ann@example.org", "/usr/bin/mail", ["ann"]],
    ]


def test_stats_over_the_log(filled):
    assert filled.ask("GET log", "Stats: class = 0", "Filter: time >= 1794990090") == [[10]]
