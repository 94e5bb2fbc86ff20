"""What a real core refuses, lies about or dies of; where one dies, the embedded core ends."""

import pytest

from monrest.query.sendable import COUNTERS
from tests.demo.conftest import SITE, START

ALL = sorted([*COUNTERS, *(f"{name}_rate" for name in COUNTERS)])
VALUELESS = SITE.replace("_COLOUR blue", "_COLOUR null\n    _OTHER")


@pytest.fixture
def valueless(make_bench):
    """A core whose host beta has custom variables without values."""
    return make_bench(VALUELESS)


def refused(bench, *lines):
    """The status of a request; None when it ends a real core."""
    head, *rest = lines
    before = len(bench.deaths)
    answer = bench.raw("\n".join([head, "ResponseHeader: fixed16", *rest]) + "\n\n")
    if len(bench.deaths) > before:
        assert answer == b""
        return None
    return int(answer[:3])


def test_counters_are_read(bench):
    assert len(ALL) == 18
    rows = bench.ask("GET status", f"Columns: {' '.join(ALL)}", "Filter: num_hosts > 0")
    assert len(rows[0]) == 18
    assert bench.ask("GET status", "Columns: num_hosts", "Sort: requests asc") == [[3]]


def test_counters_are_not_compared(bench):
    for name in ALL:
        for line in (f"Filter: {name} >= 0", f"Stats: {name} = 0", f"WaitCondition: {name} > 1"):
            code, body = bench.status("GET status", "Columns: num_hosts", line)
            assert (code, body) == (400, "cannot create filter on table status\n"), line
        assert bench.ask("GET status", f"Columns: {name}", "Stats: num_hosts > 0") == [
            ["invalid", 1]
        ]


def test_functions_over_counters_end_the_core(bench):
    for name in ALL:
        for function in ("sum", "min", "max", "avg", "std"):
            assert refused(bench, "GET status", f"Stats: {function} {name}") is None
            assert bench.deaths[-1] == f"GET status, Stats: {function} {name}"
    assert refused(bench, "GET status", "Stats: sum num_hosts") == 200


FILTERED = [
    ("hosts", "custom_variable_values"),
    ("services", "host_custom_variable_values"),
    ("services", "custom_variable_values"),
    ("hostsbygroup", "custom_variable_values"),
    ("servicesbyhostgroup", "host_custom_variable_values"),
    ("comments", "host_custom_variable_values"),
    ("downtimes", "service_custom_variable_values"),
    ("log", "current_host_custom_variable_values"),
    ("log", "current_contact_custom_variable_values"),
    ("contacts", "custom_variable_values"),
]


def test_filters_on_values_end_the_core_when_one_is_missing(bench, valueless):
    for table, column in FILTERED:
        for line in (f"Filter: {column} >= red", f"Filter: {column} =", f"Stats: {column} !>= red"):
            assert refused(bench, f"GET {table}", line) == 200
            assert refused(valueless, f"GET {table}", line) is None
        assert f"GET {table}, filter {column} !>= red" in valueless.deaths
        assert refused(valueless, f"GET {table}", f"Columns: {column}") == 200
        assert refused(valueless, f"GET {table}", f"Stats: sum {column}") == 200


def test_variables_without_values(valueless):
    columns = "Columns: custom_variables custom_variable_names custom_variable_values"
    assert valueless.ask("GET hosts", columns, "Filter: name = beta") == [
        [{"COLOUR": "", "OTHER": ""}, ["COLOUR", "OTHER"], ["", ""]]
    ]
    empty = valueless.column("GET hosts", "Columns: name", "Filter: custom_variables = COLOUR ")
    assert empty == ["beta", "gamma"]


def test_downtimes_that_vanish(bench):
    span = f"{START};{START + 100}"
    for line, problem in {
        f"SCHEDULE_HOST_DOWNTIME;beta;{span};0;0;0;ann;x": "host 'beta': Bad time spec",
        f"SCHEDULE_SVC_DOWNTIME;alpha;load;{span};0;0;0;ann;x": (
            "service 'load' on host 'alpha': Bad time spec"
        ),
        f"SCHEDULE_HOST_DOWNTIME;beta;{span};1;9;0;ann;x": (
            "host 'beta': Triggering downtime not found"
        ),
    }.items():
        assert bench.command(line) == ""
        assert bench.messages()[-1] == f"Error: Failed to add downtime for {problem}"
    assert bench.ask("GET downtimes", "Columns: id") == []
    assert bench.ask("GET comments", "Columns: id") == []


def test_the_host_that_must_not_be_is_looked_up(bench):
    other = "Filter: host_name != beta"
    assert bench.column("GET services", "Columns: host_name", other) == []
    assert bench.column("GET services", "Columns: host_name", other, "Filter: state = 0") == []
    found = bench.column("GET services", "Columns: host_name", other, "Filter: state = 7", "Or: 2")
    assert found == ["alpha", "alpha"]
    found = bench.column(
        "GET services", "Columns: host_name", "Filter: host_name = beta", "Negate:"
    )
    assert found == ["alpha", "alpha"]
    assert bench.ask("GET services", "Stats: host_name != beta") == [[2]]
    assert "beta" not in bench.column("GET hosts", "Columns: name", "Filter: name != beta")
