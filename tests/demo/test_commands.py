"""External commands: how they are answered, and the templates of all that the API has."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.demo.command_table import COMMANDS, decode, run
from tests.examples import examples
from tests.table import each

FOREVER = 2**31


@each(
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
        # An id of zero, and a name with a semicolon.
        ("DEL_HOST_COMMENT;0", "Failed validation of comment_id as type ulong (argument 0)"),
        ("DEL_SVC_COMMENT;0", "Failed validation of comment_id as type ulong (argument 0)"),
        ("DEL_HOST_DOWNTIME;0", "Failed validation of downtime_id as type ulong (argument 0)"),
        ("DEL_SVC_DOWNTIME;0", "Failed validation of downtime_id as type ulong (argument 0)"),
        ("ADD_HOST_COMMENT;al;pha;1;ann;x", "Failed validation of host_name as type host (argument 0)"),
        ("ADD_SVC_COMMENT;beta;C:\\\\ a; b;1;ann;x", "Failed validation of service as type service (argument 0)"),
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


@each("line", ["DISABLE_NOTIFICATIONS", "[x] DISABLE_NOTIFICATIONS", "[1]", "[1]X"])
def test_a_command_needs_a_time(bench, line):
    assert bench.raw(f"COMMAND {line}\n\n").startswith(b"400: ")
    assert bench.core.switches.enable_notifications == 1


def test_backslashes_are_decoded(bench):
    assert decode(r"a\nb\\c\;d") == "a\nb\\c;d"
    bench.command(r"ADD_HOST_COMMENT;alpha;1;ann;one\ntwo \\ three")
    assert [item.comment for item in bench.core.comments.values()] == ["one\ntwo \\ three"]
    # In the log a newline is two characters again.
    assert bench.messages() == ["EXTERNAL COMMAND: ADD_HOST_COMMENT;alpha;1;ann;one\\ntwo \\ three"]


def test_commands_that_are_taken_although_they_do_nothing(bench):
    assert bench.command("DISABLE_NOTIFICATIONS;extra;more") == ""
    assert bench.command("DEL_HOST_COMMENT;7") == ""


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=40), name=st.sampled_from(sorted(COMMANDS)))
def test_no_text_breaks_the_core(bench, text, name):
    for line in (text, f"[1] {name};{text}", f"[1] {name};alpha;{text}"):
        answer = run(bench.simulation, line)
        assert answer is None or len(answer) > 5


def disabled(bench, table="hosts", column="active_checks_enabled"):
    name = "name" if table == "hosts" else "description"
    return bench.column(f"GET {table}", f"Columns: {name}", f"Filter: {column} = 0")


@each(
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
