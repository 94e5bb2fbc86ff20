"""All tables of the core: their rows, joins, indexes and who may see what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from monrest.demo import other_columns as other
from monrest.demo.columns import Column, Field, Lookup, Part, Table, only
from monrest.demo.core import Core
from monrest.demo.logbook import ALERT, NOTIFICATION, PASSIVE, STATE, LogEntry
from monrest.demo.object_columns import (
    host_columns,
    hostgroup_columns,
    service_columns,
    servicegroup_columns,
)
from monrest.demo.objects import Host, HostGroup, Service, ServiceGroup
from monrest.demo.tally import Tallies

_FIRST, _SECOND = itemgetter(0), itemgetter(1)
_OBJECT_CLASSES = frozenset({ALERT, NOTIFICATION, PASSIVE, STATE})


def _host(row: Any) -> Host:
    host: Host = row.host
    return host


def _target_host(row: Any) -> Host:
    host: Host = row.target.host
    return host


def _target_service(row: Any) -> Service | None:
    return row.target if isinstance(row.target, Service) else None


def build_tables(core: Core) -> dict[str, Table]:
    """Every table by name."""
    maker = _Tables(core)
    tables = {
        table.name: table
        for table in (
            *maker.objects(), *maker.by_group(), *maker.people(), *maker.entries(), maker.log(),
            Table("status", (Part("", other.STATUS),), lambda: [core],
                  wait_object=lambda _name: core),
        )
    }  # fmt: skip
    pairs: list[tuple[str, Field]] = []
    tables["columns"] = Table("columns", (Part("", other.COLUMNS),), lambda: pairs)
    for name in sorted(tables):
        pairs += ((name, field) for field in tables[name].fields.values())
    return tables


class _Tables:
    """The columns of every kind of object, made once and used in many tables."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.inventory = core.inventory
        tallies = Tallies(core)
        self.host = host_columns(core, tallies)
        self.service = service_columns(core)
        self.hostgroup = hostgroup_columns(tallies)
        self.servicegroup = servicegroup_columns(tallies)
        self.contact = other.contact_columns(core)

    def objects(self) -> list[Table]:
        """Hosts, services and their groups."""
        inventory = self.inventory
        hosts, services = inventory.hosts, inventory.services
        return [
            Table("hosts", (Part("", self.host),), lambda: list(hosts.values()),
                  indexes={"name": lambda name: [hosts[name]] if name in hosts else []},
                  own_prefix="host_", visible=_sees_target, wait_object=hosts.get),
            Table("services", (Part("", self.service), Part("host_", self.host, _host)),
                  lambda: list(services.values()), indexes={"host_name": self._on_host},
                  own_prefix="service_", visible=_sees_target, wait_object=self._wait_service),
            Table("hostgroups", (Part("", self.hostgroup),),
                  lambda: list(inventory.hostgroups.values()),
                  indexes={"name": _by_name(inventory.hostgroups)},
                  own_prefix="hostgroup_", visible=_sees_group),
            Table("servicegroups", (Part("", self.servicegroup),),
                  lambda: list(inventory.servicegroups.values()),
                  indexes={"name": _by_name(inventory.servicegroups)},
                  own_prefix="servicegroup_", visible=_sees_group),
        ]  # fmt: skip

    def _on_host(self, name: str) -> list[Service]:
        host = self.inventory.hosts.get(name)
        return [] if host is None else list(host.services)

    def _wait_service(self, text: str) -> Service | None:
        """WaitObject: host and service with a semicolon or a blank between."""
        find = self.inventory.services.get
        for mark in ";", " ":
            cut = text.find(mark)
            while cut >= 0:
                found = find((text[:cut], text[cut + 1 :]))
                if found is not None:
                    return found
                cut = text.find(mark, cut + 1)
        return None

    def by_group(self) -> list[Table]:
        """The tables with one row for each membership; a row is (group, member)."""
        inventory = self.inventory

        def hosts() -> list[tuple[HostGroup, Host]]:
            groups = inventory.hostgroups.values()
            return [(group, host) for group in groups for host in group.members]

        def services() -> list[tuple[ServiceGroup, Service]]:
            groups = inventory.servicegroups.values()
            return [(group, item) for group in groups for item in group.members]

        def services_by_host() -> list[tuple[HostGroup, Service]]:
            return [(group, item) for group, host in hosts() for item in host.services]

        def sees(contact: str) -> Callable[[Any], bool]:
            member = _sees_target(contact)
            group = _sees_group(contact)
            return lambda row: member(row[1]) and group(row[0])

        service = (Part("", self.service, _SECOND), Part("host_", self.host, lambda r: r[1].host))
        hostgroup = Part("hostgroup_", self.hostgroup, _FIRST)
        return [
            Table("hostsbygroup", (Part("", self.host, _SECOND), hostgroup), hosts,
                  own_prefix="host_", visible=sees),
            Table("servicesbygroup",
                  (*service, Part("servicegroup_", self.servicegroup, _FIRST)), services,
                  own_prefix="service_", visible=sees),
            Table("servicesbyhostgroup", (*service, hostgroup), services_by_host,
                  own_prefix="service_", visible=sees),
        ]  # fmt: skip

    def people(self) -> list[Table]:
        """Contacts, contact groups, commands and time periods."""
        inventory = self.inventory
        kinds: list[tuple[str, str, tuple[Column, ...], Mapping[str, Any]]] = [
            ("contacts", "contact_", self.contact, inventory.contacts),
            ("contactgroups", "contactgroup_", other.CONTACTGROUP, inventory.contactgroups),
            ("commands", "command_", other.COMMAND, inventory.commands),
            ("timeperiods", "timeperiod_", other.timeperiod_columns(self.core),
             inventory.timeperiods),
        ]  # fmt: skip
        return [
            Table(name, (Part("", columns),), _all(items), indexes={"name": _by_name(items)},
                  own_prefix=prefix)
            for name, prefix, columns, items in kinds
        ]  # fmt: skip

    def entries(self) -> list[Table]:
        """Comments and downtimes, joined with host and service."""
        joins = (
            Part("host_", self.host, _target_host),
            Part("service_", self.service, _target_service, optional=True),
        )

        def sees(contact: str) -> Callable[[Any], bool]:
            visible = _sees_target(contact)
            return lambda row: visible(row.target)

        core = self.core
        return [
            Table("comments", (Part("", other.COMMENT), *joins),
                  lambda: list(core.comments.values()), own_prefix="comment_", visible=sees),
            Table("downtimes", (Part("", other.DOWNTIME), *joins),
                  lambda: list(core.downtimes.values()), own_prefix="downtime_", visible=sees),
        ]  # fmt: skip

    def log(self) -> Table:
        """The log, joined with what its lines name."""
        inventory = self.inventory

        def host(entry: LogEntry) -> Host | None:
            return inventory.hosts.get(entry.host_name)

        def service(entry: LogEntry) -> Service | None:
            return inventory.services.get((entry.host_name, entry.service_description))

        def sees(contact: str) -> Callable[[Any], bool]:
            visible = _sees_target(contact)

            def check(entry: LogEntry) -> bool:
                if entry.class_ not in _OBJECT_CLASSES or not entry.host_name:
                    return True
                found = inventory.find(entry.host_name, entry.service_description)
                return found is not None and visible(found)

            return check

        parts = (
            Part("", other.LOG),
            Part("current_host_", self.host, host, optional=True),
            # Joined names that the line itself tells are own columns, not joined ones.
            Part("current_service_", self.service, service, optional=True),
            Part("current_contact_", self.contact,
                 lambda entry: inventory.contacts.get(entry.contact_name), optional=True),
            Part("current_command_", only(other.COMMAND, ("id", "name", "line")),
                 lambda entry: inventory.commands.get(entry.command_name), optional=True),
        )  # fmt: skip
        return Table("log", parts, lambda: self.core.log.newest_first(None, None), visible=sees)


def _all(items: Mapping[str, Any]) -> Callable[[], list[Any]]:
    return lambda: list(items.values())


def _by_name(items: Mapping[str, Any]) -> Lookup:
    return lambda name: [items[name]] if name in items else []


def _sees_target(contact: str) -> Callable[[Any], bool]:
    """Contacts of a host; of a service or its host (the loose setting)."""

    def check(target: Any) -> bool:
        return contact in target.authorized or contact in target.host.authorized

    return check


def _sees_group(contact: str) -> Callable[[Any], bool]:
    """Contacts of all members (the strict setting); empty groups are hidden."""
    visible = _sees_target(contact)
    return lambda group: bool(group.members) and all(map(visible, group.members))
