"""A daemon installed as documented: it may write the core's files by their group alone."""

import os
import pwd
import shutil
import stat

import pytest
from harness.configured import Files
from harness.staging import post

CORE = pwd.getpwnam("daemon")
PRIVILEGES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", f"--groups={CORE.pw_gid}")
"""Root without any of its rights is a user like others, which the interpreter lets in."""


@pytest.fixture
def installed(tmp_path, lab):
    if os.getuid() or shutil.which(PRIVILEGES[0]) is None:
        pytest.skip("files can be given away by root only, and rights dropped by setpriv")
    files = Files(tmp_path / "core")
    for path in (files.folder, *files.folder.rglob("*")):
        os.chown(path, CORE.pw_uid, CORE.pw_gid)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    daemon = lab.daemon([files.as_site()])
    daemon.prefix = PRIVILEGES
    return daemon.start(connected=()), files


def test_files_are_saved_and_what_cannot_be_kept_is_told(installed):
    daemon, files = installed
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
