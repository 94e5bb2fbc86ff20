"""One calculation of a process: every node once, children first.

A run evaluates tens of thousands of nodes. ``CalculationPlan`` is what a definition means for
calculations, worked out once. Rules: docs/spec/bp.md, "Calculation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, TypeAlias

from attrs import define, field, frozen

from monrest.bp import node_functions as functions
from monrest.bp.core_rows import PEER, CoreRows, Needs, ObjectName
from monrest.bp.custom import EMPTY, Extensions, NodeContext
from monrest.bp.model import ROOT, ProcessDefinition, ProcessNode, status_arguments, text_at
from monrest.bp.node_functions import NONE, Filters, Leaf, NodeOutcome, failed, filters_of
from monrest.bp.node_state import (
    DEFAULT_ORDER,
    NOT_YET,
    OK,
    PENDING,
    UNCHECKED,
    WORDS,
    ChildState,
    NodeState,
    ProcessResult,
    first_line,
    listed,
)
from monrest.bp.statusfilter import columns_of, searches_of
from monrest.query.functions import Moment


@frozen
class NodeStep:
    """One node; ``children`` are ids and labels.

    ``service`` is what it is about if that is a service by name, no filter looks at it, and it is
    not the root.
    """

    node: ProcessNode
    filters: Filters
    children: tuple[tuple[str, str], ...]
    service: ObjectName | None


@define(eq=False)
class CalculationPlan:
    """All steps, children before parents, and what the nodes look at.

    ``services`` are those about services by name, ``others`` the rest and the root.
    ``extended``: code of one's own takes part, which may take any time. ``filters`` are the names
    of all filters that process and nodes name. ``last`` are the states that were calculated last.
    """

    definition: ProcessDefinition
    general: tuple[str, ...]
    steps: tuple[NodeStep, ...]
    services: tuple[tuple[NodeStep, ObjectName], ...]
    others: tuple[NodeStep, ...]
    needs: Needs
    extended: bool
    filters: frozenset[str]
    last: Mapping[str, NodeState] | None = field(default=None, init=False)


def plan(definition: ProcessDefinition, default_filter: Sequence[str]) -> CalculationPlan:
    """Work out a definition under these filters of all processes."""
    general = (*default_filter, *definition.filter)
    steps = tuple(_steps(definition, general))
    needs = Needs()
    add_needs(needs, definition, general)
    return CalculationPlan(
        definition=definition,
        general=tuple(default_filter),
        steps=steps,
        services=tuple((one, one.service) for one in steps if one.service),
        others=tuple(one for one in steps if not one.service),
        needs=needs,
        extended=any(step.filters.others or step.node.function.name == "custom" for step in steps),
        filters=frozenset(definition.filter).union(*(node.filter for node in definition.nodes)),
    )


def _steps(definition: ProcessDefinition, general: Sequence[str]) -> Iterator[NodeStep]:
    for node in definition.order:
        filters = filters_of(general, node.filter)
        service: ObjectName | None = None
        if node.function.name == "status" and filters == NONE and node.id != ROOT:
            wanted = status_arguments(node.function.arguments)
            if wanted.op == "=":
                service = (wanted.host, wanted.service)
        children = tuple((child.id, child.label) for child in definition.children(node))
        yield NodeStep(node, filters, children, service)


def add_needs(
    needs: Needs, definition: ProcessDefinition, general: Sequence[str], *, members: bool = False
) -> None:
    """Add what one process looks at; the host of its name too, whose site is its backend.

    ``general`` are the filters of all nodes. ``members``: of groups the members are needed,
    also without filters.
    """
    needs.hosts.update(definition.host_of(node) for node in definition.exported)
    needs.hosts.add(definition.name)
    for node in definition.nodes:
        name, arguments = node.function.name, node.function.arguments
        if name == "status":
            wanted = status_arguments(arguments)
            (needs.services_of if wanted.op else needs.hosts).add(wanted.host)
            if wanted.op not in ("", "="):
                needs.matched_hosts.add(wanted.host)
        elif name == "groupstatus":
            rows = members or filters_of(general, node.filter).active
            kind, group = text_at(arguments, 0).lower(), text_at(arguments, 1)
            if kind == "hostgroup":
                (needs.member_hostgroups if rows else needs.hostgroups).add(group)
            elif kind == "servicegroup":
                (needs.member_servicegroups if rows else needs.servicegroups).add(group)
        elif name == "statusfilter":
            searches = searches_of(arguments)
            if arguments[1] != "services":
                needs.every_host = True
                needs.host_columns.update(columns_of(searches, hosts=True))
            if arguments[1] != "hosts":
                needs.every_service = True
                needs.service_columns.update(columns_of(searches, hosts=False))


_TEXTS, _TEXTS_PER_NODE = 16_384, 400
"""Characters of what all nodes of a process say."""

_INDENT = "\u2002" * 3
_DEEPEST = 20
_MOST_LINES = 500
_CIRCULAR = "[CIRCULAR DEPENDENCY]"


KnownStates: TypeAlias = Mapping[str, tuple[ProcessDefinition, Mapping[str, NodeState]]]
"""Processes by their number, with the states of their nodes."""


def tree(known: KnownStates, number: str, node: str) -> str:
    """Give the nodes below ``node`` of a process that are not OK, following linked processes."""
    lines: list[str] = []
    for line in _below(known, number, node, 0, ((number, node),)):
        if len(lines) >= _MOST_LINES:
            lines.append("...")
            break
        lines.append(line)
    return "\n".join(lines)


def _below(
    known: KnownStates, number: str, node: str, depth: int, path: tuple[tuple[str, str], ...]
) -> Iterator[str]:
    if depth >= _DEEPEST or number not in known:
        return
    definition, states = known[number]
    if node not in definition.by_id:
        return
    for child in definition.children(definition.by_id[node]):
        state = states.get(child.id, UNCHECKED)
        if state.status == OK:
            continue
        line = f"{_INDENT * depth}- [{child.label}] {WORDS[state.status]} - "
        line += first_line(state.status_text)
        here = (number, child.id) if state.bp_ref is None else (state.bp_ref, ROOT)
        if here in path:
            yield f"{line} {_CIRCULAR}"
            continue
        yield line
        yield from _below(known, *here, depth + 1, (*path, here))


@frozen(kw_only=True)
class CalculationOptions:
    """What of the configuration calculations depend on.

    ``flags``: acknowledgements and downtimes of children are passed on to their parents.
    ``variable`` is the custom variable with the number of a process. ``choose`` gives 0 to 3.
    """

    variable: str
    choose: Callable[[], int]
    default_filter: tuple[str, ...] = ()
    order: tuple[str, ...] = DEFAULT_ORDER
    flags: bool = True
    zone: tzinfo = UTC
    extensions: Extensions = EMPTY


@define(eq=False, kw_only=True)
class ProcessCalculation:
    """One run for one process; ``known`` are the others, which outputs may follow.

    ``took`` gives in the end how many seconds all of it took.
    """

    number: str
    plan: CalculationPlan
    before: ProcessResult
    live: CoreRows
    options: CalculationOptions
    now: float
    known: KnownStates
    took: Callable[[], float] = lambda: 0.0
    definition: ProcessDefinition = field(init=False)
    states: dict[str, NodeState] = field(factory=dict, init=False)
    root: NodeOutcome | None = field(default=None, init=False)
    leaf: Leaf = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.definition = self.plan.definition
        self.leaf = Leaf(
            live=self.live,
            hard=self.definition.state_type == "hard",
            order=self.options.order,
            moment=Moment(self.now, self.options.zone),
            variable=self.options.variable,
        )

    def run(self) -> ProcessResult:
        """Evaluate all nodes and then the process."""
        plan = self.plan
        left: Sequence[NodeStep] = plan.steps
        if not self.leaf.hard:
            # Nearly all nodes are services by name; they need no children and come first.
            missing = self._services()
            left = plan.others if not missing else [*missing, *plan.others]
        for step in left:
            node = step.node
            if node.function.name in _OF_CHILDREN and not step.filters.listening:
                if self._stays(step):
                    self.states[node.id] = self.before.nodes[node.id]
                    continue
                outcome = self._over(node, self._items(step))
            else:
                outcome = self._outcome(step)
            self.states[node.id] = self._noted(node, outcome)
            if node.id == ROOT:
                self.root = outcome
        self._bound_texts()
        # Only now: when a calculation fails its process keeps the states of before.
        plan.last = self.states
        return self._result()

    def _services(self) -> list[NodeStep]:
        """Set the states of nodes about services whose soft states count and no filter looks at.

        The same as ``Leaf.status`` in less time. Gives the nodes whose service is missing.
        """
        live, leaf = self.live, self.leaf
        missing: list[NodeStep] = []
        for step, pair in self.plan.services:
            row = live.services.get(pair)
            if row is None:
                missing.append(step)
                continue
            leaf.peers.add(row[PEER])
            state = live.service_states.get(pair)
            if state is None:
                state = live.service_states[pair] = leaf.of_service(row)
            self.states[step.node.id] = state
        return missing

    def _stays(self, step: NodeStep) -> bool:
        """Whether a node keeps its state: nothing that it looks at is another than before."""
        now, before = self.states, self.before.nodes
        if self.plan.last is not before or step.node.id == ROOT:
            return False
        for number, _ in step.children:
            new, old = now[number], before[number]
            if new is not old and not (
                new.same_state(old) and first_line(new.status_text) == first_line(old.status_text)
            ):
                return False
        return True

    def _outcome(self, step: NodeStep) -> NodeOutcome:
        node, filters = step.node, step.filters
        items = self._items(step)
        extensions = self.options.extensions
        about = NodeContext(self.now, self.number, self.definition, node)
        for one in filters.others:
            extensions.before(one, about, items)
        name, arguments = node.function.name, node.function.arguments
        if name == "status":
            before = self.before.node(node.id).status_text
            outcome = self.leaf.status(arguments, filters, "" if before == NOT_YET else before)
        elif name == "groupstatus":
            outcome = self.leaf.groupstatus(arguments, filters)
        elif name == "statusfilter":
            outcome = self.leaf.statusfilter(arguments, filters)
        else:
            outcome = self._over(node, items)
        for one in filters.others:
            outcome = extensions.after(one, about, items, outcome)
        if filters.recursive_output:
            reached = {**self.known, self.number: (self.definition, self.states)}
            outcome = outcome._replace(long_output=tree(reached, self.number, node.id))
        return outcome

    def _over(self, node: ProcessNode, items: list[ChildState]) -> NodeOutcome:
        """Evaluate a function that looks at no rows."""
        options, name, arguments = self.options, node.function.name, node.function.arguments
        if name in ("worst", "best"):
            return functions.worst_of(
                items, options.order, best=name == "best", flags=options.flags
            )
        if name in _COUNTING:
            return _COUNTING[name](arguments, items)
        if name == "fixed":
            return functions.fixed(arguments)
        if name == "random":
            return functions.random(options.choose())
        if name == "custom":
            about = NodeContext(self.now, self.number, self.definition, node)
            return options.extensions.call(arguments, about, items, self.live)
        return failed("no function")

    def _items(self, step: NodeStep) -> list[ChildState]:
        states, filters = self.states, step.filters
        if not filters.active:
            return [(label, states[number]) for number, label in step.children]
        items: list[ChildState] = []
        for number, label in step.children:
            one = states[number]
            status = filters.state(one.status, one.acknowledged, one.scheduled_downtime_depth)
            items.append((label, one._replace(status=status)))
        return items

    def _noted(self, node: ProcessNode, outcome: NodeOutcome) -> NodeState:
        before = self.before.node(node.id)
        downtime = 1 if outcome.scheduled_downtime_depth else 0
        acknowledged = 1 if outcome.acknowledged else 0
        changed = outcome.last_state_change
        if changed is None:
            changed = before.last_state_change
            if (before.status, before.acknowledged, before.scheduled_downtime_depth) != (
                outcome.status,
                acknowledged,
                downtime,
            ):
                changed = int(self.now)
        return NodeState(
            outcome.status,
            outcome.text or outcome.short,
            outcome.short,
            outcome.last_check or 0,
            changed,
            acknowledged,
            downtime,
            outcome.bp_ref,
            outcome.bp_ref_peer,
        )

    def _bound_texts(self) -> None:
        """Cut the longest texts where all of them together are too long to be stored and listed."""
        states = self.states
        left, count = _TEXTS + _TEXTS_PER_NODE * len(states), len(states)
        lengths = sorted(len(one.status_text) + len(one.short_desc) for one in states.values())
        if sum(lengths) <= left:
            return
        for length in lengths:
            if length * count > left:
                break
            left, count = left - length, count - 1
        most = left // count // 2
        for number, one in states.items():
            if len(one.status_text) > most or len(one.short_desc) > most:
                states[number] = one._replace(
                    status_text=one.status_text[:most], short_desc=one.short_desc[:most]
                )

    def _result(self) -> ProcessResult:
        before, now, root = self.before, int(self.now), self.root
        status = PENDING if root is None else root.status
        return ProcessResult(
            status=status,
            status_text="no nodes" if root is None else self._text(root),
            last_check=now,
            last_state_change=before.last_state_change if status == before.status else now,
            time=self.took(),
            affected_peers=tuple(sorted(self.leaf.peers)),
            bp_backend=self._backend(),
            nodes=self.states,
        )

    def _text(self, root: NodeOutcome) -> str:
        definition, state = self.definition, self.states[ROOT]
        node = definition.by_id[ROOT]
        children = definition.children(node)
        if root.output is not None:
            found = root.output
        elif not children or node.function.name == "custom":
            found = state.status_text
        elif state.status == OK:
            found = f"{WORDS[OK]} - everything is fine"
        else:
            word = WORDS[state.status]
            labels = [one.label for one in children if self.states[one.id].same_state(state)]
            if labels:
                found = f"{word} - {listed(labels)} {word.lower()}"
            else:
                found = f"{word} - {state.status_text}"
        return f"{found}\n{root.long_output}" if root.long_output else found

    def _backend(self) -> str | None:
        """Give the site with a host that is named like the process and has its number."""
        row = self.live.hosts.get(self.definition.name)
        if row is None or self.leaf.number_of(row) != self.number:
            return None
        peer: str = row[-1]
        return peer


_OF_CHILDREN = frozenset({"worst", "best", "at_least", "not_more", "equals", "fixed"})
_COUNTING: Mapping[str, Callable[[Sequence[Any], list[ChildState]], NodeOutcome]] = {
    "at_least": functions.at_least,
    "not_more": functions.not_more,
    "equals": functions.equals,
}
