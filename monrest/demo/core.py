"""The embedded core: its objects, switches, counters, comments and log, and what waits for news."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, tzinfo
from itertools import count
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

from attrs import define, field
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.base.signals import Signal
from monrest.demo.inventory import Inventory
from monrest.demo.logbook import Logbook
from monrest.demo.objects import Comment, CoreContact, CoreDowntime, HostOrService
from monrest.query.sendable import COUNTERS

PROGRAM_VERSION = "1.5.2-demo"
LIVESTATUS_VERSION = "1.5.1-naemon"
INTERVAL_LENGTH = 60
"""Seconds in one unit of check and notification intervals."""


@define(eq=False, repr=False)
class Switches:
    """The global switches, named as in the status table; 0 or 1."""

    enable_notifications: int = 1
    execute_service_checks: int = 1
    accept_passive_service_checks: int = 1
    execute_host_checks: int = 1
    accept_passive_host_checks: int = 1
    enable_event_handlers: int = 1
    obsess_over_services: int = 0
    obsess_over_hosts: int = 0
    check_service_freshness: int = 1
    check_host_freshness: int = 0
    enable_flap_detection: int = 1
    process_performance_data: int = 1
    check_external_commands: int = 1
    global_host_event_handler: str = ""
    global_service_event_handler: str = ""


@define(eq=False, repr=False)
class Core:
    """One simulated core. Everything that happens to it goes through the functions beside it.

    ``wall`` returns the time, ``clock`` runs what comes later, ``rng`` every accident. ``zone`` is
    the site's time zone.
    """

    clock: IReactorTime
    wall: WallClock
    inventory: Inventory
    rng: Random
    zone: tzinfo
    log: Logbook = field(factory=Logbook)
    switches: Switches = field(factory=Switches)
    comments: dict[int, Comment] = field(factory=dict)
    downtimes: dict[int, CoreDowntime] = field(factory=dict)
    program_start: int = 0
    pid: int = 0
    last_command_check: int = 0
    last_log_rotation: int = 0
    counters: dict[str, int] = field(factory=lambda: dict.fromkeys(COUNTERS, 0))
    rates: dict[str, float] = field(factory=lambda: dict.fromkeys(COUNTERS, 0.0))
    state_serial: int = 0
    """Grows with every change of a state, so that sums over objects can be remembered."""
    happened: Signal[[str]] = field(factory=Signal)
    """The trigger word of everything that happens: check, state, log, downtime, comment ..."""
    restart: Callable[[], None] | None = None
    """Reads the object files again and starts with them; None: they stay as they are."""
    downtime_ids: Iterator[int] = field(factory=lambda: count(1))
    _comment_ids: Iterator[int] = field(factory=lambda: count(1))
    _periods: dict[str, int] = field(factory=dict)
    _periods_at: int = -1

    def now(self) -> int:
        return int(self.wall.now())

    def note(self, text: str) -> None:
        self.log.past(self.now(), text)
        self.counters["log_messages"] += 1
        self.happened("log")

    def in_period(self, name: str) -> int:
        """Whether now lies in a time period, 0 or 1; no period is always. Kept for one second."""
        now = self.now()
        if now != self._periods_at:
            self._periods_at, self._periods = now, {}
        period = self._periods.get(name)
        if period is None:
            period = self._periods[name] = int(self.holds(name, now))
        return period

    def holds(self, name: str, moment: float) -> bool:
        """Whether a moment lies in a time period; no period, or an unknown one, is always."""
        periods = self.inventory.timeperiods
        period = periods.get(name)
        return period is None or period.holds(moment, self.zone, periods.get)

    def valueless(self) -> bool:
        """Whether some object has a custom variable without a value, which ends real cores."""
        objects = [*self.inventory.targets(), *self.inventory.contacts.values()]
        return any("" in item.custom_variables.values() for item in objects)

    def changed(self, target: HostOrService | CoreContact) -> None:
        if not isinstance(target, CoreContact):
            target.last_update = self.wall.now()
        self.state_serial += 1

    def add_comment(
        self,
        target: HostOrService,
        author: str,
        text: str,
        *,
        entry_type: int = 1,
        persistent: int = 0,
        source: int = 0,
        expire_time: int = 0,
    ) -> Comment:
        """Add a comment. ``entry_type`` and ``source`` are those of the comments table."""
        comment = Comment(
            id=next(self._comment_ids),
            target=target,
            author=author,
            comment=text,
            entry_time=self.now(),
            entry_type=entry_type,
            persistent=persistent,
            source=source,
            expires=int(expire_time > 0),
            expire_time=expire_time,
        )
        self.comments[comment.id] = comment
        target.comments[comment.id] = comment
        self.changed(target)
        self.happened("comment")
        return comment

    def delete_comment(self, number: int) -> bool:
        """Delete a comment by id; whether there was one."""
        comment = self.comments.pop(number, None)
        if comment is None:
            return False
        comment.target.comments.pop(number, None)
        self.changed(comment.target)
        self.happened("comment")
        return True


def local_zone() -> tzinfo:
    """The time zone of the machine: the variable TZ, else /etc/localtime, else UTC."""
    try:
        if name := os.environ.get("TZ"):
            return ZoneInfo(name.removeprefix(":"))
        with Path("/etc/localtime").open("rb") as source:
            return ZoneInfo.from_file(source)
    except (OSError, ValueError):
        return UTC
