"""What cannot be read is an error: no list is empty because a folder could not be opened."""

import os
import resource
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.configured import Files
from harness.expect import refused
from harness.staging import post

UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Starts a program without root's right to read everything."""

LISTS = {
    "/config/files": "cannot read object files",
    "/config/objects": "cannot read object files",
    "/config/fullobjects": "cannot read object files",
    "/config/diff": "cannot read object files",
    "/hosts/web01/config": "cannot read object files",
    "/mon/editor/files": "cannot read the files",
    "/mon/panorama": "cannot read the scripted dashboards",
}


@pytest.fixture(scope="module")
def world(shared):
    """A daemon over two sites, a folder for the editor and one of dashboards."""
    folder = shared.folder()
    files, others = Files(folder / "core"), Files(folder / "other")
    for name in ("editor", "dashboards"):
        (folder / name).mkdir()
        (folder / name / "1.cfg").write_text("x")
    daemon = shared.daemon(
        [
            files.as_site(),
            others.as_site("s2"),
        ],
        sections={
            "panorama": {"folder": str(folder / "dashboards")},
            "": {"editor": [{"name": "e", "files": [{"folder": [str(folder / "editor")]}]}]},
        },
        folder=folder,
    )
    if shutil.which(UNPRIVILEGED[0]) and os.getuid() == 0:
        daemon.prefix = UNPRIVILEGED
    return daemon.start(connected=()), files, folder


@pytest.fixture
def admin(world):
    with world[0].client() as client:
        yield client
        post(client, "/config/revert")


@contextmanager
def no_descriptors(daemon):
    """Let no process of the daemon open anything more for a while."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in daemon.pids()}
    for pid, (_, most) in before.items():
        used = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
        free = next(number for number in range(len(used) + 1) if number not in used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, most))
    try:
        yield
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@contextmanager
def closed(path):
    before = path.stat().st_mode
    path.chmod(0)
    if os.getuid() == 0 and shutil.which(UNPRIVILEGED[0]) is None:
        pytest.skip("root without setpriv reads everything")
    try:
        yield
    finally:
        path.chmod(before)


def test_without_file_descriptors_no_list_is_empty(world, admin):
    daemon, files, _ = world
    files.write("gone.cfg", "define host {\n  host_name  gone\n}\n")
    before = {path: admin.rows(path) for path in LISTS}
    # A removal that is staged must not be taken for one that is done.
    assert admin.json("DELETE", "/sites/s1/hosts/gone/config").json["count"] == 1
    staged = admin.rows("/config/diff")
    assert staged
    with no_descriptors(daemon):
        for path, message in LISTS.items():
            document = refused(admin.get(path), 503, "Too many open files")
            assert document["message"] == message, path
        rows = admin.rows("/config/precheck")
        assert [row["failed"] for row in rows] == [True, True]
        assert all("Too many open files" in row["errors"][0] for row in rows)
        assert admin.request("POST", "/config/save").status == 503
        assert admin.patch("/hosts/web01/config", {"alias": "x"}).status == 503
    assert admin.rows("/config/diff") == staged
    post(admin, "/config/revert")
    assert {path: admin.rows(path) for path in LISTS} == before


def test_a_folder_that_must_not_be_read_is_named(world, admin):
    _, files, folder = world
    deep = files.write("deep/x.cfg", "define host {\n  host_name  deep\n}\n").parent
    with closed(deep):
        for path in ("/config/files", "/config/objects", "/hosts/web01/config"):
            refused(admin.get(f"/sites/s1{path}"), 503, f"{deep}: Permission denied")
            answer = admin.get(path)
            assert answer.status == 200
            assert "s1" in answer.headers["x-mon-failed-sites"]
            assert {row.get("peer_key", row.get(":PEER_KEY")) for row in answer.json} == {"s2"}
        first, second = admin.rows("/config/precheck")
        assert first["errors"] == [f"cannot read: {deep}: Permission denied"]
        assert second["failed"] is False
        refused(admin.patch("/hosts/web01/config", {"alias": "x"}), 503, str(deep))
    for name, path in (("editor", "/mon/editor/files"), ("dashboards", "/mon/panorama")):
        with closed(folder / name):
            refused(admin.get(path), 503, f"{folder / name}: Permission denied")
    assert admin.rows("/sites/s1/config/objects?host_name=deep")


def test_a_file_that_must_not_be_read_is_listed_and_its_changes_wait(world, admin):
    _, files, _ = world
    path = files.write("alone.cfg", "define host {\n  host_name  alone\n}\n")
    assert admin.json("DELETE", "/sites/s1/hosts/alone/config").json["count"] == 1
    with closed(path):
        (row,) = admin.rows(f"/sites/s1/config/files?path={path}&columns=hex,readonly,conflict")
        assert row == {"hex": None, "readonly": 1, "conflict": 1}
        (told, _) = admin.rows("/config/precheck")
        assert f"cannot read file: {path}: Permission denied" in told["errors"]
        refused(admin.request("POST", "/sites/s1/config/save"), 409, str(path))
    assert admin.rows("/sites/s1/config/files?path=" + str(path))[0]["hex"]
    (row,) = admin.rows("/sites/s1/config/diff")
    assert row["file"] == str(path)
