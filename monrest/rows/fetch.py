"""From a request on a core collection to its answer: the one road that every handler takes.

Parse, bind, plan for each core, ask all selected sites at once, merge, finish. A handler says
which collection, which conditions its path adds and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import Context, Handler
from monrest.api.visibility import SYSTEM, view_of, visibility
from monrest.api.zones import moment_of
from monrest.base.errors import BrokenRowsError
from monrest.base.room import Share
from monrest.base.truth import truth
from monrest.base.values import (
    Answer,
    Capabilities,
    Document,
    Identity,
    RestRequest,
    Row,
    RowList,
    Rows,
    RowSource,
    SiteProblem,
    no_progress,
    part_of,
)
from monrest.livestatus.inbox import Inbox
from monrest.query.bind import Bound, bind, no_such_column, typo
from monrest.query.column_names import TableSchema, Visibility, labels, variable_columns
from monrest.query.flow import Recipe, SitePart, flow, flows
from monrest.query.limit import Limit
from monrest.query.model import Condition, CoreFilter, FilterTree, Pushed
from monrest.query.parse import parse_query
from monrest.query.plan import Layout, SitePlan, stats_layout
from monrest.query.pushdown import both, push_all
from monrest.query.stages import (
    Stages,
    absent_labels,
    filters_by_label,
    finish,
    unseen_labels,
)
from monrest.query.totals import (
    StatsSpec,
    asks_for_start,
    batches,
    count_rows,
    merge_stats,
    plan_stats,
)
from monrest.rows.members import Hidden, hidden, visible_members
from monrest.rows.question import Question, known_cores, names_of, question
from monrest.sites.fanout import Gathered, fan_out, without
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site


async def fetch(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    *,
    extra: tuple[FilterTree, ...] = (),
    late: bool = False,
) -> Rows | Document:
    """The rows of a collection as the request wants them.

    ``extra`` are conditions of the path. ``late``: rows may be made while they are read
    (docs/spec/memory.md). A Document comes back for an aggregation without groups. Raises
    BadRequest for anything wrong with the parameters, SitesFailed when no selected site answered
    and Unavailable when a large answer cannot be kept.
    """
    asked = await question(context, request, schema, extra)
    progress = request.progress
    inbox = context.memory.inbox()
    try:
        gathered = await fan_out(
            *(asked.sites, asked.plans.pushed, asked.shape.columns, context.clock),
            progress=progress if progress is no_progress else part_of(progress, 0, 80),
            inbox=inbox,
            asks=asked.plans.asks,
            shared=True,
        )
        while True:
            try:
                result = await _answer(context, request, asked, gathered, inbox, late=late)
                break
            except BrokenRowsError as broken:
                # The site whose rows turn out to be broken is a problem beside the answer.
                gathered = without(gathered, broken)
        if request.strict and result.warnings:
            result = await _without_known(context, asked, result)
        if request.strict and result.warnings:
            raise no_such_column(result.warnings)  # noqa: TRY301  room is given back for all alike
    except BaseException:
        inbox.let_go()
        raise
    if isinstance(result, Rows) and context.config.display.expose_custom_variables:
        result = _with_exposed(context, request, result)
    return result


Conditions: TypeAlias = Callable[[tuple[str, ...]], tuple[Condition, ...]]
"""The conditions of the variable segments of a path."""


def rows_of(schema: TableSchema, conditions: Conditions | None = None) -> Handler:
    """A handler that answers rows of ``schema``, limited by what the path says."""

    def handler(
        context: Context, request: RestRequest, arguments: tuple[str, ...]
    ) -> Awaitable[Answer]:
        extra = () if conditions is None else conditions(arguments)
        return fetch(context, request, schema, extra=extra, late=request.flows)

    return handler


async def _answer(
    context: Context,
    request: RestRequest,
    asked: Question,
    gathered: Gathered,
    inbox: Inbox,
    *,
    late: bool,
) -> Rows | Document:
    bound, shape, recipe = asked.bound, asked.shape, asked.recipe
    parts = _parts(context, request.identity, asked, gathered, inbox)
    problems = gathered.problems
    if recipe is not None and flows(bound, parts):
        if inbox.size and late:
            return _flowing(context, request, asked, gathered, inbox)
        await inbox.admit()
        size = sum(len(part.rows) for part in parts) * len(recipe.columns)
        rows = await context.compute(
            lambda limit: list(flow(bound, recipe, parts, limit.check)), size, inbox=inbox
        )
        return _rows(bound, recipe, rows, gathered, inbox)
    if not bound.aggregates or bound.names.schema.merge == "groups":
        await inbox.admit()
    if asked.hidden:
        sites = [answer.site for answer in gathered.answers]
        identity = request.identity
        members = await visible_members(context, identity, asked.hidden, shape, sites, inbox.share)
        problems = (*problems, *members.problems)
        parts = [members.put_into(part) for part in parts]
    size = sum(len(answer.rows) for answer in gathered.answers) * (shape.width + bound.effort)
    if filters_by_label(bound):
        missing = await context.compute(
            lambda _: absent_labels(bound, shape, parts), size, inbox=inbox
        )
        unseen = await _unseen(
            context, asked.sites, bound.names.schema, asked.seen, missing, inbox.share
        )
        if unseen:
            raise typo(unseen)
    result = await context.compute(
        lambda limit: finish(bound, shape, parts, limit), size, inbox=inbox
    )
    if isinstance(result, Rows):
        result = evolve(result, gone=inbox.let_go)
    else:
        inbox.let_go()
    return evolve(result, failed_sites=problems, backend_seconds=gathered.seconds)


def _parts(
    context: Context, identity: Identity, asked: Question, gathered: Gathered, inbox: Inbox
) -> list[SitePart]:
    return [
        SitePart(
            plan=plan,
            rows=answer.rows,
            constants=constants_of(context, identity, answer.site),
            stored=answer.stored if inbox.size else None,
        )
        for answer in gathered.answers
        if (plan := asked.plans.of(answer.capabilities)) is not None
    ]


def _flowing(
    context: Context, request: RestRequest, asked: Question, gathered: Gathered, inbox: Inbox
) -> Rows:
    """The answer whose rows are made while they are written."""
    bound, recipe = asked.bound, asked.recipe
    assert recipe is not None
    parts = _parts(context, request.identity, asked, gathered, inbox)

    def rows() -> Iterator[Row]:
        return flow(bound, recipe, parts)

    def again(broken: BrokenRowsError) -> Rows:
        return _flowing(context, request, asked, without(gathered, broken), inbox)

    answer = _rows(bound, recipe, RowSource(rows), gathered, inbox)
    return evolve(answer, without=again)


def _rows(bound: Bound, recipe: Recipe, rows: RowList, gathered: Gathered, inbox: Inbox) -> Rows:
    return Rows(
        columns=recipe.columns,
        rows=rows,
        expand=recipe.expand,
        warnings=tuple([column.warning for column in bound.unknown]),
        failed_sites=gathered.problems,
        backend_seconds=gathered.seconds,
        gone=inbox.let_go,
    )


def _with_exposed(context: Context, request: RestRequest, rows: Rows) -> Rows:
    """``X-Mon-Columns: 1``: every exposed variable on every row."""
    if not truth(request.caller.headers.get(context.names.header("Columns"))):
        return rows
    names = {
        f"_{name.removeprefix('_').upper()}": ""
        for name in context.config.display.expose_custom_variables
        if "*" not in name
    }
    inner, again = rows.expand, rows.without
    if not names or inner is None:
        return rows
    if again is not None:
        rows = evolve(rows, without=lambda broken: _with_exposed(context, request, again(broken)))
    return evolve(rows, expand=lambda row: {**names, **inner(row)})


async def _without_known(
    context: Context, asked: Question, result: Rows | Document
) -> Rows | Document:
    """The answer without warnings of names that some other row of the collection has.

    A label or variable that the rows of a filter have not is no typing error.
    """
    bound = asked.bound
    doubtful = [column for column in bound.doubtful if column.warning in result.warnings]
    names = {name for column in doubtful for name in (column.name, column.whole) if name}
    with context.memory.room.share() as share:
        unseen = await _unseen(
            *(context, asked.sites, bound.names.schema, asked.seen, sorted(names), share),
            bound.view.variables,
        )
    seen = names.difference(unseen)
    present = {column.warning for column in doubtful if {column.name, column.whole} & seen}
    return evolve(
        result, warnings=tuple(warning for warning in result.warnings if warning not in present)
    )


async def _unseen(
    context: Context,
    sites: Sequence[Site],
    schema: TableSchema,
    seen: CoreFilter | None,
    missing: Sequence[str],
    share: Share,
    variables: Visibility | None = None,
) -> Sequence[str]:
    """The labels of performance data that no row of the collection has.

    ``variables``: names of custom variables are looked for as well, as far as they are visible.
    The cores are asked only when the rows that a filter left have none of the names: whether one is
    a typing error must not depend on what the cores could filter.
    """
    if not missing:
        return ()
    columns: RowTypes = (
        *((name, "string") for name, _ in schema.perf),
        *((name, "dict") for name, _ in schema.custom if variables is not None),
    )

    def everything(_site: Site, capabilities: Capabilities) -> Pushed | None:
        names = tuple(name for name, _ in columns if capabilities.has(schema.table, name))
        return Pushed(table=schema.table, columns=names, filter=seen) if names else None

    inbox = context.memory.inbox(share)
    try:
        gathered = await fan_out(sites, everything, columns, context.clock, inbox=inbox)
        keys: list[Callable[[Any], Collection[str]]] = [
            partial(labels, prefix=prefix) for _, prefix in schema.perf
        ]
        if variables is not None:
            keys += [partial(_variables, variables, prefix) for _, prefix in schema.custom]
        places = list(enumerate(keys))

        def rows() -> Iterator[Row]:
            for answer in gathered.answers:
                with suppress(BrokenRowsError):
                    for batch in answer.batches():
                        yield from batch

        size = sum(len(answer.rows) for answer in gathered.answers) * len(places)
        return await context.compute(
            lambda _: unseen_labels(missing, rows(), places), size, inbox=inbox
        )
    finally:
        inbox.let_go()


def _variables(visible: Visibility, prefix: str, values: Mapping[str, str]) -> Collection[str]:
    return variable_columns(visible, prefix, values)[0]


def constants_of(context: Context, identity: Identity, site: Site) -> Mapping[str, Any]:
    """The values of every row of a site beside the core's own columns."""
    return {
        "peer_key": site.id,
        "peer_name": site.name,
        "peer_section": site.section,
        "program_start": _program_start(site),
        "peer_addr": site.address if identity.may(SYSTEM) else "",
        "now": int(context.wall.now()),
    }


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
            _Batch(
                context=context,
                identity=request.identity,
                sites=sites,
                bound=bound,
                spec=batch,
                seen=seen,
                share=share,
            ).merged()
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
        fields, gathered, names = outcome
        value.update(fields)
        strange.update(names)
        problems.update({problem.site: problem for problem in gathered.problems})
        seconds = max(seconds, gathered.seconds)
    if unseen is None and strange:
        raise typo(sorted(strange))
    if unseen is not None:
        unseen |= strange
    ordered = {figure.name: value[figure.name] for figure in spec.fields}
    return Document(value=ordered, failed_sites=tuple(problems.values()), backend_seconds=seconds)


