"""``monrest completion SHELL``: a script for bash, fish, tcsh or zsh, made by shtab.

Paths of the API are in ``paths.txt``, which ``make docs`` writes from the declarations. The scripts
call ``monrest completion --word`` for names of objects (docs/spec/cli.md, "Completion").
"""

from __future__ import annotations

import json
import os
from argparse import Action, ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from monrest.cli import output
from monrest.cli.client_settings import settings
from monrest.cli.command_line import Pairs
from monrest.cli.hints import PREFIXES, SELECTIONS
from monrest.cli.options import COMPLETION
from monrest.cli.output import UsageError
from monrest.cli.requester import Requester
from monrest.cli.terminal import WHEN
from monrest.client.exchange import ClientError, segment

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


def run(given: Sequence[str], options: Pairs) -> int:
    """Print the script for the shell that the command line names, or what completes a word."""
    assert COMPLETION.argument is not None, "it is declared with one"
    shells = COMPLETION.argument.choices
    named = dict(options)
    if "word" in named and not given:
        output.write_text("".join(f"{candidate}\n" for candidate in candidates(named["word"])))
        return 0
    if not given or given[0] not in shells or "word" in named:
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


_MOST_NAMES = 200
_SECONDS = "3"
_COLUMNS: Mapping[str, str] = {
    "/mon/cluster": "node_id", "/mon/sessions": "hashed_key", "/mon/api_keys": "hashed_key",
    "/mon/bp": "id", "/mon/users": "id", "/mon/jobs": "id", "/mon/reports": "nr",
    "/mon/panorama": "nr", "/mon/broadcasts": "file", "/mon/recurring_downtimes": "file",
    "/mon/node-control/nodes": "peer_key", "/comments": "id", "/downtimes": "id",
}  # fmt: skip
"""Collections whose column of names is not called name."""

_NAMED = frozenset(
    {"hosts", "hostgroups", "servicegroups", "contacts", "contactgroups", "timeperiods", "commands"}
)


def templates() -> tuple[str, ...]:
    """The paths of the API with their variables in angle brackets, sorted."""
    path = os.path.join(os.path.dirname(__file__), "paths.txt")  # noqa: PTH118,PTH120  start-up time
    with open(path, encoding="ascii") as file:  # noqa: PTH123  as above
        return tuple(file.read().split())


def beginnings() -> tuple[str, ...]:
    """The paths of the API, cut before their first variable, sorted."""
    return tuple(sorted({path.partition("<")[0] for path in templates()}))


def candidates(word: str) -> list[str]:
    """The completions of ``word``, sorted; with a slash where more can follow."""
    head, slash, last = word.rpartition("/")
    if not slash:
        head, last = "", word
    whole = [part for part in head.split("/") if part]
    asked = list(whole)
    while asked:
        # A format and a selection of sites may stand in front of every path.
        if asked[0] in PREFIXES:
            asked = asked[1:]
        elif asked[0] in SELECTIONS and len(asked) > 1:
            asked = asked[2:]
        else:
            break
    completions: set[str] = set()
    variables: dict[str, bool] = {}
    for template in templates():
        steps = template.strip("/").split("/")
        if len(steps) <= len(asked) or not _fits(steps, asked):
            continue
        step, more = steps[len(asked)], len(steps) > len(asked) + 1
        if step.startswith("<"):
            variables[step] = variables.get(step, False) or more
        elif step.startswith(last):
            completions.add(f"{step}/" if more else step)
    for variable, more in variables.items():
        names = list(_names(asked, variable, last))
        # Lists stay short: the path below a name is offered when it is the only one.
        longer = [f"{name}/" for name in names] if more and len(names) == 1 else []
        completions.update((*names, *longer))
    start = "/".join(["", *whole, ""])
    return sorted(start + rest for rest in completions)


def _fits(steps: list[str], asked: list[str]) -> bool:
    pairs = zip(steps, asked, strict=False)
    return all(step.startswith("<") or step == given for step, given in pairs)


def _names(asked: list[str], variable: str, last: str) -> Iterator[str]:
    """Names that begin with ``last``, as they stand in a path; none without a daemon."""
    question = _question(asked, variable, unquote(last))
    if question is None:
        return
    path, column = question
    try:
        client = Requester(settings([("timeout", _SECONDS), ("quiet", "")]))
        reply = client.api(path)
        rows: Any = json.loads(reply.read()) if reply.good else []
    except (ClientError, ValueError):
        return
    for row in rows if isinstance(rows, list) else ():
        name = quote(str(row.get(column, "")), safe="@")
        # As it was typed: what is encoded there, or not.
        if name and name.lower().startswith(quote(unquote(last), safe="@").lower()):
            yield name


def _question(asked: list[str], variable: str, last: str) -> tuple[str, str] | None:
    """The path that lists the names at this place, and their column."""
    collection = "/" + "/".join(asked)
    begins = (
        f"[~]=^{segment(_pattern(last))}&limit={_MOST_NAMES}"
        if last
        else f"[ne]=&limit={_MOST_NAMES}"
    )
    if variable == "<command>":
        kind = f"kind={asked[0]}&" if len(asked) > 1 else ""
        return f"/cmd?{kind}columns=name&name{begins}", "name"
    if asked == ["services"]:
        return f"/hosts?columns=name&sort=name&name{begins}", "name"
    if asked[0] == "services" and len(asked) == 2:
        host = segment(unquote(asked[1]))
        return (
            f"/services?columns=description&sort=description&host_name={host}&description{begins}",
            "description",
        )
    if len(asked) == 1 and asked[0] in _NAMED:
        return f"{collection}?columns=name&sort=name&name{begins}", "name"
    column = _COLUMNS.get(collection)
    return (f"{collection}?columns={column}&limit={_MOST_NAMES}", column) if column else None


def _pattern(text: str) -> str:
    return "".join(f"\\{letter}" if letter in ".^$*+?()[]{}|\\" else letter for letter in text)
