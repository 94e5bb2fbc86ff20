"""All tables of the core: their columns, rows, joins and indexes, and who may see what.

Names and types of the columns are those of a Naemon (``monrest/sites/static.py``), their
descriptions and which of them are times are those of the collections (``monrest/rows/columns``).
A value is the attribute of that name unless a function here calculates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeAlias

from attrs import define, evolve, field, fields, frozen

from monrest.demo.core import INTERVAL_LENGTH, LIVESTATUS_VERSION, PROGRAM_VERSION, Core, Switches
from monrest.demo.logbook import ALERT, NOTIFICATION, PASSIVE, STATE, LogEntry
from monrest.demo.objects import (
    HARD,
    MODIFIED,
    Checkable,
    DependsOn,
    Host,
    HostGroup,
    HostOrService,
    Service,
    ServiceGroup,
)
from monrest.objectconfig.timeperiods import Anchor, DateRule, Timeperiod
from monrest.query.column_names import EMPTY
from monrest.query.sendable import COUNTERS
from monrest.rows.columns import SCHEMAS
from monrest.sites.static import NAEMON

Style: TypeAlias = Literal["", "time", "micro", "bits", "pairs", "perf", "counter"]
ValueOf: TypeAlias = Callable[[Any], Any]
TableRows: TypeAlias = list[Any]
Sees: TypeAlias = Callable[[str], Callable[[Any], bool]]


@frozen
class ObjectColumn:
    """A column of an object: ``get`` gives its value from the object.

    ``style`` says how it differs from its type: ``time`` moves with the Localtime header,
    ``micro`` prints six decimals, ``bits`` is a list read from a number, ``pairs`` is a list
    whose members are joined by the host/service separator, ``perf`` is performance data. A
    ``counter`` can only be read: a real core refuses to filter by it and dies of a Stats function.
    ``deadly`` says whether a real core would at present die of a filter on the column, and
    ``compared`` gives what a filter compares where that is not the value (docs/spec/livestatus.md).
    """

    name: str
    type: str
    description: str
    get: ValueOf
    style: Style = ""
    deadly: Callable[[], bool] | None = None
    compared: ValueOf | None = None


@frozen(eq=False)
class Part:
    """Columns of one kind of object inside a table's rows.

    ``step`` leads from a row to the object, None where the row is the object. With ``optional``
    it may answer None, and the columns are then empty.
    """

    prefix: str
    columns: tuple[ObjectColumn, ...]
    step: ValueOf | None = None
    optional: bool = False


@frozen(eq=False)
class ShownColumn:
    """A column as a table shows it: under its name there, reached through a part."""

    name: str
    base: ObjectColumn
    part: Part

    def getter(self) -> ValueOf:
        """A function from a row to the value."""
        get, step = self.base.get, self.part.step
        if step is None:
            return get
        if not self.part.optional:
            return lambda row: get(step(row))
        empty = EMPTY[self.base.type]

        def through(row: Any) -> Any:
            found = step(row)
            return empty if found is None else get(found)

        return through

    def compared(self) -> ShownColumn:
        get = self.base.compared
        return self if get is None else evolve(self, base=evolve(self.base, get=get))

    def shifted(self, seconds: int) -> ShownColumn:
        """The column with its times moved, for the Localtime header."""
        if self.base.style != "time" or not seconds:
            return self
        get = self.base.get
        return evolve(self, base=evolve(self.base, get=lambda row: get(row) + seconds))


@frozen(eq=False)
class CoreTable:
    """A Livestatus table.

    ``rows`` gives all rows. ``indexes`` map a column name to a function from a value to the rows
    that have it. ``visible`` answers whether a contact may see a row (None: all may).
    ``own_prefix`` may stand before own column names. ``wait_object`` finds the row that the
    header WaitObject names.
    """

    name: str
    parts: tuple[Part, ...]
    rows: Callable[[], TableRows]
    own_prefix: str = ""
    visible: Sees | None = None
    indexes: Mapping[str, Callable[[str], TableRows]] = field(factory=dict)
    wait_object: Callable[[str], Any] | None = None
    columns: Mapping[str, ShownColumn] = field(init=False)

    def __attrs_post_init__(self) -> None:
        found = {
            part.prefix + base.name: ShownColumn(part.prefix + base.name, base, part)
            for part in self.parts
            for base in part.columns
        }
        object.__setattr__(self, "columns", dict(sorted(found.items())))

    def find(self, name: str) -> ShownColumn | None:
        """The column of a name, or None; the table's own prefix is accepted and cut."""
        found = self.columns.get(name)
        if found is None and self.own_prefix and name.startswith(self.own_prefix):
            return self.columns.get(name[len(self.own_prefix) :])
        return found