@define(eq=False, kw_only=True)
class _Batch:
    """Some fields of a ``spec``; rows that are counted here need no room, they come in batches.

    ``seen`` is what the user may see, in core terms.
    """

    context: Context
    identity: Identity
    sites: Sequence[Site]
    bound: Bound
    spec: StatsSpec
    seen: CoreFilter | None
    share: Share
    _hidden: Hidden = field(init=False)
    _shape: Layout = field(init=False)
    _plans: dict[tuple[str, int], Pushed] = field(factory=dict, init=False)
    """The plan for each kind of core: of hundreds of sites most have the same."""

    def __attrs_post_init__(self) -> None:
        bound = self.bound
        self._hidden, self._shape = hidden(
            bound.names.schema.table,
            stats_layout(bound, self.spec.columns()),
            bound.view,
            known_cores(self.sites),
        )

    async def merged(self) -> tuple[dict[str, Any], Gathered, Sequence[str]]:
        """The fields, the answers of the sites, and names in filters that no row has."""
        inbox = self.context.memory.inbox(self.share)
        try:
            gathered = await fan_out(
                *(self.sites, self._planned, self._shape.columns, self.context.clock),
                inbox=inbox,
                shared=True,
            )
            while True:
                try:
                    answers, missing, problems = await self._counted(gathered, inbox)
                    break
                except BrokenRowsError as broken:
                    gathered = without(gathered, broken)
            schema = self.bound.names.schema
            unseen = await _unseen(self.context, self.sites, schema, self.seen, missing, self.share)
        finally:
            inbox.let_go()
        gathered = evolve(gathered, problems=(*gathered.problems, *problems))
        return merge_stats(self.spec, answers), gathered, unseen

    def _planned(self, site: Site, capabilities: Capabilities) -> Pushed | None:
        bound, table = self.bound, self.bound.names.schema.table
        if not capabilities.tables.get(table):
            return None
        start = _program_start(site)
        key = (capabilities.key, start if asks_for_start(self.spec) else 0)
        plan = self._plans.get(key)
        if plan is None:
            part = push_all(bound.row_filter, table, capabilities, bound.view)
            plan = plan_stats(self.spec, table, part, self.seen, capabilities, start)
            if plan is None:
                names = [name for name, _ in self._shape.columns if capabilities.has(table, name)]
                where = both(self.seen, part.filter)
                plan = Pushed(table=table, columns=tuple(names), filter=where)
            self._plans[key] = plan
        return plan

    async def _counted(
        self, gathered: Gathered, inbox: Inbox
    ) -> tuple[list[Sequence[Any]], Sequence[str], Sequence[SiteProblem]]:
        """Totals of each site, labels that no row has, and sites whose members are not known."""
        bound, shape, spec = self.bound, self._shape, self.spec
        answers: list[Sequence[Any]] = []
        parts: list[SitePart] = []
        sites: list[Site] = []
        problems: Sequence[SiteProblem] = ()
        for answer in gathered.answers:
            if answer.asked.stats:
                for rows in answer.batches():
                    answers += rows[:1]
                continue
            part = SitePart(
                plan=SitePlan(pushed=answer.asked),
                rows=answer.rows,
                constants=constants_of(self.context, self.identity, answer.site),
                stored=answer.stored if inbox.size else None,
            )
            sites.append(answer.site)
            parts.append(part)
        if self._hidden and sites:
            members = await visible_members(
                *(self.context, self.identity, self._hidden, shape, sites, self.share)
            )
            problems = members.problems
            parts = [members.put_into(part) for part in parts]

        def count(limit: Limit) -> Sequence[str]:
            missing = absent_labels(bound, shape, parts)
            for part in parts:
                began = part.constants["program_start"]
                for rows in part.batches():
                    kept = Stages(bound, shape, limit).filtered(part, rows)
                    answers.append(count_rows(spec, kept, shape.index, began))
            return missing

        size = sum(len(answer.rows) for answer in gathered.answers) * (
            len(spec.fields) + bound.effort
        )
        return answers, await self.context.compute(count, size, inbox=inbox), problems


def _program_start(site: Site) -> int:
    return int(site.health.program_start or 0)
