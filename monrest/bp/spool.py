"""Results as a file in the spool folder of a core (docs/spec/bp.md, "Results")."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from monrest.livestatus.command import CoreCommand

_HOST = "PROCESS_HOST_CHECK_RESULT"
_MODE = 0o660


def spooled(commands: Iterable[CoreCommand], app: str, now: float) -> Iterator[str]:
    """Give the lines of a check result file for passive checks."""
    yield "### Passive Check Result File ###"
    yield f"### written by {app} ###"
    yield f"file_time={int(now)}"
    for one in commands:
        yield ""
        names = ("host_name",) if one.name == _HOST else ("host_name", "service_description")
        *objects, code, output = one.fields
        yield from (f"{name}={value}" for name, value in zip(names, objects, strict=True))
        yield from (
            "check_type=1",
            "check_options=0",
            "scheduled_check=0",
            "latency=0.000000",
            f"start_time={now:.6f}",
            f"finish_time={now:.6f}",
            "early_timeout=0",
            "exited_ok=1",
            f"return_code={code}",
            f"output={output}",
        )


def spool(folder: str, lines: Iterable[str]) -> Path:
    """Write a file that a core takes from ``folder``, and the empty one that says it is complete.

    Blocks. Raises OSError.
    """
    handle, name = tempfile.mkstemp(prefix="c", suffix="", dir=folder)
    path = Path(folder, name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines)
        path.chmod(_MODE)
        path.with_name(f"{path.name}.ok").touch(_MODE)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path
