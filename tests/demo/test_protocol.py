"""Connections, framing, errors and waiting."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples

KEPT = "ResponseHeader: fixed16\nKeepAlive: on\n"
ASK = f"GET hosts\n{KEPT}Columns: name\nFilter: name = alpha\n\n"
ANSWER = b"200           6\nalpha\n"


def send(connection, text):
    """Send and return what comes back for it."""
    protocol, transport = connection
    transport.clear()
    protocol.dataReceived(text.encode() if isinstance(text, str) else text)
    return transport.value()


def closed(connection):
    return connection[1].disconnecting


def test_fixed16(bench):
    assert bench.raw(ASK) == ANSWER
    assert len(b"200           6\n") == 16
    empty = bench.raw("GET hosts\nResponseHeader: fixed16\nColumns: name\nFilter: name = x\n\n")
    assert empty == b"200           0\n"


def test_without_keep_alive_the_connection_ends(bench):
    connection = bench.connect()
    assert send(connection, "GET hosts\nColumns: name\nLimit: 1\n\n") == b"alpha\n"
    assert closed(connection)


def test_a_kept_connection_answers_again_and_again(bench):
    connection = bench.connect()
    for _ in range(5):
        assert send(connection, ASK) == ANSWER
    assert not closed(connection)
    assert bench.core.counters["requests"] == 5


def test_pipelined_requests_are_answered_in_order(bench):
    other = ASK.replace("alpha", "beta")
    assert send(bench.connect(), ASK + other + ASK) == ANSWER + b"200           5\nbeta\n" + ANSWER


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_requests_may_come_in_any_pieces(make_bench, data):
    connection = make_bench().connect()
    text = (ASK * 2).encode()
    received = b""
    while text:
        size = data.draw(st.integers(1, len(text)))
        received += send(connection, text[:size])
        text = text[size:]
    assert received == ANSWER * 2


def test_errors_keep_the_connection_when_it_was_asked_for_before(bench):
    connection = bench.connect()
    assert send(connection, f"GET hosts\n{KEPT}Nonsense: 1\n\n").startswith(b"400 ")
    assert not closed(connection)
    assert send(connection, ASK) == ANSWER
    assert send(connection, f"GET nope\n{KEPT}\n").startswith(b"404 ")
    assert not closed(connection)
    early = bench.connect()
    assert send(early, f"GET hosts\nNonsense: 1\n{KEPT}\n") == (
        b"Undefined request header 'Nonsense'\n"
    )
    assert closed(early)


def test_lines_after_an_error_spoil_the_next_request(bench):
    connection = bench.connect()
    assert send(connection, f"GET hosts\n{KEPT}Nonsense: 1\nColumns: name\n\n").startswith(b"400")
    assert send(connection, ASK) == b"Invalid request method\n"
    assert closed(connection)


def test_unknown_methods_end_the_connection_without_a_header(bench):
    for text in ("POST hosts\n\n", "get hosts\n\n", f"GETS hosts\n{KEPT}\n"):
        connection = bench.connect()
        assert send(connection, text) == b"Invalid request method\n"
        assert closed(connection)


def test_a_lone_empty_line_ends_the_connection(bench):
    connection = bench.connect()
    assert send(connection, "\n") == b""
    assert closed(connection)


def test_a_table_must_be_named(bench):
    assert bench.status("GET")[0] == 400
    assert bench.status("GET ")[0] == 400


def test_carriage_returns_are_no_empty_line(bench):
    connection = bench.connect()
    assert send(connection, "GET hosts\r\nColumns: name\r\nLimit: 1\r\n\r\n") == b""
    connection[0].readConnectionLost()
    assert connection[1].value() == b"alpha\n"
    silent = bench.connect()
    assert send(silent, "GET hosts\r\n\r\n") == b""
    bench.clock.advance(11)
    assert silent[1].value().startswith(b"Timeout")
    assert closed(silent)


def test_the_end_of_input_ends_a_request(bench):
    connection = bench.connect()
    assert send(connection, "GET hosts\nColumns: name\nLimit: 1\n") == b""
    connection[0].readConnectionLost()
    assert connection[1].value() == b"alpha\n"
    assert closed(connection)


def test_the_end_of_input_within_a_line_is_an_error(bench):
    connection = bench.connect()
    send(connection, f"GET hosts\n{KEPT}Columns: na")
    connection[0].readConnectionLost()
    assert b"incomplete" in connection[1].value()
    assert closed(connection)
    idle = bench.connect()
    idle[0].readConnectionLost()
    assert idle[1].value() == b""
    assert closed(idle)


def test_too_long_lines_are_refused(bench):
    fits = "Filter: name = " + "x" * (65536 - len("Filter: name = "))
    assert bench.status("GET hosts", fits) == (200, bench.status("GET hosts", "Limit: 0")[1])
    connection = bench.connect()
    assert b"too long" in send(connection, f"GET hosts\n{fits}x\n\n")
    assert closed(connection)
    endless = bench.connect()
    assert b"too long" in send(endless, "x" * 70000)
    assert closed(endless)


def test_a_great_many_lines_are_accepted(bench):
    lines = ["Filter: name = alpha"] * 5000
    assert bench.column("GET hosts", "Columns: name", *lines, "Or: 5000") == ["alpha"]


def test_silent_clients_are_given_up(bench):
    idle, half = bench.connect(), bench.connect()
    send(half, "GET hosts\n")
    bench.clock.advance(9.9)
    assert not closed(half)
    bench.clock.advance(0.2)
    assert closed(half)
    assert not closed(idle)
    bench.clock.advance(280)
    assert send(idle, ASK) == ANSWER
    bench.clock.advance(299)
    assert not closed(idle)
    bench.clock.advance(2)
    assert closed(idle)
    assert idle[1].value() == ANSWER


def test_a_lost_connection_leaves_nothing_behind(bench):
    for text in ("", "GET hosts\n", f"GET hosts\n{KEPT}WaitTrigger: all\n\n"):
        protocol, transport = bench.connect()
        if text:
            send((protocol, transport), text)
        protocol.connectionLost()
    assert not bench.clock.getDelayedCalls()
    assert not bench.factory.open_connections


def test_a_command_is_silent_and_keeps_the_connection(bench):
    connection = bench.connect()
    assert send(connection, "COMMAND [1] DISABLE_NOTIFICATIONS\n\n") == b""
    assert not closed(connection)
    assert send(connection, ASK) == ANSWER
    assert bench.core.switches.enable_notifications == 0


def test_a_refused_command_answers_a_line_without_a_header(bench):
    connection = bench.connect()
    assert send(connection, "COMMAND [1] NONSENSE\n\n") == b"400: Unknown command 'NONSENSE'\n"
    assert not closed(connection)
    barrier = "COMMAND [1] ADD_HOST_COMMENT;nope;1;a;b\n\n" + ASK
    refused = b"400: Failed validation of host_name as type host (argument 0)\n"
    assert send(connection, barrier) == refused + ANSWER


def test_lines_below_a_command_begin_the_next_request(bench):
    connection = bench.connect()
    assert send(connection, "COMMAND [1] DISABLE_NOTIFICATIONS\nKeepAlive: on\n\n") == b""
    assert send(connection, ASK) == b"Invalid request method\n"
    assert closed(connection)


def test_a_second_command_below_runs_later(bench):
    two = "COMMAND [1] DISABLE_NOTIFICATIONS\nCOMMAND [1] DISABLE_EVENT_HANDLERS\n\n"
    connection = bench.connect()
    send(connection, two)
    switches = bench.core.switches
    assert (switches.enable_notifications, switches.enable_event_handlers) == (0, 1)
    connection[0].readConnectionLost()
    assert switches.enable_event_handlers == 0
    switches.enable_event_handlers = 1
    assert send(bench.connect(), two + "\n") == b""
    assert switches.enable_event_handlers == 0


WAIT = f"GET hosts\n{KEPT}OutputFormat: json\nColumns: name state\nFilter: name = alpha\n"


def test_a_condition_that_holds_is_not_waited_for(bench):
    text = f"{WAIT}WaitObject: alpha\nWaitCondition: state = 0\nWaitTrigger: check\n\n"
    assert send(bench.connect(), text).endswith(b'[["alpha",0]]\n')


def test_waiting_for_a_state(bench):
    connection = bench.connect()
    text = f"{WAIT}WaitObject: alpha\nWaitCondition: state = 1\nWaitTrigger: state\n\n"
    assert send(connection, text + ASK) == b""
    bench.result("beta", 1)
    bench.clock.advance(0)
    assert connection[1].value() == b""
    bench.result("alpha", 1)
    bench.clock.advance(0)
    assert connection[1].value().endswith(b'[["alpha",1]]\n' + ANSWER)


def test_waiting_ends_with_the_time_out(bench):
    connection = bench.connect()
    text = f"{WAIT}WaitObject: alpha\nWaitCondition: state = 1\nWaitTimeout: 1500\n\n"
    assert send(connection, text) == b""
    bench.clock.advance(1.4)
    assert connection[1].value() == b""
    bench.clock.advance(0.2)
    assert connection[1].value().endswith(b'[["alpha",0]]\n')


def test_waiting_for_a_trigger_alone(bench):
    connection = bench.connect()
    send(connection, f"{WAIT}WaitTrigger: downtime\n\n")
    bench.command("ADD_HOST_COMMENT;alpha;1;ann;hello")
    bench.clock.advance(0)
    assert connection[1].value() == b""
    bench.command(f"SCHEDULE_HOST_DOWNTIME;beta;1;{2**31};1;0;0;ann;why")
    bench.clock.advance(0)
    assert connection[1].value() != b""


def test_waiting_for_a_service_and_joined_conditions(bench):
    for mark in ";", " ":
        connection = bench.connect()
        text = (
            f"GET services\n{KEPT}OutputFormat: json\nColumns: state\nFilter: description = load\n"
            f"WaitObject: alpha{mark}load\nWaitCondition: state = 1\nWaitCondition: state = 2\n"
            "WaitConditionOr: 2\nWaitCondition: state = 7\nWaitConditionNegate:\n"
            "WaitConditionAnd: 2\n\n"
        )
        assert send(connection, text) == b""
        bench.result("alpha", 2, service="load")
        bench.clock.advance(0)
        assert json.loads(connection[1].value()[16:]) == [[2]]
        bench.result("alpha", 0, service="load")


def test_a_condition_needs_an_object(bench):
    assert bench.status("GET hosts", "WaitCondition: state = 1")[0] == 400
    code, _ = bench.status("GET status", "WaitCondition: num_hosts = 3", "Columns: num_hosts")
    assert code == 200
    disk = bench.status("GET services", "WaitObject: alpha disk /var", "WaitCondition: state = 0")
    assert disk[0] == 200
