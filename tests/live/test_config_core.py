"""From an edit to the core and back: diff, save, check, reload; two people; conflicts; kills."""

import os
import pwd
import threading
from base64 import b64encode
from hashlib import sha1

import pytest
from harness.configured import ConfiguredCore, Files
from harness.daemon import site
from harness.expect import refused
from harness.staging import NEW, post, saved

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture(scope="module")
def core(shared):
    return shared.core(ConfiguredCore)


@pytest.fixture(scope="module")
def running(core, shared):
    return shared.daemon(
        [site("s1", core, configtool=core.tool())],
        sections={"auth.roles": {"admin": ["admin", "ann", "ben"]}},
    ).start()


@pytest.fixture
def daemon(running, core):
    """The daemon; afterwards files and stashes are as they were."""
    before = core.files.state()
    yield running
    for user in ("admin", "ann", "ben"):
        with running.client(user) as client:
            assert client.request("POST", "/config/revert").status == 200
    core.files.restore(before)


@pytest.fixture
def admin(daemon):
    with daemon.client() as client:
        yield client


@pytest.fixture
def ann(daemon):
    with daemon.client("ann") as client:
        yield client


@pytest.fixture
def ben(daemon):
    with daemon.client("ben") as client:
        yield client


def test_from_an_edit_to_the_core(core, admin):
    before = core.files.site.read_text()
    states = admin.rows("/hosts?columns=name,state,plugin_output,last_check,comments")
    assert admin.patch("/hosts/web01/config", {"alias": "Web One"}).json["count"] == 1
    (row,) = admin.rows("/config/diff")
    assert row["peer_key"] == "s1"
    assert row["file"] == str(core.files.site)
    assert f"--- {core.files.site}\t" in row["output"]
    assert "\n-    alias           Web 01" in row["output"]
    assert "\n+  alias                          Web One" in row["output"]
    assert admin.rows("/config/precheck") == [{"peer_key": "s1", "errors": [], "failed": False}]
    assert core.files.site.read_text() == before
    saved(admin)
    assert admin.rows("/config/diff") == []
    now = core.files.site.read_text()
    start, end = now.index("define host {\n  host_name                      web01"), len(now)
    assert now[:start] == before[:start]
    tail = now[now.index("}", start) : end]
    assert before.endswith(tail)
    (checked,) = post(admin, "/config/check")
    assert checked["failed"] is False
    assert "Checked 6 hosts." in checked["output"]
    assert admin.rows("/hosts/web01?columns=alias") != [{"alias": "Web One"}]
    (reloaded,) = post(admin, "/config/reload")
    assert (reloaded["peer_key"], reloaded["failed"]) == ("s1", False), reloaded
    assert admin.rows("/hosts/web01?columns=alias") == [{"alias": "Web One"}]
    assert admin.rows("/hosts?columns=name,state,plugin_output,last_check,comments") == states


def test_new_and_deleted_objects_come_and_go(core, admin):
    created = admin.json("POST", "/config/objects", NEW).json["objects"][0]
    path = core.files.objects / "new" / "n1.cfg"
    assert not path.exists()
    (row,) = admin.rows(
        "/config/files?path[~]=n1&columns=path,hex,mtime,content,staged_by,conflict"
    )
    assert (row["hex"], row["mtime"], row["staged_by"]) == (None, None, ["admin"])
    assert "host_name                      n1" in row["content"]
    saved(admin)
    (now,) = admin.rows("/config/objects?host_name=n1")
    assert now == {**created, ":FILE": f"{path}:1"}
    assert post(admin, "/config/reload")[0]["failed"] is False
    assert admin.rows("/hosts?name=n1&columns=name,has_been_checked") == [
        {"name": "n1", "has_been_checked": 0}
    ]
    assert admin.json("DELETE", "/config/objects?host_name=n1").json["count"] == 1
    saved(admin)
    assert not path.exists()
    assert not path.parent.exists()
    assert post(admin, "/config/reload")[0]["failed"] is False
    assert admin.rows("/hosts?name=n1") == []


