"""One calculation of a process: every node once, children first.

Rules: docs/spec/bp.md, "Calculation".
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from attrs import define, field, frozen

from monrest.bp import functions
from monrest.bp.custom import EMPTY, Extensions
from monrest.bp.functions import Outcome, failed
from monrest.bp.leaves import Leaf
from monrest.bp.live import Live
from monrest.bp.model import ROOT, Definition, Node
from monrest.bp.plan import Plan, Step
from monrest.bp.results import NOT_YET, Result
from monrest.bp.search import Moment
from monrest.bp.states import DEFAULT_ORDER, OK, PENDING, WORDS, Item, NodeState, first_line, listed
from monrest.bp.tree import Known, tree

_SLICE = 20


@frozen(kw_only=True)
class Options:
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


# -------------------------------------------------------------------- calculation


@define(eq=False, kw_only=True)
class Calculation:
    """One run for one process; ``known`` are the others, which outputs may follow.

    ``steps`` is to be run in slices; it gives the new result. ``took`` is asked in the end how many
    seconds all of it took.
    """

    number: str
    plan: Plan
    before: Result
    live: Live
    options: Options
    now: float
    known: Known
    took: Callable[[], float] = lambda: 0.0
    definition: Definition = field(init=False)
    states: dict[str, NodeState] = field(factory=dict, init=False)
    root: Outcome | None = field(default=None, init=False)
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

    def steps(self) -> Generator[None, None, Result]:
        """Evaluate all nodes and then the process."""
        yield
        plan = self.plan
        left: Sequence[Step] = plan.steps
        if not self.leaf.hard:
            # Nearly all nodes are services by name; they need no children and come first.
            missing = self.leaf.services(plan, self.states)
            left = plan.others if not missing else [*missing, *plan.others]
        for count, step in enumerate(left):
            if count % _SLICE == 0:
                yield
            node = step.node
            if node.function.name in _OF_CHILDREN and not step.filters.listening:
                if self._stays(step):
                    self.states[node.id] = self.before.nodes[node.id]
                    continue
                outcome = self._over(node, node.function.name, self._items(step), {})
            else:
                outcome = yield from self._outcome(step)
            self.states[node.id] = self._noted(node, outcome)
            if node.id == ROOT:
                self.root = outcome
        # Only now: when a calculation fails its process keeps the states of before.
        plan.last = self.states
        return self._result()

    def _stays(self, step: Step) -> bool:
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

    def _outcome(self, step: Step) -> Generator[None, None, Outcome]:
        node, filters = step.node, step.filters
        items = self._items(step)
        extensions = self.options.extensions
        context = {"now": self.now, "id": self.number}
        for one in filters.others:
            extensions.before(one, context, self.definition, node, items)
        name, arguments = node.function.name, node.function.arguments
        if name == "status":
            before = self.before.node(node.id).status_text
            outcome = self.leaf.status(arguments, filters, "" if before == NOT_YET else before)
        elif name == "groupstatus":
            outcome = yield from self.leaf.groupstatus(arguments, filters)
        elif name == "statusfilter":
            outcome = yield from self.leaf.statusfilter(arguments, filters)
        else:
            outcome = self._over(node, name, items, context)
        for one in filters.others:
            outcome = extensions.after(one, context, self.definition, node, items, outcome)
        if filters.recursive_output:
            reached = Known({**self.known.all, self.number: (self.definition, self.states)})
            outcome = outcome._replace(long_output=tree(reached, self.number, node.id))
        return outcome

    def _over(
        self, node: Node, name: str, items: list[Item], context: Mapping[str, Any]
    ) -> Outcome:
        arguments, options = node.function.arguments, self.options
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
            return options.extensions.call(
                arguments, context, self.definition, node, items, self.live
            )
        return failed("no function")

    def _items(self, step: Step) -> list[Item]:
        """Give the children as they count."""
        states, filters = self.states, step.filters
        if not filters.active:
            return [(label, states[number]) for number, label in step.children]
        items: list[Item] = []
        for number, label in step.children:
            one = states[number]
            status = filters.state(one.status, one.acknowledged, one.scheduled_downtime_depth)
            items.append((label, one._replace(status=status)))
        return items

    def _noted(self, node: Node, outcome: Outcome) -> NodeState:
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

    # ---------------------------------------------------------------- the process

    def _result(self) -> Result:
        before, now, root = self.before, int(self.now), self.root
        status = PENDING if root is None else root.status
        return Result(
            status=status,
            status_text="no nodes" if root is None else self._text(root),
            last_check=now,
            last_state_change=before.last_state_change if status == before.status else now,
            time=self.took(),
            affected_peers=tuple(sorted(self.leaf.peers)),
            bp_backend=self._backend(),
            nodes=self.states,
        )

    def _text(self, root: Outcome) -> str:
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
_COUNTING: Mapping[str, Callable[[Sequence[Any], list[Item]], Outcome]] = {
    "at_least": functions.at_least,
    "not_more": functions.not_more,
    "equals": functions.equals,
}
