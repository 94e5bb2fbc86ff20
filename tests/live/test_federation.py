"""Sites of another instance, over its API: what it says itself is what is said here, and commands.

The reads come first: the commands change the core.
"""

import time
from urllib.parse import quote

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.federated import far_site, superuser_key

from tests.table import each

DOWNTIME = {"comment_data": "a; \"b\" 'c' \\n ü", "fixed": 1}


@pytest.fixture(scope="module")
def pair(shared):
    """A daemon with a core of its own, and one that has it over the first."""
    far = shared.daemon([site("core", shared.core(), section="Far")]).start()
    near = shared.daemon([far_site("f", far, superuser_key(far), section="Near")]).start()
    return far, near


@pytest.fixture(params=["admin", "olga"])
def both(pair, request):
    far, near = pair
    with far.client(request.param) as there, near.client(request.param) as here:
        yield there, here


_OWN = ("peer_key", "peer_name", "peer_section", "peer_addr")


def without_site(value):
    if isinstance(value, list):
        return [without_site(one) for one in value]
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key not in _OWN}
    return value


@each(
    "path",
    [
        "/hosts",
        "/services",
        "/hosts/web01",
        "/hosts/web01/services",
        "/services/web01/ping",
        "/hostgroups",
        "/servicegroups",
        "/contacts",
        "/contactgroups",
        "/timeperiods",
        "/commands",
        "/comments",
        "/downtimes",
        "/logs?columns=time,type,message,host_name,class",
        "/logs?limit=3&columns=time,message",
        "/alerts?columns=time,message&time[>]=-1y",
        "/hosts?state=0&sort=-name&limit=2",
        "/hosts?sort=state,-name&offset=1&limit=2",
        "/hosts?q=(name ~~ WEB or name = 'db01') and state != 7",
        "/hosts?groups[gte]=web&columns=name,groups",
        "/hosts?name[!~]=web",
        "/hosts?_ROLE=x&columns=name",
        "/services?columns=count(*):n,state&sort=state",
        "/services?columns=host_name,avg(last_check):a,max(state)",
        "/services?q=not_there = 1",
        "/services?columns=description,perf_data_expanded&perf_data[!=]=",
        "/hosts/totals",
        "/services/totals",
        "/hosts/stats",
        "/services/stats",
        "/hosts/web01/commandline",
        "/hosts/*/commandline?columns=host_name,command_line&sort=-host_name&limit=3",
        "/services/web*/p*/commandline",
        "/hosts/none/commandline",
        "/hosts?columns=name,last_check&last_check[>]=-10y",
        "/services?state_order[>]=-1&columns=description,state_order",
        "/hosts?columns=name,plugin_output,long_plugin_output,perf_data",
        "/hosts?columns=name&q=" + " or ".join(f"name = 'web{at:04}'" for at in range(400)),
        "/hosts/availability?start=-7d",
        "/services/availability?start=-7d&columns=host,service,time_ok,time_critical",
        "/hosts/web01/availability?start=-7d",
        "/services/web01/ping/availability?start=-7d&rpttimeperiod=24x7",
        "/hosts/outages?start=-7d",
        "/services/outages?start=-7d&limit=5&sort=-start",
        "/hostgroups/web/availability?start=-7d",
    ],
)
def test_reads_are_those_of_the_other_side(both, path):
    for _ in range(20):  # a check or a second between the two answers makes them differ
        expected, answer = (one.get(quote(path, safe="/?&=[]*:,()")) for one in both)
        assert answer.status == expected.status, (expected, answer)
        wanted, found = without_site(expected.json), without_site(answer.json)
        if wanted == found or answer.status != 200:
            break
    if answer.status == 200:
        assert found == wanted


def test_rows_carry_the_site_as_it_is_named_here(pair):
    with pair[1].client() as here:
        row = here.rows("/hosts/web01")[0]
        assert (row["peer_key"], row["peer_name"]) == ("f", "F")
        assert row["peer_section"] == "Near/Far"
        row = here.rows("/sites")[0]
    assert row["federation_key"] == ["f", "core"]
    assert row["federation_name"] == ["F", "CORE"]
    assert row["federation_type"] == ["http", "livestatus"]
    assert row["federation_addr"][0] == row["addr"] == f"http://127.0.0.1:{pair[0].port}/mon"
    assert len(row["federation_version"]) == 2
    assert row["type"] == "http"
    assert "tables" not in row


def test_a_contact_sees_his_own_only(pair):
    with pair[1].client("olga") as olga:
        assert olga.values("/hosts", "name") == ["web01"]
        refused(olga.get("/config/objects"), 403)
    with pair[1].client("nobody") as nobody:
        assert nobody.rows("/hosts") == []


def test_the_key_is_not_shown(pair):
    near = pair[1]
    key = near.sites[0]["auth_key"]
    with near.client() as here:
        shown = here.rows("/mon/config")["sites"][0]
        assert shown["auth_key"] == "***"
        for path in ("/sites", "/hosts?limit=1", "/mon/config"):
            assert key not in here.get(path).text
    assert key not in near.log


@pytest.fixture
def admin(pair):
    with pair[1].client() as client:
        yield client


@pytest.fixture
def there(pair):
    with pair[0].client() as client:
        yield client


@pytest.fixture
def olga(pair):
    with pair[1].client("olga") as client:
        yield client


def sent(response):
    assert response.status == 200, response
    assert response.json["message"] == "Command successfully submitted", response
    return response.json


