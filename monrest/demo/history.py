"""The past: a log of some days, and a present that follows from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import itemgetter
from random import Random
from typing import TypeAlias

from attrs import define

from monrest.demo.core import INTERVAL_LENGTH, PROGRAM_VERSION, Core
from monrest.demo.objects import HARD, SOFT, STATE_TYPES, Host, HostOrService, Service
from monrest.demo.simulation import behaviour, is_simulated, output_of
from monrest.demo.states import acknowledge, schedule
from monrest.objectconfig.timeperiods import Timeperiod

_MOST_INCIDENTS = 20_000
"""Incidents in the log of a large site, so that starting stays quick."""


@define(eq=False)
class Incident:
    """A problem of a target from ``start`` to ``end``; None is not over yet.

    ``output`` and ``recovery`` are what the log has of its plugin.
    """

    start: int
    end: int | None
    state: int
    output: str = ""
    recovery: str = ""


_Line: TypeAlias = tuple[int, str]
"""Time and text of a line of the log."""


def generate(core: Core, days: float) -> None:
    """Invent ``days`` days of log and the present state of everything that is checked."""
    now = core.now()
    core.program_start = core.last_command_check = core.last_log_rotation = now
    begin = now - int(days * 86400)
    simulated = [item for item in core.inventory.targets() if is_simulated(item)]
    lines: list[_Line] = []
    if days > 0:
        rate = min(0.8 * days, _MOST_INCIDENTS / max(len(simulated), 1))
        present: dict[int, list[Incident]] = {}
        for target in simulated:
            if isinstance(target, Service) and (down := _open(present.get(id(target.host)))):
                incidents = [Incident(down.start, None, 2)]
            else:
                incidents = _incidents(core.rng, target, begin, now, rate)
            present[id(target)] = incidents
            _present(core, target, incidents, begin, now)
        for target in simulated:
            lines += _lines(core, target, present[id(target)])
        lines += _transitions(core, begin, now)
        _write(core, lines, present, begin, now)
    core.log.past(now, f"Naemon {PROGRAM_VERSION} starting... (PID={core.pid})")
    for name in core.inventory.timeperiods:
        core.log.past(now, f"TIMEPERIOD TRANSITION: {name};-1;{core.in_period(name)}")
    if days > 0:
        _work_of_people(core, simulated, now)


def _open(incidents: list[Incident] | None) -> Incident | None:
    return incidents[-1] if incidents and incidents[-1].end is None else None


def _incidents(
    rng: Random, target: HostOrService, begin: int, now: int, rate: float
) -> list[Incident]:
    word = behaviour(target)
    if word == "steady":
        return []
    host = isinstance(target, Host)
    if word == "broken":
        start = now - rng.randrange(3600, max(int((now - begin) * 0.9), 3601))
        return [Incident(start, None, 1 if host else 2)]
    incidents: list[Incident] = []
    moment = float(begin)
    mean = (now - begin) / (rate * (0.3 if host else 1.0) + 1e-9)
    while True:
        moment += rng.expovariate(1 / mean) + 60
        if moment >= now - 600:
            break
        end = moment + rng.choice((300, 900, 1800, 7200)) * rng.uniform(0.5, 2)
        state = 1 if host else rng.choice((1, 1, 2, 2, 3))
        incidents.append(Incident(int(moment), int(end) if end < now - 60 else None, state))
        moment = end
    if not host and rng.random() < 0.06 and (not incidents or incidents[-1].end is not None):
        last = max(incidents[-1].end or 0, begin) if incidents else begin
        if now - last > 900:
            incidents.append(
                Incident(rng.randrange(last + 300, now - 300), None, rng.choice((1, 2, 3)))
            )
    return incidents


def _present(
    core: Core, target: HostOrService, incidents: list[Incident], begin: int, now: int
) -> None:
    """Set the state that the incidents lead to."""
    rng = core.rng
    last = incidents[-1] if incidents else None
    bad = last is not None and last.end is None
    state = last.state if last is not None and bad else 0
    if state and isinstance(target, Host) and target.parents:
        state = 2 if all(parent.state for parent in target.parents) else 1
    span = max(int(target.check_interval * INTERVAL_LENGTH), 1)
    target.has_been_checked = 1
    target.check_source = "demo"
    target.last_check = now - rng.randrange(span)
    target.next_check = target.last_check + span
    changed = begin
    if last is not None:
        changed = last.start if last.end is None else last.end
    target.last_state_change = target.last_hard_state_change = changed
    target.last_state = last.state if last is not None and not bad else 0
    target.state = target.last_hard_state = state
    target.state_type = HARD
    target.current_attempt = max(target.max_check_attempts, 1) if state else 1
    target.execution_time = abs(rng.gauss(0.4, 0.3)) + 0.004
    target.latency = rng.random() * 0.3
    target.last_update = float(target.last_check)
    lines = output_of(rng, target, state)
    target.plugin_output, target.long_plugin_output, target.perf_data = lines
    if behaviour(target) == "passive" and not target.active_checks_enabled:
        target.check_type = 1
    target.seen(0, target.last_check if not state else changed)
    if state:
        target.seen(state, target.last_check)
        target.current_notification_number = 1
        target.last_notification = changed
        target.next_notification = now + int(target.notification_interval * INTERVAL_LENGTH)
        target.notified_on = 1 << state
    target.recent_states.extend([0] * 20)
    target.recent_states.append(state)


def _lines(core: Core, target: HostOrService, incidents: list[Incident]) -> list[_Line]:
    """The log lines of incidents: soft alerts, the hard one, notifications, the recovery."""
    lines: list[_Line] = []
    kind, name = target.kind.upper(), target.label
    most = max(target.max_check_attempts, 1)
    retry = max(int(target.retry_interval * INTERVAL_LENGTH), 30)
    for incident in incidents:
        output = incident.output = output_of(core.rng, target, incident.state)[0]
        word = target.state_name(incident.state)
        end = incident.end
        attempt, moment = 1, incident.start
        while True:
            hard = attempt >= most
            type_name = STATE_TYPES[HARD if hard else SOFT]
            text = f"{kind} ALERT: {name};{word};{type_name};{attempt};{output}"
            lines.append((moment, text))
            if hard or (end is not None and moment + retry >= end):
                break
            attempt, moment = attempt + 1, moment + retry
        if hard:
            lines += _notifications(core, target, moment, word, output)
        if end is not None:
            good = incident.recovery = output_of(core.rng, target, 0)[0]
            text = f"{kind} ALERT: {name};{target.state_name(0)};{type_name};{attempt};{good}"
            lines.append((end, text))
            if hard:
                lines += _notifications(core, target, end, target.state_name(0), good)
    return lines


def _notifications(
    core: Core, target: HostOrService, moment: int, word: str, output: str
) -> list[_Line]:
    if not target.notifications_enabled:
        return []
    lines = []
    start = f"{target.kind.upper()} NOTIFICATION"
    for name in target.contacts:
        contact = core.inventory.contacts[name]
        if getattr(contact, f"{target.kind}_notifications_enabled"):
            commands = getattr(contact, f"{target.kind}_notification_commands")
            texts = [f"{start}: {name};{target.label};{word};{item};{output}" for item in commands]
            lines += [(moment, text) for text in texts]
    return lines


def _write(
    core: Core,
    lines: list[_Line],
    incidents: dict[int, list[Incident]],
    begin: int,
    now: int,
) -> None:
    """Write the lines in order of time, with a new file and the current states every midnight."""
    lines = sorted((line for line in lines if line[0] <= now), key=itemgetter(0))
    position = 0
    midnights = [int(midnight.timestamp()) for midnight in _midnights(core, begin, now)]
    for midnight in [begin, *midnights[1:]]:
        while position < len(lines) and lines[position][0] < midnight:
            core.log.past(*lines[position])
            position += 1
        core.log.rotate(midnight)
        core.last_log_rotation = midnight
        for target in core.inventory.targets():
            core.log.past(midnight, _state_at(target, incidents.get(id(target)), midnight))
    for line in lines[position:]:
        core.log.past(*line)


def _transitions(core: Core, begin: int, now: int) -> list[_Line]:
    """When time periods began and ended, as the core notes it."""
    periods = core.inventory.timeperiods
    edges = []
    for period in periods.values():
        inside = period.holds(begin, core.zone, periods.get)
        edges.append((begin, f"TIMEPERIOD TRANSITION: {period.name};-1;{inside:d}"))
        for moment in _edges(core, period, begin, now):
            before, inside = inside, period.holds(moment, core.zone, periods.get)
            if before != inside:
                text = f"TIMEPERIOD TRANSITION: {period.name};{before:d};{inside:d}"
                edges.append((moment, text))
    return edges


def _edges(core: Core, period: Timeperiod, begin: int, now: int) -> list[int]:
    """Every moment at which a period may change, in order: midnights, its ranges, exclusions."""
    periods = core.inventory.timeperiods
    concerned = [period, *(periods[name] for name in period.exclude if name in periods)]
    edges: set[int] = set()
    for midnight in _midnights(core, begin, now):
        ranges = [pair for target in concerned for pair in target.ranges_on(midnight.date())]
        seconds = {0, *itertools.chain(*ranges)}
        edges.update(int((midnight + timedelta(seconds=second)).timestamp()) for second in seconds)
    return sorted(edge for edge in edges if begin < edge < now)


def _midnights(core: Core, begin: int, now: int) -> Iterator[datetime]:
    """With which the days begin, the first of them before ``begin``."""
    day = datetime.fromtimestamp(begin, core.zone).date()
    while day <= datetime.fromtimestamp(now, core.zone).date():
        yield datetime(day.year, day.month, day.day, tzinfo=core.zone)
        day += timedelta(days=1)


def _state_at(target: HostOrService, incidents: list[Incident] | None, moment: int) -> str:
    start = f"CURRENT {target.kind.upper()} STATE: {target.label}"
    if incidents is None:
        return f"{start};{target.state_name()};HARD;1;"
    state, output = 0, "" if target.state else target.plugin_output
    for incident in incidents:
        if incident.start > moment:
            break
        over = incident.end is not None and incident.end <= moment
        state = 0 if over else incident.state
        output = incident.recovery if over else incident.output
    attempt = max(target.max_check_attempts, 1) if state else 1
    return f"{start};{target.state_name(state)};HARD;{attempt};{output}"


def _work_of_people(core: Core, simulated: list[HostOrService], now: int) -> None:
    """Some acknowledgements, downtimes and comments, so that every kind is to be seen."""
    problems = [item for item in simulated if item.state]
    author = next(iter(core.inventory.contacts), "admin")
    for number, target in enumerate(problems):
        if number % 4 == 1:
            acknowledge(
                core, target, sticky=1, send=0, persistent=0, end=0, author=author,
                comment="We are looking into it",
            )  # fmt: skip
        elif number % 6 == 2:
            schedule(
                core, target, start=now - 1800, end=now + 7200, fixed=1, triggered_by=0,
                duration=0, author=author, comment="Spare part is on its way",
            )  # fmt: skip
    services = [item for item in simulated if isinstance(item, Service)]
    for target in services[:: max(len(services) // 3, 1)]:
        core.add_comment(target, author, "Moved to new hardware last week", persistent=1, source=1)
