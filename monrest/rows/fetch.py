"""From a request on a core collection to its answer: the one road that every handler takes.

Parse, bind, plan for each core, ask all selected sites at once, merge, finish. A handler says
which collection, which conditions its path adds and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import evolve
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import Context, Handler
from monrest.api.visibility import SYSTEM, view_of, visibility
from monrest.api.zones import moment_of
from monrest.base.spool import Share
from monrest.base.truth import truth
from monrest.base.values import (
    Answer,
    Capabilities,
    Document,
    Identity,
    RestRequest,
    Row,
    Rows,
    nobody_follows,
    part_of,
)
from monrest.livestatus.framing import Packing
from monrest.query.bind import Bound, bind, no_such_column, typo
from monrest.query.column_names import TableSchema, Visibility, labels, variable_columns
from monrest.query.finish import finish
from monrest.query.flow import FEW, flow, flows, unpacked
from monrest.query.limit import Limit
from monrest.query.model import Condition, CoreFilter, FilterTree, Pushed
from monrest.query.parse import parse_query
from monrest.query.plan import SitePlan, stats_layout
from monrest.query.pushdown import both, push_all
from monrest.query.select import Reader
from monrest.query.stages import SitePart, absent_labels, filtered, unseen_labels
from monrest.query.totals import (
    StatsSpec,
    asks_for_start,
    batches,
    count_rows,
    merge_stats,
    plan_stats,
)
from monrest.rows.members import hidden, visible_members
from monrest.rows.question import Question, known_cores, names_of, question
from monrest.sites.fanout import Gathered, SiteAnswer, fan_out
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

_NOTHING: Mapping[str, Any] = MappingProxyType({})


async def fetch(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    *,
    extra: tuple[FilterTree, ...] = (),
    forced: CoreFilter | None = None,
    push_down: bool = True,
    late: bool = False,
) -> Rows | Document:
    """The rows of a collection as the request wants them.

    ``extra`` are conditions of the path, ``forced`` a core filter in core terms, both joined by
    and. ``late``: rows may be made while they are read (docs/spec/memory.md). A Document comes back
    for an aggregation without groups. Raises BadRequest for anything wrong with the parameters,
    SitesFailed when no selected site answered and Unavailable when a large answer cannot be kept.
    """
    asked = await question(
        context, request, schema, extra=extra, forced=forced, push_down=push_down
    )
    progress = request.progress
    packing = Packing(context.memory.room.share(), context.memory.spools)
    try:
        gathered = await fan_out(
            *(asked.sites, asked.plans.pushed, asked.shape.columns, context.clock),
            progress=progress if progress is nobody_follows else part_of(progress, 0, 80),
            packed=packing.of,
            asks=asked.plans.asks,
            shared=True,
        )
        result: Rows | Document | None = None
        if not packing.holds_something():
            result = _few(context, request.identity, asked, gathered)
        if result is None:
            result = await _through_all_stages(context, request, asked, gathered, packing, late)
    except BaseException:
        packing.let_go()
        raise
    if request.strict and result.warnings:
        result = await _without_doubts(context, asked, result)
        if result.warnings:
            packing.let_go()
            raise no_such_column(result.warnings)
    if isinstance(result, Rows) and context.config.display.expose_custom_variables:
        result = _with_exposed(context, request, result)
    return result


# -------------------------------------------------------------------- handlers

Conditions: TypeAlias = Callable[[tuple[str, ...]], tuple[Condition, ...]]
"""What the variable segments of a path say of rows."""


def rows_of(schema: TableSchema, conditions: Conditions | None = None) -> Handler:
    """A handler that answers rows of ``schema``, limited by what the path says."""

    def handler(
        context: Context, request: RestRequest, arguments: tuple[str, ...]
    ) -> Awaitable[Answer]:
        extra = () if conditions is None else conditions(arguments)
        return fetch(context, request, schema, extra=extra, late=request.flows)

    return handler


def _few(context: Context, identity: Identity, asked: Question, gathered: Gathered) -> Rows | None:
    """The answer where it is made of a few rows that are in order; None where it is not."""
    way, answers = asked.straight, gathered.answers
    if way is None or not answers or (way.single and len(answers) > 1):
        return None
    made, found = way.recipe, list[tuple[list[Row], Mapping[str, Any]]]()
    count = 0
    for answer in answers:
        core = answer.capabilities
        one = asked.plans.made[core.key, core.ordered]
        count += len(answer.rows)
        if one is None or not one.filtered or not one.sorted or count > FEW:
            return None
        constants = constants_of(context, identity, answer.site) if made.constants else _NOTHING
        found.append((answer.rows, constants))
    return Rows(
        columns=made.columns,
        rows=way.rows(found),
        expand=made.expand,
        blanks=made.blanks,
        warnings=way.warnings,
        failed_sites=gathered.problems,
        backend_seconds=gathered.seconds,
    )


async def _through_all_stages(
    context: Context,
    request: RestRequest,
    asked: Question,
    gathered: Gathered,
    packing: Packing,
    late: bool,
) -> Rows | Document:
    """The answer of ``fetch`` made of any number of rows that need any work."""
    bound, shape, plans = asked.bound, asked.shape, asked.plans
    packing.check()
    parts = [
        SitePart(
            plan=one,
            rows=answer.rows,
            constants=constants_of(context, request.identity, answer.site),
            packed=packing.of(answer.site),
        )
        for answer in gathered.answers
        if (one := plans.of(answer.capabilities)) is not None
    ]
    problems = gathered.problems
    result: Rows | Document
    if packing.size and late and not asked.hidden and flows(bound, shape, parts):
        result = flow(bound, shape, parts)
    else:
        if packing.size:
            await packing.share.admit(packing.size)
        members = None
        if asked.hidden:
            members = await visible_members(
                context,
                request.identity,
                asked.hidden,
                shape,
                [answer.site for answer in gathered.answers],
                packing.share,
            )
            problems = (*problems, *members.problems)
        size = sum(part.count for part in parts) * (shape.width + bound.effort)

        def opened(_: Limit) -> tuple[list[SitePart], tuple[str, ...]]:
            whole = unpacked(parts)
            if members is not None:
                whole = members.put_into(whole)
            return whole, absent_labels(bound, shape, whole)

        parts, missing = await context.compute(opened, size)
        packing.forget()
        unseen = await _unseen(
            context, asked.sites, bound.names.schema, asked.seen, missing, packing.share
        )
        if unseen:
            raise typo(unseen)
        result = await context.compute(lambda limit: finish(bound, shape, parts, limit), size)
    if isinstance(result, Rows):
        result = evolve(result, gone=packing.let_go)
    return evolve(result, failed_sites=problems, backend_seconds=gathered.seconds)


def _with_exposed(context: Context, request: RestRequest, rows: Rows) -> Rows:
    """``X-Mon-Columns: 1``: every exposed variable on every row."""
    if not truth(request.caller.headers.get(context.names.header("Columns"))):
        return rows
    names = {
        f"_{name.removeprefix('_').upper()}": ""
        for name in context.config.display.expose_custom_variables
        if "*" not in name
    }
    inner = rows.expand
    if not names or inner is None:
        return rows
    # Such rows are not those that are written without the header.
    return evolve(rows, expand=lambda row: {**names, **inner(row)}, blanks=None)


async def _without_doubts(
    context: Context, asked: Question, result: Rows | Document
) -> Rows | Document:
    """The answer without warnings of names that some other row of the collection has.

    A label or variable that the rows of a filter have not is no typing error.
    """
    bound = asked.bound
    doubts = [one for one in bound.doubtful if one.warning in result.warnings]
    names = {name for one in doubts for name in (one.name, one.whole) if name}
    with context.memory.room.share() as share:
        unseen = await _unseen(
            *(context, asked.sites, bound.names.schema, asked.seen, sorted(names), share),
            bound.view.variables,
        )
    seen = names.difference(unseen)
    known = {one.warning for one in doubts if {one.name, one.whole} & seen}
    return evolve(result, warnings=tuple(one for one in result.warnings if one not in known))


async def _unseen(
    context: Context,
    sites: Sequence[Site],
    schema: TableSchema,
    seen: CoreFilter | None,
    missing: Sequence[str],
    share: Share,
    variables: Visibility | None = None,
) -> Sequence[str]:
    """Which of these labels of performance data no row of the collection has.

    ``variables``: names of custom variables are looked for as well, as far as they are visible.

    Asked only when the rows that a filter left have none of them: whether a name is a typing
    error must not depend on what the cores could filter.
    """
    if not missing:
        return ()
    columns: RowTypes = (
        *((name, "string") for name, _ in schema.perf),
        *((name, "dict") for name, _ in schema.custom if variables is not None),
    )

    def everything(_site: Site, capabilities: Capabilities) -> Pushed | None:
        known = tuple(name for name, _ in columns if capabilities.has(schema.table, name))
        return Pushed(table=schema.table, columns=known, filter=seen) if known else None

    packing = context.memory.packing(share)
    try:
        gathered = await fan_out(sites, everything, columns, context.clock, packed=packing.of)
        packing.check()
        rows = (row for one in gathered.answers for row in packing.rows(one.site, one.rows))
        keys: list[Callable[[Any], Collection[str]]] = [
            partial(labels, prefix=prefix) for _, prefix in schema.perf
        ]
        if variables is not None:
            keys += [partial(_variables, variables, prefix) for _, prefix in schema.custom]
        places = list(enumerate(keys))
        size = packing.size + sum(len(one.rows) for one in gathered.answers) * len(places)
        return await context.compute(lambda _: unseen_labels(missing, rows, places), size)
    finally:
        packing.forget()


def _variables(visible: Visibility, prefix: str, values: Mapping[str, str]) -> Collection[str]:
    return variable_columns(visible, prefix, values)[0]


def constants_of(context: Context, identity: Identity, site: Site) -> Mapping[str, Any]:
    """What every row of a site carries beside the core's own columns."""
    return {
        "peer_key": site.id,
        "peer_name": site.name,
        "peer_section": site.section,
        "program_start": _program_start(site),
        "peer_addr": site.address if identity.may(SYSTEM) else "",
        "now": int(context.wall.now()),
    }


