"""How wide the columns of a table are on paper, and which of them stand together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from monrest.reports.sheet import Grid

_LEAST = 72.0
"""Points that a column of texts needs before it is moved to a table of its own."""
_LEAD = 0.4
"""Part of the width that the leading columns may take away from all others."""


def pieces(
    grid: Grid, needed: Sequence[float], room: float
) -> Iterator[tuple[Grid, tuple[int, ...]]]:
    """The table as tables that fit, each with the leading columns; and which columns they have."""
    least = [
        min(wide, _LEAST) if head.kind == "text" else min(wide, room)
        for head, wide in zip(grid.heads, needed, strict=True)
    ]
    if sum(least) <= room:
        yield grid, tuple(range(len(least)))
        return
    lead = tuple(range(min(grid.lead, len(least))))
    free = room - min(sum(needed[at] for at in lead), room * _LEAD)
    groups: list[list[int]] = [[]]
    used = 0.0
    for at in range(len(lead), len(least)):
        if groups[-1] and used + least[at] > free:
            groups.append([])
            used = 0.0
        groups[-1].append(at)
        used += least[at]
    for number, group in enumerate(groups, 1):
        columns = (*lead, *group)
        yield (
            evolve(
                grid,
                title=f"{grid.title} ({number}/{len(groups)})",
                heads=tuple(grid.heads[at] for at in columns),
                rows=[tuple(row[at] for at in columns) for row in grid.rows],
            ),
            columns,
        )


def widths(grid: Grid, needed: Sequence[float], room: float) -> list[float]:
    """What has a fixed length gets what it needs, the rest is shared by texts.

    Texts get what they need, and where that is too much each its share.
    """
    fixed = sum(wide for head, wide in zip(grid.heads, needed, strict=True) if head.kind != "text")
    texts = [at for at, head in enumerate(grid.heads) if head.kind == "text"]
    left, open_ = max(room - fixed, room / 4), list(texts)
    given: dict[int, float] = {}
    while open_:
        weight = sum(grid.heads[at].weight for at in open_)
        small = [at for at in open_ if needed[at] <= left * grid.heads[at].weight / weight]
        if not small:
            given |= {at: left * grid.heads[at].weight / weight for at in open_}
            break
        for at in small:
            given[at] = needed[at]
            left -= needed[at]
        open_ = [at for at in open_ if at not in small]
    found = [given.get(at, wide) for at, wide in enumerate(needed)]
    whole = sum(found)
    if texts and whole < room:
        # The rest goes to the last text, which is the longest where there is one.
        found[texts[-1]] += room - whole
        whole = room
    return [wide * room / whole for wide in found] if whole > room else found
