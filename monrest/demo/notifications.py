"""Which contact would be notified: the rules of a core, and the log lines they leave."""

from __future__ import annotations

from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.objects import (
    HARD,
    CoreContact,
    DependsOn,
    HostOrService,
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
