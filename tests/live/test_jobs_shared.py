"""Jobs of two real daemons on one PostgreSQL, and a database that goes away."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.daemon import site
from harness.jobs import background
from harness.waiting import until

from tests.fakes.postgres import PostgresServer

BEGUN = "0 of 1 sites have answered"


@pytest.fixture
def pair(lab, postgres_url, slow):
    """Two daemons with the same database and the same core."""
    daemons = lab.pair([site("slow", slow)], postgres_url)
    return [daemon.start() for daemon in daemons]


def test_two_daemons(pair, slow):
    one, two = pair
    with one.client() as here, two.client() as there:
        direct = here.get("/csv/hosts?columns=name").body
        number = background(here, "/csv/hosts?columns=name")
        assert there.get(f"/mon/jobs/{number}/output").body == direct
        slow.lie(None, "services")
        slow.hold()
        canceled, dying = (background(here, "/services") for _ in range(2))
        until(lambda: there.rows(f"/mon/jobs/{dying}")["message"] == BEGUN, "it has begun")
        answer = there.request("DELETE", f"/mon/jobs/{canceled}")
        assert answer.json["message"] == "canceled job", answer
        assert here.rows(f"/mon/jobs/{canceled}")["stderr"] == "canceled by admin"
        assert there.rows(f"/mon/jobs/{dying}")["is_running"] == 1
        one.kill()
        until(
            lambda: there.rows(f"/mon/jobs/{dying}")["is_running"] == 0,
            "the other daemon finds out",
            seconds=300,
            pause=0.5,
        )
        row = there.rows(f"/mon/jobs/{dying}")
        assert row["stderr"] == "the daemon that ran it ended unexpectedly"
        assert "has failed" in two.log


def test_many_at_once_on_both(pair):
    def many(daemon):
        with daemon.client() as client:
            return [background(client, "/hosts?columns=name") for _ in range(25)]

    with ThreadPoolExecutor(4) as pool:
        numbers = [one for some in pool.map(many, [*pair, *pair]) for one in some]
    assert len(set(numbers)) == 100
    with pair[0].client() as client:
        until(lambda: client.rows("/mon/jobs", {"is_running": "1"}) == [], "all ended")
        rows = client.rows("/mon/jobs", {"columns": "id,rc"})
        assert {row["rc"] for row in rows} == {0}
        assert {row["id"] for row in rows} == set(map(int, numbers))


@pytest.fixture
def server(postgres_server):
    """A server that a test may stop."""
    made = PostgresServer()
    yield made
    made.remove()


def test_a_database_that_goes_away_while_a_job_runs(made, slow, server):
    database = {"database": {"url": server.url(server.create())}}
    daemon = made([site("slow", slow)], sections=database).start()
    with daemon.client() as client:
        slow.lie(None, "services")
        slow.hold()
        number = background(client, "/services")
        assert slow.waiting.wait(300)
        server.stop("immediate")
        response = client.get("/hosts?background=1")
        assert response.status == 503, response
        assert client.get(f"/mon/jobs/{number}").status == 503
        slow.release()
        server.start()
        until(lambda: client.get(f"/mon/jobs/{number}").status == 200, "the database is back")
        found = client.get(f"/mon/jobs/{number}/output")
        assert (found.status, len(found.json)) == (200, 11)
