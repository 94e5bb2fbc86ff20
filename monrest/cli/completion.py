"""``monrest completion SHELL``: a script for bash, fish, tcsh or zsh, made by shtab.

Paths of the API are in ``paths.txt``, which ``make docs`` writes from the declarations. The scripts
call ``monrest completion --word`` for names of objects (``monrest/cli/path_names.py``).
"""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from monrest.cli import output
from monrest.cli.client_errors import UsageError
from monrest.cli.command_line import ArgumentWithOptions, Pairs
from monrest.cli.options import COMPLETION
from monrest.cli.path_names import beginnings, candidates
from monrest.cli.terminal import WHEN

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_BASH = """\
_monrest_paths() {{
  local found
  found=$("${{COMP_WORDS[0]}}" completion --word "$1" 2>/dev/null) ||
    found=$(compgen -W "{paths}" -- "$1")
  [[ $found == */ && $found != *$'\\n'* ]] && compopt -o nospace 2>/dev/null
  [[ -n $found ]] && printf '%s\\n' "$found"
}}
"""
_ZSH = """\
_monrest_paths() {{
  local -a found whole open
  found=(${{(f)"$(command monrest completion --word "${{(Q)PREFIX}}" 2>/dev/null)"}}) ||
    found=({paths})
  open=(${{(M)found:#*/}})
  whole=(${{found:#*/}})
  compadd -a whole
  compadd -S '' -a open
}}
"""
_FISH = """\
function _monrest_paths
  set -l tokens (commandline -opc)
  $tokens[1] completion --word (commandline -ct) 2>/dev/null
  or printf '%s\\n' {paths}
end
"""
_TCSH = "set monrest_paths=({paths})"


def run(parts: Sequence[ArgumentWithOptions], _: Pairs) -> int:
    """Print the script for the shell that the command line names, or what completes a word."""
    assert COMPLETION.argument is not None, "it is declared with one"
    shells = COMPLETION.argument.choices
    given = [part.argument for part in parts if part.argument is not None]
    named = dict(pair for part in parts for pair in part.options)
    if "word" in named and not given:
        output.write_text("".join(f"{candidate}\n" for candidate in candidates(named["word"])))
        return 0
    if len(given) != 1 or given[0] not in shells or named:
        raise UsageError(f"completion: expected one of {', '.join(shells)}")
    output.write_text(f"{script(given[0])}\n")
    return 0


def script(shell: str) -> str:
    """The completion script for ``shell``."""
    import shtab

    whole = parser_with_choices()
    words = " ".join(beginnings())
    special = {
        "file": shtab.FILE,
        "path": {
            "bash": "_monrest_paths",
            "zsh": "_monrest_paths",
            "fish": "(_monrest_paths)",
            "tcsh": "$monrest_paths",
            "preamble": {
                "bash": _BASH.format(paths=words),
                "zsh": _ZSH.format(paths=words),
                "fish": _FISH.format(paths=words),
                "tcsh": _TCSH.format(paths=words),
            },
        },
    }
    for action in _actions(whole):
        completes = getattr(action, "completes", "")
        if completes in special:
            action.complete = special[completes]  # type: ignore[attr-defined]  # read by shtab
    text: str = shtab.complete(whole, shell)
    return text


def parser_with_choices() -> ArgumentParser:
    """The parser of the whole command, whose options know the words that they take."""
    from monrest.cli.parsers import parser

    whole = parser()
    for action in _actions(whole):
        completes = getattr(action, "completes", "")
        if completes in ("method", "color"):
            action.choices = _METHODS if completes == "method" else WHEN
    return whole


def _actions(whole: ArgumentParser) -> Iterator[Action]:
    for action in whole._actions:  # argparse has no public list of them
        yield action
        choices: Any = action.choices
        if isinstance(choices, dict):
            for inner in {id(choice): choice for choice in choices.values()}.values():
                yield from _actions(inner)