def build_tables(core: Core) -> dict[str, CoreTable]:
    columns = _columns(core)
    inventory = core.inventory
    hosts, services = inventory.hosts, inventory.services
    service = (Part("", columns["services"]), Part("host_", columns["hosts"], attrgetter("host")))
    host_member = Part("", columns["hosts"], itemgetter(1))
    service_member = (
        Part("", columns["services"], itemgetter(1)),
        Part("host_", columns["hosts"], lambda row: row[1].host),
    )
    hostgroup = Part("hostgroup_", columns["hostgroups"], itemgetter(0))
    servicegroup = Part("servicegroup_", columns["servicegroups"], itemgetter(0))
    entry = (
        Part("host_", columns["hosts"], attrgetter("target.host")),
        Part("service_", columns["services"], _service_of, optional=True),
    )

    def own(name: str) -> tuple[Part, ...]:
        return (Part("", columns[name]),)

    def named(name: str, items: Mapping[str, Any], visible: Sees | None = None) -> CoreTable:
        """A table of objects that are found by their name."""
        indexes = {"name": lambda key: [items[key]] if key in items else []}
        find = items.get if name == "hosts" else None
        return CoreTable(name, own(name), _all(items), f"{name[:-1]}_", visible, indexes, find)

    def services_on(name: str) -> TableRows:
        return list(hosts[name].services) if name in hosts else []

    def joined(name: str, parts: tuple[Part, ...], rows: Callable[[], TableRows]) -> CoreTable:
        """A table with a row for each membership: (group, member)."""
        return CoreTable(name, parts, rows, f"{name.partition('sby')[0]}_", _sees_member)

    def entries(name: str, items: Mapping[int, Any]) -> CoreTable:
        """A table of what belongs to a host or a service."""
        return CoreTable(name, (*own(name), *entry), _all(items), f"{name[:-1]}_", _sees_entry)

    def hosts_by_group() -> TableRows:
        groups = inventory.hostgroups.values()
        return [(group, host) for group in groups for host in group.members]

    def services_by_group() -> TableRows:
        groups = inventory.servicegroups.values()
        return [(group, item) for group in groups for item in group.members]

    def services_by_hostgroup() -> TableRows:
        return [(group, item) for group, host in hosts_by_group() for item in host.services]

    tables = [
        named("hosts", hosts, _sees_target),
        CoreTable(
            "services",
            service,
            _all(services),
            "service_",
            _sees_target,
            {"host_name": services_on},
            lambda text: _service_named(services, text),
        ),
        named("hostgroups", inventory.hostgroups, _sees_group),
        named("servicegroups", inventory.servicegroups, _sees_group),
        joined("hostsbygroup", (host_member, hostgroup), hosts_by_group),
        joined("servicesbygroup", (*service_member, servicegroup), services_by_group),
        joined("servicesbyhostgroup", (*service_member, hostgroup), services_by_hostgroup),
        named("contacts", inventory.contacts),
        named("contactgroups", inventory.contactgroups),
        named("commands", inventory.commands),
        named("timeperiods", inventory.timeperiods),
        entries("comments", core.comments),
        entries("downtimes", core.downtimes),
        _log(core, columns),
        CoreTable("status", own("status"), lambda: [core], wait_object=lambda _name: core),
    ]
    pairs: list[tuple[str, ShownColumn]] = []
    tables.append(CoreTable("columns", (Part("", _COLUMNS),), lambda: pairs))
    pairs += (
        (table.name, one)
        for table in sorted(tables, key=attrgetter("name"))
        for one in table.columns.values()
    )
    return {table.name: table for table in tables}


