"""States of nodes: their words, their order, and what a calculation stores of them.

Rules: docs/spec/bp.md, "Functions".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import orjson
from attrs import asdict, field, frozen
from attrs.filters import exclude

OK, WARNING, CRITICAL, UNKNOWN, PENDING = range(5)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN", "PENDING")
"""The words of the states, at their numbers."""

DEFAULT_ORDER = (
    "down",
    "unreachable",
    "unknown",
    "critical",
    "warning",
    "acknowledged_down",
    "acknowledged_unreachable",
    "acknowledged_unknown",
    "acknowledged_critical",
    "acknowledged_warning",
    "downtime_down",
    "downtime_unreachable",
    "downtime_unknown",
    "downtime_critical",
    "downtime_warning",
    "downtime_up",
    "downtime_ok",
    "up",
    "ok",
    "downtime_pending",
    "pending",
)
"""Groups of states, the worst first."""

_LONGEST_LABELS = 150


class NodeState(NamedTuple):
    """The state of a node; tens of thousands of them are made in one run.

    ``last_check`` is 0 for a node that is checked together with its process. ``bp_ref`` is the
    number of the process whose service this node is about, ``bp_ref_peer`` the site it is on.
    """

    status: int = PENDING
    status_text: str = ""
    short_desc: str = ""
    last_check: int = 0
    last_state_change: int = 0
    acknowledged: int = 0
    scheduled_downtime_depth: int = 0
    bp_ref: str | None = None
    bp_ref_peer: str | None = None

    @property
    def condition(self) -> tuple[int, int, int]:
        """The values that parents use: status, acknowledged and in downtime."""
        return self.status, self.acknowledged, self.scheduled_downtime_depth


ChildState: TypeAlias = tuple[str, NodeState]
"""The label of a child, or of a service that a node is about, and the state it counts with."""


def good(items: Sequence[ChildState]) -> int:
    return sum(state.status in (OK, PENDING) for _, state in items)


def worst_group(
    items: Sequence[ChildState], order: Sequence[str], *, best: bool = False
) -> list[ChildState]:
    """The items of the first group that has any; with ``best`` from the other end."""
    groups: dict[str, list[ChildState]] = {}
    for item in items:
        groups.setdefault(_group_of(item[1]), []).append(item)
    for name in reversed(order) if best else order:
        if name in groups:
            return groups[name]
    return []


def _group_of(state: NodeState) -> str:
    word = WORDS[state.status].lower()
    if state.acknowledged and state.status != OK:
        return f"acknowledged_{word}"
    return f"downtime_{word}" if state.scheduled_downtime_depth else word


def listed(labels: Sequence[str]) -> str:
    """Join as ``a``, ``a and b`` or ``a, b and c``, cut when it is long."""
    first, last = ", ".join(labels[:-1]), "".join(labels[-1:])
    text = f"{first} and {last}" if first else last
    if len(text) > _LONGEST_LABELS:
        return text[: _LONGEST_LABELS - 3] + "..."
    return text


def first_line(text: str) -> str:
    """The first line of a status text without performance data."""
    return text.partition("\n")[0].partition("|")[0].strip()


NOT_YET = "not yet checked"


UNCHECKED = NodeState(status_text=NOT_YET)


@frozen(kw_only=True)
class ProcessResult:
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
        """Return the state of a node, also of one that was not checked yet."""
        return self.nodes.get(number, UNCHECKED)

    def summary(self) -> dict[str, Any]:
        record = asdict(self, recurse=False, filter=exclude("nodes"))
        if self.affected_peers is not None:
            record["affected_peers"] = list(self.affected_peers)
        return record


NOTHING = ProcessResult()


def stored(result: ProcessResult) -> bytes:
    return orjson.dumps(
        {
            **result.summary(),
            # Columns are written in half the time of rows, which are no plain tuples.
            "states": [[*result.nodes], *zip(*result.nodes.values(), strict=True)],
        }
    )


def restored(data: bytes | None) -> ProcessResult:
    """Read what ``stored`` made; anything else is the result of a process never calculated."""
    document: dict[str, Any] = orjson.loads(data) if data else {}
    if "states" not in document:
        return NOTHING
    numbers, *columns = document.pop("states")
    peers = document.pop("affected_peers")
    return ProcessResult(
        **document,
        affected_peers=None if peers is None else tuple(peers),
        nodes=dict(zip(numbers, map(NodeState._make, zip(*columns, strict=True)), strict=True)),
    )


def runtime_of(state: NodeState, result: ProcessResult) -> dict[str, Any]:
    """The runtime attributes of a node, as clients see them."""
    checked = state.last_check or (result.last_check if state is not UNCHECKED else 0)
    return {**state._asdict(), "last_check": checked}