def test_a_broken_configuration_is_saved_but_never_in_force(core, admin):
    assert admin.patch("/hosts/web01/config", {"parents": "none"}).json["count"] == 1
    (told,) = admin.rows("/config/precheck")
    assert told["failed"] is True
    assert any("referenced host 'none' does not exist in site.cfg:" in e for e in told["errors"])
    saved(admin)
    (checked,) = post(admin, "/config/check")
    assert checked["failed"] is True
    assert "none" in checked["output"]
    started = admin.rows("/processinfo?columns=program_start")
    (reloaded,) = post(admin, "/config/reload")
    assert reloaded["failed"] is True
    assert "none" in reloaded["output"]
    assert admin.rows("/processinfo?columns=program_start") == started
    assert admin.rows("/hosts/web01?columns=state") == [{"state": 0}]


@pytest.fixture(scope="module")
def telling(core, shared):
    """A daemon without a reload command, which tells the core over its socket."""
    return shared.daemon([site("s1", core, configtool=core.files.tool())]).start()


@pytest.fixture
def told(core, telling):
    before = core.files.state()
    with telling.client() as client:
        yield client
    core.files.restore(before)


def test_without_a_reload_command_the_core_is_told_over_its_socket(told):
    started = told.rows("/processinfo?columns=program_start")[0]["program_start"]
    (answer,) = post(told, "/config/reload")
    assert answer["failed"] is False
    assert "Checked 6 hosts." in answer["output"]
    assert told.rows("/processinfo?columns=program_start")[0]["program_start"] > started


def test_no_core_is_told_to_read_files_that_do_not_load(core, told):
    """Neither by a reload nor by the commands that restart it: a Naemon would end."""
    core.files.write("broken.cfg", "define host {\n  host_name  x\n  parents  none\n}\n")
    started = told.rows("/processinfo?columns=program_start")
    (answer,) = post(told, "/config/reload")
    assert answer["failed"] is True
    assert "none" in answer["output"]
    assert "force=1" in answer["output"]
    for command in ("restart_process", "restart_program"):
        document = refused(told.request("POST", f"/system/cmd/{command}"), 409, "none")
        assert document["message"] == "the object files do not load"
        assert "force=1" in document["description"]
        listed = told.post_json("/cmd", [{"cmd": command}, {"cmd": "enable_notifications"}])
        assert listed.status == 400
        (problem,) = listed.json["problems"]
        assert (problem["index"], problem["code"]) == (0, 409)
    assert told.request("POST", "/system/cmd/enable_notifications").status == 200
    assert told.rows("/processinfo?columns=program_start") == started


def test_the_check_before_a_restart_can_be_skipped(core, told):
    core.files.write("broken.cfg", "define host {\n  host_name  x\n  parents  none\n}\n")
    path = "/system/cmd/restart_process?test_only=1"
    refused(told.request("POST", path), 409, "none")
    assert told.post_form(f"{path}&force=1", []).status == 200
    refused(told.request("POST", "/config/reload?force=maybe"), 400, "force")


def test_what_belongs_to_sites_takes_no_filters(admin):
    for word in ("save", "check", "reload", "revert", "discard"):
        response = admin.request("POST", f"/config/{word}?host_name=web01")
        refused(response, 400, "host_name")
    refused(admin.get("/config/save"), 405, "POST")


def test_changes_are_their_makers_own_until_they_are_saved(core, ann, ben):
    ann.patch("/hosts/web01/config", {"alias": "Ann's"})
    assert ann.rows("/hosts/web01/config")[0]["alias"] == "Ann's"
    assert ben.rows("/hosts/web01/config")[0]["alias"] == "Web 01 · ü"
    assert ben.rows("/config/diff") == []
    staged = ben.rows("/config/files?columns=path,staged_by")
    assert staged == [{"path": str(core.files.site), "staged_by": ["ann"]}]
    assert post(ben, "/config/revert")["count"] == 1
    assert ann.rows("/hosts/web01/config")[0]["alias"] == "Ann's"
    saved(ann)
    assert ben.rows("/hosts/web01/config")[0]["alias"] == "Ann's"


