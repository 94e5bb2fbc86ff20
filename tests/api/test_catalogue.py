"""The catalogue of columns against lists of what the interface and a Naemon have."""

import pytest

from monrest.query.column_names import CoreColumn, DerivedColumn
from monrest.rows.columns import JOINED, PSEUDO_COLUMNS, SCHEMAS
from monrest.rows.columns.declaring import (
    change_or_start,
    command_check,
    data_source,
    info,
    integer,
    state_order,
    table,
    text,
)

SIZES = {
    # What a Naemon has in all; contacts have one that no core has.
    "hosts": 118, "services": 210, "hostgroups": 26, "servicegroups": 19, "contacts": 26 + 1,
    "contactgroups": 4, "commands": 3, "timeperiods": 11, "comments": 221, "downtimes": 221,
    "log": 254,
}  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_the_number_of_core_columns(schema):
    core = [one for one in schema.columns.values() if isinstance(one, CoreColumn)]
    if schema.table in SIZES:
        assert len(core) == SIZES[schema.table]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_sources_of_derived_columns_exist(schema):
    for one in schema.columns.values():
        if isinstance(one, DerivedColumn):
            for source in one.sources:
                # A core column may be shadowed by the column that is computed from it.
                assert source in PSEUDO_COLUMNS or source in schema.columns, one.name


@pytest.mark.parametrize("name", JOINED)
def test_joined_columns_are_those_of_the_other_collection(name):
    for joined in JOINED[name]:
        other = SCHEMAS[joined.collection].columns
        found = {
            one.removeprefix(joined.prefix)
            for one in SCHEMAS[name].columns
            if one.startswith(joined.prefix)
        }
        if joined.collection == "services":
            other = {one: each for one, each in other.items() if not one.startswith("host_")}
        if joined.collection == "contacts":
            other = {one: each for one, each in other.items() if one != "last_update"}
        if name == "logs":
            assert found == set(other)
        else:
            assert found >= set(other)
        for column in other:
            mine = SCHEMAS[name].columns[joined.prefix + column]
            assert mine.column.type == other[column].column.type
            assert type(mine) is type(other[column])


def test_sources_of_joined_columns_are_joined_too():
    column = SCHEMAS["comments"].columns["service_last_state_change_order"]
    assert isinstance(column, DerivedColumn)
    assert column.sources == ("service_last_state_change", "program_start")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_keys_name_columns(schema):
    for column in (*schema.order, *schema.aliases.values(), *schema.q_aliases.values()):
        assert column in schema.columns
    for column, _ in (*schema.perf, *schema.custom):
        assert column in schema.columns


def test_a_name_declared_twice_is_refused():
    with pytest.raises(ValueError, match="column name is declared twice"):
        table(text({"name": "one"}), integer({"name": "two"}))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (None, ""),
        ([], ""),
        ([[3, "ann", "disk is full"]], "id:3 author:ann: text:disk is full"),
        (
            [[3, "ann", "a", 17, 1], [4, "bob", "b"]],
            "id:3 author:ann: text:a, id:4 author:bob: text:b",
        ),
    ],
)
def test_info(entries, expected):
    assert info(entries) == expected


@pytest.mark.parametrize(("state", "order"), [(0, 0), (1, 1), (2, 4), (3, 3), (None, None)])
def test_state_order(state, order):
    assert state_order(state) == order


@pytest.mark.parametrize(
    ("change", "start", "expected"), [(7, 5, 7), (0, 5, 5), (None, 5, 5), (0, None, 0)]
)
def test_last_state_change_order(change, start, expected):
    assert change_or_start(change, start) == expected


@pytest.mark.parametrize(("check", "start", "expected"), [(9, 5, 9), (5, 5, 77), (0, 5, 0)])
def test_last_command_check(check, start, expected):
    assert command_check(check, start, 77.9) == expected


def test_data_source():
    assert data_source("1.5.1") == "Livestatus 1.5.1"
