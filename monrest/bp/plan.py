"""What a definition means for calculations, worked out once: steps, and what is asked for them.

A run evaluates tens of thousands of nodes, so that nothing is taken apart there that stays the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from monrest.bp.filters import NONE, Filters, filters_of
from monrest.bp.live import PEER, Needs
from monrest.bp.model import ROOT, Definition, Node
from monrest.bp.search import columns_of
from monrest.bp.services import Pair, Services
from monrest.bp.states import NodeState
from monrest.bp.syntax import matching_of, text_at


@frozen
class Step:
    """One node; ``children`` are ids and labels.

    ``service`` is what it is about if that is a service by name, no filter looks at it, and it is
    not the root.
    """

    node: Node
    filters: Filters
    children: tuple[tuple[str, str], ...]
    service: tuple[str, str] | None


@define(eq=False)
class Plan:
    """All steps, children before parents, and what the nodes look at.

    ``services`` are those about services by name, ``others`` the rest and the root.
    ``extended``: code of one's own takes part, which may take any time. ``filters`` are the names
    of all filters that process and nodes name. ``last`` are the states that were calculated last.
    """

    definition: Definition
    general: tuple[str, ...]
    steps: tuple[Step, ...]
    services: tuple[tuple[str, tuple[str, str], Step], ...]
    others: tuple[Step, ...]
    needs: Needs
    extended: bool
    filters: frozenset[str]
    ids: tuple[str, ...] = field(init=False)
    last: Mapping[str, NodeState] | None = field(default=None, init=False)
    peers: frozenset[str] = field(default=frozenset(), init=False)
    _known: Mapping[Pair, int] | None = field(default=None, init=False)
    _places: Sequence[int] = field(default=(), init=False)

    @ids.default
    def _ids(self) -> tuple[str, ...]:
        return tuple(node for node, _, _ in self.services)

    def places(self, services: Services) -> Sequence[int]:
        """Give where the rows of ``services`` stand, 0 for one that is missing.

        Notes the sites that have them as ``peers``.
        """
        of, table = services.places.of, services.table
        if self._known is not of:
            self._known = of
            self._places = [of.get(pair, 0) for _, pair, _ in self.services]
            rows = (table[at] for at in self._places)
            self.peers = frozenset(row[PEER] for row in rows if row is not None)
        return self._places


def plan(definition: Definition, default_filter: Sequence[str]) -> Plan:
    """Work out a definition under these filters of all processes."""
    general = (*default_filter, *definition.filter)
    steps = tuple(_steps(definition, general))
    needs = Needs()
    add_needs(needs, definition, general)
    return Plan(
        definition=definition,
        general=tuple(default_filter),
        steps=steps,
        services=tuple((one.node.id, one.service, one) for one in steps if one.service),
        others=tuple(one for one in steps if not one.service),
        needs=needs,
        extended=any(step.filters.others or step.node.function.name == "custom" for step in steps),
        filters=frozenset(definition.filter).union(*(node.filter for node in definition.nodes)),
    )


def _steps(definition: Definition, general: Sequence[str]) -> Iterator[Step]:
    for node in definition.order:
        filters = filters_of(general, node.filter)
        service: tuple[str, str] | None = None
        if node.function.name == "status" and filters == NONE and node.id != ROOT:
            host, name, op = (text_at(node.function.arguments, at) for at in range(3))
            if name and matching_of(name, op)[0] == "=":
                service = (host, name)
        children = tuple((child.id, child.label) for child in definition.children(node))
        yield Step(node, filters, children, service)


def add_needs(
    needs: Needs, definition: Definition, general: Sequence[str], *, members: bool = False
) -> None:
    """Add what one process looks at; the host of its name too, which tells its backend.

    ``general`` are the filters of all nodes. ``members``: of groups the members are needed,
    whatever filters say.
    """
    needs.hosts.update(definition.host_of(node) for node in definition.exported)
    needs.hosts.add(definition.name)
    for node in definition.nodes:
        name, arguments = node.function.name, node.function.arguments
        if name == "status":
            host, service, op = (text_at(arguments, at) for at in range(3))
            if not service:
                needs.hosts.add(host)
                continue
            needs.services_of.add(host)
            if matching_of(service, op)[0] != "=":
                needs.matched_hosts.add(host)
        elif name == "groupstatus":
            rows = members or filters_of(general, node.filter).active
            _add_group(needs, text_at(arguments, 0).lower(), text_at(arguments, 1), rows)
        elif name == "statusfilter":
            _add_searches(needs, arguments)


def _add_group(needs: Needs, kind: str, name: str, members: bool) -> None:
    if kind == "hostgroup":
        (needs.member_hostgroups if members else needs.hostgroups).add(name)
    elif kind == "servicegroup":
        (needs.member_servicegroups if members else needs.servicegroups).add(name)


def _add_searches(needs: Needs, arguments: Sequence[Any]) -> None:
    searches = [arguments[2]] if isinstance(arguments[2], dict) else arguments[2]
    if arguments[1] != "services":
        needs.every_host = True
        needs.host_columns.update(columns_of(searches, hosts=True))
    if arguments[1] != "hosts":
        needs.every_service = True
        needs.service_columns.update(columns_of(searches, hosts=False))
