"""The object configuration of a site of another instance, and of one here beside it."""

import pytest
from harness.configured import ConfiguredCore, Files
from harness.daemon import site
from harness.expect import refused
from harness.federated import far_site, superuser_key

NEW = {":TYPE": "host", ":FILE": "new.cfg", "host_name": "n1", "use": "quiet-host"}


@pytest.fixture(scope="module")
def pair(shared):
    """A daemon with a core that it configures; one with that site and one of its own files."""
    core = shared.core(ConfiguredCore)
    files = Files(shared.folder())
    far = shared.daemon(
        [site("core", core, configtool=core.tool()), site("plain", core, hidden=True)]
    ).start()
    near = shared.daemon(
        [
            far_site("f", far, superuser_key(far)),
            files.as_site("own"),
        ],
        sections={"auth.roles": {"admin": ["admin", "ann"]}},
    ).start(connected={"f-core"})
    return far, near, core, files


@pytest.fixture
def world(pair):
    _, near, core, files = pair
    before = core.files.state(), files.state()
    yield pair
    with near.client() as client:
        client.request("POST", "/sites/f-core,own/config/revert")
    core.files.restore(before[0])
    files.restore(before[1])


@pytest.fixture
def admin(world):
    with world[1].client() as client:
        yield client


@pytest.fixture
def there(world):
    with world[0].client() as client:
        yield client


def sites_of(rows):
    return {row[":PEER_KEY"] for row in rows}


def test_objects_are_those_of_the_other_side(admin, there):
    def plain(rows):
        hidden = (":PEER_KEY", ":PEER_NAME")
        return [{key: one for key, one in row.items() if key not in hidden} for row in rows]

    for path in (
        "/config/objects",
        "/config/fullobjects",
        "/config/objects?:TYPE=host&host_name=web01",
        "/config/objects?:TYPE=host&sort=-host_name&limit=2&columns=host_name,alias",
        "/hosts/web01/config",
        "/services/web01/ping/config",
    ):
        expected, rows = there.rows(f"/sites/core{path}"), admin.rows(f"/sites/f-core{path}")
        assert rows, path
        assert plain(rows) == plain(expected), path
        if "columns" not in path:
            assert {(row[":PEER_KEY"], row[":PEER_NAME"]) for row in rows} == {("f-core", "F CORE")}
    (one,) = admin.rows("/sites/f-core/hosts/web01/config")
    assert plain(admin.rows(f"/sites/f-core/config/objects/{one[':ID']}")) == plain([one])
    keep = ("path", "hex", "mtime", "readonly")
    assert [[row[key] for key in keep] for row in admin.rows("/sites/f-core/config/files")] == [
        [row[key] for key in keep] for row in there.rows("/config/files")
    ]
    (file,) = admin.rows("/sites/f-core/config/files?columns=content,peer_key&path[~]=site.cfg")
    assert file["peer_key"] == "f-core"
    assert "host_name" in file["content"]
    assert admin.rows("/sites/f-core/config/precheck")[0]["peer_key"] == "f-core"


def test_an_edit_goes_all_the_way_to_the_core(admin, there, world):
    core = world[2]
    answer = admin.json("POST", "/sites/f-core/config/objects", NEW)
    assert answer.status == 200, answer
    assert answer.json["message"] == "created 1 objects successfully."
    (made,) = answer.json["objects"]
    assert made[":PEER_KEY"] == "f-core"
    assert made["host_name"] == "n1"
    answer = admin.patch("/sites/f-core/hosts/n1/config", {"alias": "New", "notes": "x"})
    assert answer.json == {"message": "changed 1 objects successfully.", "count": 1}
    path = "/sites/f-core/config/objects?:TYPE=host&host_name=n1"
    assert admin.patch(path, {"notes": None}).json["count"] == 1
    (diff,) = admin.rows("/sites/f-core/config/diff")
    assert diff["peer_key"] == "f-core"
    assert "+  alias" in diff["output"].replace("\t", "  ")
    assert "notes" not in diff["output"]
    # It is staged for the same user there.
    assert there.rows("/config/diff") == [{**diff, "peer_key": "core"}]
    answer = admin.request("POST", "/sites/f-core/config/save").json
    assert answer == {"message": "successfully saved changes for 1 site.", "count": 1}
    assert (core.files.objects / "new.cfg").exists()
    (checked,) = admin.request("POST", "/sites/f-core/config/check").json
    assert (checked["peer_key"], checked["failed"]) == ("f-core", False), checked
    (reloaded,) = admin.request("POST", "/sites/f-core/config/reload").json
    assert (reloaded["peer_key"], reloaded["failed"]) == ("f-core", False), reloaded
    assert admin.values("/sites/f-core/hosts/n1", "alias") == ["New"]
    assert admin.request("DELETE", "/sites/f-core/hosts/n1/config").json["count"] == 1
    assert admin.request("POST", "/sites/f-core/config/save").json["count"] == 1
    assert not (core.files.objects / "new.cfg").exists()
    (reloaded,) = admin.request("POST", "/sites/f-core/config/reload").json
    assert reloaded["failed"] is False, reloaded
    assert there.rows("/hosts?name=n1") == []


