"""Planning: what each core is asked for a bound query, and what is left for us.

``plan`` is a function of the bound query and the capabilities of one core, so two sites with
different cores get different queries whose answers are finished together. Rows go up in a
common layout; aggregations that a core can do come back as partial results (Stats).
Rules: docs/spec/query.md, "Push-down".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from monrest.base.values import Capabilities
from monrest.query.bind import Bound, Selected
from monrest.query.column_names import (
    CONSTANTS,
    PEER_COLUMNS,
    CoreColumn,
    CoreSource,
    CoreType,
    SiteSource,
    TableSchema,
    core_word,
)
from monrest.query.model import CoreFilter, Expression, Pushed, Ref, Stat, Test, columns_of
from monrest.query.pushdown import both, push_all, push_log_times
from monrest.query.sendable import Use, uses

_DAY = 86400


@frozen(kw_only=True, cache_hash=True)
class Layout:
    """The core columns that rows carry, in order, with their types; constants come behind them.

    ``index`` maps names, constants included, to positions; ``width`` counts the values of a row
    before anything is computed.
    """

    columns: tuple[tuple[str, CoreType], ...]
    constants: tuple[str, ...]
    width: int = field(init=False, eq=False, repr=False)
    index: Mapping[str, int] = field(init=False, eq=False, repr=False)

    @width.default
    def _count(self) -> int:
        return len(self.columns) + len(self.constants)

    @index.default
    def _positions(self) -> Mapping[str, int]:
        names = [name for name, _ in self.columns] + list(self.constants)
        return {name: position for position, name in enumerate(names)}


@frozen(kw_only=True)
class SitePlan:
    """The query to one core.

    ``filtered``: its rows need no filter here any more. ``sorted``: they come in the order of the
    query, ties in the default order.
    """

    pushed: Pushed
    filtered: bool = False
    sorted: bool = False


def layout(bound: Bound, cores: Sequence[Capabilities]) -> Layout:
    """The columns that the rows of this query carry.

    Without a column list these are the defaults that at least one of ``cores`` has (all of them
    while none is known).
    """
    wanted: dict[str, CoreType] = {}
    constants = {name: None for name in bound.needed if name in CONSTANTS}
    if bound.selected is None:
        whole = _default_layout(bound, cores)
        if all(name in whole.index for name in bound.needed):
            return whole
        wanted.update(whole.columns)
        constants = dict.fromkeys([*whole.constants, *constants])
    for name in bound.needed:
        if name not in constants:
            wanted.setdefault(name, core_type(bound, name))
    if not wanted:
        name = _any_column(bound.names.schema)
        wanted[name] = core_type(bound, name)
    return Layout(columns=tuple(wanted.items()), constants=tuple(constants))


def _any_column(schema: TableSchema) -> str:
    """A column that every core has: a request without any would answer with all of them."""
    if schema.order:
        return schema.order[0]
    return next(name for name, spec in schema.columns.items() if isinstance(spec, CoreColumn))


def _default_layout(bound: Bound, cores: Sequence[Capabilities]) -> Layout:
    """The core columns of the default columns, made once for each collection and set of cores."""
    key = ("layout", tuple(core.key for core in cores))
    layout: Layout | None = bound.names.kept.get(key)
    if layout is not None:
        return layout
    schema = bound.names.schema
    wanted: dict[str, CoreType] = {}
    constants = dict.fromkeys(PEER_COLUMNS)
    for name, spec in sorted(schema.columns.items()):
        if not spec.default:
            continue
        if isinstance(spec, CoreColumn):
            if offered(schema.table, name, cores):
                wanted[name] = spec.core_type
            continue
        for source in spec.sources:
            if source in CONSTANTS:
                constants[source] = None
            else:
                wanted.setdefault(source, core_type(bound, source))
    for name in schema.order:
        wanted.setdefault(name, core_type(bound, name))
    columns = tuple(pair for pair in wanted.items() if pair[0] not in constants)
    layout = Layout(columns=columns, constants=tuple(constants))
    bound.names.keep(key, layout)
    return layout


def offered(table: str, column: str, cores: Sequence[Capabilities]) -> bool:
    """Whether a default column is worth showing: some selected core has it, or none is known."""
    return not cores or any(core.has(table, column) for core in cores)


def core_type(bound: Bound, name: str) -> CoreType:
    """The core type of a column by its declaration, else by what the cores say."""
    source = bound.names.find(name)
    if isinstance(source, CoreSource):
        return source.core_type
    # A derived column may carry the name of the core column that it is computed from.
    return core_word(bound.names.core_columns.get(name, "string"))


def plan(
    bound: Bound,
    shape: Layout,
    capabilities: Capabilities,
    *,
    forced: CoreFilter | None = None,
    single: bool = True,
    push_down: bool = True,
) -> SitePlan | None:
    """The query for one core, or None when the core has nothing of this collection.

    ``forced`` is the visibility filter, which is always sent. ``single``: this is the only site,
    so that rules on merged rows may be left to it. ``push_down`` False leaves everything except
    ``forced`` to us; tests compare both ways.
    """
    schema = bound.names.schema
    has = capabilities.tables.get(schema.table, {})
    columns = tuple(name for name, _ in shape.columns if name in has)
    if not columns:
        return None
    if not push_down:
        since = Test("time", ">=", "0") if schema.merge == "logs" else None
        wanted = both(forced, since)
        return SitePlan(pushed=Pushed(table=schema.table, columns=columns, filter=wanted))
    merged = schema.merge == "groups" and not single
    part = push_all(() if merged else bound.row_filter, schema.table, capabilities, bound.view)
    exact = part.exact and not (merged and bound.row_filter)
    wanted = both(forced, part.filter)
    if schema.merge == "logs":
        pushed = Pushed(table=schema.table, columns=columns, filter=wanted, waits_long=True)
        return _log_plan(bound, pushed, capabilities)
    if bound.aggregates:
        stats = stats_of(bound, capabilities) if exact and not merged else None
        groups, counters = stats or (columns, ())
        pushed = Pushed(table=schema.table, columns=groups, filter=wanted, stats=counters)
        return SitePlan(pushed=pushed, filtered=exact)
    keys = sort_keys(bound, capabilities) if capabilities.sorts and not merged else None
    query, limit = bound.query, None
    rows_are_items = not (bound.unpack or bound.element_filter)
    if query.limit is not None and exact and keys is not None and rows_are_items:
        # The first rows of a core that filters and sorts as wanted are enough.
        limit = query.limit + query.offset
    pushed = Pushed(
        table=schema.table,
        columns=columns,
        filter=wanted,
        sort=() if keys is None or _sorted_already(keys, schema, capabilities, wanted) else keys,
        own_keys=len(set(map(str, _sorted_by(bound)))) if keys else 0,
        limit=limit,
    )
    return SitePlan(pushed=pushed, filtered=exact, sorted=keys is not None)


def _sorted_already(
    keys: tuple[tuple[str, bool], ...],
    schema: TableSchema,
    capabilities: Capabilities,
    wanted: CoreFilter | None,
) -> bool:
    """Whether the core returns its rows in this order without ``Sort``.

    A filter by a name or a group makes a Naemon use an index, which has another order.
    """
    table = capabilities.tables.get(schema.table, {})
    return (
        schema.table in capabilities.ordered
        and keys == tuple((name, False) for name in schema.order)
        and all(table.get(name) in ("int", "time") for name in columns_of(wanted))
    )


def sort_keys(bound: Bound, capabilities: Capabilities) -> tuple[tuple[str, bool], ...] | None:
    """The query's order in the core's terms, ties broken by the default order; None if it can't."""
    schema = bound.names.schema
    keys: dict[str, bool] = {}
    for key, expression in zip(bound.sort, _sorted_by(bound), strict=True):
        source = bound.names.find(expression.name) if isinstance(expression, Ref) else None
        if (
            not isinstance(source, CoreSource)
            or bound.view.masks(source.name)
            or "sort" not in uses(capabilities, schema.table, source.name)
        ):
            return None
        keys.setdefault(source.name, key.descending)
    for name in schema.order:
        if not capabilities.has(schema.table, name):
            return None
        keys.setdefault(name, False)
    return tuple(keys.items())


