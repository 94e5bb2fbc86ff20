"""Which hosts and services a process is about, and what of it a user may see.

A calculation looks at everything. Here its result loses what a reader would not
get from the cores: only the definition and the summary of the whole process are left of that.
Rules: docs/spec/bp.md, "Who sees which node".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve

from monrest.bp.core_rows import HOST, PEER, SERVICE, CoreRows, NodeRows, ObjectName, members
from monrest.bp.model import (
    ROOT,
    ProcessDefinition,
    ProcessNode,
    StoredProcess,
    status_arguments,
    text_at,
)
from monrest.bp.node_functions import matched
from monrest.bp.node_state import PENDING, NodeState
from monrest.bp.statusfilter import searched
from monrest.query.functions import Moment

ObjectPlace: TypeAlias = tuple[str, str, str]
"""A site with a host and a service of it; no service: the host itself."""


def references(definition: ProcessDefinition, live: CoreRows, moment: Moment) -> set[ObjectName]:
    """Give everything that the nodes refer to and that is there.

    ``live`` has what ``add_needs`` adds with members.
    """
    found: set[ObjectName] = set()
    for node in definition.nodes:
        places = places_of(node, live, moment)
        found.update((host, service) for _, host, service in places)
    return found


def places_of(node: ProcessNode, live: CoreRows, moment: Moment) -> set[ObjectPlace]:
    """Give what one node refers to and what is there; ``live`` as for ``references``."""
    name, arguments = node.function.name, node.function.arguments
    found: set[ObjectPlace] = set()
    if name == "status":
        rows = _status(arguments, live)
    elif name == "groupstatus":
        rows = members(live, text_at(arguments, 0).lower(), text_at(arguments, 1))
    elif name == "statusfilter":
        rows = searched(live, arguments, moment)
    else:
        return found
    for some in rows.hosts:
        found.update((row[PEER], row[HOST], "") for row in some)
    for some in rows.services:
        found.update((row[PEER], row[HOST], row[SERVICE]) for row in some)
    return found


def _status(arguments: Sequence[Any], live: CoreRows) -> NodeRows:
    wanted = status_arguments(arguments)
    if wanted.op == "":
        row = live.hosts.get(wanted.host)
        return NodeRows(hosts=() if row is None else ([row],))
    if wanted.op == "=":
        row = live.services.get((wanted.host, wanted.service))
        return NodeRows(services=() if row is None else ([row],))
    return NodeRows(services=[matched(live, wanted)])


NOT_VISIBLE = "not visible"

_HIDDEN = NodeState(status_text=NOT_VISIBLE, short_desc=NOT_VISIBLE)
_OF_CHILDREN = frozenset({"worst", "best", "at_least", "not_more", "equals"})
_OF_OBJECTS = frozenset({"status", "groupstatus", "statusfilter"})
_OF_NOTHING = frozenset({"", "fixed", "random"})


def visible_nodes(
    definition: ProcessDefinition,
    everything: CoreRows,
    theirs: CoreRows,
    services: Collection[ObjectName],
    now: Moment,
) -> frozenset[str]:
    """Give the ids of the nodes that may be seen by a user who gets ``theirs`` of ``everything``.

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
        function = node.function.name
        if node.id in exported or function in _OF_NOTHING:
            seen.add(node.id)
        elif function in _OF_CHILDREN:
            if all(child.id in seen for child in definition.children(node)):
                seen.add(node.id)
        elif function in _OF_OBJECTS:
            places = places_of(node, everything, now)
            if places and places == places_of(node, theirs, now):
                seen.add(node.id)
    return frozenset(seen)


def masked(process: StoredProcess, seen: Collection[str], sites: Collection[str]) -> StoredProcess:
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
        if root.function.name in _OF_CHILDREN and definition.children(root):
            # The state is one of many, and not that of what the root looks at.
            before = process.result.node(ROOT)
            shown = _HIDDEN._replace(
                status=before.status, last_state_change=before.last_state_change
            )
            result = evolve(result, nodes={**states, ROOT: shown})
        else:
            result = evolve(result, status=PENDING, last_state_change=0)
    return evolve(process, result=result)
