"""From an edit to the core and back: diff, save, check, reload; two people; conflicts; kills."""

from __future__ import annotations

import signal
import threading
from base64 import b64encode
from hashlib import sha1

import pytest
from harness.configured import ConfiguredCore, Files
from harness.cores import CORES
from harness.daemon import Daemon, site
from harness.expect import refused
from harness.waiting import until

NEW = {":TYPE": "host", ":FILE": "new/n1.cfg", "host_name": "n1", "use": "quiet-host"}


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    core = ConfiguredCore(tmp_path_factory.mktemp("configured"))
    try:
        core.start()
        core.prime()
        yield core
    finally:
        core.stop()


@pytest.fixture(scope="module")
def running(core, tmp_path_factory):
    folder = tmp_path_factory.mktemp("daemon")
    daemon = Daemon(
        folder,
        [site("s1", f"unix:{core.socket}", configtool=core.tool())],
        sections={"auth.roles": {"admin": ["admin", "ann", "ben"]}},
    )
    try:
        yield daemon.start()
    finally:
        daemon.stop()


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


def post(client, path):
    response = client.request("POST", path)
    assert response.status == 200, response
    return response.json


def saved(client):
    answer = post(client, "/config/save")
    assert answer == {"message": "successfully saved changes for 1 site.", "count": 1}


# -------------------------------------------------------------------- end to end


def test_from_an_edit_to_the_core(core, admin):
    before = core.files.site.read_text()
    states = admin.rows("/hosts?columns=name,state,plugin_output,last_check,comments")
    assert admin.json("PATCH", "/hosts/web01/config", {"alias": "Web One"}).json["count"] == 1
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
    assert admin.json("PATCH", "/hosts/web01/config", {"parents": "none"}).json["count"] == 1
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


def test_without_a_reload_command_the_core_is_told_over_its_socket(core, made):
    daemon = made([site("s1", f"unix:{core.socket}", configtool=core.files.tool())]).start()
    with daemon.client() as admin:
        started = admin.rows("/processinfo?columns=program_start")[0]["program_start"]
        assert post(admin, "/config/reload") == [{"peer_key": "s1", "failed": False, "output": ""}]
        now = admin.rows("/processinfo?columns=program_start")[0]["program_start"]
        assert now > started


def test_what_belongs_to_sites_takes_no_filters(admin):
    for word in ("save", "check", "reload", "revert", "discard"):
        response = admin.request("POST", f"/config/{word}?host_name=web01")
        refused(response, 400, "host_name")
    refused(admin.get("/config/save"), 405, "POST")


# -------------------------------------------------------------------- several people


def test_changes_are_their_makers_own_until_they_are_saved(core, ann, ben):
    ann.json("PATCH", "/hosts/web01/config", {"alias": "Ann's"})
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
    ann.json("PATCH", "/hosts/web01/config", {"alias": "Ann's"})
    ben.json("PATCH", "/hosts/leaf01/config", {"alias": "Ben's"})
    saved(ann)
    assert ben.rows("/hosts/web01/config")[0]["alias"] == "Ann's"
    saved(ben)
    text = core.files.site.read_text()
    assert "Ann's" in text
    assert "Ben's" in text


def test_a_conflict_is_named_and_overwrites_nothing(core, ann, ben):
    ann.json("PATCH", "/hosts/web01/config", {"alias": "Ann's"})
    ben.json("PATCH", "/hosts/web01/config", {"alias": "Ben's"})
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
    ann.json("PATCH", "/hosts/web01/config", {"alias": "x y"})
    saved(ann)
    ann.json("PATCH", "/hosts/web01/config", {"alias": "x   y"})
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
    daemon = made(
        [site("s1", "unix:/nonexistent/live", configtool=files.tool())],
        sections={"auth": {"htpasswd_file": str(passwords)}},
    ).start(connected=())
    with daemon.client(None) as browser:
        browser.key = None
        login = browser.post_form("/mon/login", [("login", "admin"), ("password", "sesame")])
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        token = {**cookie, "X-Mon-CSRF-Token": login.json["csrf_token"]}
        refused(browser.json("PATCH", "/hosts/web01/config", {"alias": "x"}, headers=cookie), 403)
        mine = browser.json("PATCH", "/hosts/web01/config", {"alias": "x"}, headers=token)
        assert mine.json["count"] == 1
        files.site.write_text(files.site.read_text().replace("Web 01 · ü", "by hand"))
        path = "/config/objects?alias=x&refreshdata=1"
        refused(browser.get(path, headers=cookie), 403, "CSRF")
        assert len(browser.rows("/config/objects?alias=x", headers=cookie)) == 1
        assert browser.rows(path, headers=token) == []
        assert browser.rows("/config/diff", headers=cookie) == []


