"""All that is not OK below a node, as indented lines (add_recursive_output_filter)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from monrest.bp.model import ROOT, Definition
from monrest.bp.results import UNCHECKED
from monrest.bp.states import OK, WORDS, NodeState, first_line

_INDENT = "\u2002" * 3
_DEEPEST = 20
_MOST_LINES = 500
_CIRCULAR = "[CIRCULAR DEPENDENCY]"


@frozen
class Known:
    """Processes by their number, with the states of their nodes."""

    all: Mapping[str, tuple[Definition, Mapping[str, NodeState]]] = field(factory=dict)


def tree(known: Known, number: str, node: str) -> str:
    """Give the nodes below ``node`` of a process that are not OK, following linked processes."""
    lines: list[str] = []
    for line in _below(known, number, node, 0, ((number, node),)):
        if len(lines) >= _MOST_LINES:
            lines.append("...")
            break
        lines.append(line)
    return "\n".join(lines)


def _below(
    known: Known, number: str, node: str, depth: int, path: tuple[tuple[str, str], ...]
) -> Iterator[str]:
    if depth >= _DEEPEST or number not in known.all:
        return
    definition, states = known.all[number]
    if node not in definition.by_id:
        return
    for child in definition.children(definition.by_id[node]):
        state = states.get(child.id, UNCHECKED)
        if state.status == OK:
            continue
        line = f"{_INDENT * depth}- [{child.label}] {WORDS[state.status]} - "
        line += first_line(state.status_text)
        here = (number, child.id) if state.bp_ref is None else (state.bp_ref, ROOT)
        if here in path:
            yield f"{line} {_CIRCULAR}"
            continue
        yield line
        yield from _below(known, *here, depth + 1, (*path, here))
