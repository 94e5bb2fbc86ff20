"""Who is asking: credentials, visibility of a contact, whoami, instance info, index (3, 5)."""

from harness.expect import SEMICOLON, SIZES, refused

from tests.table import each


def test_credentials_are_needed(daemon):
    with daemon.client() as client:
        client.key = client.user = None
        refused(client.get("/hosts"), 401)
        client.user = "admin"
        refused(client.get("/hosts"), 401)


@each("key", ["wrong", "", "x" * 4000, "ü"])
def test_wrong_keys(daemon, key):
    with daemon.client() as client:
        client.key = key.encode("utf-8").decode("latin-1")
        response = client.get("/hosts")
        assert response.status in ((401, 403) if not key else (403,)), response
        refused(response, response.status)


def test_key_is_checked_before_the_path(daemon):
    with daemon.client() as client:
        client.key = "wrong"
        refused(client.get("/nope"), 403, "wrong authentication key")


@each("user", ["a\tb", "x" * 100, "nobody", "a;b", "olga'", "=", "ü"])
def test_odd_users_see_nothing(daemon, user):
    with daemon.client(user.encode("utf-8").decode("latin-1")) as client:
        response = client.get("/hosts")
        if response.status == 200:
            assert response.json == []
        else:
            refused(response, response.status)
            assert response.status in (400, 401, 403)


def test_a_contact_sees_its_hosts(olga):
    assert olga.values("/hosts", "name") == ["web01"]
    assert olga.rows("/hosts/db01") == []
    assert olga.rows("/hosts/totals")["total"] == 1
    assert olga.rows("/hosts", {"columns": "count(*)"}) == {"count(*)": 1}
    assert olga.rows("/hosts", {"q": "name = db01 or name != db01", "columns": "name"}) == [
        {"name": "web01"}
    ]


def test_a_contact_sees_the_services_of_its_hosts_and_its_own(olga):
    rows = olga.rows("/services", {"columns": "host_name,description"})
    assert [(row["host_name"], row["description"]) for row in rows] == [
        ("db01", "ping"),
        ("web01", SEMICOLON),
        ("web01", SIZES),
        ("web01", "http"),
        ("web01", "ping"),
    ]
    assert olga.rows("/services/totals")["total"] == 5
    assert olga.rows("/services/stats", {"host_name": "db01"})["total"] == 1
    assert olga.rows("/hosts/db01/services", {"columns": "description"}) == [
        {"description": "ping"}
    ]


def test_a_contact_sees_comments_of_its_objects(olga):
    texts = {row["comment"] for row in olga.rows("/comments")}
    assert texts == {"on it", "first; with ü and €", "looks fine"}
    assert olga.rows("/downtimes") == []


def test_a_contact_sees_logs_of_its_objects(olga, differences):
    rows = olga.rows("/alerts", {"time[gt]": "-1h"})
    seen = {(row["host_name"], row["service_description"]) for row in rows}
    assert ("web01", "http") in seen
    assert (("web01", "") in seen) is differences["logs_recovery_from_pending"]
    assert (("db01", "ping") in seen) is differences["logs_recovery_from_pending"]
    assert "router1" not in {host for host, _service in seen}
    assert ("db01", "") not in seen
    assert {row["host_name"] for row in olga.rows("/logs")} <= {"web01", "db01"}


def test_a_contact_and_unfiltered_collections(olga):
    assert olga.values("/hostgroups", "name") == ["idle", "linux", "web"]
    assert olga.values("/timeperiods", "name") == ["24x7"]
    assert olga.values("/contacts", "name") == ["olga"]


@each("path", ["/processinfo", "/processinfo/stats"])
def test_the_process_information_needs_its_role(olga, path):
    refused(olga.get(path), 403, "not authorized", "authorized_for_system_information")


def test_a_contact_does_not_see_where_sites_are(olga, client):
    (row,) = olga.rows("/sites")
    assert (row["addr"], row["federation_addr"], row["connected"]) == ("", [""], 1)
    assert client.rows("/sites")[0]["addr"] != ""


@each("path", ["/commands", "/commands/ping"])
def test_commands_need_the_admin_role(olga, path):
    refused(olga.get(path), 403, "not authorized", "admin")


