"""The list of sites: what it tells, to whom, and that it is a list like any other (section 18)."""

from datetime import UTC

import pytest
from twisted.internet.defer import Deferred

from monrest.config import Config
from monrest.names import Names
from monrest.resources import sites
from monrest.resources.declare import Context
from monrest.resources.dispatch import dispatch
from monrest.sites.registry import Registry
from monrest.values import Identity, RestRequest
from tests.fakes.sites import Town

INFORMED = Identity(user="ann", roles=frozenset({"authorized_for_system_information"}))
ANN = Identity(user="ann")
ADDRESS = "/run/core/live"


@pytest.fixture
def town():
    made = Town()
    made.clock.advance(1_000_000)
    yield made
    made.stop()


@pytest.fixture
def context(town):
    """A living, a hidden, a dead and a site that is not asked yet, in this order."""
    registry = Registry(town.clock, [])
    registry.sites = (
        town.site("up", name="Berlin", section="Europe"),
        town.site("hid", name="athens", hidden=True),
        town.site("dead", up=False),
        town.site("new", start=False),
    )
    return Context(
        clock=town.clock, sites=registry, config=Config(), names=Names(), zone=UTC, version="1"
    )


def ask(context, *parameters, identity=INFORMED, path="/sites", selected=()):
    request = RestRequest(
        method="GET",
        path=path,
        segments=tuple(path.strip("/").split("/")),
        parameters=parameters,
        identity=identity,
        sites=selected,
    )
    found = []
    Deferred.fromCoroutine(dispatch(context, request)).addBoth(found.append)
    (value,) = found
    if hasattr(value, "raiseException"):
        value.raiseException()
    return value


def records(found):
    return [dict(zip([c.name for c in found.columns], row, strict=False)) for row in found.rows]


def ids(found):
    return [one["id"] for one in records(found)]


def test_a_living_site(context):
    row = records(ask(context))[0]
    localtime = row.pop("localtime")
    assert type(localtime) is int
    version = row.pop("federation_version")
    assert version == [context.sites.sites[0].capabilities.livestatus_version]
    assert row == {
        "addr": ADDRESS,
        "connected": 1,
        "federation_addr": [ADDRESS],
        "federation_key": ["up"],
        "federation_name": ["Berlin"],
        "federation_type": ["livestatus"],
        "id": "up",
        "last_error": "",
        "name": "Berlin",
        "section": "Europe",
        "status": 0,
        "type": "livestatus",
    }


def test_a_dead_site_says_why_in_one_line_without_its_address(context):
    (row,) = records(ask(context, ("id", "dead")))
    assert (row["connected"], row["status"]) == (0, 1)
    assert row["last_error"]
    assert "\n" not in row["last_error"]
    assert ADDRESS not in row["last_error"]


def test_a_site_that_was_not_reached_yet(context):
    (row,) = records(ask(context, ("id", "new")))
    assert (row["connected"], row["status"], row["localtime"]) == (0, 1, 0)
    assert row["federation_version"] == [""]


@pytest.mark.parametrize("selected", [(), ("up",), ("nope",)])
def test_all_sites_in_configured_order_whatever_is_selected(context, selected):
    assert ids(ask(context, selected=selected)) == ["up", "hid", "dead", "new"]
    assert ids(ask(context, ("backends", "up"))) == ["up", "hid", "dead", "new"]


def test_addresses_need_the_role(context):
    for row in records(ask(context, identity=ANN)):
        assert (row["addr"], row["federation_addr"]) == ("", [""])
        assert ADDRESS not in str(row)
    for row in records(ask(context, ("addr", ADDRESS), identity=INFORMED)):
        assert row["addr"] == ADDRESS
    # Who may not see an address must not find it by a filter either.
    assert ids(ask(context, ("addr", ADDRESS), identity=ANN)) == []
    assert ids(ask(context, ("federation_addr[gte]", ADDRESS), identity=ANN)) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ((("status", "0"),), ["up", "hid"]),
        ((("connected[ne]", "1"),), ["dead", "new"]),
        ((("name", "ATHENS"),), ["hid"]),
        ((("q", 'section = "Europe" or id ~ "^d"'),), ["up", "dead"]),
        ((("federation_key[gte]", "hid"),), ["hid"]),
        ((("last_error[ne]", ""), ("last_error[gt]", "A")), ["dead"]),
        ((("sort", "-id"),), ["up", "new", "hid", "dead"]),
        ((("sort", "-status,id"),), ["dead", "new", "hid", "up"]),
        ((("limit", "2"), ("offset", "1")), ["hid", "dead"]),
        ((("id", "nope"),), []),
    ],
)
def test_filters_and_sorting(context, parameters, expected):
    assert ids(ask(context, *parameters)) == expected


def test_columns(context):
    found = ask(context, ("columns", "status,count(*) as n"), ("sort", "status"))
    assert records(found) == [{"status": 0, "n": 2}, {"status": 1, "n": 2}]
    found = ask(context, ("columns", "upper(name) as NAME"), ("limit", "1"))
    assert found.rows == [["BERLIN"]]
    assert ask(context, ("columns", "count(*) as n")).value == {"n": 4}


@pytest.mark.parametrize(
    ("column", "label"),
    [
        *((one, "boolean") for one in ("connected", "status")),
        *((one, "string") for one in ("addr", "id", "name", "section", "type", "last_error")),
        *((f"federation_{one}", "string") for one in ("addr", "key", "name", "type", "version")),
        ("localtime", "time"),
    ],
)
def test_labels_of_the_interface_description(context, column, label):
    (one,) = [one for one in ask(context).columns if one.name == column]
    assert one.type == label


LMD = {
    **dict.fromkeys(["addr", "key", "last_error", "name", "parent", "peer_key"], "string"),
    **dict.fromkeys(["peer_name", "section", "status"], "string"),
    **{f"federation_{one}": "string" for one in ("addr", "key", "name", "type", "version")},
    **dict.fromkeys(["bytes_received", "bytes_send", "queries", "response_time"], "number"),
    **dict.fromkeys(["last_online", "last_query", "last_update", "lmd_last_cache_update"], "time"),
    "flags": "array_of_strings",
    "idling": "boolean",
}


def test_columns_of_lmd_sites(context):
    assert {one.name: one.type for one in sites.LMD_COLUMNS} == LMD
    units = {one.name: one.unit for one in sites.LMD_COLUMNS if one.unit}
    assert units == {"bytes_received": "bytes", "bytes_send": "bytes", "response_time": "s"}
    assert ask(context, path="/lmd/sites").rows == []


def test_lists_are_lists_under_any_label():
    kinds = {name: one.core_type for name, one in sites._SCHEMA.columns.items()}
    assert {name for name, kind in kinds.items() if kind == "list"} == {
        f"federation_{one}" for one in ("addr", "key", "name", "type", "version")
    }
