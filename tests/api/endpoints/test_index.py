"""The index, the instance, and the other answers that need no core."""

import pytest

from monrest import __version__
from monrest.base.errors import BadRequest
from monrest.base.names import Names
from monrest.commands.listing import url_of
from monrest.daemon.families import ENDPOINTS
from monrest.livestatus.catalogue import ALL
from tests.api.asking import answer, records
from tests.api.endpoints.given import ANN, NOW
from tests.fakes.context import make_dispatch


def test_index(context):
    found = records(answer(context, "/"))
    assert found == records(answer(context, "/index"))
    listed = [(one.path, method) for one in ENDPOINTS for method in one.methods]
    listed = sorted(listed + [(url_of(command), "POST") for command in ALL])
    assert sorted((one["url"], one["protocol"]) for one in found) == listed
    assert [one["url"] for one in found] == [path for path, _ in listed]
    assert all(one["description"] for one in found)


def test_index_is_a_list_like_any_other(context):
    found = answer(context, "/index", ("url[~]", "^/mon"), ("sort", "-url"), ("columns", "url"))
    own = [one.path for one in ENDPOINTS if one.path.startswith("/mon") for _ in one.methods]
    assert found.rows == [[path] for path in sorted(own, reverse=True)]
    assert ["/mon/whoami"] in found.rows


def test_index_spells_the_configured_word(context):
    context.names, context.dispatch = Names(app="abc"), make_dispatch("abc")
    found = answer(context, "/index", ("q", "url ~ abc"), ("columns", "url"))
    assert ["/abc"] in found.rows
    assert ["/abc/whoami"] in found.rows
    assert answer(context, "/index", ("url[~]", "^/mon"), ("columns", "url")).rows == []


def test_instance(context):
    found = answer(context, "/mon", identity=ANN)
    assert found.value["rest_version"] == "1"
    assert found.value["mon_version"] == __version__
    assert found.value["localtime"] == NOW + 0.5
    assert found.value["etc_path"] == "/etc/monrest"
    assert {one.name for one in found.columns} == set(found.value)
    assert answer(context, "/mon", ("columns", "mon_version:v")).value == {"v": __version__}


def test_instance_spells_the_configured_word(context):
    context.names, context.dispatch = Names(app="abc"), make_dispatch("abc")
    found = answer(context, "/abc")
    assert "abc_version" in found.value
    assert {one.name for one in found.columns} == set(found.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mon_version", "x_version"), ("has_mon_profile", "has_x_profile"), ("month", "month")],
)
def test_own_word(name, expected):
    assert Names(app="x").own(name) == expected


def test_lmd_sites_without_lmd(context):
    assert answer(context, "/lmd/sites").rows == []


@pytest.mark.parametrize("column", ["to_rows(localtime)", "upper(to_rows(localtime))"])
def test_one_object_has_no_rows_to_take_apart(context, column):
    with pytest.raises(BadRequest) as caught:
        answer(context, "/mon", ("columns", column))
    assert caught.value.description.startswith("columns: ")
