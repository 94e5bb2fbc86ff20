"""The object configuration of any core, on a copy: read, changed and saved; the core never sees it.

``make test-core CONFIG=/etc/naemon/naemon.cfg`` copies the files that this main file names.
"""

import re
import shutil
from pathlib import Path

import pytest
from harness.configured import Files
from harness.cores import OBJECTS
from harness.daemon import site
from harness.given import GIVEN

SAME_FOR_ALL_CORES = "an Icinga 2 has no object files of this kind"

NAMED = re.compile(r"\s*(cfg_file|cfg_dir)\s*=\s*(.+?)\s*")


class Copied(Files):
    """The main file and the object files that it names, below a folder of the test."""

    def __init__(self, folder, main):
        super().__init__(folder)
        self.site.unlink()
        lines = []
        for number, line in enumerate(Path(main).read_text(errors="replace").splitlines()):
            if found := NAMED.fullmatch(line):
                source = Path(main).parent / found[2]
                target = self.objects / f"{number}-{source.name}"
                if source.is_dir():
                    shutil.copytree(source, target)
                else:
                    shutil.copy(source, target)
                lines.append(f"{found[1]}={target}")
        self.main.write_text("\n".join([*lines, ""]))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    if GIVEN is None:
        main = folder / "original.cfg"
        main.write_text(f"cfg_dir={OBJECTS}\n")
    return Copied(folder / "core", GIVEN.config if GIVEN else main)


@pytest.fixture(scope="module")
def admin(files, shared):
    tool = {"core_conf": str(files.main)}
    daemon = shared.daemon([site("s1", "unix:/nonexistent/live", configtool=tool)])
    with daemon.start(connected=()).client() as client:
        yield client


def names(client, kind, key):
    rows = client.rows("/config/objects", {":TYPE": kind})
    return sorted(row[key] for row in rows if row.get("register") != "0" and key in row)


def test_the_files_hold_what_the_core_has(core, admin):
    """Except where a core makes objects of its own beside them."""
    for kind in ("host", "hostgroup", "servicegroup", "contact", "contactgroup", "command"):
        table = sorted(row[0] for row in core.ask(f"GET {kind}s\nColumns: name"))
        assert names(admin, kind, "host_name" if kind == "host" else f"{kind}_name") == table


def test_a_good_configuration_has_no_complaints(admin):
    found = admin.rows("/config/precheck")
    assert all(not row.get("errors") for row in found), found


def test_a_change_touches_its_own_definition(admin, files):
    before = files.state()
    (name, *_) = names(admin, "host", "host_name")
    (row,) = admin.rows("/config/objects", {":TYPE": "host", "host_name": name})
    answer = admin.patch(f"/config/objects/{row[':ID']}", {"alias": "changed by a test"})
    assert answer.status == 200, answer
    assert files.state() == before
    assert "changed by a test" in admin.get("/config/diff").text
    assert admin.request("POST", "/config/save").status == 200
    after = files.state()
    (changed,) = [path for path in before if before[path] != after[path]]
    old, new = before[changed].splitlines(), after[changed].splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    assert b"changed by a test" in b"\n".join(new)
    assert [line for line in (*old, *new) if line.lstrip().startswith((b"define", b"}"))] == []
    files.restore(before)


def test_a_change_can_be_taken_back(admin, files):
    before = files.state()
    made = {":TYPE": "host", ":FILE": next(iter(sorted(map(str, files.objects.rglob("*.cfg"))))),
            "host_name": "made-by-a-test", "address": "127.0.0.1"}  # fmt: skip
    assert admin.json("POST", "/config/objects", made).status == 200
    assert admin.get("/config/diff").json
    assert admin.request("POST", "/config/revert").status == 200
    assert admin.get("/config/diff").json == []
    assert files.state() == before
