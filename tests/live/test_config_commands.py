"""Commands around checking and saving: what they hear and see, and how long they may take."""

import socket
from pathlib import Path

import pytest
from harness.configured import Files
from harness.jobs import ended
from harness.staging import post
from harness.waiting import until


@pytest.fixture(scope="module")
def scripted(tmp_path_factory, shared):
    """A daemon whose commands are scripts that tests write: files, client, and how to write one."""
    folder = tmp_path_factory.mktemp("commands")
    files = Files(folder / "core")
    sites = [
        files.as_site(obj_check_cmd=f"sh {folder}/check"),
        files.as_site("s2", obj_check_cmd=""),
    ]
    hooks = {"pre_obj_save_cmd": f"sh {folder}/pre", "post_obj_save_cmd": f"sh {folder}/post"}
    daemon = shared.daemon(sites, sections={"configtool": hooks}, folder=folder)

    def script(name, text):
        (folder / name).write_text(text + "\n")

    daemon.start(connected=())
    with daemon.client() as client:
        yield files, client, script


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
    client.patch("/sites/s1/timeperiods/24x7/config", {"alias": "Ever"})
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
    client.patch("/sites/s1/hosts/web01/config", {"alias": "x"})
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
    client.patch("/sites/s1/hosts/web01/config", {"alias": "x"})
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


def gone(file):
    """Wait until the process whose number is in a file is there no more."""
    until(lambda: file.exists() and file.read_text().endswith("\n"), "the command has begun")
    process = Path("/proc", file.read_text().strip())
    return lambda: until(lambda: not process.exists(), "the command has ended")


def test_a_check_has_the_time_of_its_request_and_a_job_all_of_its_own(made, tmp_path):
    command = f"until test -e {tmp_path}/go; do sleep 0.1; done; echo good"
    sites = [Files(tmp_path / "core").as_site(obj_check_cmd=command)]
    daemon = made(sites, sections={"server": {"request_timeout": 1.5}}).start(connected=())
    with daemon.client() as client:
        response = client.request("POST", "/config/check")
        # On a busy machine the command does not end before its request.
        assert response.status == 504 or response.json[0]["failed"], response
        assert "background=1" in response.text
        job = post(client, "/config/check?background=1")["job_id"]
        (tmp_path / "go").touch()
        ended(client, job)
        done = client.get(f"/mon/jobs/{job}/output")
        assert done.json == [{"peer_key": "s1", "failed": False, "output": "good\n"}]


def test_a_job_that_is_canceled_ends_its_command(commanding, tmp_path):
    _, client, script = commanding
    script("check", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    number = post(client, "/sites/s1/config/check?background=1")["job_id"]
    process_ended = gone(tmp_path / "pid")
    assert client.request("DELETE", f"/mon/jobs/{number}").status == 200
    process_ended()


def test_a_check_ends_with_its_client(commanding, tmp_path):
    _, client, script = commanding
    script("check", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    head = "".join(f"{name}: {value}\r\n" for name, value in client.credentials().items())
    with socket.create_connection(("127.0.0.1", client.port), 20) as connection:
        connection.sendall(
            f"POST {client.root}/sites/s1/config/check HTTP/1.1\r\nHost: test\r\n{head}\r\n".encode()
        )
        process_ended = gone(tmp_path / "pid")
    process_ended()
