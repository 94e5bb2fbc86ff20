"""``monrest SUBCOMMAND``: parses the command line and hands over."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from monrest import __version__
from monrest.cli.check_config import check_config


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit status; a wrong command line exits with 2."""
    parser = argparse.ArgumentParser(
        prog="monrest", description="A REST API in front of Livestatus monitoring cores."
    )
    parser.add_argument("--version", action="version", version=f"monrest {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check-config", help="say what is wrong with a configuration, without starting"
    )
    check.add_argument("file", help="the configuration file (TOML)")
    given = parser.parse_args(arguments)
    return check_config(given.file)
