"""The sample configurations that Debian ships, as ``tests/fetch-samples.sh`` fetches them.

They are not ours and never part of the repository. Missing ones are a skip, under MONREST_CI an
error.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / ".samples"


def samples(*parts: str) -> Path:
    """A folder or file of the samples: ``nagios4``, ``plugins``, ``examples`` or ``icinga2``."""
    if not (FOLDER / "complete").is_file():
        missing = "the sample configurations are missing; run: sh tests/fetch-samples.sh"
        if os.environ.get("MONREST_CI"):
            raise FileNotFoundError(missing)
        pytest.skip(missing)
    return FOLDER.joinpath(*parts)
