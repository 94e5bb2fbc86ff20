"""A small request passes no more of our code than it was allowed once (docs/architecture.md)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bench.road import MOST_CALLS, MOST_MODULES


def test_the_road_of_a_small_request():
    done = subprocess.run(
        [sys.executable, "-m", "bench.road"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    modules, calls = map(int, re.fullmatch(r"(\d+) modules, (\d+) calls\n", done.stdout).groups())
    assert modules <= MOST_MODULES
    assert calls <= MOST_CALLS
