"""Object configuration of several sites in one request."""

import pytest
from harness.configured import Files
from harness.daemon import site
from harness.expect import refused

NEW = {":TYPE": "host", ":FILE": "new.cfg", "host_name": "n1", "use": "quiet-host"}


@pytest.fixture(scope="module")
def edited(shared):
    folder = shared.folder()
    files = {name: Files(folder / name) for name in ("a", "b", "off")}
    sites = [
        files["a"].as_site("a"),
        files["b"].as_site("b"),
        files["off"].as_site("off", disable=True),
        site("hid", "unix:/nonexistent/d", configtool=files["off"].tool(), hidden=True),
    ]
    daemon = shared.daemon(sites, sections={"auth.roles": {"admin": ["admin"]}})
    return daemon.start(connected=()), files


@pytest.fixture
def files(edited):
    before = {name: one.state() for name, one in edited[1].items()}
    yield edited[1]
    for name, one in edited[1].items():
        one.restore(before[name])


@pytest.fixture
def admin(edited, files):
    with edited[0].client() as client:
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
    assert admin.patch("/hosts/web01/config", {"alias": "x"}).json["count"] == 2
    assert admin.patch("/sites/a/hosts/web02/config", {"alias": "x"}).json["count"] == 1
    by_filter = "/config/objects?:TYPE=host&host_name=web01&:PEER_KEY=a"
    assert admin.patch(by_filter, {"notes": "x"}).json["count"] == 1
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
        admin.patch("/config/objects?:TYPE=host", {"alias": "x"}),
        admin.patch("/hosts/web01/config", {"alias": "x"}),
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
    assert admin.patch(path, {"alias": "x"}).json["count"] == 1
    refused(admin.patch("/sites/b/config/objects?_ONLY=here", {"alias": "x"}), 400, "typo")


def test_a_save_that_fails_on_one_site_saves_the_other(admin, files):
    admin.patch("/hosts/web01/config", {"alias": "mine"})
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
