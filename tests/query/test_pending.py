"""What an Icinga 2 is asked about states keeps exactly the rows whose state in the API fits."""

import itertools

import pytest

from monrest.query.model import Test as CoreTest
from monrest.query.sendable import PENDING_COLUMNS, in_icinga
from monrest.query.totals import columns_of, core_test
from tests.table import each


@each("column", sorted(PENDING_COLUMNS))
@each("op", ["=", "!="])
@each("value", ["0", "1", "2", "3", "-1"])
def test_rows_that_an_icinga_keeps(column, op, value):
    asked = in_icinga(CoreTest(column, op, value))
    flag = "host_has_been_checked" if column.startswith("host_") else "has_been_checked"
    assert set(columns_of(asked)) == {column, flag}
    keeps = core_test(asked, {column: 0, flag: 1})
    for held, checked in itertools.product(range(4), (0, 1)):
        shown = held if checked else int(column == "state_type")
        fits = (shown == int(value)) == (op == "=")
        assert keeps([held, checked]) is fits, (held, checked)


@pytest.mark.parametrize("op", [">", "<", ">=", "<=", "~"])
def test_what_cannot_be_asked(op):
    assert in_icinga(CoreTest("state", op, "1")) is None
