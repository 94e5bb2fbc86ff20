"""The functions of nodes that look at the cores: status, groupstatus and statusfilter.

What is of a wrong type in a row is 0, empty or unknown: a core that lies must not break a
calculation. Rules: docs/spec/bp.md, "Functions".
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, field

from monrest.base.values import Row
from monrest.bp.filters import Filters
from monrest.bp.found import Found, summary
from monrest.bp.functions import Limited, Outcome, failed, limits, worst_of
from monrest.bp.live import (
    ACKNOWLEDGED,
    CHECKED,
    DOWNTIME,
    HARD_CHANGE,
    HARD_STATE,
    LAST_CHANGE,
    LAST_CHECK,
    LONG_OUTPUT,
    OUTPUT,
    PEER,
    SERVICE,
    STATE,
    STATE_TYPE,
    VARIABLES,
    Counts,
    Live,
    number,
    text,
)
from monrest.bp.plan import Plan, Step
from monrest.bp.search import Moment, shown, test_of
from monrest.bp.states import CRITICAL, OK, UNKNOWN, WORDS, Item, NodeState
from monrest.bp.syntax import expression_of, matching_of, text_at
from monrest.query.regex import compile_pattern

_NO_OUTPUT = "no plugin output yet"
_HARD = 1
_HOST_WORDS = ("UP", "DOWN", "UNREACHABLE")
_SLICE = 500
_state_made = partial(tuple.__new__, NodeState)  # a third of the time of its constructor


def state_of(row: Row, *, host: bool) -> int:
    """Give the state of a row; a host that is down is critical."""
    return _state(row[STATE], host=host)


def _state(value: Any, *, host: bool) -> int:
    if type(value) is not int or not 0 <= value <= UNKNOWN:
        return UNKNOWN
    return CRITICAL if host and value == 1 else value


def matched(rows: Sequence[Row], op: str, pattern: str) -> list[Row]:
    """Give the services of a host that the operator of a status node finds."""
    if op == "!=":
        return [row for row in rows if row[SERVICE] != pattern]
    found = compile_pattern(expression_of(pattern), ignore_case=True, parameter="status").found
    return [row for row in rows if found(text(row[SERVICE])) == (op == "~")]


@define(eq=False)
class Leaf:
    """Evaluates what looks at rows, for one process; ``peers`` collects the sites they came from.

    ``variable`` is the name of the custom variable with the number of a process.
    """

    live: Live
    hard: bool
    order: Sequence[str]
    moment: Moment
    variable: str
    peers: set[str] = field(factory=set)

    # ---------------------------------------------------------------- status

    def status(self, arguments: Sequence[Any], filters: Filters, previous: str) -> Outcome:
        """Give the state of a host or a service, or the worst or best of some on a host.

        ``previous`` is the text of the node before, for soft states that do not count.
        """
        host, service, op = (text_at(arguments, at) for at in range(3))
        if not service:
            row = self.live.hosts.get(host)
            if row is None:
                return failed("no such host")
            return self._row(row, filters, previous, host=True)
        op, pattern, best = matching_of(service, op)
        if op == "=":
            row = self.live.services.get((host, service))
            if row is None:
                return failed("no such service")
            return self._row(row, filters, previous, host=False)
        return self._matching(host, op, pattern, filters, best=best)

    def services(self, plan: Plan, states: dict[str, NodeState]) -> list[Step]:
        """Set the states of nodes about services whose soft states count and no filter looks at.

        The same as ``status``, for all of them in one go. What has the row of before has the state
        of before. Gives the nodes whose service is missing.
        """
        services, nodes = self.live.services, plan.services
        places = plan.places(services)
        self.peers |= plan.peers
        found = [services.states[at] for at in places]
        left: list[Step] = []
        for which in [at for at, state in enumerate(found) if state is None]:
            at = places[which]
            row = services.table[at]
            if row is None:
                left.append(nodes[which][2])
            else:
                found[which] = services.states[at] = self._of_service(row)
        if left:
            states.update((node[0], one) for node, one in zip(nodes, found, strict=True) if one)
        else:
            states.update(zip(plan.ids, found, strict=True))  # type: ignore[arg-type]  # no None
        return left

    def _of_service(self, row: Row) -> NodeState:
        """Give the state of a node about a service, of which there may be tens of thousands."""
        peer = row[PEER]
        _, _, state, _, _, _, _, checked, changed, acknowledged, downtime, *more = row
        output, long_output, variables, *_ = more
        if type(state) is not int or not 0 <= state <= UNKNOWN:
            state = UNKNOWN
        if type(output) is not str or type(long_output) is not str:
            output, long_output = text(output), text(long_output)
        if type(checked) is not int or type(changed) is not int:
            checked, changed = number(checked), number(changed)
        reference = self._reference(variables) if variables else None
        return _state_made(
            (
                state,
                f"{output}\n{long_output}",
                output,
                checked,
                changed,
                1 if acknowledged else 0,
                1 if downtime else 0,
                reference,
                peer if reference is not None else None,
            )
        )

    def _row(self, row: Row, filters: Filters, previous: str, *, host: bool) -> Outcome:
        self.peers.add(row[PEER])
        acknowledged, downtime = int(bool(row[ACKNOWLEDGED])), int(bool(row[DOWNTIME]))
        if self.hard and row[STATE_TYPE] != _HARD:
            state, changed = _state(row[HARD_STATE], host=host), row[HARD_CHANGE]
            output = previous or _NO_OUTPUT
        else:
            state, changed = _state(row[STATE], host=host), row[LAST_CHANGE]
            output = f"{text(row[OUTPUT])}\n{text(row[LONG_OUTPUT])}"
        reference = None if host else self._reference(row[VARIABLES])
        return Outcome(
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

    def _reference(self, variables: Any) -> str | None:
        """Give the number of the process to which a service belongs."""
        if not variables or not isinstance(variables, dict):
            return None
        found = variables.get(self.variable)
        return None if found is None else str(found)

    def number_of(self, row: Row) -> str | None:
        """Give the number of the process to which a host of this row belongs."""
        return self._reference(row[VARIABLES])

    def _matching(
        self, host: str, op: str, pattern: str, filters: Filters, *, best: bool
    ) -> Outcome:
        found = matched(self.live.by_host.get(host, ()), op, pattern)
        if not found:
            return failed("no matching hosts/services found")
        items = [self._item(row, filters) for row in found]
        short = f"{'best' if best else 'worst'} of {host}: {op} {pattern}"
        return worst_of(items, self.order, best=best, short=short)

    def _item(self, row: Row, filters: Filters) -> Item:
        self.peers.add(row[PEER])
        acknowledged, downtime = int(bool(row[ACKNOWLEDGED])), int(bool(row[DOWNTIME]))
        soft = self.hard and row[STATE_TYPE] != _HARD
        state = _state(row[HARD_STATE if soft else STATE], host=False)
        return text(row[SERVICE]), NodeState(
            status=filters.state(state, acknowledged, downtime),
            status_text=text(row[OUTPUT]),
            acknowledged=acknowledged,
            scheduled_downtime_depth=downtime,
        )

    # ---------------------------------------------------------------- groupstatus

    def groupstatus(
        self, arguments: Sequence[Any], filters: Filters
    ) -> Generator[None, None, Outcome]:
        """Give the state of a host group or service group by its counts."""
        kind, name = text_at(arguments, 0).lower(), text_at(arguments, 1)
        if kind not in ("hostgroup", "servicegroup"):
            return failed("expected hostgroup or servicegroup as first argument")
        if filters.active:
            counts = yield from self._members(kind, name, filters)
        else:
            known = self.live.hostgroups if kind == "hostgroup" else self.live.servicegroups
            counts = known.get(name)
        if counts is None:
            return failed(f"no such {kind}")
        self.peers |= counts.peers
        hosts = (counts.hosts, counts.hosts_bad) if kind == "hostgroup" else None
        found = Limited(hosts=hosts, services=(counts.total, counts.bad))
        short = f"{name} ({kind})"
        status, problem = limits(arguments[2:6], found)
        if problem:
            return Outcome(status=UNKNOWN, short=short, text=problem)
        if status is None:
            status = counts.worst
            if hosts is not None and counts.worst_host > 0:
                status = max(status, CRITICAL)
        up = (counts.hosts_up, counts.hosts) if hosts is not None else None
        line = summary(status, up, (counts.good, counts.total), counts.hosts_bad, counts.bad)
        return Outcome(status=status, short=short, text=line)

    def _members(
        self, kind: str, name: str, filters: Filters
    ) -> Generator[None, None, Counts | None]:
        """Count the members as the filters leave them; None for a group without any."""
        counts = Counts()
        column = "host_groups" if kind == "hostgroup" else "groups"
        at = self.live.service_index.get(column)
        for count, row in enumerate(self.live.services.values() if at is not None else ()):
            if count % _SLICE == _SLICE - 1:
                yield
            if at is not None and isinstance(row[at], list) and name in row[at]:
                state = filters.state(state_of(row, host=False), row[ACKNOWLEDGED], row[DOWNTIME])
                counts.add_service(state, checked=bool(row[CHECKED]))
                counts.peers.add(row[PEER])
        at = self.live.host_index.get("groups") if kind == "hostgroup" else None
        for count, row in enumerate(self.live.hosts.values() if at is not None else ()):
            if count % _SLICE == _SLICE - 1:
                yield
            if at is not None and isinstance(row[at], list) and name in row[at]:
                state = filters.state(number(row[STATE]), row[ACKNOWLEDGED], row[DOWNTIME])
                counts.add_host(state)
                counts.peers.add(row[PEER])
        return counts if counts.total or counts.hosts else None

    # ---------------------------------------------------------------- statusfilter

    def statusfilter(
        self, arguments: Sequence[Any], filters: Filters
    ) -> Generator[None, None, Outcome]:
        """Give the state of the hosts and services that searches find, whoever may see them."""
        aggregation, kind = text_at(arguments, 0), text_at(arguments, 1)
        searches: list[Mapping[str, Any]] = (
            [arguments[2]] if isinstance(arguments[2], dict) else list(arguments[2])
        )
        found = Found()
        if kind != "services":
            yield from self._hosts(searches, filters, found)
        if kind != "hosts":
            yield from self._services(searches, filters, found)
        counts = found.counts
        hosts = (counts.hosts, counts.hosts_bad) if kind != "services" else None
        services = (counts.total, counts.bad) if kind != "hosts" else None
        short = shown(searches)
        if aggregation == "worst":
            status = CRITICAL if counts.hosts_bad else found.highest
        elif aggregation == "best":
            status = min(found.present, default=OK)
        else:
            by_limits, problem = limits(arguments[3:7], Limited(hosts=hosts, services=services))
            if problem:
                return Outcome(status=UNKNOWN, short=short, text=problem)
            status = by_limits or OK
        up = (counts.hosts_up, counts.hosts) if hosts is not None else None
        good = (counts.good, counts.total) if services is not None else None
        line = summary(status, up, good, counts.hosts_bad, counts.bad)
        sides = [
            side for side, asked in ((found.host_flags, hosts), (found.flags, services)) if asked
        ]
        return Outcome(
            status=status,
            short=short,
            text=line + (found.listed() if status != OK else ""),
            acknowledged=int(all(side.handled(side.acknowledged) for side in sides)),
            scheduled_downtime_depth=int(all(side.handled(side.downtime) for side in sides)),
        )

    def _hosts(
        self, searches: Sequence[Mapping[str, Any]], filters: Filters, found: Found
    ) -> Generator[None]:
        test = test_of(searches, self.live.host_index, self.moment, hosts=True)
        for count, row in enumerate(self.live.hosts.values()):
            if count % _SLICE == _SLICE - 1:
                yield
            if not test(row):
                continue
            self.peers.add(row[PEER])
            raw = number(row[STATE])
            state = filters.state(raw, row[ACKNOWLEDGED], row[DOWNTIME])
            found.counts.add_host(state)
            found.present.add(CRITICAL if state else OK)
            found.host_flags.add(row, problem=raw != OK, bad=state != OK)
            if state:
                found.problem(row, _HOST_WORDS[min(state, 2)], hosts=True)

    def _services(
        self, searches: Sequence[Mapping[str, Any]], filters: Filters, found: Found
    ) -> Generator[None]:
        test = test_of(searches, self.live.service_index, self.moment, hosts=False)
        for count, row in enumerate(self.live.services.values()):
            if count % _SLICE == _SLICE - 1:
                yield
            if not test(row):
                continue
            self.peers.add(row[PEER])
            raw = state_of(row, host=False)
            state = filters.state(raw, row[ACKNOWLEDGED], row[DOWNTIME])
            found.counts.add_service(state, checked=bool(row[CHECKED]))
            found.present.add(state)
            found.highest = max(found.highest, state)
            found.flags.add(row, problem=raw != OK, bad=state >= CRITICAL)
            if state:
                found.problem(row, WORDS[state], hosts=False)