def _log(core: Core, columns: Mapping[str, tuple[ObjectColumn, ...]]) -> CoreTable:
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
            found = inventory.find(entry.host_name, entry.service_description)
            return found is not None and visible(found)

        return check

    return CoreTable("log", (Part("", columns["log"]), *parts), core.log.newest_first, visible=sees)


_OBJECT_CLASSES = frozenset({ALERT, NOTIFICATION, PASSIVE, STATE})


def _all(items: Mapping[Any, Any]) -> Callable[[], TableRows]:
    return lambda: list(items.values())


def _service_of(row: Any) -> Service | None:
    return row.target if isinstance(row.target, Service) else None


def _service_named(services: Mapping[tuple[str, str], Service], text: str) -> Service | None:
    """WaitObject: host and service with a semicolon or a space between."""
    for mark in ";", " ":
        cut = text.find(mark)
        while cut >= 0:
            found = services.get((text[:cut], text[cut + 1 :]))
            if found is not None:
                return found
            cut = text.find(mark, cut + 1)
    return None


def _sees_target(contact: str) -> Callable[[Any], bool]:
    """Contacts of a host; of a service or its host (the loose setting)."""

    def check(target: Any) -> bool:
        return contact in target.authorized or contact in target.host.authorized

    return check


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
    ObjectColumn("table", "string", "name of the table", itemgetter(0)),
    ObjectColumn("name", "string", "name of the column", lambda row: row[1].name),
    ObjectColumn(
        "description", "string", "what the column holds", lambda row: row[1].base.description
    ),
    ObjectColumn(
        "type", "string", "string, int, float, list or dict", lambda row: row[1].base.type
    ),
)
_STYLES: Mapping[str, Style] = {
    "last_update": "micro",
    "modified_attributes_list": "bits",
    "perf_data": "perf",
    **{f"{name}{suffix}": "counter" for name in COUNTERS for suffix in ("", "_rate")},
}
_PAIRS = frozenset(
    {
        *(("services", name) for name in ("parents", "depends_exec", "depends_notify")),
        ("servicegroups", "members"),
    }
)


def _columns(core: Core) -> dict[str, tuple[ObjectColumn, ...]]:
    """The own columns of each table that a Naemon has."""
    calculated = _calculated(core)
    counted = _counted(core)
    schemas = {schema.table: schema for schema in SCHEMAS.values()}
    found = {}
    for table, types in NAEMON.items():
        declared = schemas[table].columns
        columns = []
        for name, kind in types.items():
            get = calculated[table].get(name) or counted.get(name) or attrgetter(name)
            is_time = getattr(declared[name], "core_type", "time") == "time"
            style = _STYLES.get(name) or ("time" if is_time else "")
            style = "pairs" if (table, name) in _PAIRS else style
            deadly = core.valueless if name == "custom_variable_values" else None
            text = declared[name].column.description
            raw = name.removesuffix("_expanded")
            compared = None if raw == name else attrgetter(raw)
            columns.append(ObjectColumn(name, kind, text, get, style, deadly, compared))
        found[table] = tuple(columns)
    return found


