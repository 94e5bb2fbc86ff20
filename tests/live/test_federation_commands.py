"""Commands over another instance: what its core then shows, and who may give them."""

import time

import pytest
from harness.daemon import site
from harness.federated import far_site, superuser_key

DOWNTIME = {"comment_data": "a; \"b\" 'c' \\n ü", "fixed": 1}


@pytest.fixture(scope="module")
def pair(shared):
    """A daemon with a core of its own, and one that has it over the first."""
    far = shared.daemon([site("core", shared.core())]).start()
    return far, shared.daemon([far_site("f", far, superuser_key(far))]).start()


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
