"""Which hosts and services a process is about, and what of it a user may see.

A calculation looks at everything. Here its result loses what a reader would not
get from the cores: only the definition and the summary of the whole process are left of that.
Rules: docs/spec/bp.md, "Who sees which node".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve

from monrest.bp.core_rows import CoreRows, ObjectName
from monrest.bp.function import FUNCTIONS
from monrest.bp.model import ROOT, ProcessDefinition, StoredProcess
from monrest.bp.node_state import PENDING, NodeState
from monrest.query.functions import Moment


def references(definition: ProcessDefinition, live: CoreRows, moment: Moment) -> set[ObjectName]:
    """Everything that the nodes refer to and that is there.

    ``live`` has what ``add_needs`` adds with members.
    """
    chosen = [
        node.function.objects.rows(live, moment)
        for node in definition.nodes
        if node.function.objects is not None
    ]
    return {(host, service) for rows in chosen for _, host, service in rows.places()}


NOT_VISIBLE = "not visible"

_HIDDEN = NodeState(status_text=NOT_VISIBLE, short_desc=NOT_VISIBLE)


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
        objects, depends_on = node.function.objects, FUNCTIONS.get(node.function.name, "nothing")
        if node.id in exported or depends_on == "nothing":
            seen.add(node.id)
        elif depends_on == "children":
            if all(child.id in seen for child in definition.children(node)):
                seen.add(node.id)
        elif objects is not None:
            places = objects.rows(everything, now).places()
            if places and places == objects.rows(theirs, now).places():
                seen.add(node.id)
    return frozenset(seen)


def masked(process: StoredProcess, seen: Collection[str], sites: Collection[str]) -> StoredProcess:
    """The process without states of nodes that are not ``seen``, and without other ``sites``."""
    result, definition = process.result, process.definition
    states: Mapping[str, NodeState] = {
        node.id: result.node(node.id) if node.id in seen else _HIDDEN for node in definition.nodes
    }
    peers = result.affected_peers
    result = evolve(
        result,
        nodes=states,
        affected_peers=None if peers is None else tuple(peer for peer in peers if peer in sites),
        bp_backend=result.bp_backend if result.bp_backend in sites else None,
    )
    root = definition.by_id.get(ROOT)
    if root is not None and ROOT not in seen:
        result = evolve(result, status_text=NOT_VISIBLE)
        of_children = FUNCTIONS.get(root.function.name) == "children"
        if of_children and definition.children(root):
            # The state is one of many, and not that of what the root looks at.
            before = process.result.node(ROOT)
            hidden = _HIDDEN._replace(
                status=before.status, last_state_change=before.last_state_change
            )
            result = evolve(result, nodes={**states, ROOT: hidden})
        else:
            result = evolve(result, status=PENDING, last_state_change=0)
    return evolve(process, result=result)