def test_command_lines_need_a_role(olga, client):
    refused(olga.get("/hosts/web01/commandline"), 403, "not authorized")
    assert olga.values("/hosts", "check_command")[0].count("!") == 0
    assert "!" in client.values("/hosts/web01", "check_command")[0]


def test_hidden_custom_variables(olga):
    (row,) = olga.rows("/hosts/web01")
    assert row["custom_variables"] == {}
    assert row["custom_variable_names"] == []
    assert "_WORKER" not in row
    assert olga.rows("/hosts", {"_WORKER": "local"}) == []
    assert olga.rows("/hosts", {"_WORKER[ne]": "local", "columns": "name"}) == [{"name": "web01"}]
    assert olga.rows("/hosts", {"columns": "_WORKER"}) == [{"_WORKER": None}]


def test_whoami(client, olga, differences):
    admin = client.rows("/mon/whoami")
    assert admin["id"] == "admin"
    assert admin["auth_src"] == "secret_key"
    assert "authorized_for_admin" in admin["roles"]
    assert admin["can_submit_commands"] == 1
    ordinary = olga.rows("/mon/whoami")
    assert ordinary["id"] == "olga"
    assert "authorized_for_admin" not in ordinary["roles"]
    for document in (admin, ordinary):
        assert {"alias", "email", "groups", "has_mon_profile", "locked", "tz"} <= set(document)
    assert ordinary["alias"] == differences["contact_alias"]
    assert ordinary["email"] == "olga@example.org"
    assert ordinary["groups"] == ["webteam"]


def test_instance_info(client):
    document = client.rows("/mon")
    assert {
        *("rest_version", "mon_version", "mon_release_date", "project_root", "etc_path"),
        *("var_path", "extra_version", "extra_link", "localtime"),
    } == set(document)
    assert document["localtime"] > 1_000_000_000


def test_index(client):
    rows = client.rows("/index")
    assert client.rows("/") == rows
    for row in rows:
        assert set(row) == {"url", "protocol", "description"}
        assert row["description"]
    order = ["GET", "POST", "PATCH", "DELETE"]
    keys = [(row["url"], order.index(row["protocol"])) for row in rows]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    urls = {row["url"] for row in rows if row["protocol"] == "GET"}
    assert {
        *("/", "/index", "/hosts", "/hosts/<name>", "/hosts/<name>/services", "/hosts/totals"),
        *("/hosts/stats", "/services", "/services/<host>/<service>", "/services/totals"),
        *("/hostgroups/<name>/stats", "/servicegroups/<name>/stats", "/checks/stats"),
        *("/contacts/totals", "/processinfo", "/processinfo/stats", "/sites", "/mon"),
        *("/mon/whoami", "/logs", "/alerts", "/notifications", "/hosts/<name>/commandline"),
        *("/services/<host>/<service>/commandline", "/comments/<id>", "/downtimes/<id>"),
    } <= urls
    assert client.rows("/index", {"url": "/hosts", "columns": "protocol"})[0]["protocol"] == "GET"


@each("path", ["/index", "/sites"])
def test_records_of_the_front_end_have_no_site(client, path):
    refused(client.get(path, {"peer_key": "s1"}), 400, "peer_key")
    refused(client.get(path, {"q": "peer_name ~ x"}), 400, "peer_name")
    for parameter, names in (
        ("columns", "peer_key,peer_section"),
        ("columns", "count(*),peer_key"),
        ("sort", "peer_name"),
    ):
        response = client.get(path, {parameter: names})
        assert response.status == 400, response
        for name in names.removeprefix("count(*),").split(","):
            assert f"{parameter}: there is no column {name}" in response.json["description"]


ALONE = {
    "/events?limit=1&types=nosuch": (400,),
    "/mon/cluster/heartbeat": (501,), "/mon/cluster/ping": (403,), "/mon/cluster/restart": (501,),
}  # fmt: skip
"""What a single daemon says, which is no cluster, and to a wrong type of events."""


def test_every_listed_get_url_answers(client):
    for row in client.rows("/index"):
        if row["protocol"] == "GET":
            path = row["url"].replace("<name>", "db01").replace("<host>", "db01")
            path = path.replace("<service>", "ping").replace("<id>", "1")
            if path == "/events":  # a stream that is right has no end
                path += "?limit=1&types=nosuch"
            if "<" not in path:
                response = client.get(path)
                assert response.status in ALONE.get(path, (200, 404)), (path, response)
