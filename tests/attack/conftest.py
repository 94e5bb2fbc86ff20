"""Attacks on whole daemons, with the cores and clients of the black-box suite."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))

from tests.live.conftest import embedded, lab, made, shared, slow

__all__ = ["embedded", "lab", "made", "shared", "slow"]
