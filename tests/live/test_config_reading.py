"""Objects of the configuration over a real socket: rows, filters, columns, one by id or name."""

import hashlib

from harness.client import segment
from harness.expect import refused
from harness.objects import META, admin, daemon, edited, files, found

from tests.table import each

__all__ = ["admin", "daemon", "edited", "files"]


def test_a_row_has_the_meta_keys_and_what_stands_in_the_file(admin, files):
    (row,) = found(admin, host_name="web01", **{":TYPE": "host"})
    line = files.site.read_text().split("\n").index("    host_name       web01")
    place = f"{files.site}:{line - 1 + 0}"
    assert row == {
        ":FILE": place,
        ":ID": hashlib.sha256(place.encode()).hexdigest()[:5],
        ":PEER_KEY": "s1",
        ":PEER_NAME": "Site One",
        ":READONLY": 0,
        ":TYPE": "host",
        "use": ["quiet-host"],
        "host_name": "web01",
        "alias": "Web 01 · ü",
        "display_name": "Web 01 · ü",
        "address": "127.0.0.3",
        "hostgroups": ["web", "linux"],
        "contact_groups": ["webteam"],
        "notes": "the first",
        "_WORKER": "local",
        "_SIZE": "2",
    }


def test_full_objects_have_what_the_templates_give(admin):
    rows = admin.rows("/config/fullobjects", {"host_name": "web01", ":TYPE": "host"})
    assert rows[0][":TEMPLATES"] == ["quiet-host"]
    assert rows[0]["check_interval"] == "60"
    assert rows[0]["contacts"] == ["admin"]
    assert "use" not in rows[0]


def test_the_order_is_by_type_and_id(admin):
    rows = admin.rows("/config/objects")
    assert len(rows) > 20
    assert all(row.keys() >= META for row in rows)
    keys = [(row[":TYPE"], row[":ID"]) for row in rows]
    assert keys == sorted(keys)


@each(
    ("parameters", "hosts"),
    [
        ({":TYPE": "host", "host_name[~]": "^web"}, ["web01", "web02"]),
        ({":TYPE": "host", "HOST_NAME": "x"}, None),
        ({":TYPE": "host", "hostgroups[gte]": "web"}, ["web01", "web02"]),
        ({":TYPE": "host", "hostgroups": "linux"}, ["db01"]),
        ({":TYPE": "host", "hostgroups[notin]": "web", "host_name[ne]": ""},
         ["db01", "leaf01", "pend01", "router1"]),
        ({":TYPE": "host", "host_name[gte]": "web"}, []),
        ({":TYPE": "host", "_SIZE[gt]": "5"}, ["db01"]),
        ({":TYPE": "host", "_SIZE[lte]": "2"}, ["web01"]),
        ({":TYPE": "host", "host_name": "WEB01"}, ["web01"]),
        ({"q": "':TYPE' = host and (host_name = web01 or parents >= router1)"},
         ["leaf01", "web01"]),
        ({"q": ":TYPE = host and address ~ '4$'"}, ["web02"]),
        ({":TYPE": "host", ":FILE[~]": "nothing"}, []),
        ({":TYPE": "host", "host_name[~]": "^web", "sort": "-host_name", "limit": "1"},
         ["web02"]),
        ({":TYPE": "host", "address[~]": "^127", "sort": "address", "offset": "1", "limit": "2"},
         ["router1", "web01"]),
    ],
)  # fmt: skip
def test_filters(admin, parameters, hosts):
    response = admin.get("/config/objects", parameters)
    if hosts is None:
        refused(response, 400, "possible typo in filter", "HOST_NAME")
        return
    assert response.status == 200, response
    names = [row["host_name"] for row in response.json]
    assert names == hosts if "sort" in parameters else sorted(names) == hosts


def test_columns_functions_and_formats(admin):
    rows = admin.rows(
        "/config/objects",
        {
            ":TYPE": "host",
            "columns": "upper(host_name):n,:TYPE,parents,nonsense",
            "q": "parents!=''",
        },
    )
    assert rows == [{"n": "LEAF01", ":TYPE": "host", "parents": ["router1"], "nonsense": None}]
    rows = admin.rows("/config/objects", {"columns": "count(*):n,:TYPE", ":TYPE[~]": "^host"})
    assert {row[":TYPE"]: row["n"] for row in rows} == {"host": 7, "hostgroup": 3}
    text = admin.get("/csv/config/objects", {":TYPE": "host", "columns": ":ID,host_name"}).text
    assert len(text.splitlines()) == 8
    head = admin.get("/csv/config/objects", {":TYPE[~]": "^host"}).text.splitlines()[0]
    names = {name.strip('"') for name in head.split(";")}
    assert {"host_name", "hostgroup_name", "_SIZE", ":ID"} <= names
    wrapped = admin.get("/wrapped_json/config/objects", {":TYPE": "host", "limit": "1"}).json
    assert {"name": ":READONLY", "type": "boolean"} in wrapped["meta"]["columns"]


def test_a_get_is_a_post_as_well(admin):
    response = admin.post_form("/config/files", [("columns", "path")])
    assert response.status == 200
    assert len(response.json) == 1


def test_one_object_by_id(admin):
    (row,) = found(admin, host_name="db01", **{":TYPE": "host"})
    assert admin.rows(f"/config/objects/{row[':ID']}") == [row]
    assert admin.rows("/config/objects/fffff") == []


def test_without_sections_of_the_editor_there_are_no_files_of_it(admin):
    assert admin.rows("/mon/editor") == []
    assert admin.rows("/mon/editor/files") == []


def test_sites_without_object_configuration_are_left_out(admin):
    assert admin.rows("/sites/plain/config/objects") == []
    assert admin.rows("/sites/s1/config/objects") == admin.rows("/config/objects")
    created = admin.json(
        "POST", "/sites/plain/config/objects", {":TYPE": "host", ":FILE": "x.cfg", "host_name": "x"}
    )
    assert created.status == 200
    assert created.json["count"] == 0
    refused(admin.get("/sites/other/config/objects"), 400, "failed to find backend")


@each(
    ("path", "kind", "name"),
    [
        ("/hosts/web01/config", "host", "web01"),
        ("/host/web01/config", "host", "web01"),
        ("/hosts/quiet-host/config", "host", "quiet-host"),
        ("/hostgroups/web/config", "hostgroup", "web"),
        ("/servicegroups/pings/config", "servicegroup", "pings"),
        ("/contacts/olga/config", "contact", "olga"),
        ("/contactgroups/webteam/config", "contactgroup", "webteam"),
        ("/commands/ping/config", "command", "ping"),
        ("/timeperiods/24x7/config", "timeperiod", "24x7"),
    ],
)
def test_the_configuration_of_an_object_by_name(admin, path, kind, name):
    (row,) = admin.rows(path)
    assert row[":TYPE"] == kind
    assert name in (row.get(f"{kind}_name"), row.get("name"))


def test_the_configuration_of_a_service(admin):
    for row in admin.rows("/config/objects", {":TYPE": "service", "register": ""}):
        hosts = row["host_name"]
        for host in hosts:
            path = f"/services/{segment(host)}/{segment(row['service_description'])}/config"
            assert row in admin.rows(path), path
    assert admin.rows("/services/web01/nothing/config") == []
