"""The functions of nodes over their children and over rows of the cores.

A value of a wrong type in a row is 0, empty or unknown: wrong data from a core must not break a
calculation. Rules: docs/spec/bp.md, "Functions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from attrs import define, field, frozen

from monrest.base.values import Row
from monrest.bp.core_rows import (
    ACKNOWLEDGED,
    DOWNTIME,
    HARD_CHANGE,
    HARD_STATE,
    HOST,
    LAST_CHANGE,
    LAST_CHECK,
    LONG_OUTPUT,
    MOST_SHOWN,
    OUTPUT,
    PEER,
    SERVICE,
    STATE,
    STATE_TYPE,
    VARIABLES,
    CoreRows,
    GroupCounts,
    NodeTally,
    number,
    text,
)
from monrest.bp.function import (
    GroupObjects,
    NodeObjects,
    SearchedObjects,
    StatusObjects,
    text_at,
)
from monrest.bp.node_state import (
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
    WORDS,
    ChildState,
    NodeState,
    first_line,
    good,
    listed,
    worst_group,
)
from monrest.query.functions import Moment

_LIMIT = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)(%?)\Z")


def limit_of(text: str, total: int) -> float | None:
    """Return the number that a limit stands for; None when it is none.

    ``n%`` is the share of ``total``; zero and negative percentages are 0.
    """
    match = _LIMIT.match(text)
    if match is None:
        return None
    value = float(match[1])
    if not match[2]:
        return value
    return total * value / 100 if value > 0 else 0.0


_DOWNTIME_FILTER = "downtime_filter"
_ACKNOWLEDGED_FILTER = "acknowledged_filter"
_UNKNOWN_FILTER = "unknown_filter"
_OUTPUT_FILTER = "add_recursive_output_filter"
BUILT_IN = (_DOWNTIME_FILTER, _ACKNOWLEDGED_FILTER, _UNKNOWN_FILTER, _OUTPUT_FILTER)
"""The filters that need no file of the operator."""

_STATE_UNKNOWN = 3


@frozen
class Filters:
    """The active filters of a node; ``others`` are those of the operator, in the order to run."""

    downtime: bool = False
    acknowledged: bool = False
    unknown: bool = False
    recursive_output: bool = False
    others: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Whether any filter needs the rows of objects and not only counts."""
        return self.downtime or self.acknowledged or self.unknown or bool(self.others)

    def state(self, state: int, acknowledged: int, downtime: int) -> int:
        """Return the state as which a host, a service or a child counts."""
        if (
            (self.downtime and downtime)
            or (self.acknowledged and acknowledged)
            or (self.unknown and state == _STATE_UNKNOWN)
        ):
            return 0
        return state


NONE = Filters()


def filters_of(general: Sequence[str], own: Sequence[str]) -> Filters:
    """Return the filters of a node: the global ones, then its own, each in the order of names."""
    if not general and not own:
        return NONE
    names = dict.fromkeys([*sorted(set(general)), *sorted(set(own))])
    return Filters(
        downtime=_DOWNTIME_FILTER in names,
        acknowledged=_ACKNOWLEDGED_FILTER in names,
        unknown=_UNKNOWN_FILTER in names,
        recursive_output=_OUTPUT_FILTER in names,
        others=tuple(name for name in names if name not in BUILT_IN),
    )


_LONGEST_LINE, _MOST_LINES = 500, 200
"""Of the children in the text of a node: characters of each, and how many."""

NO_CHILDREN = "no dependent nodes"


class NodeOutcome(NamedTuple):
    """The result of a function; ``last_check`` and ``last_state_change`` are None for "now".

    ``output`` replaces the text of a process whose root this is, ``long_output`` follows it.
    """

    status: int
    short: str
    text: str = ""
    last_check: int | None = None
    last_state_change: int | None = None
    acknowledged: int = 0
    scheduled_downtime_depth: int = 0
    bp_ref: str | None = None
    bp_ref_peer: str | None = None
    output: str | None = None
    long_output: str = ""


def failed(reason: str, *, short: str = "") -> NodeOutcome:
    """Return the outcome of a function without a result."""
    return NodeOutcome(status=UNKNOWN, short=short or reason, text=reason if short else "")


