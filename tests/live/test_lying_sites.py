"""A site that lies, hangs or dies beside a healthy one: reported, replaced, nothing leaked."""

import threading
import time

import pytest
from harness.daemon import site
from harness.lying import DEEDS, FAST, TYPED, LyingSite
from harness.waiting import until

from tests.examples import some

TIMEOUT = 1.0
IN_TIME = 8.0
"""Far above the site's time-out, far below that of the request: hanging is what would fail."""

TABLES = (
    *("hosts", "services", "hostgroups", "servicegroups", "comments", "downtimes", "contacts"),
    *("contactgroups", "timeperiods", "commands", "log"),
)
"""Every table except the one that tells how the core is."""


@pytest.fixture(scope="module")
def liar(embedded, shared):
    return shared.keep(LyingSite(shared.folder() / "live", embedded.socket))


@pytest.fixture(scope="module")
def daemon(embedded, liar, shared):
    sites = [
        site("good", embedded, timeout=20.0),
        site("liar", liar, timeout=TIMEOUT, connections=3),
    ]
    # A core reads its log for one at a time: the updater's turn, hung by a misdeed that is not
    # meant for it, would hold up all others for the minutes that a log may take.
    off = {"logcache": {"enabled": False}}
    yield shared.daemon(sites, sections=off).start()
    liar.lie(None)


@pytest.fixture
def client(daemon, liar):
    """A client of a daemon whose sites are both up, before and after."""
    with daemon.client() as client:
        liar.lie(None)
        recovered(client)
        yield client
        liar.release()
        liar.lie(None)
        recovered(client)


def ask(client, path="/hosts?columns=name,peer_key", **more):
    response = client.get(path, timeout=IN_TIME, **more)
    assert response.status == 200, response
    return response


def recovered(client):
    """The lying site is back: its rows are there again and nothing is reported."""

    def both():
        response = ask(client)
        return "x-mon-failed-sites" not in response.headers and {
            row["peer_key"] for row in response.json
        } == {"good", "liar"}

    until(both, "the lying site is used again")


def failed(response):
    """The healthy rows are there and the lying site is named."""
    assert response.headers["x-mon-failed-sites"] == "liar", response
    assert [row["peer_key"] for row in response.json] == ["good"] * 6
    return True


@pytest.mark.parametrize("deed", DEEDS)
def test_a_misdeed_in_every_answer(client, liar, deed):
    liar.lie(deed)
    failed(ask(client))
    failed(ask(client))


@pytest.mark.parametrize("deed", FAST)
def test_a_misdeed_in_one_table_only(client, liar, deed):
    liar.lie(deed, "hosts")
    failed(ask(client))
    liar.lie(None)
    recovered(client)


def test_the_reasons_tell_nothing_internal(client, liar, daemon):
    for deed in ("invalid json", "status 452", "no header", "closed at once"):
        liar.lie(deed)
        document = ask(client, "/wrapped_json/hosts?columns=name").json
        (entry,) = document["meta"]["failed_sites"]
        text = str(entry)
        assert "liar" in text
        assert str(liar.path) not in text
        assert "Traceback" not in text
        assert "stack" not in text
        liar.lie(None)
        recovered(client)
    assert "Traceback" not in daemon.log


def test_only_the_liar_selected_is_an_error(client, liar):
    liar.lie("invalid json")
    response = client.get("/sites/liar/hosts?columns=name", timeout=IN_TIME)
    assert response.status == 502, response
    assert set(response.json) == {"code", "failed", "message", "description"}
    assert "liar" in response.json["description"]
    assert str(liar.path) not in response.text
    assert [row["peer_key"] for row in client.rows("/sites/good/hosts?columns=peer_key")] == [
        "good"
    ] * 6


def test_only_a_silent_site_selected_is_a_time_out(client, liar):
    liar.lie("silent", "hosts")
    response = client.get("/sites/liar/hosts?columns=name", timeout=IN_TIME)
    assert response.status in (502, 504), response
    assert "liar" in response.json["description"]


def test_statistics_and_logs_survive_a_liar(client, liar):
    liar.lie("invalid json")
    for path in ("/hosts/totals", "/services/stats", "/checks/stats", "/processinfo/stats"):
        response = ask(client, path)
        assert response.headers["x-mon-failed-sites"] == "liar"
    assert ask(client, "/hosts/totals").json["total"] == 6
    for path in ("/logs", "/hostgroups", "/services?limit=2&sort=-state", "/processinfo"):
        response = ask(client, path)
        assert response.headers["x-mon-failed-sites"] == "liar"
        assert response.json


