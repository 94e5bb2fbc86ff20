"""Another instance that is none, is down, hangs or lies: the others answer, and it is told."""

import json

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.federated import far_site, superuser_key
from harness.pretender import SITES, Pretender
from harness.waiting import until

from monrest import __version__
from monrest.cli.probe import probed
from monrest.config import Config
from monrest.config.sections import SiteConfig


@pytest.fixture(scope="module")
def both(embedded, shared):
    """A daemon with a core of its own and with a pretender as another instance."""
    pretender = Pretender()
    daemon = shared.daemon([pretender.site("p", timeout=3), site("own", embedded)])
    yield pretender, daemon.start()
    pretender.close()
    assert "Traceback" not in daemon.log
    assert pretender.site("p")["auth_key"] not in daemon.log


@pytest.fixture
def pretender(both):
    """Honest again, and known to be there."""
    pretender, daemon = both
    pretender.answers.clear()
    pretender.tell("/sites", SITES)
    daemon.wait_connected({"p"})
    pretender.requests.clear()
    return pretender


@pytest.fixture
def near(both, pretender):
    return both[1]


def names(client, path="/hosts?columns=name"):
    response = client.get(path)
    assert response.status == 200, response
    return [row["name"] for row in response.json], response.headers.get("x-mon-failed-sites", "")


def whole(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 40))
    handler.end_headers()
    handler.wfile.write(b"[" * 1000)


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'[{"name":')
    handler.close_connection = True


def no_http(handler):
    handler.wfile.write(b"220 mail.example.org ESMTP\r\n")
    handler.close_connection = True