def _calculated(core: Core) -> dict[str, dict[str, ValueOf]]:
    """By table and column: how values are found that are no attribute of the object."""
    inventory = core.inventory
    variables: dict[str, ValueOf] = {
        "custom_variable_names": lambda item: tuple(item.custom_variables),
        "custom_variable_values": lambda item: tuple(item.custom_variables.values()),
        "modified_attributes_list": lambda item: _modified_names(item.modified_attributes),
    }
    checkable = variables | _of_checkables(core)
    entry: dict[str, ValueOf] = {
        "is_service": lambda item: int(isinstance(item.target, Service)),
        "type": lambda item: 1 + isinstance(item.target, Service),
    }
    return {
        "hosts": checkable | _OF_HOSTS,
        "services": checkable | {"parents": lambda service: tuple(map(_pair, service.parents))},
        "hostgroups": {
            "members": lambda group: tuple(host.name for host in group.members),
            "members_with_state": lambda group: tuple(
                (host.name, host.state, host.has_been_checked) for host in group.members
            ),
        },
        "servicegroups": {
            "members": lambda group: tuple(map(_pair, group.members)),
            "members_with_state": lambda group: tuple(
                (item.name, *_state(item)) for item in group.members
            ),
        },
        "contacts": {
            **variables,
            **{f"address{number + 1}": _address(number) for number in range(6)},
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
            **{name: _item("counters", name) for name in COUNTERS},
            **{f"{name}_rate": _item("rates", name) for name in COUNTERS},
            "livestatus_version": lambda _core: LIVESTATUS_VERSION,
            "program_version": lambda _core: PROGRAM_VERSION,
            "cached_log_messages": lambda _core: len(core.log.entries),
            "interval_length": lambda _core: INTERVAL_LENGTH,
            "nagios_pid": attrgetter("pid"),
            "num_hosts": lambda _core: len(inventory.hosts),
            "num_services": lambda _core: len(inventory.services),
        },
    }


_SWITCHES = [one.name for one in fields(Switches) if not one.name.startswith("global_")]


def _item(attribute: str, name: str) -> ValueOf:
    return lambda core: getattr(core, attribute)[name]


def _address(number: int) -> ValueOf:
    return lambda contact: contact.addresses[number]


def _modified_names(number: int) -> tuple[str, ...]:
    """The words for the bits of ``modified_attributes``."""
    return tuple(word for word, bit in MODIFIED.items() if number & bit) if number else ()


def _of_checkables(core: Core) -> dict[str, ValueOf]:
    """What hosts and services show alike (docs/spec/livestatus.md, "Tables and columns")."""

    def staleness(target: Checkable) -> float:
        span = target.check_interval * INTERVAL_LENGTH
        if not span or not target.last_check:
            return 0.0
        return (core.wall.now() - target.last_check) / span

    executing, notifying = "execution_dependencies", "notification_dependencies"
    return {
        "checks_enabled": attrgetter("active_checks_enabled"),
        "obsess_over_host": attrgetter("obsess"),
        "obsess_over_service": attrgetter("obsess"),
        "pnpgraph_present": lambda _target: -1,
        "staleness": staleness,
        "in_check_period": lambda target: core.in_period(target.check_period),
        "in_notification_period": lambda target: core.in_period(target.notification_period),
        "comments": lambda target: tuple(target.comments),
        "comments_with_info": _records(
            "comments",
            attrgetter("id", "author", "comment", "entry_time", "entry_type", "expires",
                       "expire_time"),
        ),
        "downtimes": lambda target: tuple(target.downtimes),
        "downtimes_with_info": _records(
            "downtimes",
            attrgetter("id", "author", "comment", "entry_time", "start_time", "end_time", "fixed",
                       "duration", "triggered_by"),
        ),
        "depends_exec": _listing(executing, lambda link: _name(link.master)),
        "depends_exec_with_info": _listing(executing, _dependency_info),
        "depends_notify": _listing(notifying, lambda link: _name(link.master)),
        "depends_notify_with_info": _listing(notifying, _dependency_info),
    }  # fmt: skip


def _listing(attribute: str, element: ValueOf) -> ValueOf:
    get = attrgetter(attribute)
    return lambda target: tuple(map(element, get(target)))


def _records(attribute: str, element: ValueOf) -> ValueOf:
    get = attrgetter(attribute)
    return lambda target: tuple(map(element, get(target).values()))


def _pair(service: Service) -> tuple[str, str]:
    return (service.name, service.description)


def _name(target: HostOrService) -> Any:
    return target.name if isinstance(target, Host) else _pair(target)


def _dependency_info(link: DependsOn) -> tuple[Any, ...]:
    master = link.master
    names = (master.name,) if isinstance(master, Host) else _pair(master)
    return (*names, "".join(sorted(link.criteria)), link.period, int(link.inherits_parent))


def _state(service: Service) -> tuple[str, int, int]:
    return (service.description, service.state, service.has_been_checked)


def _hard_state(target: Host | Service) -> int:
    """The state that counts: the present one when good or hard, else the last hard one."""
    if target.state == 0 or target.state_type == HARD:
        return target.state
    return target.last_hard_state


