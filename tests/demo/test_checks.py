"""What results do: soft and hard states, log lines, flapping, notifications."""

import pytest

from monrest.demo.states import Result, percent_change, process, split_output
from tests.table import each


def check(bench, host, state, service=None, **values):
    """An active result."""
    target = bench.host(host) if service is None else bench.service(host, service)
    process(bench.core, target, Result(state=state, output=f"out {state}", **values))
    return target


def short(target):
    return target.state, target.state_type, target.current_attempt


def alerts(bench):
    return [text for text in bench.messages() if " ALERT: " in text]


def test_a_problem_becomes_hard_after_its_attempts(bench):
    target = check(bench, "alpha", 0, "load")
    assert (short(target), target.has_been_checked) == ((0, 1, 1), 1)
    assert alerts(bench) == []
    seen = [short(check(bench, "alpha", 2, "load")) for _ in range(4)]
    assert seen == [(2, 0, 1), (2, 0, 2), (2, 1, 3), (2, 1, 3)]
    assert short(check(bench, "alpha", 1, "load")) == (1, 1, 3)
    assert short(check(bench, "alpha", 0, "load")) == (0, 1, 1)
    assert alerts(bench) == [
        "SERVICE ALERT: alpha;load;CRITICAL;SOFT;1;out 2",
        "SERVICE ALERT: alpha;load;CRITICAL;SOFT;2;out 2",
        "SERVICE ALERT: alpha;load;CRITICAL;HARD;3;out 2",
        "SERVICE ALERT: alpha;load;WARNING;HARD;3;out 1",
        "SERVICE ALERT: alpha;load;OK;HARD;3;out 0",
    ]


def test_a_soft_problem_recovers_softly(bench):
    check(bench, "alpha", 0)
    check(bench, "alpha", 1)
    assert short(check(bench, "alpha", 0)) == (0, 1, 1)
    assert alerts(bench) == [
        "HOST ALERT: alpha;DOWN;SOFT;1;out 1",
        "HOST ALERT: alpha;UP;SOFT;1;out 0",
    ]
    assert bench.host("alpha").last_hard_state == 0


def test_a_passive_host_result_is_hard_at_once(bench):
    bench.result("alpha", 1, "gone; away|rta=1ms")
    host = bench.host("alpha")
    assert short(host) == (1, 1, 1)
    assert (host.plugin_output, host.perf_data, host.check_type) == ("gone: away", "rta=1ms", 1)
    assert bench.messages()[1:3] == [
        "PASSIVE HOST CHECK: alpha;1;gone: away",
        "HOST ALERT: alpha;DOWN;HARD;1;gone: away",
    ]


def test_times_are_kept(bench):
    target = check(bench, "alpha", 0, "load")
    first = bench.core.now()
    assert (target.last_check, target.last_state_change, target.last_time_ok) == (first,) * 3
    bench.clock.advance(60)
    check(bench, "alpha", 2, "load")
    assert target.last_state_change == first + 60
    assert target.last_hard_state_change == first
    bench.clock.advance(60)
    check(bench, "alpha", 2, "load")
    bench.clock.advance(60)
    check(bench, "alpha", 2, "load")
    assert target.last_hard_state_change == first + 180
    assert (target.last_time_critical, target.last_time_ok) == (first + 180, first)
    assert target.last_update == first + 180


def test_a_host_behind_a_host_that_is_down_is_unreachable(bench):
    bench.result("alpha", 1)
    assert check(bench, "beta", 1).state == 2
    bench.result("alpha", 0)
    assert check(bench, "beta", 1).state == 1


@each(
    ("raw", "parts"),
    [
        ("fine", ("fine", "", "")),
        ("a; b | x=1 ", ("a: b", "", "x=1")),
        ("first|x=1\nsecond\nthird|y=2\nz=3", ("first", "second\\nthird", "x=1 y=2 z=3")),
        ("first\\nsecond", ("first", "second", "")),
        ("", ("", "", "")),
    ],
)
def test_plugin_output_is_taken_apart(raw, parts):
    assert split_output(raw) == parts


def test_state_changes_are_weighted():
    assert percent_change([0] * 21) == 0
    assert percent_change([]) == 0
    assert percent_change([0, 1] * 10 + [0]) == pytest.approx(100)
    newest, oldest = percent_change([0] * 20 + [1]), percent_change([0] + [1] * 20)
    assert newest == pytest.approx(6)
    assert oldest == pytest.approx(4)


