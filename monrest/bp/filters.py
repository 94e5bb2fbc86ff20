"""Filters of nodes: what counts as OK although it is not (docs/spec/bp.md, "Filters")."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

DOWNTIME = "downtime_filter"
ACKNOWLEDGED = "acknowledged_filter"
UNKNOWN = "unknown_filter"
OUTPUT = "add_recursive_output_filter"
BUILT_IN = (DOWNTIME, ACKNOWLEDGED, UNKNOWN, OUTPUT)
"""The filters that are there without a file of one's own."""

_STATE_UNKNOWN = 3


@frozen
class Filters:
    """The active filters of a node; ``others`` are those of one's own, in the order to run."""

    downtime: bool = False
    acknowledged: bool = False
    unknown: bool = False
    recursive_output: bool = False
    others: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Whether any filter looks at rows, which then must be there."""
        return self.downtime or self.acknowledged or self.unknown or bool(self.others)

    @property
    def listening(self) -> bool:
        """Whether any filter has to be called before or after the function."""
        return self.recursive_output or bool(self.others)

    def state(self, state: int, acknowledged: int, downtime: int) -> int:
        """Give the state that a host, a service or a child counts with."""
        if (
            (self.downtime and downtime)
            or (self.acknowledged and acknowledged)
            or (self.unknown and state == _STATE_UNKNOWN)
        ):
            return 0
        return state


NONE = Filters()


def filters_of(general: Iterable[str], own: Iterable[str]) -> Filters:
    """Give the filters of a node: the global ones, then its own, each in the order of names."""
    names = dict.fromkeys([*sorted(set(general)), *sorted(set(own))])
    if not names:
        return NONE
    return Filters(
        downtime=DOWNTIME in names,
        acknowledged=ACKNOWLEDGED in names,
        unknown=UNKNOWN in names,
        recursive_output=OUTPUT in names,
        others=tuple(name for name in names if name not in BUILT_IN),
    )