def test_a_conflict_can_be_reverted(core, ann, ben):
    ann.json("DELETE", "/hosts/leaf01/config")
    ben.json("PATCH", "/hosts/leaf01/config", {"alias": "Ben's"})
    saved(ann)
    refused(ben.request("POST", "/config/save"), 409)
    assert post(ben, "/config/discard")["count"] == 1
    assert ben.rows("/hosts/leaf01/config") == []


def test_an_edit_beside_the_daemon_is_seen_and_never_overwritten(core, ann):
    text = core.files.site.read_text()
    ann.json("PATCH", "/hosts/web01/config", {"alias": "Ann's"})
    core.files.site.write_text(text.replace("Web 01 · ü", "by hand"))
    refused(ann.request("POST", "/config/save"), 409, str(core.files.site))
    assert "by hand" in core.files.site.read_text()
    core.files.site.write_text(text.replace("Behind the router", "by hand"))
    saved(ann)
    assert "by hand" in core.files.site.read_text()
    assert "Ann's" in core.files.site.read_text()


@pytest.mark.parametrize("users", [("ann",), ("ann", "ben")])
def test_hundreds_of_changes_at_once_lose_nothing(daemon, core, users):
    count, workers = 300, 12
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


def test_two_people_who_edit_and_save_all_the_time(daemon, core):
    """Every change that was answered with 200 and saved is in the files; the rest has a name."""
    kept, refusals = set(), []

    def work(user):
        with daemon.client(user) as client:
            for index in range(10):
                name = f"{user}{index}"
                body = {**NEW, "host_name": name, ":FILE": f"of-{user}.cfg"}
                assert client.json("POST", "/config/objects", body).status == 200
                client.json("PATCH", "/hosts/web01/config", {"notes": name})
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


# -------------------------------------------------------------------- what survives


def test_staged_changes_survive_a_kill(made, tmp_path):
    files = Files(tmp_path / "core")
    sites = [site("s1", "unix:/nonexistent/live", configtool=files.tool())]
    daemon = made(sites).start(connected=())
    with daemon.client() as client:
        row = client.json("POST", "/config/objects", NEW).json["objects"][0]
        client.json("PATCH", "/hosts/web01/config", {"alias": "kept"})
    daemon.stop(signal.SIGKILL)
    daemon.start(connected=())
    with daemon.client() as client:
        assert client.rows("/config/objects?host_name=n1") == [row]
        assert client.rows("/hosts/web01/config")[0]["alias"] == "kept"
        assert len(client.rows("/config/diff")) == 2
        saved(client)
        (now,) = client.rows("/config/objects?host_name=n1")
        assert now[":ID"] == row[":ID"]


def test_a_kill_while_saving_leaves_all_or_nothing(made, tmp_path):
    files = Files(tmp_path / "core")
    paths = [files.write(f"f{number}.cfg", host(number, "old")) for number in range(8)]
    stop = tmp_path / "stop"
    # Killed by the command after saving, and by chance while the files are written.
    sites = [site("s1", "unix:/nonexistent/live", configtool=files.tool())]
    daemon = made(sites).start(connected=())
    with daemon.client() as client:
        path = "/config/objects?:TYPE=host&host_name[~]=^k"
        assert client.json("PATCH", path, {"alias": "new"}).json["count"] == 8
        threading.Thread(target=saves, args=(daemon, stop)).start()
        until(lambda: "new" in paths[0].read_text() or stop.exists(), "the first file is written")
        daemon.process.kill()
        daemon.process.wait(20)
    until(stop.exists, "the request has ended")
    daemon.stop(signal.SIGKILL)
    daemon.start(connected=())
    with daemon.client() as client:
        states = {("new" in path.read_text()) for path in paths}
        assert len(states) == 1
        assert {row["alias"] for row in client.rows("/config/objects?host_name[~]=^k")} == {"new"}
        saved(client)
    assert all("new" in path.read_text() for path in paths)
    assert sorted(path.name for path in files.objects.iterdir()) == sorted(
        ["site.cfg", *(path.name for path in paths)]
    )


