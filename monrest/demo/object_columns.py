"""Columns of hosts, services and their groups (docs/spec/livestatus.md, "Tables and columns")."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from monrest.demo.checkable_columns import shared_columns
from monrest.demo.columns import Column, column
from monrest.demo.core import Core
from monrest.demo.objects import Host, HostGroup, Service, ServiceGroup
from monrest.demo.tally import Tallies, Tally, hard_state

_SERVICE_WORDS = ("ok", "warn", "crit", "unknown")


def _names(hosts: list[Host]) -> tuple[str, ...]:
    return tuple(host.name for host in hosts)


def _state(service: Service) -> tuple[str, int, int]:
    return (service.description, service.state, service.has_been_checked)


def host_columns(core: Core, tallies: Tallies) -> tuple[Column, ...]:
    """The 118 columns of hosts."""
    return (
        *shared_columns(core, "host"),
        *_service_counts(tallies),
        column("name", "string", "Name of the host"),
        column("alias", "string", "Long name of the host"),
        column("address", "string", "Network address"),
        column("filename", "string", "File that defines the host"),
        column("statusmap_image", "string", "Picture in the status map"),
        column("check_flapping_recovery_notification", "int", "Whether a recovery is held back",
               lambda _host: 0),
        column("hard_state", "int", "State without soft problems", hard_state),
        column("last_time_up", "int", "Last time the host was up", "", "time"),
        column("last_time_down", "int", "Last time the host was down", "", "time"),
        column("last_time_unreachable", "int", "Last time it was unreachable", "", "time"),
        column("pending_flex_downtime", "int", "Number of flexible downtimes that wait"),
        column("total_services", "int", "Number of services", lambda host: len(host.services)),
        column("x_3d", "float", "Position in a map", lambda host: host.coordinates[0]),
        column("y_3d", "float", "Position in a map", lambda host: host.coordinates[1]),
        column("z_3d", "float", "Position in a map", lambda host: host.coordinates[2]),
        column("parents", "list", "Hosts in front of it", lambda host: _names(host.parents)),
        column("childs", "list", "Hosts behind it", lambda host: _names(host.children)),
        column("services", "list", "Descriptions of its services",
               lambda host: tuple(item.description for item in host.services)),
        column("services_with_state", "list", "Services with state and whether checked",
               lambda host: tuple(map(_state, host.services))),
        column("services_with_info", "list", "The same with plugin output",
               lambda host: tuple((*_state(item), item.plugin_output) for item in host.services)),
    )  # fmt: skip


def service_columns(core: Core) -> tuple[Column, ...]:
    """The 92 own columns of services."""
    return (
        *shared_columns(core, "service"),
        column("description", "string", "Description of the service, unique on its host"),
        column("last_time_ok", "int", "Last time it was ok", "", "time"),
        column("last_time_warning", "int", "Last time it was warning", "", "time"),
        column("last_time_critical", "int", "Last time it was critical", "", "time"),
        column("last_time_unknown", "int", "Last time it was unknown", "", "time"),
        column("parents", "list", "Services that this one needs",
               lambda service: tuple((item.name, item.description) for item in service.parents),
               "pairs"),
    )  # fmt: skip


def _counted(
    tallies: Tallies, get: Callable[[Tally], int]
) -> Callable[[Host | HostGroup | ServiceGroup], int]:
    of = tallies.of
    return lambda item: get(of(item))


def _by_state(attribute: str, state: int) -> Callable[[Tally], int]:
    get = attrgetter(attribute)
    return lambda tally: int(get(tally)[state])


def _service_counts(tallies: Tallies, *, worst_hard: bool = True) -> tuple[Column, ...]:
    def count(name: str, text: str, get: Callable[[Tally], Any]) -> Column:
        return column(name, "int", text, _counted(tallies, get))

    found = [
        count("num_services", "Number of services", attrgetter("services")),
        count("num_services_pending", "Number of services never checked", attrgetter("pending")),
        count("worst_service_state", "Worst state of the services", attrgetter("worst")),
    ]
    if worst_hard:
        get = attrgetter("worst_hard")
        found.append(count("worst_service_hard_state", "Worst hard state of the services", get))
    for state, word in enumerate(_SERVICE_WORDS):
        text = f"Number of services in state {word}"
        found.append(count(f"num_services_{word}", text, _by_state("states", state)))
        found.append(count(f"num_services_hard_{word}", f"{text}, hard", _by_state("hard", state)))
    return tuple(found)


def _group(kind: str) -> tuple[Column, ...]:
    return (
        column("name", "string", f"Name of the {kind} group"),
        column("alias", "string", "Long name"),
        column("notes", "string", "Optional notes"),
        column("notes_url", "string", "Address with further information"),
        column("action_url", "string", "Address of custom actions"),
        column("id", "int", "Number of the group in the core"),
    )


def hostgroup_columns(tallies: Tallies) -> tuple[Column, ...]:
    """The columns of host groups."""

    def count(name: str, text: str, get: Callable[[Tally], Any]) -> Column:
        return column(name, "int", text, _counted(tallies, get))

    return (
        *_group("host"),
        *_service_counts(tallies),
        column("members", "list", "Names of the hosts", lambda group: _names(group.members)),
        column("members_with_state", "list", "Hosts with state and whether checked",
               lambda group: tuple(
                   (host.name, host.state, host.has_been_checked) for host in group.members)),
        count("num_hosts", "Number of hosts", attrgetter("hosts")),
        count("num_hosts_pending", "Number of hosts never checked", attrgetter("hosts_pending")),
        count("num_hosts_up", "Number of hosts that are up", _by_state("host_states", 0)),
        count("num_hosts_down", "Number of hosts that are down", _by_state("host_states", 1)),
        count("num_hosts_unreach", "Number of unreachable hosts", _by_state("host_states", 2)),
        count("worst_host_state", "Worst state of the hosts", attrgetter("worst_host")),
    )  # fmt: skip


def servicegroup_columns(tallies: Tallies) -> tuple[Column, ...]:
    """The columns of service groups."""
    return (
        *_group("service"),
        *_service_counts(tallies, worst_hard=False),
        column("members", "list", "Pairs of host and service",
               lambda group: tuple((item.name, item.description) for item in group.members),
               "pairs"),
        column("members_with_state", "list", "Pairs with state and whether checked",
               lambda group: tuple((item.name, *_state(item)) for item in group.members)),
    )  # fmt: skip
