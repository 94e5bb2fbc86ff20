"""A disk that is full: balancers send requests elsewhere until there is room again."""

import subprocess
import tempfile
from itertools import repeat
from pathlib import Path

import pytest
from harness.daemon import site
from harness.waiting import until


@pytest.fixture
def small_disk():
    """A file system of 64 MB; a skip where this user may mount none."""
    folder = Path(tempfile.mkdtemp(prefix="monrest-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("this user may mount no file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def test_a_daemon_with_a_full_disk_is_not_ready(small_disk, embedded, tmp_path, lab):
    sections = {"server": {"var_dir": str(small_disk / "var")}}
    daemon = lab.daemon([site("s1", embedded)], sections=sections, folder=tmp_path)
    daemon.start()
    with daemon.client(None) as anybody:
        until(lambda: anybody.get("/mon/ready").status == 200, "it is ready")
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as filling, pytest.raises(OSError, match="space"):
            filling.writelines(repeat(bytes(65536), 10_000))
        answer = anybody.get("/mon/ready")
        assert (answer.status, answer.json["message"]) == (503, "DISK FULL")
        assert anybody.get("/mon/healthy").status == 200
        filler.unlink()
        assert anybody.get("/mon/ready").status == 200