def _sorted_by(bound: Bound) -> list[Expression | None]:
    """The columns of each sort key of the query."""
    return [
        key.expression if key.item < 0 else (bound.selected or ())[key.item].inner
        for key in bound.sort
    ]


def _log_plan(bound: Bound, pushed: Pushed, capabilities: Capabilities) -> SitePlan:
    """Log lines: bounds on time are always pushed; the newest N only where the core sorts."""
    times = push_log_times(bound.row_filter)
    others = push_all(times.rest, "log", capabilities, bound.view)
    filters = pushed.filter
    for test in times.tests:
        filters = both(filters, test)
    lowest = times.first
    if times.lowest is None:
        # A core reads every archive unless the query has a lower bound.
        filters = both(filters, Test("time", ">=", str(lowest)))
    if capabilities.icinga2:
        # Files are chosen by their first line against the last lower bound of the query.
        filters = both(filters, Test("time", ">=", str(max(0, lowest - _DAY))))
    pushed = evolve(pushed, filter=filters)
    limit = bound.query.limit
    if (
        limit is not None
        and others.exact
        and capabilities.sorts
        and not capabilities.icinga2
        and not (bound.sort or bound.aggregates or bound.unpack or bound.element_filter)
    ):
        order = (("time", True), ("lineno", True))
        pushed = evolve(pushed, sort=order, limit=limit + bound.query.offset)
    return SitePlan(pushed=pushed, filtered=others.exact)


