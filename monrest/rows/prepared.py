"""What a request means for the cores, prepared once and kept where time does not matter.

Dashboards and scripts send the same requests again and again; binding a query to a collection
and planning it for each kind of core is done for the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from monrest.api.endpoint import Context
from monrest.api.visibility import view_of
from monrest.base.values import Capabilities, RestRequest
from monrest.query.bind import Bound, bind
from monrest.query.functions import Moment
from monrest.query.model import CoreFilter, FilterTree, Query
from monrest.query.plan import Layout, SitePlan, layout, plan
from monrest.query.resolve import ColumnNames
from monrest.query.schema import TableSchema
from monrest.sites.site import Site


def known_cores(sites: Sequence[Site]) -> tuple[Capabilities, ...]:
    """The different cores among the sites, as far as they have been reached."""
    found = {site.capabilities.key: site.capabilities for site in sites if site.capabilities}
    return tuple(found.values())


_NAMES: dict[tuple[str, tuple[str, ...]], ColumnNames] = {}


def names_of(schema: TableSchema, cores: Sequence[Capabilities]) -> ColumnNames:
    """The names of a collection over these cores; made once for each set of cores."""
    key = (schema.name, tuple(core.key for core in cores))
    names = _NAMES.get(key)
    if names is None:
        known: dict[str, str] = {}
        for core in cores:
            for name, kind in core.tables.get(schema.table, {}).items():
                known.setdefault(name, kind)
        if len(_NAMES) > 1000:
            _NAMES.clear()
        names = _NAMES[key] = ColumnNames(schema, known)
    return names


@define(eq=False)
class Plans:
    """What the different cores are asked for one bound query, made when a core turns up."""

    bound: Bound
    shape: Layout
    forced: CoreFilter | None
    single: bool
    push_down: bool
    made: dict[str, SitePlan | None] = field(factory=dict)

    def of(self, capabilities: Capabilities) -> SitePlan | None:
        """What a kind of core is asked; None when it has nothing of the collection."""
        if capabilities.key not in self.made:
            self.made[capabilities.key] = plan(
                self.bound,
                self.shape,
                capabilities,
                forced=self.forced,
                single=self.single,
                push_down=self.push_down,
            )
        return self.made[capabilities.key]


@define(eq=False)
class Prepared:
    """A bound query and its plans; kept for the next request where time does not matter."""

    bound: Bound
    shape: Layout
    _plans: dict[tuple[CoreFilter | None, bool, bool], Plans] = field(factory=dict, init=False)

    def plans(self, forced: CoreFilter | None, *, single: bool, push_down: bool) -> Plans:
        """The plans under this visibility."""
        key = (forced, single, push_down)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= _MOST_VIEWERS:
                self._plans.clear()
            found = self._plans[key] = Plans(self.bound, self.shape, forced, single, push_down)
        return found


_MOST_PREPARED = 1000
_MOST_VIEWERS = 50
_MOST_TEXT = 1000
"""Characters of parameters that are worth keeping."""
_prepared: dict[Any, Prepared] = {}


def prepared(
    context: Context,
    request: RestRequest,
    query: Query,
    schema: TableSchema,
    sites: Sequence[Site],
    extra: tuple[FilterTree, ...],
    moment: Moment,
) -> Prepared:
    """The query bound to the collection; the same object for the same request again.

    Dashboards and scripts ask the same again and again, so binding and planning are kept.
    """
    cores = known_cores(sites)
    view = view_of(context, request.identity, schema.table)
    key = (
        schema.name,
        request.parameters,
        extra,
        view,
        tuple([core.key for core in cores]),
        moment.zone,
    )
    known = _prepared.get(key)
    if known is not None:
        return known
    bound = bind(query, names_of(schema, cores), view, moment, extra)
    made = Prepared(bound, layout(bound, cores))
    if bound.timeless and sum(len(n) + len(v) for n, v in request.parameters) <= _MOST_TEXT:
        if len(_prepared) >= _MOST_PREPARED:
            _prepared.clear()
        _prepared[key] = made
    return made
