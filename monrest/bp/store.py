"""Work for one transaction each: what the database is asked about business processes.

Rules: docs/spec/store.md, "Records", and docs/spec/bp.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import evolve, frozen
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from monrest.api.records import RecordLimits
from monrest.base.errors import BadRequest, Conflict
from monrest.bp.function import StatusObjects
from monrest.bp.model import (
    ROOT,
    Calculated,
    ProcessDefinition,
    StoredProcess,
    bp_figures,
    free_name,
    read,
)
from monrest.bp.node_state import UNKNOWN, ProcessResult, restored
from monrest.store.database import transaction

bp_processes, bp_results = StoredProcess.table, Calculated.table

StoredDocument: TypeAlias = Mapping[str, Any]


def check_links(number: int, documents: Mapping[int, StoredDocument]) -> None:
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


def _path(
    documents: Mapping[int, StoredDocument], came: Mapping[int, int], first: int, last: int
) -> str:
    path = [first, last] if last != first else [first]
    while path[-1] != first:
        path.append(came[path[-1]])
    if last == first:
        path.append(first)
    names = " -> ".join(f"{documents[number]['name']} ({number})" for number in reversed(path))
    return f"nodes: expected no link back to itself, got {names}"


def _exports(documents: Mapping[int, StoredDocument]) -> dict[str, dict[str, int]]:
    used: dict[str, dict[str, int]] = {}
    for number, document in documents.items():
        for node in document.get("nodes") or ():
            if node.get("create_obj") or node.get("id") == ROOT:
                host = node.get("host_name") or document["name"]
                used.setdefault(host, {}).setdefault(node["label"], number)
    return used


def _links(document: StoredDocument, exports: Mapping[str, Mapping[str, int]]) -> Iterator[int]:
    for node in document.get("nodes") or ():
        if node.get("function") != "status":
            continue
        wanted = StatusObjects.of(node.get("function_args") or ())
        theirs = exports.get(wanted.host)
        if not theirs or not wanted.op:
            continue
        if wanted.op != "=":
            yield from sorted(set(theirs.values()))
        elif wanted.service in theirs:
            yield theirs[wanted.service]


MOST_NODES = 20_000
"""Nodes of all processes: what a list of them shows."""

LIMITS = RecordLimits(word="business processes", document=bp_processes.c.definition, count=1_000)

DRAFT_SECONDS = 86400
"""How long a draft is kept that is not committed, until the next one is made."""

_BITS = 52
_AT_ONCE = 200
_HIGHEST = 2**31


KnownProcesses: TypeAlias = Mapping[int, StoredProcess]

_SEVERAL = select(
    bp_processes.c.nr, bp_processes.c.draft, bp_processes.c.version, bp_results.c.stamp
).join(bp_results, bp_results.c.nr == bp_processes.c.nr)


@transaction
def several(
    connection: Connection, former: KnownProcesses, number: int | None = None
) -> dict[int, StoredProcess]:
    """Return all processes, or one, by number; what is ``known`` already is not read again."""
    query = _SEVERAL
    if number is not None:
        query = query.where(bp_processes.c.nr == number)
    processes: dict[int, StoredProcess] = {}
    for row in connection.execute(query).all():
        before = former.get(row.nr)
        if before is None or (before.version, before.stamp) != (row.version, row.stamp):
            before = None
        processes[row.nr] = before or evolve(StoredProcess.of(row), stamp=row.stamp)
    _complete(connection, processes, former)
    return processes


def _complete(
    connection: Connection, processes: dict[int, StoredProcess], former: KnownProcesses
) -> None:
    wanted = [nr for nr, process in processes.items() if process is not former.get(nr)]
    for at in range(0, len(wanted), _AT_ONCE):
        some = wanted[at : at + _AT_ONCE]
        query = select(bp_results.c.nr, bp_results.c.data).where(bp_results.c.nr.in_(some))
        for nr, data in connection.execute(query):
            processes[nr] = evolve(processes[nr], result=restored(data))
        changed: list[int] = []
        for nr in some:
            before = former.get(nr)
            if before is not None and before.version == processes[nr].version:
                processes[nr] = evolve(
                    processes[nr], definition=before.definition, broken=before.broken
                )
            else:
                changed.append(nr)
        names = select(bp_processes.c.nr, bp_processes.c.name, bp_processes.c.definition)
        for nr, name, document in connection.execute(names.where(bp_processes.c.nr.in_(changed))):
            processes[nr] = _defined(processes[nr], name, document)


def _defined(stored: StoredProcess, name: str, document: Mapping[str, Any]) -> StoredProcess:
    try:
        return evolve(stored, definition=read(document))
    except BadRequest as error:
        # Stored under other rules: it is there, can be replaced, and says what is wrong.
        broken = error.description
        result = ProcessResult(
            status=UNKNOWN, status_text=f"the definition cannot be used: {broken}"
        )
        return evolve(stored, definition=ProcessDefinition(name=name), result=result, broken=broken)


DefinitionCheck: TypeAlias = Callable[[ProcessDefinition], object]
"""Raises BadRequest for a definition that cannot be used here."""


@transaction
def create(connection: Connection, definition: ProcessDefinition, start: int, now: float) -> int:
    """Store a draft under the first free number from ``start``; drafts of yesterday go.

    Raises Conflict for a cycle of links.
    """
    old = (bp_processes.c.draft) & (bp_processes.c.changed < int(now) - DRAFT_SECONDS)
    connection.execute(delete(bp_processes).where(old))
    documents = _documents(connection)
    number = next(number for number in count(start) if number not in documents)
    document = _valid(number, definition, documents)
    with LIMITS.room(connection, number, None):
        _add(connection, number, document, now, draft=True)
    return number


MadeDocument: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@frozen
class ProcessChange:
    """A change: what was live before (None: it was a draft), and what is live now."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any]


