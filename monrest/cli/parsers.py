"""The declared commands as argparse parsers: what ``--help`` and shell completion are made from.

Parsing itself does not use them: ``monrest r`` must know which option stands before which URL.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from textwrap import fill
from typing import Any

from monrest.cli.options import HELP, MONREST, VERSION, Option, Subcommand

_WIDTH = 100
_NARROWEST = 40


class _Formatter(RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width(), max_help_position=28)


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", "")) if os.environ.get("COLUMNS") else 0
        columns = columns or os.get_terminal_size().columns
    except (OSError, ValueError):
        columns = 0
    return max(min(columns or _WIDTH, _WIDTH), _NARROWEST)


def parser(command: Subcommand = MONREST, prog: str = "monrest") -> ArgumentParser:
    """The parser of ``command`` with those of its subcommands."""
    examples = [f"  {line}\n      {text}" for line, text in command.examples]
    summary = f"{command.summary[0].upper()}{command.summary[1:]}."
    paragraphs = (fill(text, _width(), break_on_hyphens=False) for text in (summary, *command.text))
    whole = ArgumentParser(
        prog=prog,
        usage=f"{prog} {command.usage}",
        description="\n\n".join(paragraphs),
        epilog="examples:\n" + "\n".join(examples) if examples else None,
        formatter_class=_Formatter,
        add_help=False,
        allow_abbrev=False,
    )
    for option in (HELP, VERSION) if command is MONREST else (HELP,):
        _add(whole, option)
    for group in command.groups:
        heading = whole.add_argument_group(group.title)
        for option in group.options:
            _add(heading, option)
    argument = command.argument
    if argument is not None:
        # Any number of them: a wrong one is an error when the command runs.
        added = whole.add_argument(
            argument.name,
            nargs="*",
            choices=argument.choices or None,
            metavar=argument.name,
            help=argument.help,
        )
        added.completes = argument.completes  # type: ignore[attr-defined]  # for completion.py
    if command.commands:
        inner = whole.add_subparsers(title="commands", metavar="COMMAND")
        for part in command.commands:
            sub = parser(part, f"{prog} {part.name}")
            inner.add_parser(
                part.name, aliases=part.aliases, help=part.summary, parents=[sub], add_help=False,
                prog=sub.prog, usage=sub.usage, description=sub.description, epilog=sub.epilog,
                formatter_class=_Formatter,
            )  # fmt: skip
    return whole


def help_text(*path: str) -> str:
    """The text of ``--help`` of a subcommand; without ``path`` that of ``monrest`` itself."""
    command = MONREST
    for name in path:
        command = next(command for command in command.commands if command.name == name)
    return parser(command, " ".join(("monrest", *path))).format_help()


def _add(parser_or_group: Any, option: Option) -> None:
    text = option.help.replace("%", "%%")
    if option.metavar:
        added = parser_or_group.add_argument(*option.names, metavar=option.metavar, help=text)
    else:
        added = parser_or_group.add_argument(*option.names, action="store_true", help=text)
    added.completes = option.completes