# -------------------------------------------------------------------- statistics


async def fetch_stats(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    spec: StatsSpec,
    *,
    extra: tuple[Condition, ...] = (),
    unseen: set[str] | None = None,
) -> Document:
    """The fields of ``spec`` summed over the selected sites.

    Row filters and visibility apply; ``columns`` is left to ``reselect``, because resources may
    compute further fields first. Names in filters that no row has are an error, or are added to
    ``unseen`` for a resource that asks another collection as well.
    """
    strange: set[str] = set()
    query = parse_query(request.parameters)
    sites = context.sites.select(request.sites or query.backends)
    cores = known_cores(sites)
    bound = bind(
        evolve(query, items=None, sort=(), limit=None, offset=0),
        names_of(context, schema, cores),
        view_of(context, request.identity, schema.table),
        await moment_of(context, request),
        extra,
    )
    seen = visibility(
        request.identity, schema.table, strict=context.config.auth.strict_host_authorization
    )
    share = context.memory.room.share()
    waiting = [
        Deferred.fromCoroutine(
            _batch(context, request.identity, sites, bound, batch, seen, strange, share)
        )
        for batch in batches(spec)
    ]
    value: dict[str, Any] = {}
    problems: dict[str, Any] = {}
    seconds = 0.0
    # What is left of the rows is numbers; the frames of an error would keep the room.
    with share:
        outcomes = await DeferredList(waiting, consumeErrors=True)
    for _, outcome in outcomes:
        if isinstance(outcome, Failure):
            outcome.raiseException()
        fields, gathered = outcome
        value.update(fields)
        problems.update({problem.site: problem for problem in gathered.problems})
        seconds = max(seconds, gathered.seconds)
    if unseen is None and strange:
        raise typo(sorted(strange))
    if unseen is not None:
        unseen |= strange
    ordered = {one.name: value[one.name] for one in spec.fields}
    return Document(value=ordered, failed_sites=tuple(problems.values()), backend_seconds=seconds)