PATHS = (
    *("/hosts", "/services", "/hostgroups", "/servicegroups", "/comments", "/downtimes"),
    *("/contacts", "/contactgroups", "/timeperiods", "/commands", "/logs", "/alerts"),
    *("/processinfo", "/hosts/totals", "/services/stats", "/checks/stats", "/processinfo/stats"),
    *("/hosts?num_services[gt]=1", "/hosts?groups[gte]=linux", "/hosts?q=parents !~ a"),
    *("/hosts?sort=-latency", "/hosts?columns=name,count(*)", "/hosts?_WORKER=local"),
    *("/hosts?columns=sum(num_services)", "/services?columns=to_rows(contacts) as c"),
    *("/csv/services?limit=5", "/wrapped_json/hostgroups", "/text/comments", "/xls/hosts"),
    *("/hosts/web01/commandline", "/services/web01/ping/commandline", "/mon/whoami", "/sites"),
)


@pytest.mark.parametrize("deed", TYPED)
@pytest.mark.parametrize("user", ["admin", "olga"])
def test_values_of_wrong_types_break_nothing(daemon, client, liar, deed, user):
    """The good site's part is always there; what the liar says is shown, empty or its failure."""
    with daemon.client(user) as asking:
        for path in some(PATHS, seed=f"{deed} {user}"):
            liar.lie(deed, *TABLES)
            response = asking.get(path.replace(" ", "%20"), timeout=IN_TIME)
            assert response.status in (200, 403), (path, response)
            alone = asking.get(f"/sites/liar{path}".replace(" ", "%20"), timeout=IN_TIME)
            assert alone.status in (200, 400, 403, 502), (path, alone)
    assert "Traceback" not in daemon.log


def test_wrong_types_in_what_tells_how_a_core_is(client, liar, daemon):
    for deed in TYPED:
        liar.lie(deed)
        for path in ("/hosts?columns=name,peer_key", "/processinfo", "/sites"):
            assert ask(client, path).json, path
        liar.cut()
        liar.lie(None)
        recovered(client)
    assert "Traceback" not in daemon.log


def test_sites_shows_the_liar_as_down(client, liar):
    liar.lie("silent")
    failed(ask(client))
    rows = {row["id"]: row for row in ask(client, "/sites").json}
    assert (rows["good"]["status"], rows["good"]["connected"]) == (0, 1)
    assert (rows["liar"]["status"], rows["liar"]["connected"]) == (1, 0)
    assert rows["liar"]["last_error"]
    assert "\n" not in rows["liar"]["last_error"]


def test_a_dead_site_costs_nothing_after_the_first_failure(client, liar):
    liar.lie("silent")
    failed(ask(client))
    started = time.monotonic()
    for _time in range(10):
        failed(ask(client))
    assert time.monotonic() - started < 10 * TIMEOUT


def test_idle_connections_that_were_cut_are_replaced_unnoticed(client, liar):
    for _time in range(5):
        liar.cut()
        response = ask(client)
        assert "x-mon-failed-sites" not in response.headers
        assert len(response.json) == 12


def test_a_slow_query_does_not_hold_up_others(client, liar, daemon):
    liar.lie(None, "services")
    liar.hold()
    answers = []

    def slow():
        with daemon.client() as other:
            answers.append(other.get("/sites/liar/services?columns=description", timeout=IN_TIME))

    thread = threading.Thread(target=slow)
    thread.start()
    assert liar.waiting.wait(IN_TIME)
    for _time in range(5):
        assert len(client.rows("/sites/liar/hosts?columns=name")) == 6
    assert not answers
    liar.release()
    thread.join(IN_TIME)
    assert answers[0].status == 200
    assert len(answers[0].json) == 11


def test_a_client_that_leaves_takes_its_query_along(client, liar, daemon):
    before = daemon.descriptors()
    for _time in range(6):
        liar.lie(None, "hosts")
        liar.hold()
        with daemon.client() as other, pytest.raises(TimeoutError):
            other.get("/sites/liar/hosts?columns=name", timeout=0.2)
        liar.release()
    recovered(client)
    until(lambda: daemon.descriptors() <= before + 2, "the descriptors are given back")


def test_descriptors_do_not_grow(client, liar, daemon):
    def every_misdeed():
        for deed in FAST:
            liar.lie(deed, "hosts", "services")
            ask(client)
            liar.lie(None)
            liar.cut()
        recovered(client)

    every_misdeed()
    before = daemon.descriptor_targets()
    for _time in range(2):
        every_misdeed()
    until(
        lambda: daemon.descriptors() <= len(before) + 2,
        f"descriptors {daemon.descriptor_targets()} are no more than {before}",
    )


def test_the_daemon_logged_no_traceback(daemon):
    assert "Traceback" not in daemon.log
