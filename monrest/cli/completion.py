"""``monrest completion SHELL``: a script for bash, zsh or tcsh, made by shtab.

Paths of the API are in ``paths.txt``, which ``make docs`` writes from the declarations: those
that end with a slash go on with a name.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import shtab

from monrest.cli import output
from monrest.cli.client_errors import UsageError
from monrest.cli.command_line import ArgumentWithOptions, Pairs
from monrest.cli.options import COMPLETION
from monrest.cli.parsers import parser

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_BASH = """\
_monrest_paths() {{
  local found
  found=$(compgen -W "{paths}" -- "$1")
  [[ $found == */ && $found != *$'\\n'* ]] && compopt -o nospace 2>/dev/null
  [[ -n $found ]] && printf '%s\\n' "$found"
}}
"""
_ZSH = """\
_monrest_paths() {{
  local -a whole open
  whole=({whole})
  open=({open})
  compadd -a whole
  compadd -S '' -a open
}}
"""
_TCSH = "set monrest_paths=({paths})"


def run(parts: Sequence[ArgumentWithOptions], _: Pairs) -> int:
    """Print the script for the shell that the command line names."""
    assert COMPLETION.argument is not None, "it is declared with one"
    shells = COMPLETION.argument.choices
    given = [part.argument for part in parts if part.argument is not None]
    if len(given) != 1 or given[0] not in shells:
        raise UsageError(f"completion: expected one of {', '.join(shells)}")
    output.write_text(f"{script(given[0])}\n")
    return 0


def paths() -> tuple[str, ...]:
    """The paths of the API, sorted."""
    return tuple(files("monrest.cli").joinpath("paths.txt").read_text("ascii").split())


def script(shell: str) -> str:
    """The completion script for ``shell``."""
    made = parser()
    known = paths()
    special = {
        "file": shtab.FILE,
        "path": {
            "bash": "_monrest_paths",
            "zsh": "_monrest_paths",
            "tcsh": "$monrest_paths",
            "preamble": {
                "bash": _BASH.format(paths=" ".join(known)),
                "zsh": _ZSH.format(
                    whole=" ".join(path for path in known if not path.endswith("/")),
                    open=" ".join(path for path in known if path.endswith("/")),
                ),
                "tcsh": _TCSH.format(paths=" ".join(known)),
            },
        },
    }
    for action in _actions(made):
        completes = getattr(action, "completes", "")
        if completes == "method":
            action.choices = _METHODS
        elif completes:
            action.complete = special[completes]  # type: ignore[attr-defined]  # read by shtab
    text: str = shtab.complete(made, shell)
    return text


def _actions(made: ArgumentParser) -> Iterator[Action]:
    for action in made._actions:  # argparse has no public list of them
        yield action
        choices: Any = action.choices
        if isinstance(choices, dict):
            for inner in {id(one): one for one in choices.values()}.values():
                yield from _actions(inner)
