"""Changes of hosts and services: notifications, downtimes, acknowledgements, check results."""

from __future__ import annotations

import time

from attrs import frozen

from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.objects import (
    DOWN,
    HARD,
    SOFT,
    STATE_TYPES,
    UNREACHABLE,
    UP,
    CoreContact,
    CoreDowntime,
    DependsOn,
    Host,
    HostOrService,
    Service,
)

_REASON_LETTERS = {
    "FLAPPINGSTART": "f",
    "FLAPPINGSTOP": "f",
    "FLAPPINGDISABLED": "f",
    "DOWNTIMESTART": "s",
    "DOWNTIMEEND": "s",
    "DOWNTIMECANCELLED": "s",
}


def notify(
    core: Core,
    target: HostOrService,
    reason: str = "",
    author: str = "",
    comment: str = "",
    *,
    forced: bool = False,
) -> bool:
    """Notify about a target, if the rules let it; whether any contact was.

    ``reason`` is empty for a problem or recovery, else ACKNOWLEDGEMENT, CUSTOM, DOWNTIMESTART ...
    ``forced`` skips every rule except the contacts' existence.
    """
    if not forced and not _allowed(core, target, reason):
        return False
    state = target.state_name()
    text = f"{reason} ({state})" if reason else state
    tail = f";{author};{comment}" if reason else ""
    notified = False
    for name in target.contacts:
        contact = core.inventory.contacts[name]
        if not forced and not _wants(core, contact, target, reason):
            continue
        for command in getattr(contact, f"{target.kind}_notification_commands"):
            core.note(
                f"{target.kind.upper()} NOTIFICATION: {name};{target.label};{text};"
                f"{command.split('!')[0]};{target.plugin_output}{tail}"
            )
            notified = True
    if notified and not reason:
        target.last_notification = core.now()
        core.changed(target)
    return notified


def notify_state(core: Core, target: HostOrService, *, hard_change: bool) -> None:
    """After a check: the first notification of a problem, the next one, or the recovery."""
    now = core.now()
    if target.state == 0:
        if hard_change and target.current_notification_number:
            notify(core, target)
        target.current_notification_number = 0
        target.next_notification = 0
        target.no_more_notifications = 0
        return
    if target.state_type != HARD or target.acknowledged or target.no_more_notifications:
        return
    if not hard_change and (not target.next_notification or now < target.next_notification):
        return
    target.current_notification_number += 1
    if notify(core, target):
        target.notified_on |= 1 << target.state
        span = int(target.notification_interval * INTERVAL_LENGTH)
        target.next_notification = now + span if span else 0
        target.no_more_notifications = int(not span)
    else:
        target.current_notification_number -= 1
        target.next_notification = now + 60


def _allowed(core: Core, target: HostOrService, reason: str) -> bool:
    if not core.switches.enable_notifications or not target.notifications_enabled:
        return False
    if not core.in_period(target.notification_period):
        return False
    if not _is_option(target, reason, target.notification_options):
        return False
    if reason:
        return True
    if target.scheduled_downtime_depth or target.is_flapping:
        return False
    if target.host is not target and target.host.state:
        return False
    return not any(dependency_fails(core, link) for link in target.notification_dependencies)


def _wants(core: Core, contact: CoreContact, target: HostOrService, reason: str) -> bool:
    if not getattr(contact, f"{target.kind}_notifications_enabled"):
        return False
    if not core.in_period(getattr(contact, f"{target.kind}_notification_period")):
        return False
    return _is_option(target, reason, getattr(contact, f"{target.kind}_notification_options"))


def _is_option(target: HostOrService, reason: str, options: frozenset[str]) -> bool:
    """Whether options are for the reason, or for the present state."""
    if reason in ("ACKNOWLEDGEMENT", "CUSTOM"):
        return True
    state = "r" if not target.state else target.letter(target.state)
    return _REASON_LETTERS.get(reason, state) in options


