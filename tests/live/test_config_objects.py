"""Objects of the configuration over a real socket: changing them, and what is refused."""

import json
from urllib.parse import quote

import pytest
from harness.client import raw
from harness.configured import Files
from harness.expect import ODD, refused
from harness.objects import META, admin, daemon, edited, files, found

from tests.table import each

__all__ = ["admin", "daemon", "edited", "files"]


def changed(response, count, word="changed"):
    assert response.status == 200, response
    assert response.json == {
        "message": f"{word} {count} objects successfully.",
        "count": count,
    }


def test_create_takes_effect_for_its_maker_only(daemon, admin, files):
    before = files.state()
    response = admin.json(
        "POST",
        "/config/objects",
        {
            ":TYPE": "host",
            ":FILE": "conf.d/new.cfg:17",
            ":ID": "ignored",
            "host_name": "n1",
            "use": "quiet-host, other",
            "parents": ["web01", "web02"],
            "check_interval": 5,
            "active_checks_enabled": False,
            "host_groups": "web,, linux",
            "_Note": "a;b",
            "icon_image": None,
        },
    )
    assert response.status == 200, response
    (row,) = response.json["objects"]
    assert response.json["count"] == 1
    assert response.json["message"] == "created 1 objects successfully."
    assert row[":FILE"] == f"{files.objects}/conf.d/new.cfg:0"
    assert row["use"] == ["quiet-host", "other"]
    assert row["parents"] == ["web01", "web02"]
    assert (row["check_interval"], row["active_checks_enabled"]) == ("5", "0")
    assert row["hostgroups"] == ["web", "linux"]
    assert row["_Note"] == "a\\;b"
    assert "icon_image" not in row
    assert found(admin, host_name="n1", **{":TYPE": "host"}) == [row]
    assert files.state() == before
    with daemon.client("other") as other:
        refused(other.get("/config/objects"), 403, "roles: admin")


@each(
    ("body", "status", "words"),
    [
        ({}, 400, ":TYPE is a required parameter."),
        ({":TYPE": "host"}, 400, ":FILE is a required parameter."),
        ({":TYPE": "hosts", ":FILE": "a.cfg"}, 400, ":TYPE"),
        ({":TYPE": ["host"], ":FILE": "a.cfg"}, 400, ":TYPE"),
        ({":TYPE": "host", ":FILE": "../a.cfg"}, 400, ":FILE"),
        ({":TYPE": "host", ":FILE": "a/../../a.cfg"}, 400, ":FILE"),
        ({":TYPE": "host", ":FILE": "/etc/a.cfg"}, 400, ":FILE"),
        ({":TYPE": "host", ":FILE": "a.txt"}, 400, ":FILE"),
        ({":TYPE": "host", ":FILE": "a\n.cfg"}, 400, ":FILE"),
        ({":TYPE": "host", ":FILE": "a.cfg", "alias": {"a": 1}}, 400, "alias"),
        ({":TYPE": "host", ":FILE": "a.cfg", "parents": [["a"]]}, 400, "parents"),
        ({":TYPE": "host", ":FILE": "a.cfg", "limit": 1}, 400, "limit"),
    ],
)
def test_creations_that_are_refused(admin, files, body, status, words):
    before = files.state()
    response = admin.json("POST", "/config/objects", body)
    assert response.status == status, response
    assert words in json.dumps(response.json)
    assert admin.rows("/config/diff") == []
    assert files.state() == before


def test_a_list_is_no_body(admin):
    refused(admin.json("POST", "/config/objects", [{":TYPE": "host"}]), 400, "JSON object")
    refused(admin.patch("/config/objects", [1]), 400, "JSON object")


def test_patch_by_filter(admin):
    path = "/config/objects?:TYPE=host&host_name[~]=^web"
    changed(admin.patch(path, {"notes": "both", "alias": None, "display_name": ""}), 2)
    for row in found(admin, notes="both"):
        assert row["host_name"].startswith("web")
        assert not {"alias", "display_name"} & row.keys()
    changed(admin.patch("/config/objects?:TYPE=host&host_name=nobody", {"notes": "x"}), 0)
    changed(admin.patch("/config/objects?:TYPE=host&host_name=web01", {}), 1)


