"""Names of states in filters: what they mean on each kind of column, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from monrest.base.errors import BadRequest
from monrest.base.values import Column
from monrest.query.column_names import ColumnNames, CoreSource
from monrest.query.model import Condition, Group
from monrest.query.states import as_numbers
from monrest.rows.columns import SCHEMAS

NAMES = {name: ColumnNames(schema, {}) for name, schema in SCHEMAS.items()}


def read(collection: str, column: str, op: str, value: str) -> Any:
    """The condition in numbers, as nested tuples; the text as it is where nothing changes."""
    names = NAMES[collection]
    source = names.find(column)
    assert isinstance(source, CoreSource), (collection, column)
    found = as_numbers(Condition(column, op, value), source, names)  # type: ignore[arg-type]
    return value if found is None else shape(found)


def shape(tree: Any) -> Any:
    if isinstance(tree, Condition):
        return f"{tree.column} {tree.op} {tree.value}"
    assert isinstance(tree, Group)
    inner = [shape(one) for one in tree.items]
    return inner[0] if len(inner) == 1 else (tree.connector, *inner)


MEANT = [
    ("hosts", "state", "=", "up", "state = 0"),
    ("hosts", "state", "=", "DOWN", "state = 1"),
    ("hosts", "state", "=", " Unreachable ", "state = 2"),
    ("hosts", "state", "!=", "up", "state != 0"),
    ("hosts", "state", ">=", "down", "state >= 1"),
    ("hosts", "state", ">", "up", "state > 0"),
    ("hosts", "state", "=", "down,unreachable", ("or", "state = 1", "state = 2")),
    ("hosts", "state", "=", "down, 2", ("or", "state = 1", "state = 2")),
    ("hosts", "state", "=", "1,2", ("or", "state = 1", "state = 2")),
    ("hosts", "state", "!=", "down,unreachable", ("and", "state != 1", "state != 2")),
    ("hosts", "state", "=", "pending", "has_been_checked = 0"),
    ("hosts", "state", "!=", "pending", "has_been_checked != 0"),
    ("hosts", "state", "=", "up,pending", ("or", "state = 0", "has_been_checked = 0")),
    ("hosts", "hard_state", "=", "down", "hard_state = 1"),
    ("hosts", "last_state", "=", "down", "last_state = 1"),
    ("hosts", "last_hard_state", "=", "unreachable", "last_hard_state = 2"),
    ("hosts", "worst_service_state", "=", "critical", "worst_service_state = 2"),
    ("hosts", "state", "~", "down", "state = 1"),
    ("hosts", "state", "~~", "^(DOWN|unreachable)$", ("or", "state = 1", "state = 2")),
    ("hosts", "state", "!~", "down|pending", ("and", "state != 1", "has_been_checked != 0")),
    ("hosts", "state", "~", "[12]", "[12]"),
    ("hosts", "state", "=", "1", "1"),
    ("hosts", "state", "=", "", ""),
    ("services", "state", "=", "OK", "state = 0"),
    ("services", "state", "=", "warning", "state = 1"),
    ("services", "state", "=", "CRITICAL", "state = 2"),
    ("services", "state", "=", "unknown", "state = 3"),
    ("services", "state", "=", "critical,warning", ("or", "state = 2", "state = 1")),
    ("services", "state", "=", "pending", "has_been_checked = 0"),
    ("services", "host_state", "=", "down", "host_state = 1"),
    ("services", "host_state", "=", "pending", "host_has_been_checked = 0"),
    ("hostgroups", "worst_host_state", "=", "down", "worst_host_state = 1"),
    ("hostgroups", "worst_service_hard_state", ">=", "warning", "worst_service_hard_state >= 1"),
    ("servicegroups", "worst_service_state", "=", "unknown", "worst_service_state = 3"),
    ("logs", "state", "=", "critical", ("and", "state = 2", "type ~ SERVICE")),
    ("logs", "state", "=", "unreachable", ("and", "state = 2", "type ~ HOST")),
    ("logs", "state", "!=", "up", ("or", "state != 0", "type !~ HOST")),
    ("logs", "state", "=", "2", "2"),
]

REFUSED = [
    ("hosts", "state", "=", "critical", "expected up, down, unreachable, pending or a number"),
    ("hosts", "state", "=", "down,broken", "got 'broken'"),
    ("hosts", "state", "=", "down,", "got ''"),
    ("hosts", "state", ">=", "pending", "expected up, down, unreachable or a number"),
    ("hosts", "state", ">", "up,down", "got 'up,down'"),
    ("hosts", "last_state", "=", "pending", "expected up, down, unreachable or a number"),
    ("services", "state", "=", "down", "expected ok, warning, critical, unknown, pending or a"),
    ("services", "host_state", "=", "critical", "host_state is a state"),
    ("logs", "state", "=", "pending", "or a number"),
    ("hosts", "state", "=", ",".join(map(str, range(101))), "at most 100 states"),
]


def test_what_names_mean() -> None:
    wrong = []
    for collection, column, op, value, expected in MEANT:
        found = read(collection, column, op, value)
        if found != expected:
            wrong.append((collection, column, op, value, found, expected))
    assert not wrong


def test_other_words_are_refused_with_what_was_expected() -> None:
    for collection, column, op, value, expected in REFUSED:
        with pytest.raises(BadRequest) as caught:
            read(collection, column, op, value)
        assert expected in caught.value.description, (collection, column, op, value)
        assert caught.value.description.startswith("q: ")


def test_states_of_comments_and_downtimes_are_those_of_their_objects() -> None:
    for collection in ("comments", "downtimes"):
        names = NAMES[collection]
        for column, word, number in (("host_state", "down", 1), ("service_state", "critical", 2)):
            source = CoreSource(Column(column, "number"), "int")
            found = as_numbers(Condition(column, "=", word), source, names)
            assert found is not None
            assert shape(found) == f"{column} = {number}"
