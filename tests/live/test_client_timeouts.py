"""``timeout=SECONDS`` in a request: a site that has not answered by then is named, on every path."""

import pytest
from harness.daemon import site
from harness.lying import LyingSite

WRONG = ("0", "0.05", "-1", "301", "1e1", "2s", "nan", "inf", "\uff11", "1,5", "0x2", "0.1234")


@pytest.fixture(scope="module")
def slow(embedded, shared):
    return shared.keep(LyingSite(shared.folder() / "live", embedded.socket))


@pytest.fixture(scope="module")
def daemon(embedded, slow, shared):
    sites = [site("good", embedded), site("slow", slow)]
    off = {"logcache": {"enabled": False}}
    yield shared.daemon(sites, sections=off).start()
    slow.release()


@pytest.fixture
def client(daemon, slow):
    with daemon.client() as client:
        yield client
    slow.release()


@pytest.mark.parametrize(
    "path",
    [
        "/hosts?columns=name&timeout=0.5",
        "/services/totals?timeout=0.5",
        "/hosts?columns=count(*)&timeout=0.5",
        "/services?sort=-last_check&limit=3&timeout=0.5",
        "/logs?time[gte]=-1h&timeout=0.5",
        "/csv/hosts?timeout=0.5&columns=name",
    ],
)
def test_a_site_that_has_not_answered_by_then_is_named(client, slow, path):
    slow.lie(None, "hosts", "services", "log")
    slow.hold()
    response = client.get(path)
    assert response.status == 200, response
    assert response.headers["x-mon-failed-sites"] == "slow"
    alone = client.get(f"/sites/slow{path}")
    assert alone.status == 504
    assert "timed out after 0.5 s" in alone.json["description"] if "csv" not in path else alone.body
    slow.release()
    response = client.get(path.replace("timeout=0.5", "timeout=30"))
    assert "x-mon-failed-sites" not in response.headers
    # Impatience has proved nothing.
    assert client.values("/sites", "connected") == [1, 1]


def test_it_goes_into_a_form_and_a_json_body_as_well(client, slow):
    slow.lie(None, "hosts")
    slow.hold()
    for answer in (
        client.post_form("/hosts", [("columns", "name"), ("timeout", "0.5")]),
        client.post_json("/hosts", {"columns": "name", "timeout": 0.5}),
    ):
        assert answer.status == 200, answer
        assert answer.headers["x-mon-failed-sites"] == "slow"
        assert set(answer.json[0]) == {"name"}


@pytest.mark.parametrize("path", ["/hosts", "/mon/whoami", "/index", "/mon/jobs", "/hosts/totals"])
def test_nonsense_is_refused_on_every_path(client, path):
    for text in WRONG:
        response = client.get(path, {"timeout": text})
        assert response.status == 400, (path, text, response)
        assert "timeout" in response.json["description"], (path, text)
        assert client.get(path, {"timeout": text, "background": "1"}).status == 400
    assert client.get(path, {"timeout": "2"}).status == 200


def test_seconds_are_taken_as_they_are_written(client):
    for text in ("", "0.1", "2", "300", " 2 "):
        assert client.get("/mon/whoami", {"timeout": text}).status == 200, text


def test_it_is_no_filter_and_no_argument_of_a_command(client):
    assert len(client.rows("/sites/good/hosts?timeout=5&columns=name")) == 6
    response = client.post_form(
        "/sites/good/hosts/web01/cmd/schedule_host_check?timeout=5", [("start_time", "now")]
    )
    assert response.status == 200, response
