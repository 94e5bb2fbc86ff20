"""What a check result does to an object: soft and hard states, flapping, log lines."""

from __future__ import annotations

from attrs import frozen

from monrest.demo.core import Core
from monrest.demo.downtimes import advance, remove_acknowledgement
from monrest.demo.notifications import notify, notify_state
from monrest.demo.objects import (
    DOWN,
    HARD,
    SOFT,
    STATE_TYPES,
    UNREACHABLE,
    UP,
    Host,
    HostOrService,
)

LOW_FLAP, HIGH_FLAP = 20.0, 30.0
"""Thresholds in percent of objects that set none."""

_HISTORY = 21


@frozen(kw_only=True)
class Result:
    """One result: numbers as the plugin gives them, times in seconds."""

    state: int
    output: str
    long_output: str = ""
    perf_data: str = ""
    execution_time: float = 0.0
    latency: float = 0.0
    passive: bool = False
    started: float = 0.0


def split_output(text: str) -> tuple[str, str, str]:
    r"""Raw plugin output to its first line, the other lines and the performance data.

    Newlines may be the two characters ``\n``. The core keeps no semicolon in the first line.
    """
    first, _, rest = text.replace("\\n", "\n").partition("\n")
    line, _, perf = first.partition("|")
    long_text, _, more = rest.partition("|")
    perf_data = " ".join(part for part in (perf.strip(), *more.split()) if part)
    return line.strip().replace(";", ":"), long_text.rstrip().replace("\n", "\\n"), perf_data


def reachable_state(host: Host, state: int) -> int:
    """The state of a host whose check failed: unreachable when all hosts before it are not up."""
    if state == UP:
        return UP
    if host.parents and all(parent.state != UP for parent in host.parents):
        return UNREACHABLE
    return DOWN


def process(core: Core, target: HostOrService, result: Result) -> None:
    now = core.now()
    state = result.state
    if isinstance(target, Host) and not result.passive:
        state = reachable_state(target, state)
    first = not target.has_been_checked
    previous, previous_type = target.state, target.state_type
    target.has_been_checked = 1
    target.is_executing = 0
    target.check_type = int(result.passive)
    target.check_source = "demo" if not result.passive else ""
    target.last_check = int(result.started) or now
    target.execution_time = result.execution_time
    target.latency = result.latency
    target.plugin_output = result.output
    target.long_plugin_output = result.long_output
    target.perf_data = result.perf_data
    target.last_state = previous
    _attempt(target, state, first=first, at_once=isinstance(target, Host) and result.passive)
    target.state = state
    target.seen(state, now)
    changed = state != previous or first
    hard_change = target.state_type == HARD and (
        state != target.last_hard_state or (previous_type == SOFT and state != 0)
    )
    soft_recovery = state == 0 and previous != 0 and previous_type == SOFT
    if changed:
        target.last_state_change = now
        if target.acknowledged and (state == 0 or target.acknowledgement_type == 1):
            remove_acknowledgement(core, target)
    if hard_change or first:
        target.last_hard_state_change = now
    _flapping(core, target, state)
    core.changed(target)
    if hard_change or target.state_type == SOFT or (changed and state != previous):
        _alert(core, target, SOFT if soft_recovery else target.state_type)
    for downtime in list(target.downtimes.values()):
        if not downtime.fixed and state:
            advance(core, downtime)
    notify_state(core, target, hard_change=hard_change)
    if target.state_type == HARD:
        target.last_hard_state = state
    if state == 0:
        target.current_attempt = 1
    core.happened("check")
    if changed:
        core.happened("state")


def _attempt(target: HostOrService, state: int, *, first: bool, at_once: bool) -> None:
    """Set attempt and state type for the new state; ``target.state`` is still the old one."""
    most = max(target.max_check_attempts, 1)
    if state == 0:
        target.state_type = HARD
    elif at_once:
        target.current_attempt, target.state_type = 1, HARD
    elif target.state == 0 or first:
        target.current_attempt = 1
        target.state_type = HARD if most == 1 else SOFT
    elif target.state_type == SOFT:
        target.current_attempt = min(target.current_attempt + 1, most)
        target.state_type = HARD if target.current_attempt >= most else SOFT


def _alert(core: Core, target: HostOrService, state_type: int) -> None:
    """Log the alert and the event handlers of a state."""
    kind = target.kind.upper()
    state = (
        f"{target.label};{target.state_name()};{STATE_TYPES[state_type]};{target.current_attempt}"
    )
    core.note(f"{kind} ALERT: {state};{target.plugin_output}")
    if not (core.switches.enable_event_handlers and target.event_handler_enabled):
        return
    general = getattr(core.switches, f"global_{target.kind}_event_handler")
    for prefix, command in (("GLOBAL ", general), ("", target.event_handler)):
        if command:
            core.note(f"{prefix}{kind} EVENT HANDLER: {state};{command.split('!')[0]}")


def percent_change(states: list[int]) -> float:
    """Weighted share of changes among 21 states, newest last, in percent."""
    filled = [0] * (_HISTORY - len(states)) + states
    span = _HISTORY - 2
    total = sum(
        0.8 + 0.4 * index / span
        for index in range(_HISTORY - 1)
        if filled[index] != filled[index + 1]
    )
    return total * 100 / (_HISTORY - 1)


def _flapping(core: Core, target: HostOrService, state: int) -> None:
    if target.letter(state) not in target.flap_detection_options:
        return
    target.recent_states.append(state)
    target.percent_state_change = percent_change(list(target.recent_states))
    if not (core.switches.enable_flap_detection and target.flap_detection_enabled):
        return
    low = target.low_flap_threshold or LOW_FLAP
    high = target.high_flap_threshold or HIGH_FLAP
    percent = target.percent_state_change
    if not target.is_flapping and percent >= high:
        target.is_flapping = 1
        change = f"({percent:.1f}% change >= {high:.1f}% threshold)"
        _flap_log(core, target, "STARTED", f"started flapping {change}")
        text = (
            f"Notifications for this {target.kind} are being suppressed because it was detected as "
            f"having been flapping between different states {change}."
        )
        core.add_comment(target, "(Naemon Process)", text, entry_type=3)
        notify(core, target, "FLAPPINGSTART")
    elif target.is_flapping and percent < low:
        change = f"({percent:.1f}% change < {low:.1f}% threshold)"
        stop_flapping(core, target, "STOPPED", f"stopped flapping {change}")


def stop_flapping(core: Core, target: HostOrService, word: str, text: str) -> None:
    """An object flaps no longer, or is not watched any more (DISABLED)."""
    if not target.is_flapping:
        return
    target.is_flapping = 0
    _flap_log(core, target, word, text)
    for comment in list(target.comments.values()):
        if comment.entry_type == 3:
            core.delete_comment(comment.id)
    notify(core, target, "FLAPPINGSTOP" if word == "STOPPED" else "FLAPPINGDISABLED")
    core.changed(target)


def _flap_log(core: Core, target: HostOrService, word: str, text: str) -> None:
    kind = target.kind
    core.note(
        f"{kind.upper()} FLAPPING ALERT: {target.label};{word}; {kind.capitalize()} appears to "
        f"have {text}"
    )
