"""Wrapped JSON: meta of columns, name rules, failed sites, errors."""

import json

import pytest

from monrest.base.values import Column, Document, Rows
from monrest.render.formats import RenderOptions, render
from monrest.render.wrapped import by_name
from tests.table import each


def wrapped(answer, *, pretty=False):
    options = RenderOptions(format="wrapped_json", pretty=pretty)
    return json.loads(b"".join(render(answer, options).pieces))


@each(
    ("name", "expected"),
    [
        ("disk_perc", ("number", "%")),
        ("percent", ("number", "%")),
        ("used_percent", ("number", "%")),
        ("percent_used", (None, "")),
        ("execution_time_avg", ("number", "s")),
        ("latency_sum", ("number", "")),
        ("percent_state_change_max", ("number", "%")),
        ("hosts_min", ("number", "")),
        ("mtime", ("time", "")),
        ("start", ("time", "")),
        ("end", ("time", "")),
        ("localtime", ("time", "")),
        ("ts", ("time", "")),
        ("time", ("time", "")),
        ("lmd_last_cache_update", ("time", "")),
        ("last_check", ("time", "")),
        ("next_check", ("time", "")),
        ("start_time", ("time", "")),
        ("end_time", ("time", "")),
        ("last_job", (None, "")),
        ("last_error", (None, "")),
        ("last_state", (None, "")),
        ("last_hard_state", (None, "")),
        ("last_hard_state_change", ("time", "")),
        ("file_ts", ("time", "")),
        ("valid_till", ("time", "")),
        ("peer_last_update", ("time", "")),
        ("duration", ("number", "s")),
        ("response_time", ("number", "s")),
        ("execution_time", ("number", "s")),
        ("check_duration", ("number", "s")),
        ("run_seconds", ("number", "s")),
        ("bytes_received", ("number", "bytes")),
        ("bytes_send", ("number", "bytes")),
        ("index_size", ("number", "bytes")),
        ("data_size", ("number", "bytes")),
        ("name", (None, "")),
        ("lastly", (None, "")),
        ("", (None, "")),
    ],
)
def test_type_and_unit_by_name(name, expected):
    assert by_name(name) == expected


def test_asked_columns_in_their_order_with_declared_types_first():
    answer = Rows(
        columns=(
            Column("state", "number"),
            Column("last_check", "time"),
            Column("last_state", "number"),
            Column("rta", "", "ms"),
            Column("size", "number", "B"),
            Column("run_seconds", "string"),
            Column("whatever"),
        ),
        rows=[[0, 1, 0, 0.1, 5, "x", None]],
    )
    assert wrapped(answer) == {
        "data": [
            {
                "state": 0, "last_check": 1, "last_state": 0, "rta": 0.1, "size": 5,
                "run_seconds": "x", "whatever": None,
            }
        ],
        "meta": {
            "columns": [
                {"name": "state", "type": "number"},
                {"name": "last_check", "type": "time"},
                {"name": "last_state", "type": "number"},
                {"name": "rta", "type": "number", "config": {"unit": "ms"}},
                {"name": "size", "type": "number", "config": {"unit": "bytes"}},
                {"name": "run_seconds", "type": "string"},
                {"name": "whatever"},
            ]
        },
    }  # fmt: skip


def test_without_asked_columns_the_sorted_keys_of_the_first_row_with_units_of_perf_data():
    answer = Rows(
        columns=(Column("state", "number"), Column("name", "string")),
        rows=[[1, "h1", True], [2, "h2", False]],
        expand=lambda row: (
            {"used": 7, "used_unit": "B", "pl": 0, "pl_unit": "", "state_unit": "x"}
            if row[2]
            else {"only_later": 1}
        ),
    )
    assert wrapped(answer)["meta"]["columns"] == [
        {"name": "name", "type": "string"},
        {"name": "pl", "type": "number"},
        {"name": "pl_unit", "type": "string"},
        {"name": "state", "type": "number"},
        {"name": "state_unit", "type": "string"},
        {"name": "used", "type": "number", "config": {"unit": "bytes"}},
        {"name": "used_unit", "type": "string"},
    ]


def test_no_rows_still_say_their_columns():
    answer = Rows(columns=(Column("name", "string"),), rows=[], expand=lambda _: {"x": 1})
    assert wrapped(answer) == {
        "data": [], "meta": {"columns": [{"name": "name", "type": "string"}]}
    }  # fmt: skip
    assert wrapped(Document(value=[])) == {"data": [], "meta": {"columns": []}}


def test_documents_give_their_keys_sorted_or_in_the_declared_order():
    value = {"b": 1, "a": {"c": 1}, "duration": 5}
    assert wrapped(Document(value=value)) == {
        "data": value,
        "meta": {
            "columns": [
                {"name": "a", "type": "string"},
                {"name": "b", "type": "number"},
                {"name": "duration", "type": "number", "config": {"unit": "s"}},
            ]
        },
    }
    ordered = wrapped(
        Document(value=value, order=("duration", "b"), columns=(Column("b", "time"),))
    )
    assert [column["name"] for column in ordered["meta"]["columns"]] == ["duration", "b", "a"]
    assert ordered["meta"]["columns"][1]["type"] == "time"
    listed = wrapped(Document(value=[{"z": 1, "y": 2}, {"x": 1}]))
    assert [column["name"] for column in listed["meta"]["columns"]] == ["y", "z"]


@pytest.mark.parametrize("count", [0, 1, 500])
def test_pretty_is_the_same_value_indented_throughout(count):
    def answer():
        return Rows(
            columns=(Column("b"), Column("a")), rows=[[n, ["x\ny", {}]] for n in range(count)]
        )

    options = RenderOptions(format="wrapped_json", pretty=True)
    text = b"".join(render(answer(), options).pieces).decode()
    assert json.loads(text) == wrapped(answer())
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_dictionaries_are_called_strings_for_want_of_a_word():
    answer = Rows(columns=(Column("custom_variables", "object"),), rows=[[{"OS": "linux"}]])
    document = wrapped(answer)
    assert document["meta"]["columns"] == [{"name": "custom_variables", "type": "string"}]
    assert document["data"] == [{"custom_variables": {"OS": "linux"}}]