def stats_of(
    bound: Bound, capabilities: Capabilities
) -> tuple[tuple[str, ...], tuple[Stat, ...]] | None:
    """Group columns and Stats lines for an aggregation that the core can do exactly, or None.

    The first Stats column always counts the rows of the group: it shows empty groups, and it is
    the divisor of averages.
    """
    if bound.unpack or bound.element_filter:
        return None
    groups: dict[str, None] = {}
    counters: dict[Stat, None] = {Stat("count"): None}
    assert bound.selected is not None
    for item in bound.selected:
        if item.kind in ("count", "uniq"):
            continue
        source = _plain_source(bound, item, capabilities)
        if source is None:
            return None
        if item.kind == "value":
            if isinstance(source, CoreSource):
                groups[source.name] = None
            continue
        if not isinstance(source, CoreSource):
            return None
        if item.kind in ("sum", "avg"):
            counters[Stat("sum", source.name)] = None
        elif item.kind in ("min", "max"):
            counters[Stat(item.kind, source.name)] = None
    return tuple(groups), tuple(counters)


def _plain_source(
    bound: Bound, item: Selected, capabilities: Capabilities
) -> CoreSource | SiteSource | None:
    """The column of a group or an aggregate that the core can do, or one constant for its site."""
    expression = item.inner
    if not isinstance(expression, Ref):
        return None
    source = bound.names.find(expression.name)
    if isinstance(source, SiteSource) and not source.listed:
        return source
    if not isinstance(source, CoreSource) or bound.view.masks(source.name):
        return None
    use: Use = "group" if item.kind == "value" else "stats"
    return source if use in uses(capabilities, bound.names.schema.table, source.name) else None


def stats_layout(bound: Bound, columns: Sequence[str]) -> Layout:
    """The columns for statistics that are computed here: those of the filter and ``columns``."""
    wanted = dict.fromkeys([*bound.needed, *columns])
    if all(name in CONSTANTS for name in wanted):
        wanted[_any_column(bound.names.schema)] = None
    return Layout(
        columns=tuple((name, core_type(bound, name)) for name in wanted if name not in CONSTANTS),
        constants=tuple(name for name in wanted if name in CONSTANTS),
    )
