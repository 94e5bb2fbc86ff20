"""One calculation of a process: every node once, children first.

A run evaluates tens of thousands of nodes. Rules: docs/spec/bp.md, "Calculation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TypeAlias

from attrs import define, field, frozen

from monrest.bp.core_rows import CoreRows, Needs
from monrest.bp.custom import EMPTY, Extensions, NodeContext
from monrest.bp.function import (
    FunctionArgument,
    GroupObjects,
    NodeObjects,
    SearchedObjects,
    StatusObjects,
    text_at,
)
from monrest.bp.model import ROOT, ProcessDefinition, ProcessNode
from monrest.bp.node_functions import (
    Filters,
    NodeOutcome,
    ObjectFunctions,
    at_least,
    equals,
    failed,
    filters_of,
    fixed,
    not_more,
    random,
    worst_of,
)
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
from monrest.query.functions import Moment


def add_needs(
    needs: Needs, definition: ProcessDefinition, general: Sequence[str], *, members: bool = False
) -> None:
    """Add the objects of one process, and the host of its name, whose site is its backend.

    ``general`` are the filters of all processes. ``members``: of groups the members are needed,
    also without filters.
    """
    needs.hosts.update(definition.host_of(node) for node in definition.exported)
    needs.hosts.add(definition.name)
    for node in definition.nodes:
        objects = node.function.objects
        if objects is not None:
            filters = filters_of((*general, *definition.filter), node.filter)
            objects.need(needs, members=members or filters.active)


_TEXT_LIMIT, _TEXT_PER_NODE = 16_384, 400
"""Limits of the characters in the texts of all nodes of a process together."""

_INDENT = "\u2002" * 3
_DEEPEST = 20
_MOST_LINES = 500
_CIRCULAR = "[CIRCULAR DEPENDENCY]"


KnownStates: TypeAlias = Mapping[str, tuple[ProcessDefinition, Mapping[str, NodeState]]]
"""Processes by their number, with the states of their nodes."""


def tree(states: KnownStates, number: str, node: str) -> str:
    """Return the nodes below ``node`` of a process that are not OK, following linked processes."""
    lines: list[str] = []
    for line in _below(states, number, node, 0, ((number, node),)):
        if len(lines) >= _MOST_LINES:
            lines.append("...")
            break
        lines.append(line)
    return "\n".join(lines)


def _below(
    reached: KnownStates, number: str, node: str, depth: int, path: tuple[tuple[str, str], ...]
) -> Iterator[str]:
    if depth >= _DEEPEST or number not in reached:
        return
    definition, states = reached[number]
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
        yield from _below(reached, *here, depth + 1, (*path, here))


@frozen(kw_only=True)
class CalculationOptions:
    """The settings on which calculations depend.

    ``flags``: acknowledgements and downtimes of children are passed on to their parents.
    ``variable`` is the custom variable with the number of a process. ``choose`` returns 0 to 3.
    """

    variable: str
    choose: Callable[[], int]
    default_filter: tuple[str, ...] = ()
    order: tuple[str, ...] = DEFAULT_ORDER
    flags: bool = True
    zone: tzinfo = UTC
    extensions: Extensions = EMPTY


_Evaluate: TypeAlias = Callable[
    [CalculationOptions, Sequence[FunctionArgument], Sequence[ChildState]], NodeOutcome
]

_PLAIN_FUNCTIONS: Mapping[str, _Evaluate] = {
    "": lambda *_: failed("no function"),
    "worst": lambda options, _, items: worst_of(items, options.order, flags=options.flags),
    "best": lambda options, _, items: worst_of(
        items, options.order, best=True, flags=options.flags
    ),
    "at_least": lambda _, arguments, items: at_least(arguments, items),
    "not_more": lambda _, arguments, items: not_more(arguments, items),
    "equals": lambda _, arguments, items: equals(arguments, items),
    "fixed": lambda _, arguments, __: fixed(arguments),
    "random": lambda options, *_: random(options.choose()),
}


@define(eq=False, kw_only=True)
class ProcessCalculation:
    """One run for one process; ``known`` are the states of all, for the output of linked ones.

    ``elapsed`` returns the seconds of the run until now, with its queries.
    """

    number: str
    definition: ProcessDefinition
    before: ProcessResult
    live: CoreRows
    options: CalculationOptions
    now: float
    known: KnownStates
    elapsed: Callable[[], float] = lambda: 0.0
    states: dict[str, NodeState] = field(factory=dict, init=False)
    root: NodeOutcome | None = field(default=None, init=False)
    objects: ObjectFunctions = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.objects = ObjectFunctions(
            live=self.live,
            hard=self.definition.state_type == "hard",
            order=self.options.order,
            moment=Moment(self.now, self.options.zone),
            variable=self.options.variable,
        )

    def run(self) -> ProcessResult:
        """Evaluate all nodes and then the process."""
        general = (*self.options.default_filter, *self.definition.filter)
        for node in self.definition.order:
            outcome = self._outcome(node, filters_of(general, node.filter))
            self.states[node.id] = self._state_of(node, outcome)
            if node.id == ROOT:
                self.root = outcome
        self._limit_texts()
        return self._result()

    def _outcome(self, node: ProcessNode, filters: Filters) -> NodeOutcome:
        children = self.definition.children(node)
        items: list[ChildState] = [(child.label, self.states[child.id]) for child in children]
        if filters.active:
            items = [
                (label, state._replace(status=filters.state(*state.condition)))
                for label, state in items
            ]
        extensions, function = self.options.extensions, node.function
        for other in filters.others:
            extensions.before(other, self._context(node), items)
        if function.objects is not None:
            outcome = self._of_objects(node, function.objects, filters)
        elif function.name == "custom":
            context = self._context(node)
            outcome = extensions.call(function.arguments, context, items, self.live)
        else:
            outcome = _PLAIN_FUNCTIONS[function.name](self.options, function.arguments, items)
        for other in filters.others:
            outcome = extensions.after(other, self._context(node), items, outcome)
        if filters.recursive_output:
            reached = {**self.known, self.number: (self.definition, self.states)}
            outcome = outcome._replace(long_output=tree(reached, self.number, node.id))
        return outcome

    def _context(self, node: ProcessNode) -> NodeContext:
        return NodeContext(self.now, self.number, self.definition, node)

    def _of_objects(self, node: ProcessNode, objects: NodeObjects, filters: Filters) -> NodeOutcome:
        arguments = node.function.arguments
        if isinstance(objects, StatusObjects):
            before = self.before.node(node.id).status_text
            return self.objects.status(objects, filters, "" if before == NOT_YET else before)
        if isinstance(objects, GroupObjects):
            return self.objects.groupstatus(objects, arguments[2:6], filters)
        assert isinstance(objects, SearchedObjects)
        return self.objects.statusfilter(objects, text_at(arguments, 0), arguments[3:7], filters)

    def _state_of(self, node: ProcessNode, outcome: NodeOutcome) -> NodeState:
        before, changed = self.before.node(node.id), outcome.last_state_change
        state = NodeState(
            outcome.status,
            outcome.text or outcome.short,
            outcome.short,
            outcome.last_check or 0,
            before.last_state_change if changed is None else changed,
            1 if outcome.acknowledged else 0,
            1 if outcome.scheduled_downtime_depth else 0,
            outcome.bp_ref,
            outcome.bp_ref_peer,
        )
        if changed is None and state.condition != before.condition:
            return state._replace(last_state_change=int(self.now))
        return state

    def _limit_texts(self) -> None:
        """Cut the longest texts where all of them together are too long to be stored and listed."""
        states = self.states
        left, count = _TEXT_LIMIT + _TEXT_PER_NODE * len(states), len(states)
        lengths = sorted(
            len(state.status_text) + len(state.short_desc) for state in states.values()
        )
        if sum(lengths) <= left:
            return
        for length in lengths:
            if length * count > left:
                break
            left, count = left - length, count - 1
        most = left // count // 2
        for number, state in states.items():
            if len(state.status_text) > most or len(state.short_desc) > most:
                states[number] = state._replace(
                    status_text=state.status_text[:most], short_desc=state.short_desc[:most]
                )

    def _result(self) -> ProcessResult:
        before, now, root = self.before, int(self.now), self.root
        status = PENDING if root is None else root.status
        return ProcessResult(
            status=status,
            status_text="no nodes" if root is None else self._text(root),
            last_check=now,
            last_state_change=before.last_state_change if status == before.status else now,
            time=self.elapsed(),
            affected_peers=tuple(sorted(self.objects.peers)),
            bp_backend=self._backend(),
            nodes=self.states,
        )

    def _text(self, root: NodeOutcome) -> str:
        definition, state = self.definition, self.states[ROOT]
        node = definition.by_id[ROOT]
        children = definition.children(node)
        if root.output is not None:
            text = root.output
        elif not children or node.function.name == "custom":
            text = state.status_text
        elif state.status == OK:
            text = f"{WORDS[OK]} - everything is fine"
        else:
            word = WORDS[state.status]
            labels = [
                child.label
                for child in children
                if self.states[child.id].condition == state.condition
            ]
            if labels:
                text = f"{word} - {listed(labels)} {word.lower()}"
            else:
                text = f"{word} - {state.status_text}"
        return f"{text}\n{root.long_output}" if root.long_output else text

    def _backend(self) -> str | None:
        """Return the site with a host that is named like the process and has its number."""
        row = self.live.hosts.get(self.definition.name)
        if row is None or self.objects.number_of(row) != self.number:
            return None
        peer: str = row[-1]
        return peer
