"""Nothing installs a reactor by being imported, so that a process which only forks has none."""

import subprocess
import sys

ASK = """
import importlib, pkgutil, sys
import monrest

REACTOR = "twisted.internet.reactor"
RUN_BY_ALEMBIC = "monrest.store.migrations.env"

for module in pkgutil.walk_packages(monrest.__path__, "monrest."):
    if module.name == RUN_BY_ALEMBIC or module.name.endswith("__main__"):
        continue
    importlib.import_module(module.name)
    if sys.modules.pop(REACTOR, None):
        print(module.name)
"""


def test_no_module_installs_a_reactor():
    asked = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, timeout=300, check=False
    )
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