def test_keys_of_a_body_that_are_no_attributes_are_filters(admin):
    for body, count in (
        ({":TYPE": "hostgroup"}, 3),
        ({":TYPE": "host", ":PEER_KEY": "s1", ":READONLY": 0}, 7),
        ({":TYPE": "host", ":PEER_KEY": "s2"}, 0),
        ({":TYPE[ne]": "host", ":TYPE": "hostgroup"}, 3),
    ):
        changed(admin.patch("/config/objects", {**body, "notes": "x"}), count)
        rows = admin.rows("/config/objects?notes=x") if count else []
        assert {row[":TYPE"] for row in rows} <= {body[":TYPE"]}
        assert admin.request("POST", "/config/revert").status == 200
    changed(admin.patch("/config/objects?host_name=web01", {":TYPE": "host"}), 1)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = ":TYPE=hostgroup&notes=x"
    changed(admin.request("PATCH", "/config/objects", body=body, headers=headers), 3)
    assert admin.request("POST", "/config/revert").status == 200
    for body, word in (
        ({":TYPE": ["host", "service"]}, ":TYPE"),
        ({":TYPE": None}, ":TYPE"),
        ({":TYP": "host"}, ":TYP"),
        ({":TYPE[nonsense]": "host"}, "operator"),
    ):
        refused(admin.patch("/config/objects", {**body, "notes": "x"}), 400, word)
    assert admin.rows("/config/diff") == []


def test_a_change_of_everything_says_so(admin):
    refused(admin.patch("/config/objects", {"notes": "x"}), 400, "all=1")
    refused(admin.patch("/config/objects?all=0", {"notes": "x"}), 400, "all=1")
    refused(admin.patch("/config/objects?all=maybe", {"notes": "x"}), 400, "all")
    assert admin.rows("/config/diff") == []
    every = len(admin.rows("/config/objects"))
    changed(admin.patch("/config/objects?all=1", {"notes": "x"}), every)
    changed(admin.patch("/config/objects", {"notes": "y", "all": 1}), every)
    assert not any("all" in row for row in admin.rows("/config/objects"))
    assert admin.request("POST", "/config/revert").status == 200
    # One object is not many.
    changed(admin.json("DELETE", "/config/objects?:TYPE[ne]=timeperiod"), every - 1, "removed")
    changed(admin.patch("/config/objects", {"alias": "x"}), 1)


def test_patch_with_a_form(admin):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = "/config/objects?host_name=web01&:TYPE=host"
    body = "alias=A+B&hostgroups=web&hostgroups=idle"
    changed(admin.request("PATCH", path, body=body, headers=headers), 1)
    (row,) = found(admin, host_name="web01", **{":TYPE": "host"})
    assert (row["alias"], row["hostgroups"]) == ("A B", ["web", "idle"])


@each(
    ("query", "word"),
    [
        ("host_name[%3D~~]=x", "operator"),
        ("host_name[nonsense]=x", "operator"),
        ("host_name[=x", "unreadable"),
        ("no_such=1", "no_such"),
        ("q=", "q"),
        ("q=()", "q"),
        ("q=host_name", "q"),
        ("q=nothing%20=%201", "nothing"),
        ("=x", "name"),
        ("%20=x", "name"),
        ("limit=1", "limit"),
        ("columns=host_name", "columns"),
        ("sort=host_name", "sort"),
        ("offset=1", "offset"),
        ("host_name[~]=(", "regex"),
        ("host_name[~]=", "pattern"),
        ("host_name[~~]=", "pattern"),
        ("host_name[regex]=%20", "pattern"),
        ("host_name[like]", "pattern"),
        (":TYPE=host&address[sregex]=", "pattern"),
    ],
)
def test_filters_that_mean_nothing_widen_no_change(admin, query, word):
    for method, body in (("PATCH", {"alias": "everywhere"}), ("DELETE", None)):
        response = admin.json(method, f"/config/objects?{query}", body)
        assert response.status == 400, response
        assert word in json.dumps(response.json)
    assert admin.rows("/config/diff") == []


@each("value", ODD)
def test_odd_filters_match_nothing_or_are_refused(admin, value):
    path = f"/config/objects?host_name={quote(value, safe='')}&:TYPE=host"
    for method, body in (("PATCH", {"alias": "x"}), ("DELETE", None)):
        response = admin.json(method, path, body)
        assert response.status == 400 or response.json["count"] == 0, response
    assert admin.rows("/config/diff") == []


