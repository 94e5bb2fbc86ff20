"""The index, the instance, and the other answers that need no core."""

import pytest

from monrest.base.errors import BadRequest
from monrest.base.names import Names
from tests.api.asking import answer
from tests.fakes.context import make_dispatch


def test_index_spells_the_configured_word(context):
    context.names, context.dispatch = Names(app="abc"), make_dispatch("abc")
    found = answer(context, "/index", ("q", "url ~ abc"), ("columns", "url"))
    assert ["/abc"] in found.rows
    assert ["/abc/whoami"] in found.rows
    assert answer(context, "/index", ("url[~]", "^/mon"), ("columns", "url")).rows == []


def test_instance_spells_the_configured_word(context):
    context.names, context.dispatch = Names(app="abc"), make_dispatch("abc")
    found = answer(context, "/abc")
    assert "abc_version" in found.value
    assert {one.name for one in found.columns} == set(found.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mon_version", "x_version"),
        ("has_mon_profile", "has_x_profile"),
        ("month", "month"),
        ("dist_version", "y_version"),
        ("cm_fqdn", "z_fqdn"),
        ("cm", "cm"),
    ],
)
def test_own_word(name, expected):
    assert Names(app="x", dist="y", cm="z").own(name) == expected


@pytest.mark.parametrize("column", ["to_rows(localtime)", "upper(to_rows(localtime))"])
def test_one_object_has_no_rows_to_take_apart(context, column):
    with pytest.raises(BadRequest) as caught:
        answer(context, "/mon", ("columns", column))
    assert caught.value.description.startswith("columns: ")
