"""The list of sites: what it tells, to whom, and that it is a list like any other."""

import pytest
from attrs import evolve

from monrest.api.endpoint import Endpoint
from monrest.api.router import Router
from monrest.base.errors import BadRequest
from monrest.base.values import ADMIN, ANONYMOUS, ROLES, Document, Identity
from monrest.rows import site_endpoints as sites
from tests.api.asking import answer, records
from tests.fakes.context import KnownContacts, make_context
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
    return make_context(
        town.clock,
        town.site("up", name="Berlin", section="Europe"),
        town.site("hid", name="athens", hidden=True),
        town.site("dead", up=False),
        town.site("new", start=False),
    )


def ask(context, *parameters, identity=INFORMED, path="/sites", selected=()):
    return answer(context, path, *parameters, identity=identity, sites=selected)


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


def test_what_runs_there_and_why_it_fails_need_the_role(context):
    for row in records(ask(context, identity=ANN)):
        assert (row["last_error"], row["federation_version"]) == ("", [""])
        assert row["connected"] == int(row["id"] in ("up", "hid"))
    assert ids(ask(context, ("last_error[ne]", ""), identity=ANN)) == []
    assert ids(ask(context, ("last_error[ne]", ""))) == ["dead"]


@pytest.fixture
def divided(town):
    """A site for all, one for two groups, a hidden one for one group."""
    return make_context(
        town.clock,
        town.site("open"),
        town.site("team", name="Team", section="Asia", groups=("web", "db")),
        town.site("night", section="Asia", groups=("night",), hidden=True),
        contacts=KnownContacts(ann=("db", "x"), eve=("night", "web"), bob=("webs", "")),
    )


ROOT = Identity(user="root", roles=frozenset({"authorized_for_admin"}))


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        (ANN, ["open", "team"]),
        (Identity(user="eve"), ["open", "team", "night"]),
        (Identity(user="bob"), ["open"]),
        (Identity(user="nobody"), ["open"]),
        (Identity(user="bob", roles=frozenset(ROLES) - {ADMIN}), ["open"]),
        (ROOT, ["open", "team", "night"]),
        (Identity(user="(api)", superuser=True), ["open", "team", "night"]),
        (ANONYMOUS, ["open"]),
    ],
)
def test_sites_of_other_groups_do_not_exist(divided, identity, expected):
    assert ids(ask(divided, identity=identity)) == expected


def test_groups_are_asked_only_where_they_matter(divided, context):
    ask(divided, identity=ROOT)
    ask(divided, identity=ANONYMOUS)
    assert divided.contacts.asked == []
    ask(divided, identity=ANN)
    assert divided.contacts.asked == ["ann"]
    ask(context, identity=ANN)
    assert context.contacts.asked == []


@pytest.fixture
def selecting(divided):
    """An endpoint that answers with the ids of the sites that it selects."""

    async def handler(context, request, arguments):
        chosen = context.sites.select(request.sites)
        return Document(value=[site.id for site in chosen])

    made = Router("mon")
    made.add([Endpoint(path="/chosen", description="", handler=handler)])
    divided.dispatch = evolve(divided.dispatch, router=made)


@pytest.mark.parametrize(
    ("selected", "expected"),
    [
        ((), ["open", "team"]),
        (("ALL",), ["open", "team"]),
        (("LOCAL",), ["open", "team"]),
        (("Asia",), ["team"]),
        (("Team",), ["team"]),
        (("night",), None),
        (("open", "night"), None),
    ],
)
def test_a_forbidden_site_is_as_unknown_as_one_that_is_not_there(
    divided, selecting, selected, expected
):
    def chosen(names):
        return ask(divided, identity=ANN, path="/chosen", selected=names).value

    if expected is not None:
        assert chosen(selected) == expected
        return
    with pytest.raises(BadRequest) as forbidden:
        chosen(selected)
    with pytest.raises(BadRequest) as unknown:
        chosen(tuple(one.replace("night", "nope") for one in selected))
    assert forbidden.value.message == "failed to find backend(s): night"
    assert forbidden.value.message.replace("night", "nope") == unknown.value.message
    assert forbidden.value.description == unknown.value.description


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
        *(
            (f"federation_{one}", "array_of_strings")
            for one in ("addr", "key", "name", "type", "version")
        ),
        ("localtime", "time"),
    ],
)
def test_labels_of_the_interface_description(context, column, label):
    (one,) = [one for one in ask(context).columns if one.name == column]
    assert one.type == label


LMD = {
    **dict.fromkeys(["addr", "key", "last_error", "name", "parent", "peer_key"], "string"),
    **dict.fromkeys(["peer_name", "section", "status"], "string"),
    **{
        f"federation_{one}": "array_of_strings"
        for one in ("addr", "key", "name", "type", "version")
    },
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


def test_lists_are_lists():
    kinds = {name: one.core_type for name, one in sites._SCHEMA.columns.items()}
    assert {name for name, kind in kinds.items() if kind == "list"} == {
        *(f"federation_{one}" for one in ("addr", "key", "name", "type", "version")),
        *("groups", "instances"),
    }