def dependency_fails(core: Core, link: DependsOn) -> bool:
    """Whether the master, or one above it that counts as well, is in a state of the criteria."""
    links, passed = [link], set()
    while links:
        link = links.pop()
        # Objects may depend on each other in a circle.
        if link in passed or not core.in_period(link.period):
            continue
        passed.add(link)
        master = link.master
        state = master.letter(master.hard_state) if master.has_been_checked else "p"
        if state in link.criteria:
            return True
        if master.has_been_checked and link.inherits_parent:
            links += (*master.execution_dependencies, *master.notification_dependencies)
    return False


# Downtimes and acknowledgements: their life, their log lines, their comments.

_PROCESS = "(Naemon Process)"


def _log(core: Core, target: HostOrService, word: str, text: str) -> None:
    core.note(f"{target.kind.upper()} DOWNTIME ALERT: {target.label};{word}; {text}")


def _stamp(moment: int) -> str:
    return time.strftime("%m-%d-%Y %H:%M:%S", time.localtime(moment))


def _span(seconds: int) -> str:
    return f"{seconds // 3600} hours and {seconds % 3600 // 60} minutes"


def schedule(
    core: Core,
    target: HostOrService,
    *,
    start: int,
    end: int,
    fixed: int,
    triggered_by: int,
    duration: int,
    author: str,
    comment: str,
) -> CoreDowntime | None:
    """Plan a downtime with its comment.

    None when it is over already, ends before it starts, lasts no time or waits for a downtime
    that is not there; then only the log has a line about it.
    """
    if start >= end or end <= core.now():
        return None
    problem = ""
    if not fixed and not duration:
        problem = "Bad time spec"
    elif triggered_by and triggered_by not in core.downtimes:
        problem = "Triggering downtime not found"
    if problem:
        where = f"host '{target.host.name}'"
        if isinstance(target, Service):
            where = f"service '{target.description}' on {where}"
        core.note(f"Error: Failed to add downtime for {where}: {problem}")
        return None
    kind = target.kind
    if fixed:
        duration = end - start
        text = (
            f"This {kind} has been scheduled for fixed downtime from {_stamp(start)} to "
            f"{_stamp(end)}. Notifications for the {kind} will not be sent out during that time "
            f"period."
        )
    else:
        text = (
            f"This {kind} has been scheduled for flexible downtime starting between "
            f"{_stamp(start)} and {_stamp(end)} and lasting for a period of {_span(duration)}. "
            f"Notifications for the {kind} will not be sent out during that time period."
        )
    note = core.add_comment(target, _PROCESS, text, entry_type=2, persistent=0)
    downtime = CoreDowntime(
        id=next(core.downtime_ids),
        target=target,
        author=author,
        comment=comment,
        entry_time=core.now(),
        start_time=start,
        end_time=end,
        fixed=fixed,
        duration=duration,
        triggered_by=triggered_by,
        comment_id=note.id,
    )
    core.downtimes[downtime.id] = downtime
    target.downtimes[downtime.id] = downtime
    if not fixed:
        target.pending_flex_downtime += 1
    core.changed(target)
    core.happened("downtime")
    trigger = core.downtimes.get(downtime.triggered_by)
    if trigger is not None and trigger.started:
        start_downtime(core, downtime)
    else:
        advance(core, downtime)
    return downtime


def advance(core: Core, downtime: CoreDowntime) -> None:
    """Start or end a downtime if it is time for it."""
    now = core.now()
    if downtime.started:
        if now >= downtime.ends:
            kind = downtime.target.kind.capitalize()
            text = f"{kind} has exited from a period of scheduled downtime"
            _leave(core, downtime, "STOPPED", text, "DOWNTIMEEND")
            _drop(core, downtime)
    elif now >= downtime.end_time:
        _drop(core, downtime)
    elif (
        now >= downtime.start_time
        and not downtime.triggered_by
        and (downtime.fixed or downtime.target.state)
    ):
        start_downtime(core, downtime)


