"""Downtimes and acknowledgements: their life, their log lines, their comments."""

from __future__ import annotations

import time

from monrest.demo.core import Core
from monrest.demo.notifications import notify
from monrest.demo.objects import CoreDowntime, HostOrService, Service

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
