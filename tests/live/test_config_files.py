"""Files of the configuration: what survives a kill, where is written, what is not read."""

import os
import pwd
import shutil
import signal
import stat
import threading

import pytest
from harness.configured import Files
from harness.cores import Icinga2Core
from harness.daemon import site
from harness.expect import refused
from harness.staging import NEW, post, saved
from harness.waiting import until

CORE = pwd.getpwnam("daemon")
PRIVILEGES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", f"--groups={CORE.pw_gid}")
"""Root without any of its rights is a user like others, which the interpreter lets in."""


def test_staged_changes_survive_a_kill(made, tmp_path):
    files = Files(tmp_path / "core")
    sites = [files.as_site()]
    daemon = made(sites).start(connected=())
    with daemon.client() as client:
        row = client.json("POST", "/config/objects", NEW).json["objects"][0]
        client.patch("/hosts/web01/config", {"alias": "kept"})
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
    sites = [files.as_site()]
    daemon = made(sites).start(connected=())
    with daemon.client() as client:
        path = "/config/objects?:TYPE=host&host_name[~]=^k"
        assert client.patch(path, {"alias": "new"}).json["count"] == 8
        threading.Thread(target=saves, args=(daemon, stop)).start()
        until(lambda: "new" in paths[0].read_text() or stop.exists(), "the first file is written")
        daemon.kill()
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


def test_nothing_is_written_through_links(made, tmp_path):
    files = Files(tmp_path / "core")
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / "real.cfg"
    target.write_text("define host {\n  host_name linked\n  use quiet-host\n}\n")
    (files.objects / "link.cfg").symlink_to(target)
    (files.objects / "linked").symlink_to(outside)
    before = target.read_bytes()
    sites = [files.as_site()]
    daemon = made(sites).start(connected=())
    with daemon.client() as client:
        for row in client.rows("/config/objects?host_name=linked"):
            assert row[":READONLY"] == 1
        refused(client.patch("/hosts/linked/config", {"alias": "x"}), 403, "readonly")
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


def test_files_of_icinga2_are_refused_clearly(made, tmp_path):
    files = Files(tmp_path / "core")
    files.main.write_text('include "constants.conf"\nobject Host "a" {\n  address = "1"\n}\n')
    daemon = made([files.as_site()])
    daemon.start(connected=())
    with daemon.client() as client:
        refused(client.get("/config/objects"), 400, "Icinga 2")
        refused(client.json("POST", "/config/objects", NEW), 400, "Icinga 2")


@pytest.mark.icinga2
def test_an_icinga2_is_refused_clearly(lab):
    """Even if its settings name files that could be read."""
    icinga = lab.core(Icinga2Core)
    files = Files(lab.folder())
    daemon = lab.daemon([site("s1", icinga, configtool=files.tool())]).start()
    with daemon.client() as client:
        for method, path in (
            ("GET", "/config/objects"),
            ("GET", "/hosts/web01/config"),
            ("DELETE", "/config/objects"),
            ("POST", "/config/save"),
            ("POST", "/config/reload"),
        ):
            refused(client.request(method, path), 400, "Icinga 2", "S1")


def test_files_are_saved_and_what_cannot_be_kept_is_told(tmp_path, lab):
    """A daemon installed as documented: it may write the core's files by their group alone."""
    if os.getuid() or shutil.which(PRIVILEGES[0]) is None:
        pytest.skip("files can be given away by root only, and rights dropped by setpriv")
    files = Files(tmp_path / "core")
    for path in (files.folder, *files.folder.rglob("*")):
        os.chown(path, CORE.pw_uid, CORE.pw_gid)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    daemon = lab.daemon([files.as_site()])
    daemon.prefix = PRIVILEGES
    daemon.start(connected=())
    with daemon.client() as admin:
        admin.patch("/hosts/web01/config", {"alias": "x"})
        assert post(admin, "/config/save") == {
            "message": "successfully saved changes for 1 site.",
            "count": 1,
            "warnings": [f"{files.site}: owner daemon cannot be kept, it is root now"],
        }
        state = files.site.stat()
        assert (state.st_uid, state.st_gid) == (0, CORE.pw_gid)
        assert stat.S_IMODE(state.st_mode) == 0o664
        admin.patch("/hosts/web01/config", {"alias": "y"})
        assert "warnings" not in post(admin, "/config/save")
