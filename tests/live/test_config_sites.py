"""Object configuration of several sites in one request."""

from __future__ import annotations

import pytest
from harness.configured import Files
from harness.daemon import Daemon, site
from harness.expect import refused

NEW = {":TYPE": "host", ":FILE": "new.cfg", "host_name": "n1", "use": "quiet-host"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites")
    files = {name: Files(folder / name) for name in ("a", "b", "off")}
    sites = [
        site("a", "unix:/nonexistent/a", configtool=files["a"].tool()),
        site("b", "unix:/nonexistent/b", configtool=files["b"].tool()),
        site("off", "unix:/nonexistent/c", configtool=files["off"].tool(disable=True)),
        site("hid", "unix:/nonexistent/d", configtool=files["off"].tool(), hidden=True),
    ]
    daemon = Daemon(folder, sites, sections={"auth.roles": {"admin": ["admin"]}})
    try:
        yield daemon.start(connected=()), files
    finally:
        daemon.stop()


@pytest.fixture
def files(shared):
    before = {name: one.state() for name, one in shared[1].items()}
    yield shared[1]
    for name, one in shared[1].items():
        one.restore(before[name])


@pytest.fixture
def admin(shared, files):
    with shared[0].client() as client:
        yield client
        client.request("POST", "/sites/ALL/config/revert")


def sites_of(rows):
    return {row[":PEER_KEY"] for row in rows}


def test_lists_are_of_all_selected_sites(admin):
    assert sites_of(admin.rows("/config/objects")) == {"a", "b"}
    assert sites_of(admin.rows("/sites/b/config/objects")) == {"b"}
    assert sites_of(admin.rows("/config/objects?backends=a")) == {"a"}
    assert sites_of(admin.rows("/config/objects?:PEER_KEY=b")) == {"b"}
    assert sites_of(admin.rows("/sites/ALL/config/objects")) == {"a", "b", "hid"}
    assert [row["peer_key"] for row in admin.rows("/config/precheck")] == ["a", "b"]
    rows = admin.rows("/sites/a,b/hosts/web01/config")
    assert sites_of(rows) == {"a", "b"}
    assert {row["peer_key"] for row in admin.rows("/config/files")} == {"a", "b"}


def test_creation_and_changes_are_on_every_selected_site(admin, files):
    answer = admin.json("POST", "/config/objects", NEW).json
    assert answer["count"] == 2
    assert sites_of(answer["objects"]) == {"a", "b"}
    assert admin.json("PATCH", "/hosts/web01/config", {"alias": "x"}).json["count"] == 2
    assert admin.json("PATCH", "/sites/a/hosts/web02/config", {"alias": "x"}).json["count"] == 1
    by_filter = "/config/objects?:TYPE=host&host_name=web01&:PEER_KEY=a"
    assert admin.json("PATCH", by_filter, {"notes": "x"}).json["count"] == 1
    answer = admin.request("POST", "/config/save").json
    assert answer == {"message": "successfully saved changes for 2 sites.", "count": 2}
    assert all((files[name].objects / "new.cfg").exists() for name in "ab")
    answer = admin.request("POST", "/config/check").json
    assert [(row["peer_key"], row["failed"]) for row in answer] == [("a", False), ("b", False)]
    answer = admin.request("POST", "/config/discard").json
    assert answer["message"] == "successfully reverted stashed changes for 2 sites."


def test_what_one_site_refuses_is_done_nowhere(admin, files):
    files["b"].site.write_text("# mon: readonly\n" + files["b"].site.read_text())
    for response in (
        admin.json("PATCH", "/config/objects?:TYPE=host", {"alias": "x"}),
        admin.json("PATCH", "/hosts/web01/config", {"alias": "x"}),
        admin.json("POST", "/hosts/web01/config", {"host_name": "web01"}),
        admin.json("POST", "/config/objects", {**NEW, ":FILE": "site.cfg"}),
    ):
        refused(response, 403, "readonly")
    response = admin.json("POST", "/config/objects", {**NEW, ":FILE": f"{files['a'].site}"})
    refused(response, 400, ":FILE")
    assert admin.rows("/config/diff") == []


def test_a_name_that_only_one_site_has_is_no_typing_error(admin, files):
    files["a"].write("c.cfg", "define host {\n  host_name c1\n  use quiet-host\n  _ONLY here\n}\n")
    path = "/config/objects?_ONLY=here"
    assert admin.json("PATCH", path, {"alias": "x"}).json["count"] == 1
    refused(admin.json("PATCH", "/sites/b/config/objects?_ONLY=here", {"alias": "x"}), 400, "typo")


def test_a_save_that_fails_on_one_site_saves_the_other(admin, files):
    admin.json("PATCH", "/hosts/web01/config", {"alias": "mine"})
    theirs = files["b"].site.read_text().replace("Web 01 · ü", "theirs")
    files["b"].site.write_text(theirs)
    response = admin.request("POST", "/config/save")
    assert response.status == 200
    assert response.json["count"] == 1
    assert response.json["failed"] is True
    assert [one["peer_key"] for one in response.json["errors"]] == ["b"]
    assert str(files["b"].site) in response.json["errors"][0]["message"]
    assert "mine" in files["a"].site.read_text()
    assert files["b"].site.read_text() == theirs
    refused(admin.request("POST", "/sites/b/config/save"), 409, str(files["b"].site))


def test_a_reload_of_sites_that_are_down(admin):
    answer = admin.request("POST", "/config/reload")
    assert answer.status == 200
    assert [row["failed"] for row in answer.json] == [True, True]
    assert all(row["output"] for row in answer.json)
