"""A real Nagios 4 as the judge of object files: ``nagios4 -v``, which takes some milliseconds.

Without it the tests that need it are skipped; under MONREST_CI that is an error.
"""

from __future__ import annotations

import getpass
import grp
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from attrs import frozen

from monrest.config import ConfigTool

ILLEGAL = "`~!$%^&*|'\"<>?,()="
"""Characters that Debian's main file forbids in names."""

_SAYS = re.compile(r"\s*(?:Error: |Warning: (?=Duplicate definition))(.*)")


@frozen
class Verdict:
    """What the core says: whether it would start, and its errors in their order."""

    accepts: bool
    errors: tuple[str, ...]
    output: str


class Nagios4:
    """A main file in ``folder``, the folder ``objects`` beside it, and the program."""

    def __init__(self, folder):
        program = shutil.which("nagios4", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            text = "nagios4 is not installed: run tests/install-cores.sh"
            if os.environ.get("MONREST_CI"):
                raise RuntimeError(text)
            pytest.skip(text)
        folder = Path(os.path.realpath(folder))
        self.objects = folder / "objects"
        self.objects.mkdir(parents=True, exist_ok=True)
        self.main = folder / "nagios.cfg"
        self.arguments = [program, "-v", str(self.main)]
        settings = {
            "cfg_dir": "objects",
            # As root it becomes this user, who must be able to read the files.
            "nagios_user": getpass.getuser(),
            "nagios_group": grp.getgrgid(os.getgid()).gr_name,
            "log_file": folder / "nagios.log",
            "temp_path": folder,
            "temp_file": folder / "nagios.tmp",
            "check_result_path": folder,
            "lock_file": folder / "nagios.lock",
            "illegal_object_name_chars": ILLEGAL,
            "illegal_macro_output_chars": "`~$&|'\"<>",
        }
        self.main.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    @property
    def command(self):
        """The command line that judges the files, for a configuration."""
        return shlex.join(self.arguments)

    @property
    def tool(self):
        """The settings of a site with these files."""
        return ConfigTool(core_conf=str(self.main), core_type="nagios")

    def judge(self):
        """What the core says about the files as they are.

        Version 4.4.6 may crash when it refuses some lists of groups and hosts; line by line its
        output says why all the same.
        """
        ran = subprocess.run(
            ["stdbuf", "-oL", *self.arguments],
            capture_output=True,
            check=False,
            cwd=self.main.parent,
        )
        assert ran.returncode in (0, 1, -signal.SIGSEGV), ran.returncode
        output = ran.stdout.decode("utf-8", "replace")
        found = [match[1] for line in output.splitlines() if (match := _SAYS.match(line))]
        return Verdict(ran.returncode == 0, tuple(found), output)
