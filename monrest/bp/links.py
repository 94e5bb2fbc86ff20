"""Which process is about which other one, as far as their names tell.

A process links to another when a status node names a service that the other one exports. Works
on stored documents, so that a whole database of them is looked at inside one transaction.

Rules: docs/spec/bp.md, "Links".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from monrest.base.errors import Conflict
from monrest.bp.model import ROOT
from monrest.bp.syntax import matching_of, text_at

Document: TypeAlias = Mapping[str, Any]


def check_links(number: int, documents: Mapping[int, Document]) -> None:
    """Raise Conflict naming the cycle that process ``number`` is part of, if there is one."""
    exports = _exports(documents)
    came: dict[int, int] = {}
    waiting = [number]
    while waiting:
        current = waiting.pop()
        for following in _links(documents[current], exports):
            if following == number:
                raise Conflict(
                    "linked business processes form a cycle",
                    _path(documents, came, number, current),
                )
            if following not in came:
                came[following] = current
                waiting.append(following)


def _path(documents: Mapping[int, Document], came: Mapping[int, int], first: int, last: int) -> str:
    path = [first, last] if last != first else [first]
    while path[-1] != first:
        path.append(came[path[-1]])
    if last == first:
        path.append(first)
    names = " -> ".join(f"{documents[one]['name']} ({one})" for one in reversed(path))
    return f"nodes: expected no link back to itself, got {names}"


def _exports(documents: Mapping[int, Document]) -> dict[str, dict[str, int]]:
    """Give host to service to the number of the process that exports it."""
    found: dict[str, dict[str, int]] = {}
    for number, document in documents.items():
        for node in document.get("nodes") or ():
            if node.get("create_obj") or node.get("id") == ROOT:
                host = node.get("host_name") or document["name"]
                found.setdefault(host, {}).setdefault(node["label"], number)
    return found


def _links(document: Document, exports: Mapping[str, Mapping[str, int]]) -> Iterator[int]:
    for node in document.get("nodes") or ():
        if node.get("function") != "status":
            continue
        arguments = node.get("function_args") or ()
        host, service, op = (text_at(arguments, at) for at in range(3))
        theirs = exports.get(host)
        if not theirs or not service:
            continue
        if matching_of(service, op)[0] != "=":
            yield from sorted(set(theirs.values()))
        elif service in theirs:
            yield theirs[service]
