"""``monrest check-config FILE``: what ``twistd monrest`` would refuse, without starting it."""

from __future__ import annotations

import sys

from monrest.config import ConfigError, load


def check_config(path: str) -> int:
    """Print every problem to standard error; 0 when there is none, else 1."""
    try:
        config = load(path)
    except ConfigError as error:
        sys.stderr.write(f"{path} cannot be used:\n{error}\n")
        return 1
    count = len(config.sites)
    sys.stdout.write(f"{path} is good: {count} {'site' if count == 1 else 'sites'}\n")
    return 0