def host(number, alias):
    return f"define host {{\n  host_name k{number}\n  alias {alias}\n  use quiet-host\n}}\n"


def saves(daemon, stop):
    try:
        with daemon.client() as client:
            client.request("POST", "/config/save")
    except OSError:
        pass
    finally:
        stop.touch()


# -------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    """A daemon whose commands are scripts that tests write: files, client, and how to write one."""
    folder = tmp_path_factory.mktemp("commands")
    files = Files(folder / "core")
    sites = [
        site(
            "s1",
            "unix:/nonexistent/live",
            configtool=files.tool(obj_check_cmd=f"sh {folder}/check"),
        ),
        site("s2", "unix:/nonexistent/live", configtool=files.tool(obj_check_cmd="")),
    ]
    hooks = {"pre_obj_save_cmd": f"sh {folder}/pre", "post_obj_save_cmd": f"sh {folder}/post"}
    daemon = Daemon(folder, sites, sections={"configtool": hooks})

    def script(name, text):
        (folder / name).write_text(text + "\n")

    try:
        daemon.start(connected=())
        with daemon.client() as client:
            yield files, client, script
    finally:
        daemon.stop()


@pytest.fixture
def commanding(scripted):
    """The same with commands that do nothing yet, and files as they were when it ends."""
    files, client, script = scripted
    for name in ("pre", "post", "check"):
        script(name, "")
    before = files.state()
    yield scripted
    post(client, "/config/revert")
    files.restore(before)


def test_commands_around_a_save(commanding, tmp_path):
    files, client, script = commanding
    log = tmp_path / "log"
    for name in ("pre", "post"):
        script(
            name,
            f'echo "$1 $2 $REMOTE_USER $MON_BACKEND_ID $MON_REQ_URL" >> {log}\n'
            f'grep -h alias "$2/site.cfg" | head -1 >> {log}',
        )
    client.json("PATCH", "/sites/s1/timeperiods/24x7/config", {"alias": "Ever"})
    assert post(client, "/sites/s1/config/save")["count"] == 1
    lines = log.read_text().splitlines()
    where = f"{files.objects} admin s1 /config/save"
    assert lines[0] == f"pre {where}"
    assert lines[1].split() == ["alias", "Always"]
    assert lines[2] == f"post {where}"
    assert lines[3].split() == ["alias", "Ever"]


def test_a_command_before_saving_that_fails_stops_it(commanding):
    files, client, script = commanding
    script("pre", "echo not today; exit 1")
    before = files.state()
    client.json("PATCH", "/sites/s1/hosts/web01/config", {"alias": "x"})
    answer = post(client, "/sites/s1/config/save")
    assert answer["count"] == 0
    assert answer["message"] == "successfully saved changes for 0 sites."
    assert answer["failed"] is True
    assert answer["errors"][0]["peer_key"] == "s1"
    assert "not today" in answer["errors"][0]["message"]
    assert files.state() == before
    assert client.rows("/config/diff")


def test_a_command_after_saving_that_fails_is_told(commanding):
    files, client, script = commanding
    script("post", "echo too late; exit 1")
    client.json("PATCH", "/sites/s1/hosts/web01/config", {"alias": "x"})
    answer = post(client, "/sites/s1/config/save")
    assert (answer["count"], answer["failed"]) == (0, True)
    assert "too late" in answer["errors"][0]["message"]
    assert "alias                          x" in files.site.read_text()
    assert client.rows("/config/diff") == []


def test_a_check_without_a_command(commanding):
    _, client, _ = commanding
    assert post(client, "/sites/s2/config/check") == [
        {"peer_key": "s2", "failed": True, "output": "obj_check_cmd is not set for this site"}
    ]


def test_names_of_people_reach_commands_unchanged(commanding):
    _, client, script = commanding
    script("check", 'printf "%s" "$REMOTE_USER"')
    assert post(client, "/sites/s1/config/check")[0]["output"] == "admin"