def test_downtimes_are_made_and_removed(admin, there):
    now = int(time.time())
    answer = sent(
        admin.post_form(
            "/hosts/db01/cmd/schedule_host_downtime",
            {**DOWNTIME, "start_time": now - 60, "end_time": now + 3600, "wait": 20},
        )
    )
    assert answer["effect"] == "seen"
    assert answer["commands"].startswith("COMMAND [")
    (row,) = there.rows("/downtimes?host_name=db01")
    assert row["comment"] == DOWNTIME["comment_data"]
    assert row["author"] == "admin"
    assert (row["start_time"], row["end_time"]) == (now - 60, now + 3600)
    path = "/hosts/db01/cmd/del_downtime"
    answer = sent(admin.post_form(path, {"downtime_id": row["id"], "wait": 20}))
    assert answer["effect"] == "seen"
    assert there.rows("/downtimes?host_name=db01") == []


def test_a_comment_of_a_service(admin, there, olga):
    path = "/services/web01/ping/cmd/add_svc_comment"
    answer = sent(admin.post_form(path, {"comment_data": "x;y", "wait": 20}))
    assert answer["effect"] == "seen"
    (row,) = there.rows("/comments?service_description=ping&comment=x;y")
    path = "/services/web01/ping/cmd/del_comment"
    sent(olga.post_form(path, {"comment_id": row["id"], "wait": 20}))
    assert there.rows("/comments?service_description=ping&comment=x;y") == []


def test_results_notes_and_switches(admin, there):
    path = "/services/web01/ping/cmd/process_service_check_result"
    given = {"plugin_state": 2, "plugin_output": "bad, \\n very", "performance_data": "a=1;2;3"}
    assert sent(admin.post_form(path, {**given, "wait": 20}))["effect"] == "seen"
    (row,) = there.rows("/services/web01/ping")
    assert (row["state"], row["plugin_output"], row["perf_data"]) == (2, "bad,", "a=1;2;3")
    sent(admin.post_form("/hosts/web01/cmd/note", {"log": "HOST; seen"}))
    sent(admin.post_form("/system/cmd/disable_flap_detection", {"wait": 20}))
    assert there.values("/processinfo", "enable_flap_detection") == [0]
    sent(admin.post_form("/system/cmd/enable_flap_detection", {"wait": 20}))
    messages = there.values("/logs", "message")
    assert any("HOST NOTE: web01;HOST; seen" in one for one in messages)


def test_a_list_goes_in_one_request(admin, there):
    hosts = ("web01", "web02", "db01")
    answer = admin.post_json(
        "/cmd?wait=20",
        [{"cmd": "add_host_comment", "host": name, "comment": f"of {name}"} for name in hosts],
    )
    assert [(one["code"], one["effect"]) for one in answer.json] == [(200, "seen")] * 3
    for name in hosts:
        (row,) = there.rows(f"/comments?comment=of {name}".replace(" ", "%20"))
        assert row["host_name"] == name
    numbers = there.values("/comments?comment[~]=^of", "id")
    answer = admin.post_json(
        "/cmd?wait=20",
        [
            {"cmd": "del_comment", "host": name, "comment_id": number}
            for name, number in zip(hosts, numbers, strict=True)
        ],
    )
    assert [(one["code"], one["effect"]) for one in answer.json] == [(200, "seen")] * 3
    assert there.rows("/comments?comment[~]=^of") == []


def test_rights_are_judged_on_both_sides(pair, olga, admin):
    assert olga.post_form("/hosts/db01/cmd/add_host_comment", {"comment": "x"}).status == 403
    sent(olga.post_form("/hosts/web01/cmd/remove_host_acknowledgement", {}))
    far = pair[0]
    far.sections["auth.roles"] = {"admin": ["root"]}
    far.reload()
    try:
        answer = admin.post_form("/system/cmd/disable_flap_detection", {})
        assert answer.status == 400, answer
        assert "F: you are not allowed to run system commands" in answer.json["error"]
        with far.client("root") as root:
            assert root.values("/processinfo", "enable_flap_detection") == [1]
    finally:
        far.sections["auth.roles"] = {"admin": ["admin"]}
        far.reload()


def test_the_other_side_writes_it_down_for_the_user(pair, olga):
    sent(olga.post_form("/hosts/web01/cmd/add_host_comment", {"comment": "audited"}))
    lines = [one for one in pair[0].log.splitlines() if "audited" in one and "command" in one]
    assert lines
    assert "olga" in lines[-1]


def test_an_instance_signs_what_it_does_for_itself(pair, there):
    """As recurring downtimes, which are found again by their author."""
    far, near = pair
    with far.client(None) as instance:
        instance.key = near.sites[0]["auth_key"]
        path = "/hosts/web02/cmd/add_host_comment"
        for number, headers in enumerate(({}, {"X-Mon-Federation": "somebody"})):
            given = {"comment": f"signed {number}", "author": "(cron)", "wait": 20}
            sent(instance.post_form(path, given, headers=headers))
        instance.user = "admin"
        given = {"comment": "signed 2", "author": "(cron)", "wait": 20}
        sent(instance.post_form(path, given, headers={"X-Mon-Federation": "somebody"}))
    rows = there.rows("/comments?comment[~]=^signed&columns=comment,author&sort=comment")
    assert [row["author"] for row in rows] == ["(api)", "(cron)", "admin"]


def test_nothing_is_sent_for_a_test(admin, there):
    path = "/hosts/db01/cmd/add_host_comment"
    answer = admin.post_form(path, {"comment": "never", "test_only": 1})
    assert "ADD_HOST_COMMENT;db01;1;admin;never" in answer.json["commands"]
    assert there.rows("/comments?comment=never") == []