def test_delete_by_filter_and_without(admin, files):
    before = files.state()
    changed(admin.json("DELETE", "/config/objects?:TYPE=hostgroup"), 3, "removed")
    assert found(admin, **{":TYPE": "hostgroup"}) == []
    left = len(admin.rows("/config/objects"))
    refused(admin.json("DELETE", "/config/objects"), 400, "all=1")
    refused(admin.json("DELETE", "/config/objects?all=0&backends=s1"), 400, "all=1")
    changed(admin.json("DELETE", "/config/objects?all=1"), left, "removed")
    assert admin.rows("/config/objects") == []
    assert files.state() == before
    assert admin.request("POST", "/config/revert").status == 200
    assert len(admin.rows("/config/objects")) == left + 3


@each(
    ("body", "kind"),
    [
        ("{}", "application/json"),
        ('{"host_name": null}', "application/json"),
        ('{"host_name": []}', "application/json"),
        ('["web01"]', "application/json"),
        ('{"host_name": {"a": 1}}', "application/json"),
        ('{"host_name": "web01"}', "text/plain"),
        ('{"host_name": "web01"}', "application/x-www-form-urlencoded"),
        ("host_name", "text/plain"),
    ],
)
def test_a_delete_whose_body_is_no_filter_removes_nothing(admin, body, kind):
    response = admin.request("DELETE", "/config/objects", body=body, headers={"Content-Type": kind})
    assert response.status == 400, response
    assert admin.rows("/config/diff") == []


@each("path", ["/config/objects", "/hosts/web01/config"])
def test_a_delete_with_a_body_of_unknown_length_removes_nothing(daemon, admin, path):
    data = (
        f"DELETE /mon/r{path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
        f"X-Mon-Auth-Key: {daemon.key}\r\nX-Mon-Auth-User: admin\r\n"
        "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        "f\r\nhost_name=web01\r\n0\r\n\r\n"
    )
    received = raw(daemon.port, data.encode())
    assert received.startswith(b"HTTP/1.1 400"), received
    assert b"request body" in received
    assert admin.rows("/config/diff") == []


@each("path", ["/config/objects/", "/config/objects//", "/v1/config/objects/"])
def test_a_change_without_the_id_after_the_slash_is_refused(admin, path):
    for method, body in (("PATCH", {"alias": "x"}), ("DELETE", None)):
        refused(admin.json(method, path, body), 400, "expected an id")
    assert admin.rows("/config/diff") == []
    assert admin.rows(path)


def test_a_delete_with_filters_in_the_body(admin):
    filters = {":TYPE": "host", "host_name": "web01"}
    changed(admin.json("DELETE", "/config/objects", filters), 1, "removed")
    changed(
        admin.request(
            "DELETE",
            "/config/objects?:TYPE=host",
            body="host_name=web02",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        ),
        1,
        "removed",
    )


def test_one_object_is_replaced_changed_and_removed_by_id(admin):
    (row,) = found(admin, host_name="db01", **{":TYPE": "host"})
    path = f"/config/objects/{row[':ID']}"
    changed(admin.patch(path, {"alias": "Other"}), 1)
    assert found(admin, alias="Other")[0] == {**row, "alias": "Other"}
    changed(admin.json("POST", path, {"host_name": "db01", "use": "quiet-host", "notes": ""}), 1)
    (now,) = admin.rows(path)
    assert now.keys() - META == {"host_name", "use", "notes"}
    for nothing in ({}, {":ID": "x", ":TYPE": "host"}, {"alias": None}):
        document = refused(admin.json("POST", path, nothing), 400)
        assert document["message"] == "use DELETE to remove objects completely"
    changed(admin.json("DELETE", path), 1, "removed")
    changed(admin.json("DELETE", path), 0, "removed")
    changed(admin.patch(path, {"alias": "x"}), 0)
    changed(admin.json("POST", path, {"host_name": "x"}), 0)


def test_filters_on_one_object_are_refused(admin):
    for method, body in (("PATCH", {"alias": "x"}), ("POST", {"host_name": "x"}), ("DELETE", None)):
        response = admin.json(method, "/hosts/web01/config?address=1.2.3.4", body)
        refused(response, 400, "address", "no filters")
    refused(admin.json("DELETE", "/hosts/web01/config", {"alias": "x"}), 400, "expected none")
    assert admin.rows("/config/diff") == []


def test_a_rename_takes_references_along(admin):
    changed(admin.patch("/hosts/router1/config", {"host_name": "core-1"}), 1)
    assert admin.rows("/hosts/leaf01/config")[0]["parents"] == ["core-1"]
    assert admin.rows("/config/precheck")[0]["errors"] == []
    assert admin.rows("/services/core-1/ping/config")