LIES = {
    "huge": (whole, "more than"),
    "cut": (cut, "closed before"),
    "no HTTP": (no_http, "not an answer of HTTP"),
    "no JSON": ((200, {}, b"<html>"), "not valid JSON"),
    "no list": ((200, {}, b'"text"'), "no list of objects"),
    "rows that are lists": ((200, {}, b"[[1]]"), "no list of objects"),
    "an error": ((500, {}, b'{"message": "oh /etc/secret"}'), "500: oh"),
    "an error without words": ((503, {}, b"x"), "status 503"),
    "forbidden": ((403, {}, b'{"message": "not for you"}'), "403: not for you"),
    "late": ((504, {}, b'{"message": "late", "description": "too late"}'), "504: late: too late"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_costs_only_the_liar(near, pretender, lie):
    answer, reason = LIES[lie]
    pretender.answers["/sites/x/hosts"] = answer
    with near.client() as client:
        found, failed = names(client)
        assert "web01" in found
        assert failed == "p"
        response = client.get("/sites/p/hosts")
        assert response.status == (504 if lie == "late" else 502), response
        assert reason in response.json["description"], response


def test_values_of_wrong_types_break_nothing(near, pretender):
    row = {
        "name": 5,
        "state": "x",
        "groups": "web",
        "custom_variables": [1],
        "perf_data": {"a": [1]},
        "last_check": [],
        "comments_with_info": [[1]],
        "latency": None,
    }
    pretender.tell("/sites/x/hosts", [row])
    pretender.tell("/sites/x/services", [{"host_name": {}, "description": None}])
    with near.client() as client:
        (one,) = client.rows("/sites/p/hosts")
        assert (one["name"], one["state"], one["groups"]) == ("5", 0, [])
        assert one["peer_key"] == "p"
        client.rows("/sites/p/services?sort=state&perf_data_expanded[!=]=1")
        for path in ("/hosts/totals", "/services/stats", "/hosts?columns=count(*),state"):
            assert client.get(f"/sites/p{path}").status in (200, 502), path


def listed(*sites):
    return json.dumps([{"instances": [], **one} for one in sites]).encode()


LISTS = {
    "wrong key": ((403, {}, b'{"message":"wrong authentication key"}'), "auth_key"),
    "no key": ((401, {}, b"{}"), "auth_key"),
    "too old": ((404, {}, b"{}"), "too old"),
    "another question": ((400, {}, b"{}"), "too old or no monrest"),
    "an error": ((500, {}, b"{}"), "status 500"),
    "no JSON": ((200, {}, b"<html>"), "not valid JSON"),
    "no sites": ((200, {}, b"[]"), "no site"),
    "another product": ((200, {}, b'[{"id": "x", "name": "X", "connected": 1}]'), "not a monrest"),
    "yet another": ((200, {}, b'[{"id": "x", "name": "X", "instances": "one"}]'), "not a monrest"),
    "site without id": ((200, {}, listed({"name": "x"})), "without id"),
    "bad id": ((200, {}, listed({"id": "a/b", "name": "x"})), "without id"),
    "twice": ((200, {}, listed(*[{"id": "a", "name": "x"}] * 2)), "two sites"),
    "redirect": ((302, {"Location": "http://127.0.0.1:1/mon/r/v1/sites"}, b""), "redirect"),
}


def test_lists_that_are_none_are_told(made, embedded):
    """All of them at the same daemon, beside a site that answers."""
    liars = {f"liar{at}": (Pretender(), lie) for at, lie in enumerate(LISTS)}
    hanging = Pretender()
    hanging.answers["/sites"] = hanging.hang
    try:
        for one, lie in liars.values():
            one.answers["/sites"] = LISTS[lie][0]
        sites = [one.site(key) for key, (one, _) in liars.items()]
        own = site("own", embedded)
        near = made([*sites, hanging.site("hangs", timeout=1), own])
        near.start(connected={"own"})
        with near.client() as client:
            assert client.get("/sites/own/hosts").status == 200
            found, failed = names(client)
            assert "web01" in found
            assert set(failed.split(",")) == {*liars, "hangs"}
            rows = by_id(client)
            assert {rows[key]["connected"] for key in liars} == {0}
            told = {lie: rows[key]["last_error"] for key, (_, lie) in liars.items()}
            assert {lie for lie, text in told.items() if LISTS[lie][1] not in text} == set(), told
            assert "timed out" in rows["hangs"]["last_error"]
        assert "the-secret-of" not in near.log
        assert "Traceback" not in near.log
    finally:
        for one in (*(one for one, _ in liars.values()), hanging):
            one.close()


def by_id(client):
    return {row["id"]: row for row in client.rows("/sites")}


def test_the_key_goes_to_no_other_host(near, pretender, lab):
    thief = lab.keep(Pretender())
    location = f"http://127.0.0.1:{thief.port}/mon/r/v1/sites/x/hosts"
    pretender.tell("/sites/x/hosts", b"", 307, Location=location)
    with near.client() as client:
        assert "redirects are not followed" in client.get("/sites/p/hosts").text
        answer = client.post_form("/sites/p/system/cmd/log", {"log": "x"})
        assert answer.status >= 400
    assert thief.requests == []


def test_one_that_hangs_is_left_out(near, pretender):
    pretender.answers["/sites/x/hosts"] = pretender.hang
    with near.client() as client:
        found, failed = names(client)
        assert "web01" in found
        assert failed == "p"
        response = client.get("/sites/p/hosts")
        assert response.status == 504, response


def test_what_is_sent(near, pretender):
    pretender.tell("/sites/x/hosts", [])
    with near.client("olga") as olga:
        assert olga.rows("/sites/p/hosts?columns=name&name=a'b&limit=2&offset=1") == []
    method, path, headers, _ = pretender.requests[-1]
    assert method == "GET"
    assert path.startswith("/mon/r/v1/sites/x/hosts?columns=name&")
    assert "name%5B%3D%5D=a%27b" in path
    assert "contacts%5B%3E%3D%5D=olga" in path
    assert "limit=3" in path
    assert headers["X-Mon-Auth-User"] == "olga"
    assert headers["X-Mon-Auth-Key"] == pretender.site("p")["auth_key"]
    assert headers["X-Mon-Federation"]
    assert headers["Accept"] == "application/json"
    pretender.answers["/sites/x/hosts"] = cut
    asked = pretender.requests
    with near.client() as client:
        assert client.get("/sites/p/hosts").status == 502
    until(lambda: any("/sites?" in one[1] for one in asked), "the list is asked for again")
    listing = next(one for one in asked if "/sites?" in one[1])
    assert "X-Mon-Auth-User" not in listing[2]


def test_objects_are_chosen_for_the_user_and_their_log_is_read_whole(near, pretender):
    host = {"name": "h", "contacts": ["olga"], "state": 0, "has_been_checked": 1}
    pretender.tell("/sites/x/hosts", [host])
    pretender.tell("/sites/x/logs", [])
    with near.client("olga") as olga:
        (row,) = olga.rows("/sites/p/hosts/availability")
    assert row["host"] == "h"
    users = {
        path.split("?")[0].rpartition("/")[2]: headers.get("X-Mon-Auth-User")
        for _, path, headers, _ in pretender.requests
    }
    assert users["hosts"] == "olga"
    assert users["logs"] is None


@pytest.mark.parametrize(
    ("answer", "status", "word"),
    [
        ((200, {}, b'[{"index":0,"code":200,"message":"ok"}]'), 200, "submitted"),
        ((200, {}, b'[{"index":0,"code":400,"error":"bad host"}]'), 400, "bad host"),
        ((200, {}, b"[]"), 502, "not known whether"),
        ((200, {}, b"{}"), 502, "not known whether"),
        ((200, {}, b"<html>"), 502, "not known whether"),
        (cut, 502, "not known whether"),
        ((500, {}, b"{}"), 502, "not known whether"),
        ((502, {}, b'{"message":"no backend available"}'), 502, "no backend available"),
        (
            (400, {}, b'{"message":"no","problems":[{"index":0,"message":"why"}]}'),
            400,
            "X: why",
        ),
        ((403, {}, b'{"message":"not allowed"}'), 400, "not allowed"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), 502, "redirect"),
    ],
)
def test_what_the_other_side_says_of_a_command(near, pretender, answer, status, word):
    pretender.answers["/sites/x/cmd"] = answer
    with near.client() as client:
        response = client.post_form("/sites/p/system/cmd/log", {"log": "hello"})
        assert response.status == status, response
        assert word.replace("X: ", "P: ") in response.text
    sent = [one for one in pretender.requests if one[0] == "POST"]
    assert len(sent) == 1  # never twice
    assert sent[0][3] == b'[{"cmd":"log","log":"hello"}]'


def test_an_id_that_is_taken_is_left_out(made, pretender, embedded):
    pretender.tell("/sites", [*SITES, {**SITES[0], "id": "y", "name": "Y"}])
    near = made([pretender.site("p"), site("p-x", embedded)])
    near.start(connected={"p-x", "p-y"})
    with near.client() as client:
        rows = by_id(client)
        assert set(rows) == {"p-x", "p-y"}
        assert rows["p-x"]["type"] == "livestatus"
        pretender.tell("/sites/x/hosts", [])
        pretender.tell("/sites/y/hosts", [{"name": "h"}])
        assert [row["name"] for row in client.rows("/sites/p-y/hosts")] == ["h"]
        refused(client.get("/sites/p/hosts?nothing=1"), 400)
    assert "p-x is that of another site" in near.log


def test_a_wrong_key_is_told(made, embedded):
    """Also that of the other side itself, which acts for users only."""
    far = made([site("core", embedded)])
    far.start()
    good = far_site("f", far, superuser_key(far))
    near = made([{**good, "auth_key": "a" * 64 + "_1"}, {**good, "id": "s", "auth_key": far.key}])
    near.start(connected=())
    expected = "auth_key: expected the API key of a superuser on the other side"
    with near.client() as client:
        until(lambda: all(row["last_error"] for row in client.rows("/sites")), "both were asked")
        told = {key: row["last_error"] for key, row in by_id(client).items()}
        assert [text.startswith(expected) for text in told.values()] == [True, True]
        assert "wrong authentication key" in told["f"]
        assert client.get("/hosts").status == 502
        (line,) = probed(near_config(near.sites[1]))
        assert line.problem.startswith(expected)
        near.sites[:] = [good]
        near.reload()
        near.wait_connected({"f"})
        (line,) = probed(near_config(good))
        assert (line.problem, line.version) == ("", __version__)
        far.stop()
        assert client.get("/hosts").status == 502
        until(lambda: by_id(client)["f"]["connected"] == 0, "it is noticed")
        far.start()
        near.wait_connected({"f"})
        assert "web01" in names(client)[0]


def near_config(site):
    return Config(sites=(SiteConfig(**site),))


def test_another_product_gives_no_row_and_gets_no_command(made, lab):
    """It answers every path, and ignores the filters that it does not understand."""
    other = lab.keep(Pretender())
    other.tell("/sites", [{"id": "x", "name": "X", "connected": 1, "instances": None}])
    hosts = [{"name": "web01", "state": 0}, {"name": "web02", "state": 0}]
    for path in ("/hosts", "/sites/x/hosts"):
        other.tell(path, hosts)
    for path in ("/cmd", "/sites/x/cmd"):
        other.tell(path, [{"index": 0, "code": 200}])
    near = made([other.site("o")])
    near.start(connected=())
    with near.client() as client:
        for answer in (
            client.get("/hosts/doesnotexist"),
            client.post_form("/system/cmd/log", {"log": "x"}),
        ):
            assert answer.status == 502, answer
            assert "o: not a monrest" in answer.json["description"]
        assert by_id(client)["o"]["status"] == 1
    paths = {one[1].partition("?")[0] for one in other.requests}
    assert paths == {"/mon/r/v1/sites"}
    (line,) = probed(near_config(other.site("o")))
    assert line.problem.startswith("not a monrest")


def test_a_trace_is_handed_on_and_logged(both, pretender, near):
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with near.client() as client:
        for sent in (f"00-{trace}-{parent}-01", f"00-{'0' * 32}-{parent}-01", "nonsense"):
            pretender.requests.clear()
            client.get("/hosts?columns=name", headers={"traceparent": sent})
            (headers,) = [one[2] for one in pretender.requests if "/hosts" in one[1]]
            handed = headers.get("Traceparent", "")
            assert handed.startswith(f"00-{trace}-") is (trace in sent)
            assert parent not in handed
            assert handed == "" or handed.endswith("-01")
    until(lambda: f"trace={trace}" in near.log, "the access line names the trace")
    assert near.log.count("trace=") == 1
