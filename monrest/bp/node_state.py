"""States of nodes: their words, their order, and what a calculation stores of them.

Rules: docs/spec/bp.md, "Functions" and "Record".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import orjson
from attrs import field, frozen

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

    def same_state(self, other: NodeState) -> bool:
        """Whether nothing has changed that parents look at."""
        return (
            self.status == other.status
            and self.acknowledged == other.acknowledged
            and self.scheduled_downtime_depth == other.scheduled_downtime_depth
        )


ChildState: TypeAlias = tuple[str, NodeState]
"""The label of a child, or of a service that a node is about, and the state it counts with."""

_GROUPS = tuple(
    tuple(
        f"acknowledged_{word.lower()}"
        if acknowledged and word != "OK"
        else ("downtime_" if downtime else "") + word.lower()
        for acknowledged in (False, True)
        for downtime in (False, True)
    )
    for word in WORDS
)


def good(items: Sequence[ChildState]) -> int:
    """How many items count as available."""
    states = [state[0] for _, state in items]
    return states.count(OK) + states.count(PENDING)


def worst_group(
    items: Sequence[ChildState], order: Sequence[str], *, best: bool = False
) -> list[ChildState]:
    """Give the items of the first group that has any; with ``best`` from the other end."""
    kinds = [(state[0], state[5], state[6]) for _, state in items]
    present = set(kinds)
    if len(present) == 1:
        # As it is nearly always: all of them are well.
        status, acknowledged, downtime = kinds[0]
        return [*items] if _GROUPS[status][2 * acknowledged + downtime] in order else []
    groups: dict[str, set[tuple[int, int, int]]] = {}
    for kind in present:
        status, acknowledged, downtime = kind
        groups.setdefault(_GROUPS[status][2 * acknowledged + downtime], set()).add(kind)
    for name in reversed(order) if best else order:
        if name in groups:
            wanted = groups[name]
            return [one for one, kind in zip(items, kinds, strict=True) if kind in wanted]
    return []


def listed(labels: Sequence[str]) -> str:
    """Give ``a``, ``a and b`` or ``a, b and c``, cut when it is long."""
    first, last = ", ".join(labels[:-1]), "".join(labels[-1:])
    text = f"{first} and {last}" if first else last
    if len(text) > _LONGEST_LABELS:
        return text[: _LONGEST_LABELS - 3] + "..."
    return text


def first_line(text: str) -> str:
    """Give the first line of a status text without performance data."""
    return _known_line(text) if len(text) <= _SHORT else _line(text)


def _line(text: str) -> str:
    return text.partition("\n")[0].partition("|")[0].strip()


_known_line = lru_cache(maxsize=32768)(_line)
_SHORT = 300
"""Characters of texts whose first line is kept: nearly all, and no megabytes."""


def counts(items: Sequence[ChildState]) -> list[int]:
    """How many items are in each state."""
    found = [0] * len(WORDS)
    for _, state in items:
        found[state[0]] += 1
    return found


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
        """Give the state of a node, also of one that was not checked yet."""
        return self.nodes.get(number, UNCHECKED)

    def summary(self) -> dict[str, Any]:
        """All of it but the nodes."""
        peers = None if self.affected_peers is None else list(self.affected_peers)
        return {**{name: getattr(self, name) for name in _GENERAL}, "affected_peers": peers}


NOTHING = ProcessResult()


_GENERAL = ("status", "status_text", "last_check", "last_state_change", "time", "bp_backend")


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
    numbers, *columns = document["states"]
    peers = document["affected_peers"]
    return ProcessResult(
        **{name: document[name] for name in _GENERAL},
        affected_peers=None if peers is None else tuple(peers),
        nodes=dict(zip(numbers, map(NodeState._make, zip(*columns, strict=True)), strict=True)),
    )


def runtime_of(state: NodeState, result: ProcessResult) -> dict[str, Any]:
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