async def _batch(
    context: Context,
    identity: Identity,
    sites: Sequence[Site],
    bound: Bound,
    batch: StatsSpec,
    seen: CoreFilter | None,
    strange: set[str],
    share: Share,
) -> tuple[dict[str, Any], Gathered]:
    """One batch of the fields of a ``spec``, with what the sites said.

    Rows that have to be counted here are so a piece at a time, so that they need no room.
    """
    schema = bound.names.schema
    made_here, shape = hidden(
        schema.table, stats_layout(bound, batch.columns()), bound.view, known_cores(sites)
    )
    asked: dict[str, Pushed] = {}
    made: dict[tuple[str, int], Pushed] = {}
    varies = asks_for_start(batch)

    def planned(site: Site, capabilities: Capabilities) -> Pushed | None:
        if not capabilities.tables.get(schema.table):
            return None
        # Of hundreds of sites most have the same kind of core.
        key = (capabilities.key, _program_start(site) if varies else 0)
        if key not in made:
            made[key] = planned_for(site, capabilities)
        asked[site.id] = made[key]
        return made[key]

    def planned_for(site: Site, capabilities: Capabilities) -> Pushed:
        part = push_all(bound.row_filter, schema.table, capabilities, bound.view)
        start = _program_start(site)
        pushed = plan_stats(batch, schema.table, part, seen, capabilities, start)
        if pushed is None:
            columns = tuple(
                name for name, _ in shape.columns if capabilities.has(schema.table, name)
            )
            pushed = Pushed(table=schema.table, columns=columns, filter=both(seen, part.filter))
        return pushed

    packing = context.memory.packing(share)
    try:
        gathered = await fan_out(
            *(sites, planned, shape.columns, context.clock), packed=packing.of, shared=True
        )
        packing.check()
        answers: list[Sequence[Any]] = []
        rows: list[tuple[SiteAnswer, SitePart]] = []
        for answer in gathered.answers:
            pushed = asked.get(answer.site.id)
            if pushed is not None and pushed.stats:
                answers += answer.rows[:1]
            elif pushed is not None:
                part = SitePart(
                    plan=SitePlan(pushed=pushed),
                    rows=answer.rows,
                    constants=constants_of(context, identity, answer.site),
                    packed=packing.of(answer.site),
                )
                rows.append((answer, part))
        members = (
            await visible_members(
                context, identity, made_here, shape, [one.site for one, _ in rows], share
            )
            if made_here and rows
            else None
        )
        if members is not None:
            gathered = evolve(gathered, problems=(*gathered.problems, *members.problems))
        parts = [(part, _program_start(answer.site)) for answer, part in rows]

        def counted(limit: Limit) -> tuple[Sequence[str], list[Sequence[Any]]]:
            limit.more(sum(part.count for part, _ in parts))
            missing = absent_labels(bound, shape, [part for part, _ in parts])
            found: list[Sequence[Any]] = []
            for part, began in parts:
                for piece in part.pieces():
                    if members is not None:
                        (piece,) = members.put_into([piece])
                    kept = filtered(Reader(bound, dict(shape.index), limit=limit), shape, piece)
                    found.append(count_rows(batch, kept, shape.index, began))
            return missing, found

        values = len(batch.fields) + bound.effort
        size = sum(part.count for part, _ in parts) * values
        missing, found = await context.compute(counted, size)
        answers += found
        strange.update(await _unseen(context, sites, schema, seen, missing, share))
    finally:
        packing.forget()
    return merge_stats(batch, answers), gathered


def _program_start(site: Site) -> int:
    return int(site.health.program_start or 0)