def test_flapping_starts_and_stops(bench):
    target = bench.service("alpha", "load")
    for number in range(12):
        check(bench, "alpha", 2 * (number % 2), "load")
    assert target.is_flapping
    assert target.percent_state_change > 30
    started = [text for text in bench.messages() if "FLAPPING ALERT" in text]
    assert started[0].startswith(
        "SERVICE FLAPPING ALERT: alpha;load;STARTED; Service appears to have started flapping ("
    )
    assert [comment.entry_type for comment in target.comments.values()] == [3]
    for _ in range(20):
        check(bench, "alpha", 0, "load")
    assert not target.is_flapping
    assert not target.comments
    assert ";STOPPED; Service appears to have stopped flapping" in alerts(bench)[-1]


def test_disabling_flap_detection_ends_flapping(bench):
    target = bench.service("alpha", "load")
    for number in range(12):
        check(bench, "alpha", 2 * (number % 2), "load")
    bench.command("DISABLE_SVC_FLAP_DETECTION;alpha;load")
    assert not target.is_flapping
    assert ";DISABLED; " in [text for text in bench.messages() if "FLAPPING ALERT" in text][-1]


def notifications(bench):
    return [text for text in bench.messages() if " NOTIFICATION: " in text]


def hard_problem(bench, service="load", state=2):
    for _ in range(3):
        target = check(bench, "alpha", state, service)
    return target


def test_hard_problems_and_recoveries_are_told(bench):
    target = hard_problem(bench)
    assert notifications(bench) == ["SERVICE NOTIFICATION: ben;alpha;load;CRITICAL;mail;out 2"]
    assert (target.current_notification_number, target.notified_on) == (1, 4)
    assert target.last_notification == bench.core.now()
    check(bench, "alpha", 0, "load")
    assert notifications(bench)[1:] == ["SERVICE NOTIFICATION: ben;alpha;load;OK;mail;out 0"]
    assert target.current_notification_number == 0


def test_problems_are_told_again_after_the_interval(bench):
    target = hard_problem(bench, "disk /var")
    bench.clock.advance(9 * 60)
    check(bench, "alpha", 2, "disk /var")
    assert len(notifications(bench)) == 1
    bench.clock.advance(60)
    check(bench, "alpha", 2, "disk /var")
    assert len(notifications(bench)) == 2
    assert target.current_notification_number == 2


@pytest.mark.parametrize(
    "line",
    [
        "DISABLE_NOTIFICATIONS",
        "DISABLE_SVC_NOTIFICATIONS;alpha;load",
        "DISABLE_HOST_SVC_NOTIFICATIONS;alpha",
        "DISABLE_CONTACT_SVC_NOTIFICATIONS;ben",
        "CHANGE_SVC_NOTIFICATION_TIMEPERIOD;alpha;load;never",
        "CHANGE_CONTACT_SVC_NOTIFICATION_TIMEPERIOD;ben;never",
        f"SCHEDULE_HOST_SVC_DOWNTIME;alpha;1;{2**31};1;0;0;ann;why",
        "PROCESS_HOST_CHECK_RESULT;alpha;1;down",
        "PROCESS_SERVICE_CHECK_RESULT;alpha;disk /var;2;the master of the dependency",
    ],
)
def test_what_holds_notifications_back(bench, line):
    check(bench, "alpha", 0, "disk /var")
    assert bench.command(line) == ""
    if "disk" in line:
        hard_problem(bench, "disk /var")
    before = [text for text in notifications(bench) if ";load;CRITICAL;" in text]
    hard_problem(bench)
    assert [text for text in notifications(bench) if ";load;CRITICAL;" in text] == before == []


def test_event_handlers_are_logged(bench):
    bench.service("alpha", "load").event_handler = "restart!now"
    bench.command("CHANGE_GLOBAL_SVC_EVENT_HANDLER;everything")
    check(bench, "alpha", 2, "load")
    assert bench.messages()[-2:] == [
        "GLOBAL SERVICE EVENT HANDLER: alpha;load;CRITICAL;SOFT;1;everything",
        "SERVICE EVENT HANDLER: alpha;load;CRITICAL;SOFT;1;restart",
    ]
    bench.command("DISABLE_SVC_EVENT_HANDLER;alpha;load")
    check(bench, "alpha", 2, "load")
    assert "EVENT HANDLER: alpha" not in bench.messages()[-1]
