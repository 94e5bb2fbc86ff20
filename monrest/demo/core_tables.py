"""All tables of the core: their columns, rows, joins and indexes, and who may see what.

Names and types of the columns are those of a Naemon (``monrest/sites/static.py``), their
descriptions and which of them are times are those of the collections (``monrest/rows/columns``).
A value is the attribute of that name unless a function here calculates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from operator import attrgetter, itemgetter
from typing import Any

from attrs import define, field, fields

from monrest.demo.core import INTERVAL_LENGTH, LIVESTATUS_VERSION, PROGRAM_VERSION, Core, Switches
from monrest.demo.logbook import ALERT, NOTIFICATION, PASSIVE, STATE, LogEntry
from monrest.demo.objects import (
    MODIFIED,
    Checkable,
    DependsOn,
    Host,
    ObjectGroup,
    Service,
)
from monrest.lql.tables import Column, Part, Rows, Table, ValueOf
from monrest.objectconfig.timeperiods import Anchor, DateRule
from monrest.query.sendable import COUNTERS
from monrest.rows.columns import SCHEMAS
from monrest.sites.static import NAEMON


def build_tables(core: Core) -> dict[str, Table]:
    columns = _columns(core)
    inventory = core.inventory
    hosts, services = inventory.hosts, inventory.services
    host_member = Part("", columns["hosts"], itemgetter(1))
    service_member = (
        Part("", columns["services"], itemgetter(1)),
        Part("host_", columns["hosts"], lambda row: row[1].host),
    )
    hostgroup = Part("hostgroup_", columns["hostgroups"], itemgetter(0))
    servicegroup = Part("servicegroup_", columns["servicegroups"], itemgetter(0))
    of_entry = (
        Part("host_", columns["hosts"], attrgetter("target.host")),
        Part("service_", columns["services"], _service_of, optional=True),
    )

    def table(name: str, rows: Callable[[], Rows], *joined: Part, **more: Any) -> Table:
        parts = (Part("", columns[name]), *joined)
        return Table(name, parts, rows, f"{name[:-1]}_", **more)

    def named(name: str, items: Mapping[str, Any], **more: Any) -> Table:
        """A table of objects that are found by their name."""
        indexes = {"name": lambda key: [items[key]] if key in items else []}
        return table(name, _all(items), indexes=indexes, **more)

    def members(name: str, groups: Mapping[str, Any], *parts: Part) -> Table:
        """A table with a row for each membership: (group, member)."""
        own_prefix = f"{name.partition('sby')[0]}_"

        def rows() -> Rows:
            pairs = [(group, member) for group in groups.values() for member in group.members]
            if name != "servicesbyhostgroup":
                return pairs
            return [(group, item) for group, host in pairs for item in host.services]

        return Table(name, parts, rows, own_prefix, _sees_member)

    tables = [
        named("hosts", hosts, visible=_sees_target, wait_object=hosts.get),
        table(
            "services",
            _all(services),
            Part("host_", columns["hosts"], attrgetter("host")),
            visible=_sees_target,
            indexes={"host_name": lambda name: hosts[name].services[:] if name in hosts else []},
            wait_object=lambda text: _service_named(services, text),
        ),
        named("hostgroups", inventory.hostgroups, visible=_sees_group),
        named("servicegroups", inventory.servicegroups, visible=_sees_group),
        members("hostsbygroup", inventory.hostgroups, host_member, hostgroup),
        members("servicesbygroup", inventory.servicegroups, *service_member, servicegroup),
        members("servicesbyhostgroup", inventory.hostgroups, *service_member, hostgroup),
        named("contacts", inventory.contacts),
        named("contactgroups", inventory.contactgroups),
        named("commands", inventory.commands),
        named("timeperiods", inventory.timeperiods),
        table("comments", _all(core.comments), *of_entry, visible=_sees_entry),
        table("downtimes", _all(core.downtimes), *of_entry, visible=_sees_entry),
        _log(core, columns),
        Table("status", (Part("", columns["status"]),), lambda: [core], wait_object=lambda _: core),
    ]
    pairs: Rows = []
    tables.append(Table("columns", (Part("", _COLUMNS),), lambda: pairs))
    pairs += (
        (table.name, column)
        for table in sorted(tables, key=attrgetter("name"))
        for column in table.columns.values()
    )
    return {table.name: table for table in tables}


def _log(core: Core, columns: Mapping[str, tuple[Column, ...]]) -> Table:
    """The log, joined with what its lines name."""
    inventory = core.inventory

    def service(entry: LogEntry) -> Service | None:
        return inventory.services.get((entry.host_name, entry.service_description))

    joins: tuple[tuple[str, ValueOf], ...] = (
        ("host", lambda entry: inventory.hosts.get(entry.host_name)),
        ("service", service),
        ("contact", lambda entry: inventory.contacts.get(entry.contact_name)),
        ("command", lambda entry: inventory.commands.get(entry.command_name)),
    )
    parts = [Part(f"current_{kind}_", columns[f"{kind}s"], step, True) for kind, step in joins]

    def sees(contact: str) -> Callable[[Any], bool]:
        visible = _sees_target(contact)

        def check(entry: LogEntry) -> bool:
            if entry.class_ not in _OBJECT_CLASSES or not entry.host_name:
                return True
            target = inventory.find(entry.host_name, entry.service_description)
            return target is not None and visible(target)

        return check

    newest_first = core.log.newest_first
    own = Part("", columns["log"])
    return Table("log", (own, *parts), newest_first, visible=sees, between=newest_first)


_OBJECT_CLASSES = frozenset({ALERT, NOTIFICATION, PASSIVE, STATE})


def _all(items: Mapping[Any, Any]) -> Callable[[], Rows]:
    return lambda: list(items.values())


def _service_of(row: Any) -> Service | None:
    return row.target if isinstance(row.target, Service) else None


def _service_named(services: Mapping[tuple[str, str], Service], text: str) -> Service | None:
    """WaitObject: host and service with a semicolon or a space between."""
    for mark in ";", " ":
        cut = text.find(mark)
        while cut >= 0:
            service = services.get((text[:cut], text[cut + 1 :]))
            if service is not None:
                return service
            cut = text.find(mark, cut + 1)
    return None


def _sees_target(contact: str) -> Callable[[Any], bool]:
    """Contacts of a host; of a service or its host (the loose setting)."""
    return lambda row: contact in row.authorized or contact in row.host.authorized


def _sees_group(contact: str) -> Callable[[Any], bool]:
    """Contacts of all members (the strict setting); empty groups are hidden."""
    visible = _sees_target(contact)
    return lambda group: bool(group.members) and all(map(visible, group.members))


def _sees_member(contact: str) -> Callable[[Any], bool]:
    member, group = _sees_target(contact), _sees_group(contact)
    return lambda row: member(row[1]) and group(row[0])


def _sees_entry(contact: str) -> Callable[[Any], bool]:
    visible = _sees_target(contact)
    return lambda row: visible(row.target)


_COLUMNS = (
    Column("table", "string", "name of the table", itemgetter(0)),
    Column("name", "string", "name of the column", lambda row: row[1].name),
    Column("description", "string", "what the column holds", lambda row: row[1].description),
    Column("type", "string", "string, int, float, list or dict", lambda row: row[1].type),
)
_STYLES: Mapping[tuple[str, str], Any] = {
    **{(table, "last_update"): "micro" for table in ("hosts", "services")},
    **{(table, "perf_data"): "perf" for table in ("hosts", "services")},
    **{("services", name): "pairs" for name in ("parents", "depends_exec", "depends_notify")},
    ("servicegroups", "members"): "pairs",
    **{("status", f"{name}{suffix}"): "counter" for name in COUNTERS for suffix in ("", "_rate")},
}


def _columns(core: Core) -> dict[str, tuple[Column, ...]]:
    calculated = _calculated(core)
    counted = _counted(core)
    schemas = {schema.table: schema for schema in SCHEMAS.values()}
    by_table = {}
    for table, types in NAEMON.items():
        columns = []
        for name, kind in types.items():
            declared = schemas[table].columns[name]
            is_time = getattr(declared, "core_type", "time") == "time"
            raw = name.removesuffix("_expanded")
            columns.append(
                Column(
                    name,
                    kind,
                    declared.column.description,
                    calculated[table].get(name) or counted.get(name) or attrgetter(name),
                    style=_STYLES.get((table, name)) or ("time" if is_time else ""),
                    bits=MODIFIED if name == "modified_attributes_list" else None,
                    deadly=core.valueless if name == "custom_variable_values" else None,
                    compared=None if raw == name else attrgetter(raw),
                )
            )
        by_table[table] = tuple(columns)
    return by_table


def _calculated(core: Core) -> dict[str, dict[str, ValueOf]]:
    """By table and column: how values are found that are no attribute of the object."""
    inventory = core.inventory
    variables: dict[str, ValueOf] = {
        "custom_variable_names": lambda item: tuple(item.custom_variables),
        "custom_variable_values": lambda item: tuple(item.custom_variables.values()),
        "modified_attributes_list": lambda item: tuple(
            word for word, bit in MODIFIED.items() if item.modified_attributes & bit
        ),
    }
    checkable = variables | _of_checkables(core)
    members: dict[str, ValueOf] = {
        "members": lambda group: tuple(member.key for member in group.members),
        "members_with_state": lambda group: tuple(
            (*member.names, member.state, member.has_been_checked) for member in group.members
        ),
    }
    entry: dict[str, ValueOf] = {
        "is_service": lambda item: int(isinstance(item.target, Service)),
        "type": lambda item: 1 + isinstance(item.target, Service),
    }
    return {
        "hosts": checkable | _OF_HOSTS,
        "services": checkable,
        "hostgroups": members,
        "servicegroups": members,
        "contacts": {
            **variables,
            **{f"address{n + 1}": _item(attrgetter("addresses"), n) for n in range(6)},
            "in_host_notification_period": lambda contact: core.in_period(
                contact.host_notification_period
            ),
            "in_service_notification_period": lambda contact: core.in_period(
                contact.service_notification_period
            ),
        },
        "contactgroups": {},
        "commands": {},
        "timeperiods": {
            "id": lambda period: list(inventory.timeperiods).index(period.name),
            "in": lambda period: core.in_period(period.name),
            "days": lambda period: tuple(
                tuple(edge for pair in day for edge in pair) for day in period.days
            ),
            **{f"exceptions_{word}": _rules(kind) for kind, word in enumerate(_RULES, 1)},
            "exclusions": attrgetter("exclude"),
        },
        "comments": entry,
        "downtimes": entry,
        "log": {"class": attrgetter("class_")},
        "status": {
            **{name: attrgetter(f"switches.{name}") for name in _SWITCHES},
            **{name: _item(attrgetter("counters"), name) for name in COUNTERS},
            **{f"{name}_rate": _item(attrgetter("rates"), name) for name in COUNTERS},
            "livestatus_version": lambda _: LIVESTATUS_VERSION,
            "program_version": lambda _: PROGRAM_VERSION,
            "cached_log_messages": lambda _: len(core.log.entries),
            "interval_length": lambda _: INTERVAL_LENGTH,
            "nagios_pid": attrgetter("pid"),
            "num_hosts": lambda _: len(inventory.hosts),
            "num_services": lambda _: len(inventory.services),
        },
    }


def _item(of: ValueOf, key: Any) -> ValueOf:
    return lambda row: of(row)[key]


def _rules(kind: int) -> ValueOf:
    return lambda period: tuple(exception_info(rule) for rule in period.rules if rule.kind == kind)


_SWITCHES = [
    attribute.name for attribute in fields(Switches) if not attribute.name.startswith("global_")
]
_COMMENT_INFO = attrgetter(
    "id", "author", "comment", "entry_time", "entry_type", "expires", "expire_time"
)
_DOWNTIME_INFO = attrgetter(
    "id", "author", "comment", "entry_time", "start_time", "end_time", "fixed", "duration",
    "triggered_by",
)  # fmt: skip


def _of_checkables(core: Core) -> dict[str, ValueOf]:
    """The common columns of hosts and services (docs/spec/livestatus.md, "Tables and columns")."""

    def staleness(target: Checkable) -> float:
        span = target.check_interval * INTERVAL_LENGTH
        if not span or not target.last_check:
            return 0.0
        return (core.wall.now() - target.last_check) / span

    def depends(attribute: str, element: ValueOf) -> ValueOf:
        return lambda target: tuple(map(element, getattr(target, attribute)))

    def info(link: DependsOn) -> tuple[Any, ...]:
        criteria = "".join(sorted(link.criteria))
        return (*link.master.names, criteria, link.period, int(link.inherits_parent))

    executing, notifying = "execution_dependencies", "notification_dependencies"
    return {
        "checks_enabled": attrgetter("active_checks_enabled"),
        "obsess_over_host": attrgetter("obsess"),
        "obsess_over_service": attrgetter("obsess"),
        "pnpgraph_present": lambda _: -1,
        "staleness": staleness,
        "in_check_period": lambda target: core.in_period(target.check_period),
        "in_notification_period": lambda target: core.in_period(target.notification_period),
        "parents": lambda target: tuple(parent.key for parent in target.parents),
        "comments": lambda target: tuple(target.comments),
        "comments_with_info": lambda target: tuple(map(_COMMENT_INFO, target.comments.values())),
        "downtimes": lambda target: tuple(target.downtimes),
        "downtimes_with_info": lambda target: tuple(map(_DOWNTIME_INFO, target.downtimes.values())),
        "depends_exec": depends(executing, attrgetter("master.key")),
        "depends_exec_with_info": depends(executing, info),
        "depends_notify": depends(notifying, attrgetter("master.key")),
        "depends_notify_with_info": depends(notifying, info),
    }


_STATE = attrgetter("description", "state", "has_been_checked")
_STATE_INFO = attrgetter("description", "state", "has_been_checked", "plugin_output")

_OF_HOSTS: dict[str, ValueOf] = {
    "check_flapping_recovery_notification": lambda _: 0,
    "total_services": lambda host: len(host.services),
    "x_3d": lambda host: host.coordinates[0],
    "y_3d": lambda host: host.coordinates[1],
    "z_3d": lambda host: host.coordinates[2],
    "childs": lambda host: tuple(child.name for child in host.children),
    "services": lambda host: tuple(item.description for item in host.services),
    "services_with_state": lambda host: tuple(map(_STATE, host.services)),
    "services_with_info": lambda host: tuple(map(_STATE_INFO, host.services)),
}


_HOST_COUNTS = ("num_hosts_up", "num_hosts_down", "num_hosts_unreach")
_COUNTS = tuple(f"num_services_{word}" for word in ("ok", "warn", "crit", "unknown"))
_HARD_COUNTS = tuple(f"num_services_hard_{word}" for word in ("ok", "warn", "crit", "unknown"))
_HOST_RANK = (0, 2, 1)
_RANK = (0, 1, 3, 2)
"""Rank of a service state: critical is the worst, then unknown, then warning."""


def _counted(core: Core) -> dict[str, ValueOf]:
    """Columns that count the services and hosts of a host or a group."""
    sums = _Sums(core)
    worst = ("worst_host_state", "worst_service_state", "worst_service_hard_state")
    names = ("num_hosts", "num_hosts_pending", "num_services", "num_services_pending")
    every = (*names, *_HOST_COUNTS, *_COUNTS, *_HARD_COUNTS, *worst)
    return {name: _item(sums.of, name) for name in every}


@define(eq=False)
class _Sums:
    """Counts by the name of their column, remembered for each object until a state changes.

    A row shows twenty of them, and each would look at all services.
    """

    core: Core
    _serial: int = -1
    _sums: dict[int, Counter[str]] = field(factory=dict)

    def of(self, item: Host | ObjectGroup[Any]) -> Counter[str]:
        if self._serial != self.core.state_serial:
            self._serial, self._sums = self.core.state_serial, {}
        sums = self._sums.get(id(item))
        if sums is None:
            sums = self._sums[id(item)] = Counter()
            for member in [item] if isinstance(item, Host) else item.members:
                if isinstance(member, Service):
                    _count_service(sums, member)
                    continue
                _count_host(sums, member)
                for service in member.services:
                    _count_service(sums, service)
        return sums


def _count_service(counts: Counter[str], service: Service) -> None:
    counts["num_services"] += 1
    if not service.has_been_checked:
        counts["num_services_pending"] += 1
        return
    for state, names, worst in (
        (service.state, _COUNTS, "worst_service_state"),
        (service.hard_state, _HARD_COUNTS, "worst_service_hard_state"),
    ):
        counts[names[state]] += 1
        counts[worst] = max(counts[worst], state, key=_RANK.__getitem__)


def _count_host(counts: Counter[str], host: Host) -> None:
    counts["num_hosts"] += 1
    if host.has_been_checked:
        counts[_HOST_COUNTS[host.state]] += 1
        worst = max(counts["worst_host_state"], host.state, key=_HOST_RANK.__getitem__)
        counts["worst_host_state"] = worst
    else:
        counts["num_hosts_pending"] += 1


_RULES = ("calendar_dates", "month_date", "month_day", "month_week_day", "week_day")
"""The columns of exceptions, by kind of rule from 1 on."""


def exception_info(rule: DateRule) -> dict[str, Any]:
    """The element of the columns ``exceptions_…`` of time periods."""
    start, end = rule.start, rule.end
    last = end or Anchor()
    values: dict[str, Any] = {
        **_date("s", start, start.day),
        **_date("e", last, 0 if end is None else end.day),
        "skip_interval": rule.skip if rule.skip > 1 else 0,
        "times": [list(pair) for pair in rule.ranges],
    }
    if start.weekday is not None:
        values |= {"swday": start.weekday, "swday_offset": start.day}
        values |= {"ewday": last.weekday or 0, "ewday_offset": last.day}
    return values


def _date(prefix: str, anchor: Anchor, day: int) -> dict[str, int]:
    month = max(anchor.month - 1, 0)
    return {f"{prefix}year": anchor.year, f"{prefix}mon": month, f"{prefix}mday": day}
