"""What of a process somebody may see (docs/spec/bp.md, "Who sees which node").

A calculation looks at everything, whoever may see it. Here its result loses what a reader would not
get from the cores: only the definition and the summary of the whole process are left of that.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping

from attrs import evolve

from monrest.bp.live import Live
from monrest.bp.model import ROOT, Definition, Node
from monrest.bp.references import Key, places_of
from monrest.bp.search import Moment
from monrest.bp.states import PENDING, NodeState
from monrest.bp.store import Stored

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
