"""Read by an interpreter that starts with this folder on its path: its date can be set.

The file that ``MONREST_TEST_DATE`` names has the seconds by which its wall clock is ahead. The
clocks that nobody can set go on as they are, as they do when the clock of a machine is set.
"""

import os
import time
from pathlib import Path

_FILE = Path(os.environ["MONREST_TEST_DATE"])
_time, _time_ns = time.time, time.time_ns


def _ahead():
    return float(_FILE.read_text())


time.time = lambda: _time() + _ahead()
time.time_ns = lambda: _time_ns() + int(_ahead() * 1_000_000_000)
