"""Availability and outages of several sites, of one that lies about its log or its objects."""

from itertools import product

import pytest
from harness.daemon import site
from harness.expect import HOSTS, refused
from harness.lying import DEEDS, TYPED, LyingSite

from tests.examples import some

IN_TIME = 10.0


@pytest.fixture(scope="module")
def liar(embedded, shared):
    return shared.keep(LyingSite(shared.folder() / "live", embedded.socket))


@pytest.fixture(scope="module")
def several(embedded, liar, shared):
    sites = [
        site("good", embedded),
        site("liar", liar, timeout=1.0),
        site("dead", "unix:/nowhere/live", timeout=1.0),
    ]
    daemon = shared.daemon(sites, sections={"server": {"request_timeout": 4.0}})
    yield daemon.start(connected={"good", "liar"})
    liar.lie(None)


@pytest.fixture
def many(several, liar):
    with several.client() as client:
        yield client
        liar.lie(None)
        several.wait_connected({"good", "liar"})


def test_every_site_has_its_own_row(many):
    response = many.get("/hosts/availability?columns=host&start=-1h")
    assert [row["host"] for row in response.json] == sorted([*HOSTS, *HOSTS])
    assert response.headers["x-mon-failed-sites"] == "dead"
    response = many.get("/sites/good/hosts/availability?columns=host")
    assert [row["host"] for row in response.json] == sorted(HOSTS)
    assert "x-mon-failed-sites" not in response.headers
    assert type(many.rows("/hosts/router1/availability")) is dict
    response = many.get("/sites/dead/hosts/availability")
    refused(response, 502)
    refused(many.get("/hosts/nope/availability"), 404, "not every site answered")


@pytest.mark.parametrize(
    "deed",
    [*sorted(DEEDS), *sorted(set(TYPED) - {"empty list"})],
)
def test_a_site_that_lies_about_its_log(many, liar, deed):
    liar.lie(deed, "log")
    response = many.get("/hosts/outages?columns=host,class&start=-1h", timeout=IN_TIME)
    assert response.status == 200, response
    assert {row["host"] for row in response.json} >= {"router1", "web02"}
    assert "liar" in response.headers["x-mon-failed-sites"]


TABLES = ["hosts", "services", "timeperiods", "servicegroups"]


@pytest.mark.parametrize(("table", "deed"), some(product(TABLES, sorted(TYPED))))
def test_a_site_that_lies_about_its_objects(many, liar, deed, table):
    liar.lie(deed, table)
    for path in (
        "/hosts/availability?type=both&initialassumedhoststate=-1&initialassumedservicestate=-1",
        "/hosts/router1/outages?rpttimeperiod=24x7",
        "/servicegroups/pings/availability",
    ):
        response = many.get(path, timeout=IN_TIME)
        assert response.status == 200, response
        assert "router1" in {row["host"] for row in response.json}