def worst_of(
    items: Sequence[ChildState],
    order: Sequence[str],
    *,
    best: bool = False,
    short: str = "",
    flags: bool = True,
) -> NodeOutcome:
    """Return the worst or best state of the children; ``flags``: with the flags of that child."""
    group = worst_group(items, order, best=best)
    if not group:
        return failed(NO_CHILDREN)
    first = group[0][1]
    word, name = WORDS[first.status], "Best" if best else "Worst"
    labels = [label for label, _ in group]
    details = ""
    if first.status != OK:
        # Parents repeat this text.
        lines = [
            f"\n- [{label}] {word} - {first_line(state[1])}"[:_LONGEST_LINE]
            for label, state in group[:_MOST_LINES]
        ]
        details = "".join(lines)
        if len(group) > _MOST_LINES:
            details += f"\n- {len(group) - _MOST_LINES} more"
    states = [state.status for _, state in items]
    ok, warning, critical, unknown, pending = map(states.count, range(len(WORDS)))
    return NodeOutcome(
        status=first.status,
        short=short or f"{name.lower()} of",
        text=(
            f"{word} - {name} state is {word}: {listed(labels)}{details}"
            f"| services_ok={ok} services_warning={warning} services_unknown={unknown} "
            f"services_critical={critical} services_pending={pending}"
        ),
        acknowledged=first.acknowledged if flags else 0,
        scheduled_downtime_depth=first.scheduled_downtime_depth if flags else 0,
    )


def at_least(arguments: Sequence[Any], items: Sequence[ChildState]) -> NodeOutcome:
    """Critical when no more than the second limit are good, warning when no more than the first."""
    return _limited(arguments, items, ">=", lambda count, limit: count <= limit)


def not_more(arguments: Sequence[Any], items: Sequence[ChildState]) -> NodeOutcome:
    """Critical when more than the second limit are good, warning when more than the first."""
    return _limited(arguments, items, "<=", lambda count, limit: count > limit)


def _limited(
    arguments: Sequence[Any],
    items: Sequence[ChildState],
    sign: str,
    beyond: Callable[[float, float], bool],
) -> NodeOutcome:
    first = text_at(arguments, 0)
    second = text_at(arguments, 1) or first
    total = len(items)
    warning, critical = limit_of(first, total), limit_of(second, total)
    if warning is None:
        return failed("warning threshold must be numeric")
    if critical is None:
        return failed("critical threshold must be numeric")
    count = good(items)
    status = WARNING if beyond(count, warning) else OK
    if beyond(count, critical):
        status = CRITICAL
    both = first if first == second else f"{first},{second}"
    return _available(status, f"{sign} {both}", count, total, warning, critical)


def _available(
    status: int, short: str, count: int, total: int, warning: float, critical: float
) -> NodeOutcome:
    limits = f"{warning:.6f};{critical:.6f}"
    return NodeOutcome(
        status=status,
        short=short,
        text=(
            f"{WORDS[status]} - {count}/{total} nodes are available|good={count};{limits};0;{total}"
        ),
    )


def equals(arguments: Sequence[Any], items: Sequence[ChildState]) -> NodeOutcome:
    """Critical unless exactly so many are good."""
    given = text_at(arguments, 0)
    limit = limit_of(given, len(items))
    if limit is None:
        return failed("threshold must be numeric")
    if not items:
        return failed(NO_CHILDREN)
    count = good(items)
    status = OK if count == limit else CRITICAL
    return _available(status, f"= {given}", count, len(items), limit, limit)


_FIXED = {"0": OK, "ok": OK, "1": WARNING, "warning": WARNING}
_FIXED |= {"2": CRITICAL, "critical": CRITICAL, "down": CRITICAL}


def fixed(arguments: Sequence[Any]) -> NodeOutcome:
    status = _FIXED.get(text_at(arguments, 0).lower(), UNKNOWN)
    return NodeOutcome(status=status, short="fixed", text=text_at(arguments, 1) or WORDS[status])


def random(choice: int) -> NodeOutcome:
    word = WORDS[choice]
    return NodeOutcome(status=choice, short="random", text=f"{word} - Random state is {word}")


