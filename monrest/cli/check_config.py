"""``monrest check-config FILE``: what ``twistd monrest`` would refuse, without starting it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from monrest.cli.client_errors import UsageError
from monrest.cli.command_line import ArgumentWithOptions, Pairs


def run(parts: Sequence[ArgumentWithOptions], _: Pairs) -> int:
    """Check the one file that the command line names."""
    files = [part.argument for part in parts if part.argument is not None]
    if len(files) != 1:
        raise UsageError("expected one FILE")
    return check_config(files[0])


def check_config(path: str) -> int:
    """Print every problem to standard error; 0 when there is none, else 1."""
    from monrest.config import ConfigError, load

    try:
        config = load(path)
    except ConfigError as error:
        sys.stderr.write(f"{path} cannot be used:\n{error}\n")
        return 1
    count = len(config.sites)
    sys.stdout.write(f"{path} is good: {count} {'site' if count == 1 else 'sites'}\n")
    return 0
