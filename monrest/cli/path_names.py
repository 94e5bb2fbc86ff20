"""Completions of a path of the API: its own words, and names from the daemon.

Rules: docs/spec/cli.md, "Completion".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from monrest.cli.client_settings import settings
from monrest.cli.hints import PREFIXES, SELECTIONS
from monrest.cli.requester import Requester
from monrest.client.client_problems import ClientError
from monrest.client.exchange import segment

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
    """What may stand in the place of ``word``, sorted; where more can follow, with a slash."""
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
        # Lists stay short: what goes on behind a name is offered when it is the only one.
        goes_on = [f"{name}/" for name in names] if more and len(names) == 1 else []
        completions.update((*names, *goes_on))
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