def test_changes_of_different_objects_are_joined(core, ann, ben):
    ann.patch("/hosts/web01/config", {"alias": "Ann's"})
    ben.patch("/hosts/leaf01/config", {"alias": "Ben's"})
    saved(ann)
    assert ben.rows("/hosts/web01/config")[0]["alias"] == "Ann's"
    saved(ben)
    text = core.files.site.read_text()
    assert "Ann's" in text
    assert "Ben's" in text


def test_what_was_joined_with_a_change_by_hand_stays_joined(core, ann, ben):
    ann.patch("/hosts/leaf01/config", {"alias": "Ann's"})
    by_hand = core.files.site.read_text().replace("Web 01", "by hand")
    core.files.site.write_text(by_hand)
    saved(ann)
    for client in (ann, ben, ann):
        saved(client)
        assert client.rows("/config/diff") == []
        assert client.rows("/config/files?columns=staged_by") == [{"staged_by": []}]
        text = core.files.site.read_text()
        assert "by hand" in text
        assert "Ann's" in text


def test_a_conflict_is_named_and_overwrites_nothing(core, ann, ben):
    ann.patch("/hosts/web01/config", {"alias": "Ann's"})
    ben.patch("/hosts/web01/config", {"alias": "Ben's"})
    saved(ann)
    before = core.files.state()
    document = refused(ben.request("POST", "/config/save"), 409, str(core.files.site))
    assert document["message"] == "files were changed on disk"
    assert core.files.state() == before
    assert ben.rows("/hosts/web01/config")[0]["alias"] == "Ben's"
    assert "Ben's" in ben.rows("/config/diff")[0]["output"]
    assert ben.rows("/config/files?columns=conflict&conflict=1") == [{"conflict": 1}]
    assert ben.rows("/config/objects?refreshdata=1&alias=Ann's")
    assert ben.rows("/config/diff") == []
    saved(ben)
    assert core.files.state() == before


def test_an_option_that_is_no_flag(ann):
    for path in ("/config/objects?refreshdata=2", "/config/diff?ignore_whitespace=maybe"):
        refused(ann.get(path), 400, path.partition("?")[2].partition("=")[0])


def test_white_space_can_be_left_out_of_a_diff(core, ann):
    ann.patch("/hosts/web01/config", {"alias": "x y"})
    saved(ann)
    ann.patch("/hosts/web01/config", {"alias": "x   y"})
    assert "x   y" in ann.rows("/config/diff")[0]["output"]
    assert ann.rows("/config/diff?ignore_whitespace=1") == [
        {"peer_key": "s1", "file": str(core.files.site), "output": ""}
    ]


def test_a_page_of_another_site_drops_no_changes(made, tmp_path):
    """A GET with refreshdata=1 is a change, so that a session needs its token for it."""
    files = Files(tmp_path / "core")
    passwords = tmp_path / "htpasswd"
    secret = b64encode(sha1(b"sesame").digest()).decode()
    passwords.write_text(f"admin:{{SHA}}{secret}\n")
    daemon = made([files.as_site()], sections={"auth": {"htpasswd_file": str(passwords)}}).start(
        connected=()
    )
    with daemon.client(None) as browser:
        browser.key = None
        login = browser.post_form("/mon/login", [("login", "admin"), ("password", "sesame")])
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        token = {**cookie, "X-Mon-CSRF-Token": login.json["csrf_token"]}
        refused(browser.patch("/hosts/web01/config", {"alias": "x"}, headers=cookie), 403)
        mine = browser.patch("/hosts/web01/config", {"alias": "x"}, headers=token)
        assert mine.json["count"] == 1
        files.site.write_text(files.site.read_text().replace("Web 01 · ü", "by hand"))
        path = "/config/objects?alias=x&refreshdata=1"
        refused(browser.get(path, headers=cookie), 403, "CSRF")
        assert len(browser.rows("/config/objects?alias=x", headers=cookie)) == 1
        assert browser.rows(path, headers=token) == []
        assert browser.rows("/config/diff", headers=cookie) == []


