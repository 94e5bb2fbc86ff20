"""Answers about log lines, made batch by batch while the lines come (docs/spec/logs.md).

A month of log does not fit into memory. So the lines of each site come in batches in the order of
time, and of each batch only what the answer needs is kept: groups, the first rows of an order, or
all rows, in a store that has room for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias

from attrs import define, evolve, field, frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Document, Row, Rows, RowSource
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound, BoundSort
from monrest.query.column_names import CoreSource
from monrest.query.flow import SitePart
from monrest.query.limit import Limit
from monrest.query.model import Ref
from monrest.query.plan import Layout
from monrest.query.scalars import by_columns, number_of, text_of
from monrest.query.stages import Stages, cut, textual

FEW = 20_000
"""Rows of an answer that are held in memory as they are."""

MOST_HELD = 100_000
"""Lines that are all held where their order depends on all of them: 100 MB."""

MOST_GROUPS = 200_000
"""Groups of log lines, of all sites together: 200 MB."""

RowRun: TypeAlias = Iterable[Row]
"""Rows in their order, which may be gone through more than once."""


class Store(Protocol):
    """Keeps rows until an answer is written."""

    def keep(self, rows: list[Row]) -> RowRun:
        """Return the same rows again later."""
        ...  # the body of a protocol


@define(eq=False)
class Lines:
    """The answer to one question; ``number`` is of how many sites, ``store`` makes room for rows.

    Four manners: groups of an aggregation; the ``first`` rows of the wanted order, of which a
    query wants no more than ``FEW``; the ``whole`` log where the order depends on all values
    together; all other rows are ``stored`` in the order of the answer.
    """

    bound: Bound
    shape: Layout
    number: int
    store: Callable[[], Store]
    limit: Limit
    stages: Stages = field(init=False)
    manner: Literal["groups", "first", "whole", "stored"] = field(init=False)
    _held: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        bound = self.bound
        self.stages = Stages(bound, self.shape, self.limit)
        first = self.first
        self.manner = "stored"
        if bound.aggregates:
            self.manner = "groups"
        elif not all(_sorts(bound, key) for key in bound.sort):
            self.manner = "whole"
        elif first is not None and first <= FEW and first * self.number <= MOST_HELD:
            self.manner = "first"

    @property
    def first(self) -> int | None:
        """The number of rows of a site that are enough."""
        query = self.bound.query
        return None if query.limit is None else query.limit + query.offset

    @property
    def merged(self) -> bool:
        """Whether stored rows carry what they are merged by, because no run follows another."""
        return self.number > 1 or bool(self.bound.sort)

    def hold(self, more: int) -> None:
        """Count what has to be held until the end; raise BadRequest when it is too much."""
        self._held += more
        if self.manner == "groups" and self._held > MOST_GROUPS:
            raise BadRequest(
                "too many groups",
                f"columns: log lines have more than {MOST_GROUPS} groups, "
                "choose a shorter time or fewer columns",
            )
        if self.manner == "whole" and self._held > MOST_HELD:
            raise BadRequest(
                "too many log lines to sort",
                f"sort: by what is computed at most {MOST_HELD} log lines are sorted, "
                "choose a shorter time or sort by a column",
            )

    def site(self) -> SiteLines:
        return SiteLines(self, self.store())

    def answer(self, sites: Sequence[SiteLines]) -> Rows | Document:
        """The answer with the lines of these sites, in their order."""
        bound = self.bound
        if self.manner == "groups":
            groups = Groups(bound)
            for site in sites:
                groups.groups_into(site.groups)
            return self.stages.of_groups(groups)
        if self.manner == "stored":
            return self._stored(sites)
        rows = list(chain.from_iterable(site.rows for site in sites))
        if len(sites) > 1:
            rows = by_columns(rows, self.stages.order)
        if bound.sort:
            rows = cut(bound, self.stages.in_wanted_order(rows))
        else:
            rows = rows[slice(*self._page(len(rows)))]
        return self.stages.chosen(rows)

    @property
    def count(self) -> int:
        """The number of lines or groups in memory."""
        return self._held

    def _page(self, count: int) -> tuple[int, int]:
        """From which of so many rows on to before which one goes the answer.

        Where the request has no order the newest lines count first, and are shown at the end.
        """
        query = self.bound.query
        if self.bound.sort:
            end = count if query.limit is None else min(count, query.offset + query.limit)
            return min(query.offset, end), end
        end = max(0, count - query.offset)
        return 0 if query.limit is None else max(0, end - query.limit), end

    def _stored(self, sites: Sequence[SiteLines]) -> Rows:
        answer = self.stages.chosen([])
        start, end = self._page(sum(site.count for site in sites))
        key = _merging(self.bound)

        def again() -> Iterator[Row]:
            # Of a site later lines come later; only an order of the request mixes them.
            runs = [run for site in sites for run in site.runs]
            if not self.merged:
                return islice(chain.from_iterable(runs), start, end)
            if not self.bound.sort:
                runs = [chain.from_iterable(site.runs) for site in sites]
            return (row[:-1] for row in islice(merge(*runs, key=key), start, end))

        rows: list[Row] | RowSource = RowSource(again, end - start)
        if len(rows) <= FEW:
            rows = list(again())
        return evolve(answer, rows=rows)


@define(eq=False)
class SiteLines:
    """The lines of one site that the answer needs, in the order of time."""

    of: Lines
    _store: Store
    groups: Groups = field(init=False)
    rows: list[Row] = field(init=False, factory=list)
    runs: list[RowRun] = field(init=False, factory=list)
    count: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.groups = Groups(self.of.bound)

    def take(self, part: SitePart) -> None:
        """Take the next lines, or what a store of lines has made groups of.

        Raise BadRequest when that is more than is held at once.
        """
        of, stages = self.of, self.of.stages
        before = len(self.groups.groups)
        if part.plan.pushed.stats:
            self.groups.stats_into(part.plan.pushed, part.rows, part.constants)
            of.hold(len(self.groups.groups) - before)
            return
        rows = stages.filtered(part, part.rows)
        if of.manner == "groups":
            self.groups.rows_into(stages.reader, stages.elements(rows))
            of.hold(len(self.groups.groups) - before)
            return
        rows = stages.elements(by_columns(rows, stages.order))
        stages.fill(rows)
        if of.manner == "stored":
            self._keep(rows)
            return
        self.rows += rows
        of.hold(len(rows))
        if of.manner == "first" and of.first is not None and len(self.rows) > of.first:
            if of.bound.sort:
                self.rows = stages.in_wanted_order(self.rows)[: of.first]
            else:
                del self.rows[: -of.first]

    def _keep(self, rows: list[Row]) -> None:
        of = self.of
        keys: list[list[Any]] = []
        if of.merged:
            rows = of.stages.in_wanted_order(rows)
            keys = _keys(of, rows)
        kept = [*of.stages.chosen(rows).rows]
        for row, key in zip(kept, keys, strict=False):
            row.append(key)
        self.count += len(kept)
        if kept:
            self.runs.append(self._store.keep(kept))


def _sorts(bound: Bound, key: BoundSort) -> Literal["text", "number"] | None:
    """The comparison of the values of a sort key; None if it depends on all of them."""
    if textual(bound, key):
        return "text"
    expression = key.expression
    if key.item >= 0 and bound.selected is not None:
        expression = bound.selected[key.item].inner
    if not isinstance(expression, Ref):
        return None
    source = bound.names.find(expression.name)
    if source is None:  # null in every row
        return "number"
    number = isinstance(source, CoreSource) and source.core_type in ("int", "time", "float")
    return "number" if number and not bound.view.masks(source.column.name) else None


def _keys(of: Lines, rows: list[Row]) -> list[list[Any]]:
    """For each row its sort keys and then the default order: pairs of a rank and a value.

    Values of the same rank and place are of the same type, so that any two keys compare.
    """
    keys: list[list[Any]] = [[] for _ in rows]
    for sort in of.bound.sort:
        pair = _PAIRS[_sorts(of.bound, sort) or "text", sort.descending]
        for key, value in zip(keys, of.stages.sort_keys(sort, rows), strict=True):
            key += pair(value)
    for at in of.stages.order:
        for key, row in zip(keys, rows, strict=True):
            key += _number(row[at])
    return keys


def _number(value: Any) -> tuple[int, Any]:
    number = None if value is None else number_of(value)
    if number is None:
        return (0, 0) if value is None else (2, text_of(value))
    return (1, number)


def _number_down(value: Any) -> tuple[int, Any]:
    number = None if value is None else number_of(value)
    if number is None:
        return (1, 0) if value is None else (2, text_of(value))
    return (0, -number)


def _text(value: Any) -> tuple[int, str]:
    return (0, "") if value is None else (1, text_of(value))


def _text_down(value: Any) -> tuple[int, str]:
    return (1, "") if value is None else (0, text_of(value))


_PAIRS: dict[tuple[str, bool], Callable[[Any], tuple[int, Any]]] = {
    ("number", False): _number,
    ("number", True): _number_down,
    ("text", False): _text,
    ("text", True): _text_down,
}


@frozen
class _Backwards:
    """A text that comes before those that are less."""

    text: str

    def __lt__(self, other: _Backwards) -> bool:
        return self.text > other.text


def _merging(bound: Bound) -> Callable[[Row], Any]:
    """The sort key of stored rows: the key at their end, with texts turned around."""
    down = [
        2 * at + 1
        for at, key in enumerate(bound.sort)
        if key.descending and _sorts(bound, key) == "text"
    ]
    if not down:
        return itemgetter(-1)

    def key(row: Row) -> list[Any]:
        values = [*row[-1]]
        for at in down:
            values[at] = _Backwards(values[at])
        return values

    return key
