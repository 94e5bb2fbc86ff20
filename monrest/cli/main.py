"""``monrest SUBCOMMAND``: finds the subcommand, imports it, and turns how it ends into a status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from monrest import __version__
from monrest.cli import output
from monrest.cli.command_line import Pairs, leading, scan
from monrest.cli.options import HELP, MONREST, VERSION, Option, R
from monrest.cli.output import FAILED, UNKNOWN, USAGE, OutputClosedError, UsageError
from monrest.client.exchange import ClientError

_SHORTEST_LONG = 3
_INTERRUPTED = 130
_CLOSED = 141
_FRONT = (HELP, VERSION, *MONREST.options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status."""
    output.prepare()
    # Read as UTF-8 with every locale; other bytes stay what they are.
    words = [
        os.fsencode(word).decode("utf-8", "surrogateescape")
        for word in (sys.argv[1:] if arguments is None else arguments)
    ]
    try:
        status = _run(words)
        output.flush()
    except UsageError as error:
        output.note(f"monrest: {error}\nmonrest COMMAND --help shows what is expected")
        return UNKNOWN if is_plugin(words) else USAGE
    except ClientError as problem:
        output.note(f"monrest: {problem}")
        return UNKNOWN if is_plugin(words) else FAILED
    except OutputClosedError:
        return _CLOSED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  one line, and no warning of a plugin
        output.note(f"monrest: internal error: {error!r}; -v shows where")
        if "-v" in words or "--verbose" in words:
            sys.excepthook(type(error), error, error.__traceback__)
        return UNKNOWN if is_plugin(words) else FAILED
    return status


def is_plugin(words: Sequence[str]) -> bool:
    """Whether a monitoring core may be the one that reads the exit status.

    It is so with thresholds or a template, also on a command line that cannot be read.
    """
    if not any(word in ("r", "rest") for word in words):
        return False
    short = ("-w", "-c", "-o")
    long = ("--warning", "--critical", "--output")
    heads = [word.partition("=")[0] for word in words]
    return any(
        (head.startswith(short) and not head.startswith("--"))
        or (len(head) > _SHORTEST_LONG and any(option.startswith(head) for option in long))
        for head in heads
    )


def _run(words: Sequence[str]) -> int:
    given, rest = leading(_FRONT, words)
    command, path = MONREST, list[str]()
    while command.commands:
        if not rest:
            if _asks(VERSION, given) and not _asks(HELP, given):
                return _version()
            return _help(path, asked=_asks(HELP, given))
        named = (
            command for command in command.commands if rest[0] in (command.name, *command.aliases)
        )
        inner = next(named, None)
        if inner is None and not _asks(HELP, given):
            output.note(f"monrest: no such command: {' '.join([*path, rest[0]])}")
            from difflib import get_close_matches

            near = get_close_matches(rest[0], [command.name for command in command.commands], n=1)
            meant = f"did you mean {' '.join(['monrest', *path, *near])}? " if near else ""
            output.note(f"{meant}monrest --help lists them")
            return USAGE
        if inner is None:
            return _help(path)
        command, path = inner, [*path, inner.name]
        if command.commands:
            # Only the last word of a command has options of its own.
            more, rest = leading(_FRONT, rest[1:])
            given = (*given, *more)
        else:
            rest = rest[1:]
    parts = scan((*command.options, HELP, VERSION), rest)
    asked = (*given, *(pair for part in parts for pair in part.options))
    if _asks(HELP, asked):
        return _help(path)
    if _asks(VERSION, asked):
        return _version()
    words = [part.argument for part in parts if part.argument is not None]
    argument = command.argument
    if argument is None and words:
        raise UsageError(f"unexpected {words[0]!r}")
    if argument is not None and argument.required and not words:
        raise UsageError(f"{' '.join(path)}: expected {argument.name}")
    if argument is not None and not argument.several and len(words) > 1:
        raise UsageError(f"expected one {argument.name}")
    module, name = command.run.split(":")
    function: Callable[..., int] = getattr(import_module(module), name)
    if command is R:
        # It has to know which option stands before which URL.
        return function(parts, given)
    return function(words, (*given, *(pair for part in parts for pair in part.options)))


def _asks(option: Option, given: Pairs) -> bool:
    return any(name == option.key for name, _ in given)


def _version() -> int:
    output.write_text(f"monrest {__version__}\n")
    return 0


def _help(path: Sequence[str], *, asked: bool = True) -> int:
    """The help; on standard error, as a wrong command line, where it was not ``asked`` for."""
    from monrest.cli.parsers import help_text

    if asked:
        output.write_text(help_text(*path))
        return 0
    output.note(help_text(*path).rstrip("\n"))
    return USAGE
