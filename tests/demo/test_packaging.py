"""What an installation that is not a checkout needs to run the demo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_built_package_carries_the_objects_of_the_demo(tmp_path: Path) -> None:
    """``pip install .`` and then ``twistd monrest --demo`` found no object files."""
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )

    built = {path.name: path.read_bytes() for path in (tmp_path / "monrest/demo/objects").iterdir()}

    assert built == {path.name: path.read_bytes() for path in (ROOT / "etc/demo").iterdir()}