def start_downtime(core: Core, downtime: CoreDowntime) -> None:
    """The downtime takes effect, and with it those that it triggers."""
    if downtime.started:
        return
    target, kind = downtime.target, downtime.target.kind
    downtime.started = core.now()
    if not downtime.fixed:
        target.pending_flex_downtime -= 1
    if not target.scheduled_downtime_depth:
        text = f"{kind.capitalize()} has entered a period of scheduled downtime"
        _log(core, target, "STARTED", text)
        notify(core, target, "DOWNTIMESTART", downtime.author, downtime.comment)
    target.scheduled_downtime_depth += 1
    core.changed(target)
    core.happened("downtime")
    for other in list(core.downtimes.values()):
        if other.triggered_by == downtime.id:
            start_downtime(core, other)


def cancel(core: Core, number: int) -> bool:
    """Delete a downtime and those that it triggers; whether there was one."""
    downtime = core.downtimes.get(number)
    if downtime is None:
        return False
    if downtime.started:
        text = f"Scheduled downtime for {downtime.target.kind} has been cancelled."
        _leave(core, downtime, "CANCELLED", text, "DOWNTIMECANCELLED")
    _drop(core, downtime)
    for other in list(core.downtimes.values()):
        if other.triggered_by == number:
            cancel(core, other.id)
    return True


def _leave(core: Core, downtime: CoreDowntime, word: str, text: str, reason: str) -> None:
    target = downtime.target
    target.scheduled_downtime_depth -= 1
    if not target.scheduled_downtime_depth:
        _log(core, target, word, text)
        notify(core, target, reason, downtime.author, downtime.comment)


def _drop(core: Core, downtime: CoreDowntime) -> None:
    target = downtime.target
    core.downtimes.pop(downtime.id, None)
    target.downtimes.pop(downtime.id, None)
    if not downtime.fixed and not downtime.started:
        target.pending_flex_downtime -= 1
    core.delete_comment(downtime.comment_id)
    core.changed(target)
    core.happened("downtime")


def acknowledge(
    core: Core,
    target: HostOrService,
    *,
    sticky: int,
    send: int,
    persistent: int,
    end: int,
    author: str,
    comment: str,
) -> None:
    """Acknowledge a problem; of an object without one nothing happens. ``end`` 0 is for ever."""
    if not target.state:
        return
    target.acknowledged = 1
    target.acknowledgement_type = 2 if sticky else 1
    target.acknowledgement_end = end
    kind = target.kind.upper()
    core.note(f"{kind} ACKNOWLEDGE ALERT: {target.label};STARTED;{author};{comment}")
    core.add_comment(target, author, comment, entry_type=4, persistent=persistent, expire_time=end)
    if send:
        notify(core, target, "ACKNOWLEDGEMENT", author, comment)
    core.changed(target)


def remove_acknowledgement(core: Core, target: HostOrService, word: str = "") -> None:
    """Take an acknowledgement back, with its comments that are not persistent.

    ``word`` is logged, for example EXPIRED.
    """
    if not target.acknowledged:
        return
    target.acknowledged = target.acknowledgement_type = target.acknowledgement_end = 0
    if word:
        core.note(f"{target.kind.upper()} ACKNOWLEDGE ALERT: {target.label};{word};;")
    for comment in list(target.comments.values()):
        if comment.entry_type == 4 and not comment.persistent:
            core.delete_comment(comment.id)
    core.changed(target)


def expire(core: Core) -> None:
    now = core.now()
    for comment in list(core.comments.values()):
        if comment.expires and comment.expire_time <= now:
            target = comment.target
            if comment.entry_type == 4 and target.acknowledgement_end == comment.expire_time:
                remove_acknowledgement(core, target, "EXPIRED")
            core.delete_comment(comment.id)


# What a check result does to an object: soft and hard states, flapping, log lines.

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
