"""Sites of another instance, read over its API: what it says itself is what is said here."""

from urllib.parse import quote

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.federated import far_site, superuser_key

from tests.table import each


@pytest.fixture(scope="module")
def pair(embedded, shared):
    """A daemon with a core, and one that has it over the first."""
    far = shared.daemon([site("core", embedded, section="Far")]).start()
    near = shared.daemon([far_site("f", far, superuser_key(far), section="Near")]).start()
    return far, near


@pytest.fixture(params=["admin", "olga"])
def both(pair, request):
    far, near = pair
    with far.client(request.param) as there, near.client(request.param) as here:
        yield there, here


_OWN = ("peer_key", "peer_name", "peer_section", "peer_addr")


def without_site(value):
    if isinstance(value, list):
        return [without_site(one) for one in value]
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key not in _OWN}
    return value


@each(
    "path",
    [
        "/hosts",
        "/services",
        "/hosts/web01",
        "/hosts/web01/services",
        "/services/web01/ping",
        "/hostgroups",
        "/servicegroups",
        "/contacts",
        "/contactgroups",
        "/timeperiods",
        "/commands",
        "/comments",
        "/downtimes",
        "/logs?columns=time,type,message,host_name,class",
        "/logs?limit=3&columns=time,message",
        "/alerts?columns=time,message&time[>]=-1y",
        "/hosts?state=0&sort=-name&limit=2",
        "/hosts?sort=state,-name&offset=1&limit=2",
        "/hosts?q=(name ~~ WEB or name = 'db01') and state != 7",
        "/hosts?groups[gte]=web&columns=name,groups",
        "/hosts?name[!~]=web",
        "/hosts?_ROLE=x&columns=name",
        "/services?columns=count(*):n,state&sort=state",
        "/services?columns=host_name,avg(last_check):a,max(state)",
        "/services?q=not_there = 1",
        "/services?columns=description,perf_data_expanded&perf_data[!=]=",
        "/hosts/totals",
        "/services/totals",
        "/hosts/stats",
        "/services/stats",
        "/hosts/web01/commandline",
        "/hosts/*/commandline?columns=host_name,command_line&sort=-host_name&limit=3",
        "/services/web*/p*/commandline",
        "/hosts/none/commandline",
        "/hosts?columns=name,last_check&last_check[>]=-10y",
        "/services?state_order[>]=-1&columns=description,state_order",
        "/hosts?columns=name,plugin_output,long_plugin_output,perf_data",
        "/hosts?columns=name&q=" + " or ".join(f"name = 'web{at:04}'" for at in range(400)),
        "/hosts/availability?start=-7d",
        "/services/availability?start=-7d&columns=host,service,time_ok,time_critical",
        "/hosts/web01/availability?start=-7d",
        "/services/web01/ping/availability?start=-7d&rpttimeperiod=24x7",
        "/hosts/outages?start=-7d",
        "/services/outages?start=-7d&limit=5&sort=-start",
        "/hostgroups/web/availability?start=-7d",
    ],
)
def test_reads_are_those_of_the_other_side(both, path):
    for _ in range(20):  # a check or a second between the two answers makes them differ
        expected, answer = (one.get(quote(path, safe="/?&=[]*:,()")) for one in both)
        assert answer.status == expected.status, (expected, answer)
        wanted, found = without_site(expected.json), without_site(answer.json)
        if wanted == found or answer.status != 200:
            break
    if answer.status == 200:
        assert found == wanted


def test_rows_carry_the_site_as_it_is_named_here(pair):
    with pair[1].client() as here:
        row = here.rows("/hosts/web01")[0]
        assert (row["peer_key"], row["peer_name"]) == ("f", "F")
        assert row["peer_section"] == "Near/Far"
        row = here.rows("/sites")[0]
    assert row["federation_key"] == ["f", "core"]
    assert row["federation_name"] == ["F", "CORE"]
    assert row["federation_type"] == ["http", "livestatus"]
    assert row["federation_addr"][0] == row["addr"] == f"http://127.0.0.1:{pair[0].port}/mon"
    assert len(row["federation_version"]) == 2
    assert row["type"] == "http"
    assert "tables" not in row


def test_a_contact_sees_his_own_only(pair):
    with pair[1].client("olga") as olga:
        assert olga.values("/hosts", "name") == ["web01"]
        refused(olga.get("/config/objects"), 403)
    with pair[1].client("nobody") as nobody:
        assert nobody.rows("/hosts") == []


def test_the_key_is_not_shown(pair):
    near = pair[1]
    key = near.sites[0]["auth_key"]
    with near.client() as here:
        shown = here.rows("/mon/config")["sites"][0]
        assert shown["auth_key"] == "***"
        for path in ("/sites", "/hosts?limit=1", "/mon/config"):
            assert key not in here.get(path).text
    assert key not in near.log
