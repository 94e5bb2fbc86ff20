"""Counts of services and hosts by state, remembered until a state changes."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from monrest.demo.core import Core
from monrest.demo.objects import HARD, Host, HostGroup, Service, ServiceGroup

_WORSE = (0, 1, 3, 2)
"""Rank of a service state: critical is the worst, then unknown, then warning."""


@define(eq=False)
class Tally:
    """Counts over some services and hosts; the lists are by state number."""

    services: int = 0
    pending: int = 0
    states: list[int] = field(factory=lambda: [0] * 4)
    hard: list[int] = field(factory=lambda: [0] * 4)
    worst: int = 0
    worst_hard: int = 0
    hosts: int = 0
    hosts_pending: int = 0
    host_states: list[int] = field(factory=lambda: [0] * 3)
    worst_host: int = 0

    def add_services(self, services: Iterable[Service]) -> None:
        """Count services."""
        for service in services:
            self.services += 1
            if not service.has_been_checked:
                self.pending += 1
                continue
            hard = hard_state(service)
            self.states[service.state] += 1
            self.hard[hard] += 1
            if _WORSE[service.state] > _WORSE[self.worst]:
                self.worst = service.state
            if _WORSE[hard] > _WORSE[self.worst_hard]:
                self.worst_hard = hard

    def add_host(self, host: Host) -> None:
        """Count a host and its services."""
        self.hosts += 1
        if host.has_been_checked:
            self.host_states[host.state] += 1
            if host.state and (self.worst_host == 0 or host.state == 1):
                self.worst_host = host.state
        else:
            self.hosts_pending += 1
        self.add_services(host.services)


def hard_state(target: Host | Service) -> int:
    """The state that counts: the present one when good or hard, else the last hard one."""
    if target.state == 0 or target.state_type == HARD:
        return target.state
    return target.last_hard_state


@define(eq=False)
class Tallies:
    """Tallies of hosts and groups of one core."""

    core: Core
    _serial: int = -1
    _known: dict[int, Tally] = field(factory=dict)

    def of(self, item: Host | HostGroup | ServiceGroup) -> Tally:
        """The tally of a host's services, a host group's members or a service group's."""
        if self._serial != self.core.state_serial:
            self._serial, self._known = self.core.state_serial, {}
        found = self._known.get(id(item))
        if found is None:
            found = self._known[id(item)] = Tally()
            if isinstance(item, Host):
                found.add_services(item.services)
            elif isinstance(item, HostGroup):
                for host in item.members:
                    found.add_host(host)
            else:
                found.add_services(item.members)
        return found
