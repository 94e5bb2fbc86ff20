"""The command ``monrest`` as a process."""

import json
import os
import subprocess
import sys

MAIN = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from monrest.cli.main import main; sys.exit(main())"
)
"""A run of the tests in the background of a shell ignores SIGINT, and so would what it starts."""


class Command:
    """The executable with a home of its own and an environment that leads to one daemon."""

    line = (sys.executable, "-c", MAIN)

    def __init__(self, home, **environment):
        kept = {name: text for name, text in os.environ.items() if not name.startswith("MONREST")}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):  # pytest-xdist tells its workers of columns
            kept.pop(name, None)
        self.environment = {**kept, "XDG_CONFIG_HOME": str(home), **environment}

    def run(self, *words, **more):
        return subprocess.run(
            [*self.line, *words],
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def __call__(self, *words, status=0, **more):
        """What it prints, when it ends with this status."""
        ran = self.run(*words, **more)
        assert ran.returncode == status, (words, ran.stdout[:2000], ran.stderr)
        return ran.stdout

    def json(self, *words):
        return json.loads(self(*words))
