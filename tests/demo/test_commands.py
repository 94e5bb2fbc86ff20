"""External commands: how they are answered, and the templates of all that the API has."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.demo.command_table import COMMANDS, decode, run
from tests.examples import examples

FOREVER = 2**31


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("NONSENSE", "Unknown command 'NONSENSE'"),
        ("ADD_HOST_COMMENT;nope;1;a;b", "Failed validation of host_name as type host (argument 0)"),
        ("ADD_SVC_COMMENT;alpha;nope;1;a;b", "Failed validation of service as type service (argument 0)"),
        ("ADD_HOST_COMMENT;alpha;1;ann;", "No value for argument comment provided, and no default found"),
        ("ADD_HOST_COMMENT;alpha;1;ann", "No value for argument comment provided, and no default found"),
        ("ADD_HOST_COMMENT", "No value for argument host_name provided, and no default found"),
        (f"SCHEDULE_HOST_DOWNTIME;alpha;1;{FOREVER};1;xxx;0;a;b",
         "Couldn't parse ulong argument trigger_id (argument 4): No digits found in ulong 'xxx'"),
        ("DISABLE_HOST_CHECK;alpha;more", "Too many arguments to command - expected 1"),
        ("DISABLE_HOSTGROUP_HOST_CHECKS;nope", "Failed validation of hostgroup_name as type hostgroup (argument 0)"),
        ("CHANGE_HOST_CHECK_TIMEPERIOD;alpha;nope", "Failed validation of timeperiod as type timeperiod (argument 1)"),
    ],
)  # fmt: skip
def test_refusals(bench, line, reason):
    assert bench.command(line) == f"400: {reason}\n"
    assert not bench.core.comments
    assert not bench.core.downtimes


def test_bad_numbers(bench):
    found = bench.command("CHANGE_NORMAL_HOST_CHECK_INTERVAL;alpha;1.5")
    assert found.endswith("Invalid characters (.5) in ulong '1.5'\n")
    assert bench.command("CHANGE_NORMAL_HOST_CHECK_INTERVAL;alpha;-1").startswith("400: ")
    assert bench.command("ADD_HOST_COMMENT;alpha;2;a;b").startswith("400: ")


@pytest.mark.parametrize(
    "line", ["DISABLE_NOTIFICATIONS", "[x] DISABLE_NOTIFICATIONS", "[1]", "[1]X"]
)
def test_a_command_needs_a_time(bench, line):
    assert bench.raw(f"COMMAND {line}\n\n").startswith(b"400: ")
    assert bench.core.switches.enable_notifications == 1


def test_backslashes_are_decoded(bench):
    assert decode(r"a\nb\\c\;d") == "a\nb\\c;d"
    bench.command(r"ADD_HOST_COMMENT;alpha;1;ann;one\ntwo \\ three")
    assert [item.comment for item in bench.core.comments.values()] == ["one\ntwo \\ three"]
    # In the log a newline is two characters again.
    assert bench.messages() == ["EXTERNAL COMMAND: ADD_HOST_COMMENT;alpha;1;ann;one\\ntwo \\ three"]


def test_the_last_text_keeps_its_semicolons(bench):
    bench.command("ADD_HOST_COMMENT;alpha;1;ann;one; two;")
    assert [item.comment for item in bench.core.comments.values()] == ["one; two;"]


def test_commands_without_arguments_ignore_extras(bench):
    assert bench.command("DISABLE_NOTIFICATIONS;extra;more") == ""


def test_names_with_blanks_and_slashes(bench):
    assert bench.command("ADD_SVC_COMMENT;alpha;disk /var;1;ann;hello") == ""
    assert bench.service("alpha", "disk /var").comments


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=40), name=st.sampled_from(sorted(COMMANDS)))
def test_no_text_breaks_the_core(bench, text, name):
    for line in (text, f"[1] {name};{text}", f"[1] {name};alpha;{text}"):
        answer = run(bench.simulation, line)
        assert answer is None or len(answer) > 5


TOGGLED = [
    ("HOST_CHECK", "host", "active_checks_enabled", "active_checks_enabled"),
    ("SVC_CHECK", "service", "active_checks_enabled", "active_checks_enabled"),
    ("PASSIVE_HOST_CHECKS", "host", "accept_passive_checks", "passive_checks_enabled"),
    ("PASSIVE_SVC_CHECKS", "service", "accept_passive_checks", "passive_checks_enabled"),
    ("HOST_NOTIFICATIONS", "host", "notifications_enabled", "notifications_enabled"),
    ("SVC_NOTIFICATIONS", "service", "notifications_enabled", "notifications_enabled"),
    ("HOST_EVENT_HANDLER", "host", "event_handler_enabled", "event_handler_enabled"),
    ("SVC_EVENT_HANDLER", "service", "event_handler_enabled", "event_handler_enabled"),
    ("HOST_FLAP_DETECTION", "host", "flap_detection_enabled", "flap_detection_enabled"),
    ("SVC_FLAP_DETECTION", "service", "flap_detection_enabled", "flap_detection_enabled"),
]


@pytest.mark.parametrize(("name", "kind", "column", "word"), TOGGLED)
def test_switches_of_objects(bench, name, kind, column, word):
    target = "alpha" if kind == "host" else "alpha;load"
    only = ["Filter: name = alpha"] if kind == "host" else ["Filter: description = load"]

    def shown():
        return bench.ask(f"GET {kind}s", f"Columns: {column} modified_attributes_list", *only)[0]

    assert shown() == [1, []]
    assert bench.command(f"DISABLE_{name};{target}") == ""
    assert shown() == [0, [word]]
    bench.command(f"ENABLE_{name};{target}")
    assert shown() == [1, [word]]


def test_obsessing(bench):
    bench.command("STOP_OBSESSING_OVER_HOST;alpha")
    bench.command("STOP_OBSESSING_OVER_SVC;alpha;load")
    assert bench.column("GET hosts", "Columns: obsess_over_host") == [0, 1, 1]
    assert bench.column("GET services", "Columns: obsess") == [1, 0, 1]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("DISABLE_NOTIFICATIONS", "enable_notifications"),
        ("DISABLE_EVENT_HANDLERS", "enable_event_handlers"),
        ("DISABLE_FLAP_DETECTION", "enable_flap_detection"),
        ("DISABLE_PERFORMANCE_DATA", "process_performance_data"),
        ("DISABLE_SERVICE_FRESHNESS_CHECKS", "check_service_freshness"),
        ("STOP_EXECUTING_HOST_CHECKS", "execute_host_checks"),
        ("STOP_EXECUTING_SVC_CHECKS", "execute_service_checks"),
        ("STOP_ACCEPTING_PASSIVE_HOST_CHECKS", "accept_passive_host_checks"),
        ("STOP_ACCEPTING_PASSIVE_SVC_CHECKS", "accept_passive_service_checks"),
        ("START_OBSESSING_OVER_HOST_CHECKS", "obsess_over_hosts"),
        ("START_OBSESSING_OVER_SVC_CHECKS", "obsess_over_services"),
        ("ENABLE_HOST_FRESHNESS_CHECKS", "check_host_freshness"),
    ],
)
def test_switches_of_the_program(bench, name, column):
    before = bench.column("GET status", f"Columns: {column}")
    bench.command(name)
    opposite = {"DISABLE": "ENABLE", "ENABLE": "DISABLE", "STOP": "START", "START": "STOP"}
    verb, _, rest = name.partition("_")
    after = bench.column("GET status", f"Columns: {column}")
    assert after == [1 - before[0]]
    bench.command(f"{opposite[verb]}_{rest}")
    assert bench.column("GET status", f"Columns: {column}") == before


def disabled(bench, table="hosts", column="active_checks_enabled"):
    name = "name" if table == "hosts" else "description"
    return bench.column(f"GET {table}", f"Columns: {name}", f"Filter: {column} = 0")


@pytest.mark.parametrize(
    ("line", "table", "column", "names"),
    [
        ("DISABLE_HOSTGROUP_HOST_CHECKS;both", "hosts", "active_checks_enabled", ["alpha", "beta"]),
        ("DISABLE_HOSTGROUP_SVC_CHECKS;red", "services", "active_checks_enabled", ["disk /var", "load"]),
        ("DISABLE_HOSTGROUP_PASSIVE_HOST_CHECKS;red", "hosts", "accept_passive_checks", ["alpha"]),
        ("DISABLE_HOSTGROUP_PASSIVE_SVC_CHECKS;red", "services", "accept_passive_checks", ["disk /var", "load"]),
        ("DISABLE_HOSTGROUP_HOST_NOTIFICATIONS;red", "hosts", "notifications_enabled", ["alpha"]),
        ("DISABLE_SERVICEGROUP_SVC_CHECKS;disks", "services", "active_checks_enabled", ["disk /var", "C:\\ a; b"]),
        ("DISABLE_SERVICEGROUP_HOST_CHECKS;disks", "hosts", "active_checks_enabled", ["alpha", "beta"]),
        ("DISABLE_SERVICEGROUP_PASSIVE_SVC_CHECKS;disks", "services", "accept_passive_checks",
         ["disk /var", "C:\\ a; b"]),
        ("DISABLE_HOST_SVC_CHECKS;alpha", "services", "active_checks_enabled", ["disk /var", "load"]),
        ("DISABLE_HOST_AND_CHILD_NOTIFICATIONS;alpha", "hosts", "notifications_enabled", ["alpha", "beta"]),
        ("DISABLE_ALL_NOTIFICATIONS_BEYOND_HOST;alpha", "hosts", "notifications_enabled", ["beta"]),
        ("DISABLE_ALL_NOTIFICATIONS_BEYOND_HOST;alpha", "services", "notifications_enabled", ["C:\\ a; b"]),
    ],
)  # fmt: skip
def test_commands_on_many(bench, line, table, column, names):
    assert bench.command(line) == ""
    assert disabled(bench, table, column) == names
    bench.command(line.replace("DISABLE", "ENABLE", 1))
    assert disabled(bench, table, column) == []


def test_contacts(bench):
    bench.command("DISABLE_CONTACT_HOST_NOTIFICATIONS;ann")
    bench.command("DISABLE_CONTACTGROUP_SVC_NOTIFICATIONS;ops")
    bench.command("CHANGE_CONTACT_HOST_NOTIFICATION_TIMEPERIOD;ann;never")
    bench.command("CHANGE_CUSTOM_CONTACT_VAR;ann;_team;green")
    row = bench.ask(
        "GET contacts", "Columns: host_notifications_enabled service_notifications_enabled "
        "host_notification_period in_host_notification_period custom_variables "
        "modified_attributes_list", "Filter: name = ann",
    )[0]  # fmt: skip
    assert row[:5] == [0, 0, "never", 0, {"TEAM": "green"}]
    assert row[5] == ["notifications_enabled", "custom_variable", "notification_timeperiod"]
    bench.command("ENABLE_CONTACT_HOST_NOTIFICATIONS;ann")
    assert bench.column("GET contacts", "Columns: host_notifications_enabled") == [1, 1]


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        ("CHANGE_NORMAL_HOST_CHECK_INTERVAL;alpha;17", "check_interval", 17.0),
        ("CHANGE_RETRY_HOST_CHECK_INTERVAL;alpha;3", "retry_interval", 3.0),
        ("CHANGE_MAX_HOST_CHECK_ATTEMPTS;alpha;9", "max_check_attempts", 9),
        ("CHANGE_HOST_CHECK_TIMEPERIOD;alpha;never", "check_period", "never"),
        ("CHANGE_HOST_CHECK_TIMEPERIOD;alpha;never", "in_check_period", 0),
        ("CHANGE_HOST_NOTIFICATION_TIMEPERIOD;alpha;never", "notification_period", "never"),
        ("CHANGE_CUSTOM_HOST_VAR;alpha;SIZE;12; 13", "custom_variable_values", ["red", "12; 13"]),
        ("CHANGE_CUSTOM_HOST_VAR;alpha;_size;12", "custom_variable_values", ["red", "12"]),
        ("CHANGE_CUSTOM_HOST_VAR;alpha;NEW;12", "custom_variable_values", ["red", "10"]),
        ("CHANGE_HOST_MODATTR;alpha;3", "modified_attributes", 3),
        ("SET_HOST_NOTIFICATION_NUMBER;alpha;4", "current_notification_number", 4),
        ("DELAY_HOST_NOTIFICATION;alpha;1795009999", "next_notification", 1795009999),
    ],
)
def test_settings(bench, line, column, value):
    assert bench.command(line) == ""
    assert bench.column("GET hosts", f"Columns: {column}", "Filter: name = alpha") == [value]


def test_comments(bench):
    bench.command("ADD_HOST_COMMENT;alpha;1;ann;first")
    bench.command("ADD_SVC_COMMENT;alpha;load;0;ann;second")
    bench.command("ADD_HOST_COMMENT;alpha;0;ben;third")
    assert bench.column("GET comments", "Columns: comment") == ["first", "second", "third"]
    bench.command("DEL_HOST_COMMENT;2")
    assert len(bench.core.comments) == 3
    assert bench.command("DEL_SVC_COMMENT;2") == ""
    assert bench.command("DEL_SVC_COMMENT;99") == ""
    assert bench.column("GET comments", "Columns: id") == [1, 3]
    bench.command("DEL_ALL_HOST_COMMENTS;alpha")
    assert bench.core.comments == {}
    assert bench.column("GET hosts", "Columns: comments") == [[], [], []]


def test_checks_are_planned(bench):
    bench.command("SCHEDULE_HOST_CHECK;alpha;1795000600")
    bench.command("SCHEDULE_FORCED_SVC_CHECK;alpha;load;1")
    bench.command("DISABLE_HOST_CHECK;beta")
    bench.command("SCHEDULE_HOST_CHECK;beta;1795000600")
    bench.command("SCHEDULE_HOST_CHECK;gamma;1795000600")
    rows = bench.ask("GET hosts", "Columns: next_check check_options")
    assert rows == [[1795000600, 0], [0, 0], [0, 0]]
    rows = bench.ask("GET services", "Columns: next_check check_options")
    assert rows[1] == [1795000000, 1]
    bench.command("SCHEDULE_FORCED_HOST_SVC_CHECKS;beta;1795000700")
    assert bench.ask("GET services", "Columns: next_check", "Filter: host_name = beta") == [
        [1795000700]
    ]


def test_a_forced_check_is_made(bench):
    bench.command("DISABLE_SVC_CHECK;alpha;load")
    bench.command("SCHEDULE_FORCED_SVC_CHECK;alpha;load;1")
    bench.simulation.start()
    bench.clock.pump([1] * 3)
    assert bench.service("alpha", "load").has_been_checked == 1
    bench.simulation.stop()


def test_passive_results_are_taken_or_not(bench):
    bench.result("alpha", 2, "x", "load")
    assert bench.service("alpha", "load").state == 2
    bench.command("DISABLE_PASSIVE_SVC_CHECKS;alpha;load")
    bench.result("alpha", 0, "x", "load")
    assert bench.service("alpha", "load").state == 2
    bench.result("alpha", 7)
    bench.command("STOP_ACCEPTING_PASSIVE_HOST_CHECKS")
    bench.result("alpha", 1)
    assert bench.host("alpha").has_been_checked == 0


def test_log_takes_any_text(bench):
    assert bench.command("LOG;free; text: with marks") == ""
    assert bench.messages() == ["free; text: with marks"]
    assert bench.command("LOG;").startswith("400: ")


def test_custom_notifications(bench):
    bench.command("SEND_CUSTOM_HOST_NOTIFICATION;alpha;4;ann;please; look")
    assert bench.messages()[-1] == (
        "HOST NOTIFICATION: ann;alpha;CUSTOM (UP);mail;;ann;please; look"
    )
    assert bench.host("alpha").current_notification_number == 1
    bench.command("DISABLE_NOTIFICATIONS")
    bench.command("SEND_CUSTOM_SVC_NOTIFICATION;alpha;load;0;ann;no")
    assert "NOTIFICATION: " not in bench.messages()[-1]
    bench.command("SEND_CUSTOM_SVC_NOTIFICATION;alpha;load;2;ann;yes")
    assert bench.messages()[-1].endswith("ann;yes")


def test_a_restart_shows_in_the_start_time(bench):
    bench.clock.advance(100)
    assert bench.command("RESTART_PROGRAM") == ""
    assert bench.column("GET status", "Columns: program_start") == [1795000100]
    for name in ("SHUTDOWN_PROGRAM", "SAVE_STATE_INFORMATION", "READ_STATE_INFORMATION"):
        assert bench.command(name) == ""


VALUES = {
    "host": "alpha", "service": "alpha;load", "hostgroup": "both", "servicegroup": "disks",
    "contact": "ann", "contactgroup": "ops", "timeperiod": "always", "id": "1", "ulong": "1", "int": "1",
    "bool": "1", "timestamp": "1795003600", "str": "text",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_accepted_and_logged(bench, name):
    fields = [VALUES[argument.type] for argument in COMMANDS[name].arguments]
    line = ";".join([name, *fields])
    assert bench.command(line) == ""
    if name != "LOG":
        assert f"EXTERNAL COMMAND: {line}" in bench.messages()
    assert re.fullmatch("[A-Z_]+", name)
