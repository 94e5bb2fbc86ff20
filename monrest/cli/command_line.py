"""Words of the command line into options and arguments, keeping which option precedes which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from getopt import GetoptError, getopt
from typing import NamedTuple, TypeAlias

from monrest.cli.options import Option
from monrest.cli.output import UsageError

Pairs: TypeAlias = Sequence[tuple[str, str]]
"""Options as (long name without dashes, value), in their order; flags have an empty value."""


class ArgumentWithOptions(NamedTuple):
    """Options and the argument behind them.

    The last one of a command line has the options that follow the last argument; its ``argument``
    is None.
    """

    options: tuple[tuple[str, str], ...]
    argument: str | None


def scan(options: Sequence[Option], words: Sequence[str]) -> list[ArgumentWithOptions]:
    """Split all ``words``; a word ``--`` makes everything behind it an argument.

    Long names may be shortened as long as they are unique. Raises UsageError for an unknown
    option and for a missing or unexpected value.
    """
    values, rest = [], list(words)
    while True:
        given, rest, plain = _options(options, rest)
        if not rest or plain:
            values.append(ArgumentWithOptions(given, rest[0] if rest else None))
            values += [ArgumentWithOptions((), word) for word in rest[1:]]
            if values[-1].argument is not None:
                values.append(ArgumentWithOptions((), None))
            return values
        values.append(ArgumentWithOptions(given, rest.pop(0)))


def leading(
    options: Sequence[Option], words: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Split the options before the first argument from everything else."""
    given, rest, _ = _options(options, list(words))
    return given, rest


def _options(
    options: Sequence[Option], words: list[str]
) -> tuple[tuple[tuple[str, str], ...], list[str], bool]:
    """The options in front, what follows, and whether a ``--`` stood between them."""
    names = {name: option.key for option in options for name in option.names}
    short = "".join(
        name[1] + (":" if option.metavar else "")
        for option in options
        for name in option.names
        if not name.startswith("--")
    )
    long = [
        name[2:] + ("=" if option.metavar else "")
        for option in options
        for name in option.names
        if name.startswith("--")
    ]
    try:
        pairs, rest = getopt(words, short, long)
    except GetoptError as error:
        raise UsageError(f"{error}{_meant(error.opt, names)}") from None
    used = len(words) - len(rest)
    ended = used > 0 and words[used - 1] == "--" and (not pairs or pairs[-1][1] != "--")
    return tuple((names[name], value) for name, value in pairs), rest, ended


def _meant(name: str, names: Iterable[str]) -> str:
    """A suggestion for an unknown long option, in words."""
    from difflib import get_close_matches

    long = [option[2:] for option in names if option.startswith("--")]
    # A known option, or a short one, lacks its value or has one too many.
    if len(name) == 1 or name in long:
        return ""
    near = [option for option in long if option.startswith(name)] or get_close_matches(
        name, long, n=1
    )
    return f", did you mean {' or '.join(f'--{option}' for option in near)}?" if near else ""
