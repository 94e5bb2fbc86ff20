"""``monrest check-config [FILE]``: what a start would refuse, without starting."""

from __future__ import annotations

from collections.abc import Sequence

from monrest.cli import output
from monrest.cli.client_errors import FAILED, UsageError
from monrest.cli.command_line import ArgumentWithOptions, Pairs
from monrest.cli.options import DEFAULT_CONFIG


def run(parts: Sequence[ArgumentWithOptions], _: Pairs) -> int:
    """Check the file that the command line names, or the one that a start would read."""
    files = [part.argument for part in parts if part.argument is not None]
    if len(files) > 1:
        raise UsageError("expected one FILE")
    options = {name for part in parts for name, _ in part.options}
    return check_config(files[0] if files else DEFAULT_CONFIG, connect="connect" in options)


def check_config(path: str, *, connect: bool) -> int:
    """Print every problem to standard error; 0 when there is none, else 1.

    ``connect``: also ask each site whether it answers.
    """
    from monrest.config import ConfigError, load

    try:
        config = load(path)
    except ConfigError as error:
        output.note(f"{path} cannot be used:\n{error}")
        return FAILED
    count = len(config.sites)
    output.write_text(f"{path} is good: {count} {'site' if count == 1 else 'sites'}\n")
    if not connect:
        return 0
    from monrest.cli.probe import TITLES, probed

    lines = probed(config)
    if lines:
        output.write_text(output.aligned(TITLES, (line.cells() for line in lines)))
    return FAILED if any(line.problem for line in lines) else 0