def test_a_removal_that_breaks_references_is_told(admin):
    changed(admin.json("DELETE", "/hosts/router1/config"), 1, "removed")
    (told,) = admin.rows("/config/precheck")
    assert told["failed"] is True
    assert any("referenced host 'router1' does not exist in site.cfg:" in e for e in told["errors"])


@pytest.fixture
def guarded(files, admin):
    files.write(
        "locked.cfg", "# mon: readonly\ndefine host {\n  host_name locked\n  use quiet-host\n}\n"
    )
    return files


def test_read_only_files(admin, guarded):
    path = f"{guarded.objects}/locked.cfg"
    (row,) = found(admin, host_name="locked")
    assert row[":READONLY"] == 1
    for response in (
        admin.patch(f"/config/objects/{row[':ID']}", {"alias": "x"}),
        admin.json("POST", "/hosts/locked/config", {"host_name": "x"}),
        admin.patch("/config/objects?:TYPE=host", {"alias": "x"}),
    ):
        document = refused(response, 403, "attempt to change readonly file.")
        assert document["message"] == f"cannot change readonly file {path}."
    create = admin.json("POST", "/config/objects", {":TYPE": "host", ":FILE": "locked.cfg"})
    refused(create, 403, "readonly")
    assert admin.rows("/config/diff") == []
    changed(admin.json("DELETE", "/hosts/locked/config"), 0, "removed")
    count = len(found(admin, **{":TYPE": "host"}))
    changed(admin.json("DELETE", "/config/objects?:TYPE=host"), count - 1, "removed")
    assert [one["host_name"] for one in found(admin, **{":TYPE": "host"})] == ["locked"]


def test_a_rename_warns_of_references_in_read_only_files(admin, files):
    twice = "".join(
        f"define host {{\n  host_name {name}\n  use quiet-host\n  parents web01\n}}\n"
        for name in "lm"
    )
    path = files.write("locked.cfg", f"# mon: readonly\n{twice}")
    response = admin.patch("/hosts/web01/config", {"host_name": "web-one"})
    assert response.status == 200
    assert response.json["warnings"] == [f"could not update dependency in read-only file: {path}"]
    (told,) = admin.rows("/config/precheck")
    assert any("referenced host 'web01'" in error for error in told["errors"])


def test_patterns_for_all_sites_make_files_read_only(made, tmp_path):
    files = Files(tmp_path / "core")
    daemon = made(
        [files.as_site()], sections={"configtool": {"obj_readonly": ["site[.]cfg$"]}}
    ).start(connected=())
    with daemon.client() as admin:
        assert {row[":READONLY"] for row in admin.rows("/config/objects")} == {1}
        refused(admin.patch("/hosts/web01/config", {"alias": "x"}), 403, "readonly")
        assert admin.rows("/config/files")[0]["readonly"] == 1


def test_read_only_people_change_nothing(daemon, admin, files):
    before = files.state()
    with daemon.client("ro") as client:
        assert client.rows("/config/objects")
        for method, path in (
            ("PATCH", "/hosts/web01/config"),
            ("POST", "/hosts/web01/config"),
            ("DELETE", "/hosts/web01/config"),
            ("DELETE", "/config/objects"),
            ("PATCH", "/config/objects"),
        ):
            refused(client.json(method, path, {"alias": "x"} if method != "DELETE" else None), 403)
        for word in ("save", "check", "reload", "revert", "discard"):
            refused(client.request("POST", f"/config/{word}"), 403, "read_only")
    assert files.state() == before


def test_every_change_is_an_audit_line(daemon, admin, files):
    admin.patch("/hosts/web01/config", {"alias": "x"})
    admin.json("POST", "/config/objects", {":TYPE": "host", ":FILE": "n.cfg", "host_name": "n1"})
    admin.json("DELETE", "/hosts/web02/config")
    admin.json("POST", "/config/objects", {":TYPE": "host", ":FILE": "../n.cfg"})
    admin.request("POST", "/config/save")
    admin.patch("/hosts/web01/config", {"alias": "y"})
    admin.request("POST", "/config/revert")
    lines = [line for line in daemon.log.splitlines() if 'audit action="config' in line]
    assert all("user=admin" in line and "client=127.0.0.1" in line for line in lines)
    told = "\n".join(lines)
    for words in (
        'action="config change"',
        'action="config create"',
        'action="config remove"',
        'action="config revert"',
        f"target={files.site} result=ok site=s1 change=changed",
        f"target={files.objects}/n.cfg result=ok site=s1 change=created",
        'result="bad request"',
    ):
        assert words in told, words