class ProcessOvertakenError(Exception):
    """The definition is not any more what the change was looked at for."""


@transaction
def preview(
    connection: Connection, number: int, document: MadeDocument, check: DefinitionCheck
) -> ProcessChange | None:
    """Return the change that ``change`` would make; None when there is no such process.

    Raises what ``made`` raises, BadRequest for a document that is wrong, Conflict for a cycle.
    """
    documents = _documents(connection)
    if number not in documents:
        return None
    query = select(bp_processes.c.draft).where(bp_processes.c.nr == number)
    draft = connection.execute(query).scalar_one()
    before = documents.pop(number)
    definition = read(document(before))
    check(definition)
    after = _valid(number, definition, documents, len(before.get("nodes") or ()))
    return ProcessChange(None if draft else before, after)


@transaction
def change(
    connection: Connection,
    number: int,
    document: MadeDocument,
    now: float,
    check: DefinitionCheck,
    expected: ProcessChange | None = None,
) -> ProcessChange | None:
    """Store what ``made`` makes of a process, and make it live; None when there is none.

    Raises as ``preview``, and ProcessOvertakenError if it is not what was ``expected``.
    """
    changed = preview(number, document, check)(connection)
    if changed is None:
        return None
    if expected is not None and changed.after != expected.after:
        raise ProcessOvertakenError
    with LIMITS.room(connection, number, None):
        values = _values(changed.after, now, draft=False)
        connection.execute(update(bp_processes).where(bp_processes.c.nr == number).values(**values))
    return changed


@transaction
def remove(connection: Connection, number: int) -> bool:
    """Delete a process with its results; False when there is none."""
    query = delete(bp_processes).where(bp_processes.c.nr == number)
    return connection.execute(query).rowcount > 0


@transaction
def adopt(
    connection: Connection, number: int, definition: ProcessDefinition, now: float, *, draft: bool
) -> str | None:
    """Store a process of another installation; returns its name, None when the number is taken.

    Raises Conflict for a cycle of links.
    """
    documents = _documents(connection)
    if number in documents:
        return None
    document = _valid(number, definition, documents)
    _add(connection, number, document, now, draft=draft)
    return str(document["name"])


def _documents(connection: Connection) -> dict[int, Mapping[str, Any]]:
    query = select(bp_processes.c.nr, bp_processes.c.definition)
    return {row.nr: row.definition for row in connection.execute(query)}


def _valid(
    number: int,
    definition: ProcessDefinition,
    others: Mapping[int, Mapping[str, Any]],
    nodes: int = 0,
) -> Mapping[str, Any]:
    """Return the document of a definition beside all others: its name is its own, no link a cycle.

    It had so many ``nodes`` before. Conflict for too many of all processes.
    """
    count = sum(len(other.get("nodes") or ()) for other in others.values()) + len(definition.nodes)
    if count > MOST_NODES and len(definition.nodes) > nodes:
        raise Conflict(
            "too many nodes",
            f"expected at most {MOST_NODES} of all business processes, got {count}",
        )
    name = free_name(definition.name, frozenset(other["name"] for other in others.values()))
    document = evolve(definition, name=name).document()
    check_links(number, {**others, number: document})
    return document


def _add(
    connection: Connection, number: int, document: Mapping[str, Any], now: float, *, draft: bool
) -> None:
    values = _values(document, now, draft=draft)
    connection.execute(insert(bp_processes).values(nr=number, **values))
    connection.execute(insert(bp_results).values(nr=number, stamp=0))


def _values(document: Mapping[str, Any], now: float, *, draft: bool) -> dict[str, Any]:
    return {
        "name": document["name"],
        "draft": draft,
        "definition": document,
        "version": secrets.randbits(_BITS),
        "changed": int(now),
    }


_STORE = (
    update(bp_results)
    .where(
        bp_results.c.nr == bindparam("number"),
        select(bp_processes.c.nr)
        .where(bp_processes.c.nr == bp_results.c.nr, bp_processes.c.version == bindparam("of"))
        .exists(),
    )
    .values(stamp=bindparam("new_stamp"), data=bindparam("new_data"))
)


def new_stamp() -> int:
    return secrets.randbits(_BITS) or 1


@transaction
def store(
    connection: Connection,
    results: Sequence[Calculated],
    stamp: int,
    figures: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Store results, except for processes that were changed or removed meanwhile."""
    rows = [
        {"number": result.nr, "of": result.version, "new_stamp": stamp, "new_data": result.data}
        for result in results
    ]
    if rows:
        connection.execute(_STORE, rows)
    for name, value in figures.items():
        query = update(bp_figures).where(bp_figures.c.name == name).values(value=value)
        if connection.execute(query).rowcount == 0:
            connection.execute(insert(bp_figures).values(name=name, value=value))


def figures(connection: Connection) -> dict[str, float]:
    query = select(bp_processes.c.nr).where(bp_processes.c.draft.is_(False))
    figures = {row.name: row.value for row in connection.execute(select(bp_figures))}
    return {**figures, "business_process_total": len(connection.execute(query).all())}


def number_of(text: str) -> int | None:
    """Read the number of a process in a path; None for what is none."""
    if text.isascii() and text.isdigit() and len(text) <= 10 and 0 < int(text) < _HIGHEST:
        return int(text)
    return None
