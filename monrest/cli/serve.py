"""``monrest serve``: the daemon in the place of this process, with the options that it wants."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from monrest.cli import output
from monrest.cli.command_line import Pairs
from monrest.cli.options import DEFAULT_CONFIG
from monrest.cli.output import UsageError
from monrest.client.exchange import ClientError

_RUN = "from twisted.scripts.twistd import run; run()"


def run(_: Sequence[str], options: Pairs) -> int:
    """Become the daemon; returns only where that is not possible."""
    line = command_line(dict(options))
    output.flush()
    try:
        os.execv(line[0], line)  # noqa: S606  this very interpreter
    except OSError as error:
        raise ClientError(f"{line[0]}: {error.strerror}") from None


def command_line(named: dict[str, str]) -> list[str]:
    """The words of the process; raises UsageError."""
    demo = "demo" in named
    if demo and "config" in named:
        raise UsageError("expected --config or --demo, not both")
    if "port" in named and not demo:
        raise UsageError("--port: goes with --demo; otherwise server.listen says where")
    twistd = ["--nodaemon", f"--pidfile={named.get('pidfile', '')}"]
    if "logfile" in named:
        twistd.append(f"--logfile={named['logfile']}")
    own = ["--demo"] if demo else [f"--config={named.get('config', DEFAULT_CONFIG)}"]
    if "port" in named:
        own.append(f"--port={named['port']}")
    if "json-log" in named:
        own.append("--json-log")
    # With the same bytecode: the package has no other.
    flags = ["-OO"] if sys.flags.optimize > 1 else []
    return [sys.executable, *flags, "-c", _RUN, *twistd, "monrest", *own]
