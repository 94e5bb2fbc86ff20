"""What is wrong at present, asked of the cores as the owner of a webhook sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import evolve, frozen

from monrest.api.endpoint import Context
from monrest.api.visibility import visible_sites
from monrest.base.errors import BadRequest
from monrest.base.values import Identity
from monrest.events.filter import EventFilter, of_event, on_host, on_service
from monrest.events.snapshot import PresentProblems, problems
from monrest.query.model import Condition, FilterTree, Group, leaves

_NEVER: FilterTree = Group("or", ())
_HOST_NAMES = frozenset({"host", "host_name"})
_SERVICE_NAMES = frozenset({"service", "service_description"})
_OF_SITE = frozenset({"peer_key", "peer_name", "peer_section"})
_HARD = Condition("state_type", "=", "1")


class ProblemSource(Protocol):
    """Knows what is wrong at present."""

    async def look(self, who: Identity, wanted: EventFilter) -> PresentProblems:
        """Return all that the owner sees."""


def require_objects(wanted: EventFilter) -> None:
    """Raise BadRequest for conditions that present objects cannot answer, or not for ever."""
    conditions: Iterator[Condition] = leaves([wanted.query.filter])
    for condition in conditions:
        if (
            of_event(condition.column)
            and condition.column not in _HOST_NAMES | _SERVICE_NAMES | _OF_SITE
        ):
            raise BadRequest(
                "invalid filter",
                f"filter: {condition.column}: expected conditions on hosts and services for the "
                "body alertmanager, because an alert must end for every state",
            )
    if "state" not in wanted.types:
        raise BadRequest("invalid filter", "filter: types: expected state among them")


def _of_host(condition: Condition) -> FilterTree:
    if condition.column in _HOST_NAMES:
        return evolve(condition, column="name")
    if condition.column in _SERVICE_NAMES:
        return _NEVER
    if condition.column in _OF_SITE:
        return condition
    return on_host(condition) or _NEVER


def _of_service(condition: Condition) -> FilterTree:
    if condition.column in _HOST_NAMES:
        return evolve(condition, column="host_name")
    if condition.column in _SERVICE_NAMES:
        return evolve(condition, column="description")
    return condition if condition.column in _OF_SITE else on_service(condition)


def _mapped(tree: FilterTree, each: Callable[[Condition], FilterTree]) -> FilterTree:
    if isinstance(tree, Group):
        return evolve(tree, items=tuple(_mapped(item, each) for item in tree.items))
    return each(tree)


@frozen(eq=False)
class CoreProblems:
    """Asks the cores; ``context`` gives what is in force."""

    context: Callable[[], Context]

    async def look(self, who: Identity, wanted: EventFilter) -> PresentProblems:
        """Return all that the owner sees."""
        context, tree = await self._seen(who), wanted.query.filter
        chosen = tuple(site.id for site in context.sites.select(wanted.backends))
        return await problems(
            *(context, who, chosen),
            of_hosts=(_HARD, _mapped(tree, _of_host)),
            of_services=(_HARD, _mapped(tree, _of_service)),
        )

    async def _seen(self, who: Identity) -> Context:
        context = self.context()
        return evolve(context, sites=await visible_sites(who, context.sites, context.contacts))
