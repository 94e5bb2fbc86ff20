"""What a calculation found: the states of all nodes and of the process (docs/spec/bp.md, "Record").

A result is stored as one JSON text; what a node took over from the process is left out there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from attrs import field, frozen

from monrest.bp.states import PENDING, NodeState

NOT_YET = "not yet checked"


UNCHECKED = NodeState(status_text=NOT_YET)


@frozen(kw_only=True)
class Result:
    """The outcome for a process; ``time`` is how many seconds the calculation took."""

    status: int = PENDING
    status_text: str = NOT_YET
    last_check: int = 0
    last_state_change: int = 0
    time: float = 0.0
    affected_peers: tuple[str, ...] | None = None
    bp_backend: str | None = None
    nodes: Mapping[str, NodeState] = field(factory=dict)

    def node(self, number: str) -> NodeState:
        """Give the state of a node, also of one that was not checked yet."""
        return self.nodes.get(number, UNCHECKED)


NOTHING = Result()


_GENERAL = ("status", "status_text", "last_check", "last_state_change", "time", "bp_backend")


def stored(result: Result) -> bytes:
    """Give a result as it is stored."""
    return orjson.dumps(
        {
            **{name: getattr(result, name) for name in _GENERAL},
            "affected_peers": result.affected_peers,
            # Columns are written in half the time of rows, which are no plain tuples.
            "states": [[*result.nodes], *zip(*result.nodes.values(), strict=True)],
        }
    )


def restored(data: bytes | None) -> Result:
    """Read what ``stored`` made; anything else is the result of a process never calculated."""
    document: dict[str, Any] = orjson.loads(data) if data else {}
    if "states" not in document:
        return NOTHING
    numbers, *columns = document["states"]
    peers = document["affected_peers"]
    return Result(
        **{name: document[name] for name in _GENERAL},
        affected_peers=None if peers is None else tuple(peers),
        nodes=dict(zip(numbers, map(NodeState._make, zip(*columns, strict=True)), strict=True)),
    )


def shown(state: NodeState, result: Result) -> dict[str, Any]:
    """Give the runtime attributes of a node."""
    return {
        "status": state.status,
        "status_text": state.status_text,
        "short_desc": state.short_desc,
        "last_check": state.last_check or (result.last_check if state is not UNCHECKED else 0),
        "last_state_change": state.last_state_change,
        "acknowledged": state.acknowledged,
        "scheduled_downtime_depth": state.scheduled_downtime_depth,
        "bp_ref": state.bp_ref,
        "bp_ref_peer": state.bp_ref_peer,
    }