def test_a_conflict_can_be_reverted(core, ann, ben):
    ann.json("DELETE", "/hosts/leaf01/config")
    ben.patch("/hosts/leaf01/config", {"alias": "Ben's"})
    saved(ann)
    refused(ben.request("POST", "/config/save"), 409)
    assert post(ben, "/config/discard")["count"] == 1
    assert ben.rows("/hosts/leaf01/config") == []


def test_an_edit_beside_the_daemon_is_seen_and_never_overwritten(core, ann):
    text = core.files.site.read_text()
    ann.patch("/hosts/web01/config", {"alias": "Ann's"})
    core.files.site.write_text(text.replace("Web 01 · ü", "by hand"))
    refused(ann.request("POST", "/config/save"), 409, str(core.files.site))
    assert "by hand" in core.files.site.read_text()
    core.files.site.write_text(text.replace("Behind the router", "by hand"))
    saved(ann)
    assert "by hand" in core.files.site.read_text()
    assert "Ann's" in core.files.site.read_text()


@pytest.mark.parametrize("users", [("ann",), ("ann", "ben")])
def test_many_changes_at_once_lose_nothing(daemon, core, users):
    count, workers = 96, 12
    answers = {}

    def work(number):
        user = users[number % len(users)]
        with daemon.client(user) as client:
            for index in range(number, count, workers):
                body = {**NEW, "host_name": f"many{index}", ":FILE": f"many{index % 7}.cfg"}
                response = client.json("POST", "/config/objects", body)
                answers[index] = (user, response.status, response.json)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == count
    assert {status for _, status, _ in answers.values()} == {200}
    ids = [document["objects"][0][":ID"] for _, _, document in answers.values()]
    for user in users:
        with daemon.client(user) as client:
            rows = client.rows(
                "/config/objects?host_name[~]=^many&:TYPE=host&columns=host_name,:ID"
            )
            mine = {f"many{index}" for index, (who, _, _) in answers.items() if who == user}
            assert {row["host_name"] for row in rows} == mine
            assert {row[":ID"] for row in rows} <= set(ids)
            assert len({row[":ID"] for row in rows}) == len(rows)


def test_two_people_edit_and_save_all_the_time(daemon, core):
    """Every change that was answered with 200 and saved is in the files; the rest has a name."""
    kept, refusals = set(), []

    def work(user):
        with daemon.client(user) as client:
            for index in range(10):
                name = f"{user}{index}"
                body = {**NEW, "host_name": name, ":FILE": f"of-{user}.cfg"}
                assert client.json("POST", "/config/objects", body).status == 200
                client.patch("/hosts/web01/config", {"notes": name})
                response = client.request("POST", "/config/save")
                if response.status == 200:
                    kept.add(name)
                else:
                    refusals.append(response)
                    assert client.request("POST", "/config/revert").status == 200

    threads = [threading.Thread(target=work, args=(user,)) for user in ("ann", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept
    for response in refusals:
        refused(response, 409)
    with daemon.client() as client:
        rows = client.rows("/config/objects?:FILE[~]=/of-&columns=host_name")
        assert {row["host_name"] for row in rows} == kept
        assert client.rows("/config/precheck")[0]["errors"] == []


def test_mode_and_owner_of_files_stay(core, admin):
    if os.getuid() == 0:
        os.chown(core.files.site, NOBODY.pw_uid, NOBODY.pw_gid)
    core.files.site.chmod(0o2640)
    before = core.files.site.stat()
    admin.patch("/hosts/web01/config", {"alias": "x"})
    saved(admin)
    now = core.files.site.stat()
    assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
