"""One calculation of a process: every node once, children first (frontend-data.md, section 2.7)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from attrs import define, evolve, field, frozen

from monrest.bp import functions
from monrest.bp.custom import EMPTY, Extensions
from monrest.bp.filters import Filters, filters_of
from monrest.bp.functions import Item, Outcome, failed
from monrest.bp.leaves import Leaf
from monrest.bp.live import Live, Needs
from monrest.bp.record import ROOT, Definition, Node
from monrest.bp.results import NOT_YET, NodeState, Result
from monrest.bp.search import Moment, columns_of
from monrest.bp.states import DEFAULT_ORDER, OK, PENDING, WORDS, listed
from monrest.bp.syntax import matching_of, text_at
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


# -------------------------------------------------------------------- what is needed


def add_needs(
    needs: Needs, definition: Definition, options: Options, *, members: bool = False
) -> None:
    """Add what one process looks at; the host of its name too, which tells its backend.

    ``members``: of groups the members are needed, whatever filters say.
    """
    needs.hosts.update(definition.host_of(node) for node in definition.exported())
    needs.hosts.add(definition.name)
    general = (*options.default_filter, *definition.filter)
    for node in definition.nodes:
        name, arguments = node.function.name, node.function.arguments
        if name == "status":
            host, service, op = (text_at(arguments, at) for at in range(3))
            if service:
                needs.services_of.add(host)
                if matching_of(service, op)[0] != "=":
                    needs.matched_hosts.add(host)
            else:
                needs.hosts.add(host)
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


def uses_extensions(definition: Definition, options: Options) -> bool:
    """Whether code of one's own takes part, which may take any time."""
    general = (*options.default_filter, *definition.filter)
    return any(
        node.function.name == "custom" or filters_of(general, node.filter).others
        for node in definition.nodes
    )


# -------------------------------------------------------------------- calculation


@define(eq=False, kw_only=True)
class Calculation:
    """One run for one process; ``known`` are the others, which outputs may follow.

    ``steps`` is to be run in slices; it gives the new result, whose ``time`` is that of before.
    """

    number: str
    definition: Definition
    before: Result
    live: Live
    options: Options
    now: float
    known: Known
    states: dict[str, NodeState] = field(factory=dict, init=False)
    root: Outcome | None = field(default=None, init=False)
    leaf: Leaf = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.leaf = Leaf(
            live=self.live,
            hard=self.definition.state_type == "hard",
            order=self.options.order,
            moment=Moment(self.now, self.options.zone),
            variable=self.options.variable,
        )

    def steps(self) -> Generator[None, None, Result]:
        """Evaluate all nodes and then the process."""
        general = (*self.options.default_filter, *self.definition.filter)
        always = filters_of(general, ())
        for count, node in enumerate(self.definition.order):
            if count % _SLICE == 0:
                yield
            filters = filters_of(general, node.filter) if node.filter else always
            outcome = yield from self._outcome(node, filters)
            self.states[node.id] = self._noted(node, outcome)
            if node.id == ROOT:
                self.root = outcome
        return self._result()

    def _outcome(self, node: Node, filters: Filters) -> Generator[None, None, Outcome]:
        items = self._items(node, filters)
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
            outcome = evolve(outcome, long_output=tree(reached, self.number, node.id))
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

    def _items(self, node: Node, filters: Filters) -> list[Item]:
        """Give the children as they count."""
        items: list[Item] = []
        for child in self.definition.children(node):
            state = self.states[child.id]
            acknowledged, downtime = state.acknowledged, state.scheduled_downtime_depth
            items.append(
                Item(
                    child.label,
                    filters.state(state.status, acknowledged, downtime),
                    state.status_text,
                    acknowledged,
                    downtime,
                )
            )
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
            time=before.time,
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


_COUNTING: Mapping[str, Callable[[Sequence[Any], list[Item]], Outcome]] = {
    "at_least": functions.at_least,
    "not_more": functions.not_more,
    "equals": functions.equals,
}
