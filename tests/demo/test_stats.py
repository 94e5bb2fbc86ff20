"""Stats, with the odd results of a Naemon."""

import json

import pytest

from tests.table import each


@pytest.fixture
def loaded(bench):
    for name, state, latency in (("alpha", 0, 0.5), ("beta", 1, 1.5)):
        host = bench.host(name)
        host.has_been_checked, host.state, host.latency = 1, state, latency
    bench.host("alpha").perf_data = "rta=1.5ms;3;5 'packet loss'=10%"
    bench.host("beta").perf_data = "rta=2.5ms"
    return bench


def body(bench, *lines):
    return bench.status("GET hosts", "OutputFormat: json", *lines)[1]


@each(
    ("lines", "text"),
    [
        (["Stats: state = 0"], "[[2]]\n"),
        (["Stats: state = 0", "Stats: state = 1"], "[[2,1]]\n"),
        (["Stats: state = 0", "Filter: name = nope"], "[[0]]\n"),
        (["Stats: nope = 0"], "[[0]]\n"),
        (["Stats: sum state"], "[[1]]\n"),
        (["Stats: min state", "Stats: max state"], "[[0,1]]\n"),
        (["Stats: sum max_check_attempts"], "[[9]]\n"),
        (["Stats: avg state", "Filter: name != gamma"], "[[5.0000000000e-01]]\n"),
        (["Stats: sum latency"], "[[2.0000000000e+00]]\n"),
        (["Stats: max latency"], "[[1.5000000000e+00]]\n"),
        (["Stats: std latency", "Filter: name != gamma"], "[[7.0710678119e-01]]\n"),
        (["Stats: min latency", "Filter: name = nope"], "[[0.0000000000e+00]]\n"),
        (["Stats: max state", "Filter: name = nope"], "[[0]]\n"),
        (["Stats: avg state", "Filter: name = nope"], "[[-nan]]\n"),
        (["Stats: avginv state", "Filter: name = nope"], "[[-9223372036854775808]]\n"),
        (["Stats: suminv state"], "[[inf]]\n"),
        (["Stats: suminv max_check_attempts"], "[[1.0000000000e+00]]\n"),
        (["Stats: avginv max_check_attempts"], "[[3.3333333333e-01]]\n"),
        (["Stats: sum name"], "[[3]]\n"),
        (["Stats: sum groups"], "[[3]]\n"),
        (["Stats: sum nope"], "[[0]]\n"),
        (
            ["Stats: sum perf_data"],
            '[["rta=4.00000000 packet loss=10.00000000"]]\n',
        ),
        (["Stats: state = 0", "Stats: name ~ ^a", "StatsAnd: 2"], "[[1]]\n"),
        (["Stats: state = 1", "Stats: name ~ ^a", "StatsOr: 2"], "[[2]]\n"),
        (["Stats: name = alpha", "StatsNegate:"], "[[2]]\n"),
        (["Stats: sum state", "Stats: state = 1", "StatsNegate:"], "[[1,2]]\n"),
    ],
)
def test_values(loaded, lines, text):
    assert body(loaded, *lines) == text


def test_groups_are_strings_and_sorted(loaded):
    assert body(loaded, "Columns: state", "Stats: state >= 0") == '[["0",2],\n["1",1]]\n'
    rows = loaded.ask("GET hosts", "Columns: state name", "Stats: sum latency")
    assert [row[:2] for row in rows] == [["0", "alpha"], ["0", "gamma"], ["1", "beta"]]
    assert loaded.ask("GET hosts", "Columns: name", "Stats: state = 0", "Filter: name = x") == []
    old_name = loaded.ask("GET hosts", "StatsGroupBy: state", "Stats: state >= 0")
    assert old_name == [["0", 2], ["1", 1]]


def test_groups_of_lists_and_unknown_columns(loaded):
    for column in ("groups", "custom_variables", "comments_with_info", "custom_variable_values"):
        rows = loaded.ask("GET hosts", f"Columns: {column}", "Stats: state >= 0")
        assert rows == [["invalid", 3]]
    assert loaded.ask("GET hosts", "Columns: nope", "Stats: state >= 0") == [["", 3]]


def test_groups_are_sorted_and_limited(loaded):
    grouped = ("GET hosts", "Columns: name", "Stats: sum latency")
    assert [row[0] for row in loaded.ask(*grouped, "Sort: name desc")] == ["gamma", "beta", "alpha"]
    by_value = loaded.ask(*grouped, "Sort: stats_1 desc", "Limit: 2")
    assert [row[0] for row in by_value] == ["beta", "alpha"]
    assert [row[0] for row in loaded.ask(*grouped, "Limit: 1")] == ["alpha"]


def test_names_of_stats(loaded):
    text = body(loaded, "Columns: state", "Stats: state = 0", "Stats: sum latency",
                "ColumnHeaders: on", "Limit: 1")  # fmt: skip
    assert json.loads(text)[0] == ["state", "stats_1", "stats_2"]


def test_wrapped_json_counts_groups(loaded):
    text = loaded.status(
        "GET hosts", "OutputFormat: wrapped_json", "Columns: state", "Stats: state >= 0", "Limit: 1"
    )[1]
    assert json.loads(text) == {"data": [["0", 2]], "total_count": 2}


@each(
    "lines",
    [
        ["Stats:"],
        ["Stats: sum"],
        ["Stats: sum state name"],
        ["Stats: state"],
        ["StatsAnd: 1"],
        ["StatsNegate:"],
        ["Stats: sum state", "StatsNegate:"],
        ["Stats: sum state", "Stats: state = 0", "StatsOr: 2"],
    ],
)
def test_bad_stats(bench, lines):
    assert bench.status("GET hosts", *lines)[0] == 400