def test_lists_and_changes_of_both_sites(admin, world):
    assert sites_of(admin.rows("/config/objects")) == {"f-core", "own"}
    assert sites_of(admin.rows("/config/objects?backends=f")) == {"f-core"}
    assert sites_of(admin.rows("/config/objects?:PEER_KEY=own")) == {"own"}
    assert sites_of(admin.rows("/hosts/web01/config")) == {"f-core", "own"}
    assert {row["peer_key"] for row in admin.rows("/config/precheck")} == {"f-core", "own"}
    answer = admin.json("POST", "/config/objects", NEW).json
    assert answer["count"] == 2
    assert sites_of(answer["objects"]) == {"f-core", "own"}
    assert admin.patch("/hosts/n1/config", {"alias": "y"}).json["count"] == 2
    by_site = "/config/objects?:TYPE=host&host_name=n1&:PEER_KEY="
    assert admin.patch(f"{by_site}own", {"notes": "o"}).json["count"] == 1
    assert admin.patch(f"{by_site}f-core", {"notes": "f"}).json["count"] == 1
    notes = {row[":PEER_KEY"]: row["notes"] for row in admin.rows("/hosts/n1/config")}
    assert notes == {"f-core": "f", "own": "o"}
    for name in (
        ":PEER_NAME=x",
        ":PEER_KEY[ne]=own",
        "%60:PEER_KEY%60[ne]=own",
        "q=:PEER_KEY!=own",
    ):
        for method, body in (("PATCH", {"notes": "f"}), ("DELETE", None)):
            refused(admin.json(method, f"/config/objects?{name}", body), 400, "PEER_")
    response = admin.request(
        "DELETE",
        "/config/objects",
        body="q=%3APEER_KEY%20!=%20'own'",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    refused(response, 400, "PEER_")
    for body in ({":PEER_KEY": "own"}, {":PEER_KEY[ne]": "own"}):
        refused(admin.json("DELETE", "/config/objects", body), 400, "PEER_")
        refused(admin.patch("/config/objects", {**body, "notes": "f"}), 400, "PEER_")
    for method, body in (("PATCH", {"notes": "f"}), ("DELETE", None)):
        refused(admin.json(method, "/sites/f-core/config/objects", body), 400, "all=1")
    answer = admin.patch("/config/objects", {":TYPE": "hostgroup", "notes": "f"})
    assert answer.json["count"] == 6
    answer = admin.json("DELETE", "/sites/f-core/config/objects?all=1")
    assert answer.json["count"] > 6
    assert {row["peer_key"] for row in admin.rows("/config/diff")} == {"f-core", "own"}
    answer = admin.request("POST", "/config/revert").json
    assert answer == {
        "message": "successfully reverted stashed changes for 2 sites.",
        "count": 2,
    }
    assert admin.rows("/config/diff") == []


def test_what_the_other_side_refuses_is_done_nowhere(admin, world):
    _, _, core, files = world
    text = core.files.site.read_text()
    core.files.site.write_text("# mon: readonly\n" + text)
    refused(admin.patch("/hosts/web01/config", {"alias": "x"}), 403, "readonly", "F CORE")
    refused(admin.json("POST", "/config/objects", {**NEW, ":FILE": "site.cfg"}), 403, "readonly")
    assert admin.rows("/config/diff") == []
    files.site.write_text("# mon: readonly\n" + files.site.read_text())
    core.files.site.write_text(text)
    refused(admin.patch("/hosts/web01/config", {"alias": "x"}), 403, "readonly")
    assert admin.rows("/config/diff") == []
    refused(admin.patch("/sites/f-core/hosts/web01/config?x=y", {"alias": "x"}), 400, "x")
    response = admin.json("POST", "/sites/f-core/config/objects", {**NEW, ":FILE": "/etc/x"})
    refused(response, 400, ":FILE", "F CORE")


def test_a_conflict_there_is_one_here(admin, world):
    core = world[2]
    admin.patch("/sites/f-core/hosts/web01/config", {"alias": "mine"})
    theirs = core.files.site.read_text().replace("Web 01 · ü", "theirs")
    core.files.site.write_text(theirs)
    refused(admin.request("POST", "/sites/f-core/config/save"), 409, str(core.files.site))
    assert core.files.site.read_text() == theirs
    answer = admin.request("POST", "/config/save").json
    assert (answer["count"], answer["failed"]) == (1, True)
    assert [one["peer_key"] for one in answer["errors"]] == ["f-core"]


def test_rights_are_judged_there_as_well(admin, world):
    with world[1].client("ann") as ann:
        refused(ann.get("/sites/f-core/config/objects"), 403, "F CORE")
        rows = ann.get("/config/objects")
        assert sites_of(rows.json) == {"own"}
        response = ann.patch("/sites/f-core/hosts/web01/config", {"alias": "x"})
        refused(response, 403, "F CORE")
    with world[1].client("olga") as olga:
        refused(olga.get("/sites/f-core/config/objects"), 403)
    assert admin.rows("/config/diff") == []


def test_nothing_is_begun_while_the_other_side_is_down(pair, tmp_path, lab):
    far = pair[0]
    files = Files(tmp_path / "own")
    lone = lab.daemon(
        [
            {**far_site("f", far, "x"), "address": "http://127.0.0.1:9/mon"},
            files.as_site("own"),
        ]
    )
    lone.start(connected=())
    with lone.client() as admin:
        response = admin.patch("/hosts/web01/config", {"alias": "x"})
        assert response.status == 502, response
        assert "connection refused" in response.text
        assert admin.rows("/config/diff") == []
        response = admin.get("/config/objects")
        assert sites_of(response.json) == {"own"}
        assert "f" in response.headers["x-mon-failed-sites"]
        assert admin.get("/sites/f/config/objects").status == 502
        answer = admin.request("POST", "/config/save").json
        assert [one["peer_key"] for one in answer["errors"]] == ["f"]