@pytest.fixture
def commanded(made, tmp_path):
    """A function that makes a daemon with these settings, and gives its client."""
    clients = []

    def make(tool, server=(), **settings):
        files = Files(tmp_path / "core")
        sites = [site("s1", "unix:/nonexistent/live", configtool=files.tool(**tool))]
        sections = {"configtool": settings, "server": dict(server)}
        daemon = made(sites, sections=sections).start(connected=())
        clients.append(daemon.client())
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_a_check_that_hangs_is_ended(commanded):
    client = commanded({"obj_check_cmd": "echo begun; sleep 600"}, command_timeout=0.3)
    (answer,) = post(client, "/config/check")
    assert answer["failed"] is True
    assert answer["output"].startswith("begun\n")
    assert "time limit" in answer["output"]


def test_a_check_as_a_job_has_more_time_than_a_request(commanded):
    tool, server = {"obj_check_cmd": "sleep 0.5; echo good"}, {"request_timeout": 1.2}
    client = commanded(tool, server, command_timeout=60)
    (answer,) = post(client, "/config/check")
    assert (answer["failed"], "time limit" in answer["output"]) == (True, True)
    job = post(client, "/config/check?background=1")["job_id"]
    until(lambda: not client.rows(f"/mon/jobs/{job}")["is_running"], "the job has ended")
    done = client.get(f"/mon/jobs/{job}/output")
    assert done.json == [{"peer_key": "s1", "failed": False, "output": "good\n"}]


# -------------------------------------------------------------------- where is written


def test_nothing_is_written_through_links(made, tmp_path):
    files = Files(tmp_path / "core")
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / "real.cfg"
    target.write_text("define host {\n  host_name linked\n  use quiet-host\n}\n")
    (files.objects / "link.cfg").symlink_to(target)
    (files.objects / "linked").symlink_to(outside)
    before = target.read_bytes()
    sites = [site("s1", "unix:/nonexistent/live", configtool=files.tool())]
    daemon = made(sites).start(connected=())
    with daemon.client() as client:
        for row in client.rows("/config/objects?host_name=linked"):
            assert row[":READONLY"] == 1
        refused(client.json("PATCH", "/hosts/linked/config", {"alias": "x"}), 403, "readonly")
        for name in ("linked/new.cfg", "link.cfg", f"{outside}/new.cfg"):
            response = client.json("POST", "/config/objects", {**NEW, ":FILE": name})
            assert response.status in (400, 403), (name, response)
        # A folder that becomes a link after the change was staged.
        body = {**NEW, ":FILE": "later/new.cfg"}
        assert client.json("POST", "/config/objects", body).status == 200
        (files.objects / "later").symlink_to(outside)
        assert client.request("POST", "/config/save").status in (403, 409)
    assert target.read_bytes() == before
    assert [path.name for path in outside.iterdir()] == ["real.cfg"]


def test_mode_and_owner_of_files_stay(core, admin):
    core.files.site.chmod(0o640)
    before = core.files.site.stat()
    admin.json("PATCH", "/hosts/web01/config", {"alias": "x"})
    saved(admin)
    now = core.files.site.stat()
    assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_files_of_icinga2_are_refused_clearly(made, tmp_path):
    files = Files(tmp_path / "core")
    files.main.write_text('include "constants.conf"\nobject Host "a" {\n  address = "1"\n}\n')
    daemon = made([site("s1", "unix:/nonexistent/live", configtool=files.tool())])
    daemon.start(connected=())
    with daemon.client() as client:
        refused(client.get("/config/objects"), 400, "Icinga 2")
        refused(client.json("POST", "/config/objects", NEW), 400, "Icinga 2")


@pytest.mark.icinga2
def test_an_icinga2_is_refused_clearly(made, ready, tmp_path_factory, tmp_path):
    """Even if its settings name files that could be read."""
    icinga = ready(CORES["icinga2"](tmp_path_factory.mktemp("icinga2")))
    try:
        files = Files(tmp_path / "core")
        daemon = made([site("s1", f"unix:{icinga.socket}", configtool=files.tool())]).start()
        with daemon.client() as client:
            for method, path in (
                ("GET", "/config/objects"),
                ("GET", "/hosts/web01/config"),
                ("DELETE", "/config/objects"),
                ("POST", "/config/save"),
                ("POST", "/config/reload"),
            ):
                refused(client.request(method, path), 400, "Icinga 2", "S1")
    finally:
        icinga.stop()
