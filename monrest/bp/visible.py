"""Which hosts and services a process is about, and what of it somebody may see.

A calculation looks at everything, whoever may see it. Here its result loses what a reader would not
get from the cores: only the definition and the summary of the whole process are left of that.
Rules: docs/spec/bp.md, "Who sees which node".
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from typing import TypeAlias

from attrs import evolve

from monrest.base.values import Row
from monrest.bp.core_rows import HOST, PEER, SERVICE, Live
from monrest.bp.model import ROOT, Definition, Node, matching_of, text_at
from monrest.bp.node_functions import matched
from monrest.bp.node_state import PENDING, NodeState
from monrest.bp.statusfilter import Moment, test_of
from monrest.bp.store import Stored

Key: TypeAlias = tuple[str, str]
"""A host and a service; no service: the host itself."""

Place: TypeAlias = tuple[str, str, str]
"""A site with a host and a service of it; no service: the host itself."""

_SLICE = 500


def references(
    definition: Definition, live: Live, moment: Moment
) -> Generator[None, None, set[Key]]:
    """Give everything that the nodes refer to and that is there.

    ``live`` has what ``add_needs`` adds with members.
    """
    found: set[Key] = set()
    for node in definition.nodes:
        yield
        places = yield from places_of(node, live, moment)
        found.update((host, service) for _, host, service in places)
    return found


def places_of(node: Node, live: Live, moment: Moment) -> Generator[None, None, set[Place]]:
    """Give what one node refers to and what is there; ``live`` as for ``references``."""
    found: set[Place] = set()
    if node.function.name == "status":
        host = not text_at(node.function.arguments, 1)
        found.update(_place(row, host=host) for row in _status(node, live))
    elif node.function.name == "groupstatus":
        yield from _group(node, live, found)
    elif node.function.name == "statusfilter":
        yield from _searches(node, live, moment, found)
    return found


def _status(node: Node, live: Live) -> list[Row]:
    host, service, op = (text_at(node.function.arguments, at) for at in range(3))
    op, pattern, _ = matching_of(service, op) if service else ("", "", False)
    if service and op != "=":
        return matched(live.by_host.get(host, ()), op, pattern)
    row = live.services.get((host, service)) if service else live.hosts.get(host)
    return [] if row is None else [row]


def _group(node: Node, live: Live, found: set[Place]) -> Generator[None]:
    kind, name = (text_at(node.function.arguments, at) for at in range(2))
    of_hosts = kind.lower() == "hostgroup"
    at = live.service_index.get("host_groups" if of_hosts else "groups")
    for count, row in enumerate(live.services.values() if at is not None else ()):
        if count % _SLICE == _SLICE - 1:
            yield
        if at is not None and isinstance(row[at], list) and name in row[at]:
            found.add(_place(row))
    at = live.host_index.get("groups") if of_hosts else None
    for row in live.hosts.values() if at is not None else ():
        if at is not None and isinstance(row[at], list) and name in row[at]:
            found.add(_place(row, host=True))


def _searches(node: Node, live: Live, moment: Moment, found: set[Place]) -> Generator[None]:
    kind, searches = node.function.arguments[1], node.function.arguments[2]
    searches = [searches] if isinstance(searches, dict) else searches
    if kind != "services":
        test = test_of(searches, live.host_index, moment, hosts=True)
        for count, row in enumerate(live.hosts.values()):
            if count % _SLICE == _SLICE - 1:
                yield
            if test(row):
                found.add(_place(row, host=True))
    if kind != "hosts":
        test = test_of(searches, live.service_index, moment, hosts=False)
        for count, row in enumerate(live.services.values()):
            if count % _SLICE == _SLICE - 1:
                yield
            if test(row):
                found.add(_place(row))


def _place(row: Row, *, host: bool = False) -> Place:
    return row[PEER], row[HOST], "" if host else row[SERVICE]


NOT_VISIBLE = "not visible"

_HIDDEN = NodeState(status_text=NOT_VISIBLE, short_desc=NOT_VISIBLE)
_OF_CHILDREN = frozenset({"worst", "best", "at_least", "not_more", "equals"})
_OF_OBJECTS = frozenset({"status", "groupstatus", "statusfilter"})
_OF_NOTHING = frozenset({"", "fixed", "random"})


def visible_nodes(
    definition: Definition, everything: Live, theirs: Live, services: Collection[Key], now: Moment
) -> Generator[None, None, frozenset[str]]:
    """Give the ids of the nodes that may be seen by who gets ``theirs`` of ``everything``.

    Both have what ``add_needs`` adds with members. ``services`` are the host and description of
    those of this process that they see in the cores.
    """
    seen: set[str] = set()
    exported = {
        node.id
        for node in definition.exported
        if (definition.host_of(node), node.label) in services
    }
    for node in definition.order:
        yield
        function = node.function.name
        if node.id in exported or function in _OF_NOTHING:
            seen.add(node.id)
        elif function in _OF_CHILDREN:
            if all(child.id in seen for child in definition.children(node)):
                seen.add(node.id)
        elif function in _OF_OBJECTS:
            places = yield from places_of(node, everything, now)
            if places and places == (yield from places_of(node, theirs, now)):
                seen.add(node.id)
    return frozenset(seen)


def masked(process: Stored, seen: Collection[str], sites: Collection[str]) -> Stored:
    """Give a process without what is said of nodes that are not ``seen`` and of other ``sites``."""
    result, definition = process.result, process.definition
    states: Mapping[str, NodeState] = {
        node.id: result.node(node.id) if node.id in seen else _HIDDEN for node in definition.nodes
    }
    peers = result.affected_peers
    result = evolve(
        result,
        nodes=states,
        affected_peers=None if peers is None else tuple(one for one in peers if one in sites),
        bp_backend=result.bp_backend if result.bp_backend in sites else None,
    )
    root = definition.by_id.get(ROOT)
    if root is not None and ROOT not in seen:
        result = evolve(result, status_text=NOT_VISIBLE)
        if _summarises(definition, root):
            before = process.result.node(ROOT)
            shown = _HIDDEN._replace(
                status=before.status, last_state_change=before.last_state_change
            )
            result = evolve(result, nodes={**states, ROOT: shown})
        else:
            result = evolve(result, status=PENDING, last_state_change=0)
    return evolve(process, result=result)


def _summarises(definition: Definition, root: Node) -> bool:
    """Whether the state of a process is one of many, and not that of what its root looks at."""
    return root.function.name in _OF_CHILDREN and bool(definition.children(root))