_OF_HOSTS: dict[str, ValueOf] = {
    "check_flapping_recovery_notification": lambda _host: 0,
    "hard_state": _hard_state,
    "total_services": lambda host: len(host.services),
    "x_3d": lambda host: host.coordinates[0],
    "y_3d": lambda host: host.coordinates[1],
    "z_3d": lambda host: host.coordinates[2],
    "parents": lambda host: tuple(one.name for one in host.parents),
    "childs": lambda host: tuple(one.name for one in host.children),
    "services": lambda host: tuple(item.description for item in host.services),
    "services_with_state": lambda host: tuple(map(_state, host.services)),
    "services_with_info": lambda host: tuple(
        (*_state(item), item.plugin_output) for item in host.services
    ),
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
    return {name: sums.getter(name) for name in every}


@define(eq=False)
class _Sums:
    """Counts by the name of their column, remembered for each object until a state changes."""

    core: Core
    _serial: int = -1
    _known: dict[int, Counter[str]] = field(factory=dict)

    def getter(self, name: str) -> ValueOf:
        """A function from a host or a group to one of its counts."""
        return lambda item: self._of(item)[name]

    def _of(self, item: Host | HostGroup | ServiceGroup) -> Counter[str]:
        if self._serial != self.core.state_serial:
            self._serial, self._known = self.core.state_serial, {}
        found = self._known.get(id(item))
        if found is None:
            found = self._known[id(item)] = Counter()
            if isinstance(item, Host):
                _count_services(found, item.services)
            elif isinstance(item, HostGroup):
                for host in item.members:
                    _count_host(found, host)
            else:
                _count_services(found, item.members)
        return found


def _count_services(counts: Counter[str], services: Iterable[Service]) -> None:
    worst, worst_hard = counts["worst_service_state"], counts["worst_service_hard_state"]
    for service in services:
        counts["num_services"] += 1
        if not service.has_been_checked:
            counts["num_services_pending"] += 1
            continue
        state, hard = service.state, _hard_state(service)
        counts[_COUNTS[state]] += 1
        counts[_HARD_COUNTS[hard]] += 1
        worst = max(worst, state, key=_RANK.__getitem__)
        worst_hard = max(worst_hard, hard, key=_RANK.__getitem__)
    counts["worst_service_state"], counts["worst_service_hard_state"] = worst, worst_hard


def _count_host(counts: Counter[str], host: Host) -> None:
    counts["num_hosts"] += 1
    if host.has_been_checked:
        counts[_HOST_COUNTS[host.state]] += 1
        worst = max(counts["worst_host_state"], host.state, key=_HOST_RANK.__getitem__)
        counts["worst_host_state"] = worst
    else:
        counts["num_hosts_pending"] += 1
    _count_services(counts, host.services)


_RULES = ("calendar_dates", "month_date", "month_day", "month_week_day", "week_day")
"""What the columns of exceptions are called, by kind of rule from 1 on."""


def _rules(kind: int) -> ValueOf:
    def get(period: Timeperiod) -> tuple[dict[str, Any], ...]:
        return tuple(exception_info(rule) for rule in period.rules if rule.kind == kind)

    return get


def exception_info(rule: DateRule) -> dict[str, Any]:
    """The element of the columns ``exceptions_…`` of time periods."""
    start, end = rule.start, rule.end
    last = end or Anchor()
    found: dict[str, Any] = {
        **_date("s", start, start.day),
        **_date("e", last, 0 if end is None else end.day),
        "skip_interval": rule.skip if rule.skip > 1 else 0,
        "times": [list(pair) for pair in rule.ranges],
    }
    if start.weekday is not None:
        found |= {"swday": start.weekday, "swday_offset": start.day}
        found |= {"ewday": last.weekday or 0, "ewday_offset": last.day}
    return found


def _date(prefix: str, anchor: Anchor, day: int) -> dict[str, int]:
    month = max(anchor.month - 1, 0)
    return {f"{prefix}year": anchor.year, f"{prefix}mon": month, f"{prefix}mday": day}
