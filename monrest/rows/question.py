"""A request as questions to the cores: parsed, bound to a collection and planned for each core.

A request that comes again gets the same question again (``Context.request_cache``).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from attrs import define, evolve, field, frozen

from monrest.api.endpoint import Context
from monrest.api.visibility import view_of, visibility
from monrest.api.zones import holds_date, moment_of
from monrest.base.values import Capabilities, RestRequest
from monrest.livestatus.pool import CoreRequest
from monrest.query.bind import Bound, bind
from monrest.query.column_names import ColumnNames, TableSchema
from monrest.query.flow import Recipe, straight
from monrest.query.model import CoreFilter, FilterTree, Pushed
from monrest.query.parse import parse_query
from monrest.query.plan import Layout, SitePlan, layout, plan
from monrest.rows.members import Hidden
from monrest.rows.members import hidden as hidden_members
from monrest.sites.registry import SiteList
from monrest.sites.site import Site

_CORE = attrgetter("capabilities")

SORTED_AT_START = ("hosts", "services")
"""Large tables whose rows stay in one order while a core runs."""


def known_cores(sites: Sequence[Site]) -> tuple[Capabilities, ...]:
    """The different cores among the sites, as far as they have been reached."""
    cores = [site.capabilities for site in sites]
    return tuple({core.key: core for core in cores if core is not None}.values())


def names_of(context: Context, schema: TableSchema, cores: Sequence[Capabilities]) -> ColumnNames:
    """The names of a collection over these cores; made once for each set of cores."""
    key = (schema.name, tuple([core.key for core in cores]))
    names: ColumnNames | None = context.request_cache.find(key)
    if names is None:
        own_names: dict[str, str] = {}
        for core in cores:
            for name, kind in core.tables.get(schema.table, {}).items():
                own_names.setdefault(name, kind)
        names = ColumnNames(schema, own_names)
        context.request_cache.keep(key, names)
    return names


@define(eq=False)
class Plans:
    """The plans for the different cores of one bound query, made when a core turns up.

    ``asks`` are what is sent for it (``sites.fan_out``).
    """

    bound: Bound
    shape: Layout
    seen: CoreFilter | None
    single: bool
    plans: dict[tuple[str, frozenset[str]], SitePlan | None] = field(factory=dict)
    asks: dict[tuple[int, str], tuple[Pushed, CoreRequest]] = field(factory=dict)

    def of(self, capabilities: Capabilities) -> SitePlan | None:
        """The plan for a kind of core; None when it has nothing of the collection."""
        key = (capabilities.key, capabilities.ordered)
        if key not in self.plans:
            self.plans[key] = plan(
                self.bound, self.shape, capabilities, forced=self.seen, single=self.single
            )
        return self.plans[key]

    def pushed(self, _: Site, capabilities: Capabilities) -> Pushed | None:
        plan = self.of(capabilities)
        return None if plan is None else plan.pushed


@frozen(kw_only=True, eq=False)
class Question:
    """The question of a request to the cores of ``sites``.

    ``listed`` are the sites among which they were selected, ``cores`` what was known of theirs.
    ``seen`` is what the user may see in terms of a core, None for everything. ``hidden`` are
    columns that are made here, because not all members of the rows are visible. ``selects``: what
    selected the sites. ``recipe``: how a row of a core becomes one of the answer, None where rows
    have to go through all stages.
    """

    listed: SiteList
    selects: tuple[str, ...]
    sites: tuple[Site, ...]
    cores: tuple[Capabilities | None, ...]
    bound: Bound
    shape: Layout
    hidden: Hidden
    plans: Plans
    seen: CoreFilter | None
    recipe: Recipe | None


async def question(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    extra: tuple[FilterTree, ...] = (),
) -> Question:
    """The question of ``fetch``, with the same arguments; raise BadRequest as it does."""
    identity = request.identity
    key = (
        schema.name,
        request.parameters,
        request.sites,
        extra,
        identity.user,
        identity.roles,
        identity.superuser,
    )
    kept: Question | None = context.request_cache.find(key)
    if kept is not None:
        listed = context.sites.listed
        same = listed is kept.listed
        sites = kept.sites if same else listed.select(kept.selects)
        # Of other cores than before something else may be asked.
        if tuple(map(_CORE, sites)) == kept.cores:
            return kept if same else evolve(kept, listed=listed, sites=sites)
    fresh, lasts = await _new_question(context, request, schema, extra)
    if lasts:
        context.request_cache.keep(key, fresh)
    return fresh


async def _new_question(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    extra: tuple[FilterTree, ...],
) -> tuple[Question, bool]:
    """A question, and whether it is the same at any moment and in any zone."""
    query = parse_query(request.parameters)
    selects = request.sites or query.backends
    sites = context.sites.select(selects)
    seen = visibility(
        request.identity, schema.table, strict=context.config.auth.strict_host_authorization
    )
    moment = await moment_of(context, request)
    cores = known_cores(sites)
    view = view_of(context, request.identity, schema.table)
    bound = bind(query, names_of(context, schema, cores), view, moment, extra)
    hidden, shape = hidden_members(schema.table, layout(bound, cores), view, cores)
    kept = Question(
        listed=context.sites.listed,
        selects=selects,
        sites=sites,
        cores=tuple(map(_CORE, sites)),
        bound=bound,
        shape=shape,
        hidden=hidden,
        plans=Plans(bound, shape, seen, len(sites) == 1),
        seen=seen,
        recipe=None if hidden else straight(bound, shape),
    )
    if schema.table in SORTED_AT_START and not bound.aggregates:
        for site in sites:
            site.learn_order(schema.table, schema.order)
    lasts = bound.timeless and context.request_cache.is_short(request) and not holds_date(request)
    return kept, lasts
