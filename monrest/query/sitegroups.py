"""Groups of several sites as one row each (docs/spec/query.md, "Groups of several sites").

Host and service groups of the same name on several sites are one group to an operator: members
joined, counters added, the worst state taken, everything else from the first site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monrest.base.values import Row
from monrest.query.plan import Layout
from monrest.query.steps import Steps

_TURN = 100

_PEERS = ("peer_key", "peer_name", "peer_section")


def merge_groups(
    sites: Sequence[tuple[list[Row], Mapping[str, Any]]], shape: Layout
) -> Steps[list[Row]]:
    """Rows of all sites merged by name; the constants of the sites become lists."""
    names = [name for name, _ in shape.columns]
    by_name = names.index("name")
    width = len(names)
    merged: dict[Any, Row] = {}
    for rows, constants in sites:
        own = [constants[name] for name in shape.constants]
        for at_row, row in enumerate(rows):
            if at_row % _TURN == 0:
                yield
            present = merged.get(row[by_name])
            if present is None:
                merged[row[by_name]] = row + [
                    [one] if name in _PEERS else one
                    for name, one in zip(shape.constants, own, strict=True)
                ]
                continue
            for at, name in enumerate(names):
                present[at] = _joined(name, present[at], row[at])
            for offset, name in enumerate(shape.constants):
                if name in _PEERS:
                    present[width + offset] = [*present[width + offset], own[offset]]
    return list(merged.values())


def _joined(name: str, first: Any, second: Any) -> Any:
    if name.startswith("num_"):
        return first + second
    if name.startswith("worst_"):
        return max(first, second)
    if name in ("members", "members_with_state"):
        return [*first, *second]
    return first
