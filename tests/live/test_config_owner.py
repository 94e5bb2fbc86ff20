"""A daemon installed as documented: it may write the core's files by their group alone."""

from __future__ import annotations

import os
import pwd
import shutil
import stat

import pytest
from harness.configured import Files
from harness.daemon import Daemon, site
from harness.staging import post

CORE = pwd.getpwnam("daemon")
PRIVILEGES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", f"--groups={CORE.pw_gid}")
"""Root without any of its rights is a user like others, which the interpreter lets in."""


@pytest.fixture
def installed(tmp_path):
    if os.getuid() or shutil.which(PRIVILEGES[0]) is None:
        pytest.skip("files can be given away by root only, and rights dropped by setpriv")
    files = Files(tmp_path / "core")
    for path in (files.folder, *files.folder.rglob("*")):
        os.chown(path, CORE.pw_uid, CORE.pw_gid)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    daemon = Daemon(tmp_path, [site("s1", "unix:/nonexistent/live", configtool=files.tool())])
    daemon.prefix = PRIVILEGES
    try:
        yield daemon.start(connected=()), files
    finally:
        daemon.stop()


def test_files_are_saved_and_what_cannot_be_kept_is_told(installed):
    daemon, files = installed
    with daemon.client() as admin:
        admin.json("PATCH", "/hosts/web01/config", {"alias": "x"})
        assert post(admin, "/config/save") == {
            "message": "successfully saved changes for 1 site.",
            "count": 1,
            "warnings": [f"{files.site}: owner daemon cannot be kept, it is root now"],
        }
        state = files.site.stat()
        assert (state.st_uid, state.st_gid) == (0, CORE.pw_gid)
        assert stat.S_IMODE(state.st_mode) == 0o664
        admin.json("PATCH", "/hosts/web01/config", {"alias": "y"})
        assert "warnings" not in post(admin, "/config/save")