def limits(
    arguments: Sequence[Any], hosts: NodeTally | None, services: NodeTally | None
) -> tuple[int | None, str]:
    """Return the state by the limits hostwarn, hostcrit, servicewarn and servicecrit.

    None without any limit; a text for a limit that is no number.
    """
    status: int | None = None
    sides = (("host", hosts), ("service", services))
    levels = [(*side, level) for side in sides for level in (WARNING, CRITICAL)]
    for at, (kind, tally, level) in enumerate(levels):
        given = text_at(arguments, at)
        if not given or tally is None:
            continue
        limit = limit_of(given, tally.total)
        if limit is None:
            return UNKNOWN, f"UNKNOWN - {kind} {WORDS[level].lower()} threshold must be numeric"
        status = status or OK
        if tally.bad >= limit:
            status = max(status, level)
    return status, ""


_NO_OUTPUT = "no plugin output yet"
_HARD = 1
_LONGEST_OUTPUT = 50
_HOST_WORDS = ("UP", "DOWN", "UNREACHABLE")


def _state(value: Any, *, host: bool = False) -> int:
    if type(value) is not int or not 0 <= value <= UNKNOWN:
        return UNKNOWN
    return CRITICAL if host and value == 1 else value


@define(eq=False)
class ObjectFunctions:
    """Evaluates the functions over rows, for one process; ``peers`` collects the sites of the rows.

    ``variable`` is the name of the custom variable with the number of a process.
    """

    live: CoreRows
    hard: bool
    order: Sequence[str]
    moment: Moment
    variable: str
    peers: set[str] = field(factory=set)

    def status(self, wanted: StatusObjects, filters: Filters, previous: str) -> NodeOutcome:
        """Return the state of a host or a service, or the worst or best of some on a host.

        ``previous`` is the text of the node before, for soft states that do not count.
        """
        rows = wanted.rows(self.live, self.moment)
        if wanted.op == "":
            if not rows.hosts:
                return failed("no such host")
            return self._row(rows.hosts[0], filters, previous, host=True)
        if wanted.op == "=":
            if not rows.services:
                return failed("no such service")
            return self._row(rows.services[0], filters, previous, host=False)
        if not rows.services:
            return failed("no matching hosts/services found")
        items: list[ChildState] = []
        for row in rows.services:
            outcome = self._row(row, filters, "", host=False)
            state = NodeState(
                status=outcome.status,
                status_text=outcome.short,
                acknowledged=outcome.acknowledged,
                scheduled_downtime_depth=outcome.scheduled_downtime_depth,
            )
            items.append((text(row[SERVICE]), state))
        word = "best" if wanted.best else "worst"
        short = f"{word} of {wanted.host}: {wanted.op} {wanted.service}"
        return worst_of(items, self.order, best=wanted.best, short=short)

    def _row(self, row: Row, filters: Filters, previous: str, *, host: bool) -> NodeOutcome:
        self.peers.add(row[PEER])
        acknowledged, downtime = int(bool(row[ACKNOWLEDGED])), int(bool(row[DOWNTIME]))
        if self.hard and row[STATE_TYPE] != _HARD:
            state, changed = _state(row[HARD_STATE], host=host), row[HARD_CHANGE]
            output = previous or _NO_OUTPUT
        else:
            state, changed = _state(row[STATE], host=host), row[LAST_CHANGE]
            output = f"{text(row[OUTPUT])}\n{text(row[LONG_OUTPUT])}"
        reference = None if host else self.number_of(row)
        return NodeOutcome(
            status=filters.state(state, acknowledged, downtime),
            short=text(row[OUTPUT]),
            text=output,
            last_check=number(row[LAST_CHECK]),
            last_state_change=number(changed),
            acknowledged=acknowledged,
            scheduled_downtime_depth=downtime,
            bp_ref=reference,
            bp_ref_peer=None if reference is None else row[PEER],
        )

    def number_of(self, row: Row) -> str | None:
        """The number of the process to which a host, or the host of a service, belongs."""
        variables = row[VARIABLES]
        value = variables.get(self.variable) if isinstance(variables, dict) else None
        return None if value is None else str(value)

    def groupstatus(
        self, group: GroupObjects, thresholds: Sequence[Any], filters: Filters
    ) -> NodeOutcome:
        if group.kind not in ("hostgroup", "servicegroup"):
            return failed("expected hostgroup or servicegroup as first argument")
        of_hosts = group.kind == "hostgroup"
        if filters.active:
            hosts, services = self._tallies(group, filters)
            present = bool(hosts.total or services.total)
        else:
            groups = self.live.hostgroups if of_hosts else self.live.servicegroups
            present = group.name in groups
            counts = groups.get(group.name) or GroupCounts()
            hosts, services = counts.hosts, counts.services
            self.peers |= counts.peers
        if not present:
            return failed(f"no such {group.kind}")
        short = f"{group.name} ({group.kind})"
        sides = (hosts if of_hosts else None, services)
        status, problem = limits(thresholds, *sides)
        if problem:
            return NodeOutcome(status=UNKNOWN, short=short, text=problem)
        if status is None:
            status = services.worst
            if of_hosts and hosts.worst > 0:
                status = max(status, CRITICAL)
        return NodeOutcome(status=status, short=short, text=_summary(status, *sides))

    def statusfilter(
        self,
        searched: SearchedObjects,
        aggregation: str,
        thresholds: Sequence[Any],
        filters: Filters,
    ) -> NodeOutcome:
        """Return the state of the objects that the searches find, hidden ones included."""
        short = " | ".join(map(str, searched.searches))
        hosts, services = self._tallies(searched, filters)
        sides = (
            hosts if searched.kind != "services" else None,
            services if searched.kind != "hosts" else None,
        )
        if aggregation == "worst":
            status = CRITICAL if hosts.bad else max(services.states, default=OK)
        elif aggregation == "best":
            status = min(hosts.states | services.states, default=OK)
        else:
            by_limits, problem = limits(thresholds, *sides)
            if problem:
                return NodeOutcome(status=UNKNOWN, short=short, text=problem)
            status = by_limits or OK
        line = _summary(status, *sides)
        asked = [side for side in sides if side is not None]
        return NodeOutcome(
            status=status,
            short=short,
            text=line + (_listed(hosts, services) if status != OK else ""),
            acknowledged=int(all(side.handled(side.acknowledged) for side in asked)),
            scheduled_downtime_depth=int(all(side.handled(side.downtime) for side in asked)),
        )

    def _tallies(self, objects: NodeObjects, filters: Filters) -> tuple[NodeTally, NodeTally]:
        chosen = objects.rows(self.live, self.moment)
        hosts, services = NodeTally(), NodeTally()
        for rows, tally in ((chosen.hosts, hosts), (chosen.services, services)):
            for row in rows:
                self.peers.add(row[PEER])
                raw = number(row[STATE]) if tally is hosts else _state(row[STATE])
                state = filters.state(raw, row[ACKNOWLEDGED], row[DOWNTIME])
                tally.add(row, raw, state, of_hosts=tally is hosts)
        return hosts, services


def _summary(status: int, hosts: NodeTally | None, services: NodeTally | None) -> str:
    words: list[str] = []
    numbers: list[str] = []
    for side, kind in ((hosts, "hosts"), (services, "services")):
        if side is not None:
            words.append(f"{side.good}/{side.total} {kind} up")
            numbers.append(f"{kind}_up={side.good} {kind}_down={side.bad}")
    return f"{WORDS[status]} - {', '.join(words)}|{' '.join(numbers)}"


def _listed(hosts: NodeTally, services: NodeTally) -> str:
    """The lines about problems that follow the summary."""
    lines = [
        *(_problem(_HOST_WORDS[min(state, 2)], row[HOST], row) for state, row in hosts.first),
        *(
            _problem(WORDS[state], f"{row[HOST]} - {row[SERVICE]}", row)
            for state, row in services.first
        ),
    ]
    more = hosts.problems + services.problems - MOST_SHOWN
    if more > 0:
        lines = [*lines[:MOST_SHOWN], f"found {more} more issues..."]
    return "".join(f"\n{line}" for line in lines)


def _problem(word: str, title: Any, row: Row) -> str:
    return f"[{word}] {title} - {text(row[OUTPUT])[:_LONGEST_OUTPUT]}"
