"""A site's objects as a core registers them: members of lists, dependencies, all of them checked.

Rules: docs/spec/objectconfig.md, "Expansion".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, Literal, TypeVar

from attrs import define, field, frozen

from monrest.demo.definitions import (
    ObjectConfigError,
    ObjectDefinition,
    ObjectRecord,
    Resolved,
    find_files,
    read_file,
    resolve,
    unreadable,
)
from monrest.objectconfig.attributes import OBJECT_TYPES, listed_names
from monrest.objectconfig.document import FileProblem
from monrest.objectconfig.references import Selection, members_of_groups
from monrest.objectconfig.timeperiods import Timeperiod, TimeperiodError, timeperiod

ServiceKey = tuple[str, str]
"""Host name and service description."""

ObjectKey = TypeVar("ObjectKey", str, ServiceKey)


def select(
    record: ObjectRecord,
    attribute: str,
    known: Collection[str],
    *,
    into: Selection | None = None,
    groups: Mapping[str, tuple[str, ...]] | None = None,
) -> Selection:
    """Read a list of names. With ``groups`` the elements are groups of the wanted names.

    Elements that match nothing are reported, rejected ones too.
    """

    def named(name: str) -> Iterable[str] | None:
        if name == "*":
            return known
        return (name,) if name in known else None

    def grouped(name: str) -> Iterable[str] | None:
        assert groups is not None
        return itertools.chain(*groups.values()) if name == "*" else groups.get(name)

    found = Selection() if into is None else into
    for name in found.take(record.text(attribute), named if groups is None else grouped):
        record.wrong(f"{attribute}: {name} is not known", attribute)
    return found


def group_members(
    groups: Mapping[str, ObjectRecord],
    objects: Mapping[str, ObjectRecord],
    *,
    joins: str,
    subgroups: str,
) -> dict[str, tuple[str, ...]]:
    """Members of host or contact groups by group name, sorted.

    ``joins`` is the attribute by which an object names its groups, ``subgroups`` the one by
    which a group names others.
    """
    joined = _joined(groups, objects.items(), joins)

    def own(name: str, record: ObjectRecord) -> tuple[set[str], set[str]]:
        found = select(record, "members", objects)
        return {*found.wanted, *joined.get(name, ())}, found.rejected

    return _with_subgroups(groups, own, subgroups)


def service_group_members(
    groups: Mapping[str, ObjectRecord],
    services: Mapping[ServiceKey, ObjectRecord],
    on_host: Mapping[str, list[str]],
) -> dict[str, tuple[ServiceKey, ...]]:
    """Members of service groups by group name, as pairs, sorted."""
    joined = _joined(groups, services.items(), "servicegroups")

    def own(name: str, record: ObjectRecord) -> tuple[set[ServiceKey], set[ServiceKey]]:
        wanted, rejected = _pairs(record, on_host)
        return wanted.union(joined.get(name, ())), rejected

    return _with_subgroups(groups, own, "servicegroup_members")


def _with_subgroups(
    groups: Mapping[str, ObjectRecord],
    own: Callable[[str, ObjectRecord], tuple[set[ObjectKey], set[ObjectKey]]],
    subgroups: str,
) -> dict[str, tuple[ObjectKey, ...]]:
    """Members by group name, sorted; ``own`` gives what a group itself takes in and takes out."""
    direct: dict[str, set[ObjectKey]] = {}
    rejected: dict[str, set[ObjectKey]] = {}
    below: dict[str, list[str]] = {}
    for name, record in groups.items():
        direct[name], rejected[name] = own(name, record)
        below[name] = [other for other in record.names(subgroups) if other in groups]
        for other in record.names(subgroups):
            if other not in groups:
                record.wrong(f"{subgroups}: {other} is not known", subgroups)
    for name, record in groups.items():
        if _leads_back(name, below):
            record.wrong(f"{subgroups}: the group contains itself", subgroups)
    found = members_of_groups(direct, rejected, below)
    return {name: tuple(sorted(found[name])) for name in groups}


def _leads_back(name: str, steps: Mapping[str, Iterable[str]]) -> bool:
    """Whether a way of these steps leads from a name back to itself."""
    seen: set[str] = set()
    waiting = list(steps[name])
    while waiting:
        current = waiting.pop()
        if current == name:
            return True
        if current not in seen:
            seen.add(current)
            waiting += steps.get(current, ())
    return False


def _joined(
    groups: Mapping[str, ObjectRecord],
    objects: Iterable[tuple[ObjectKey, ObjectRecord]],
    joins: str,
) -> dict[str, list[ObjectKey]]:
    found: dict[str, list[ObjectKey]] = {}
    for key, record in objects:
        names = record.names(joins)
        if names:
            for name in select(record, joins, groups).result():
                found.setdefault(name, []).append(key)
    return found


def _pairs(
    record: ObjectRecord, on_host: Mapping[str, list[str]]
) -> tuple[set[ServiceKey], set[ServiceKey]]:
    parts = record.names("members")
    if len(parts) % 2:
        record.wrong("members: pairs of host and service expected", "members")
    wanted: set[ServiceKey] = set()
    rejected: set[ServiceKey] = set()
    for host, element in zip(parts[::2], parts[1::2], strict=False):
        ((description, reject),) = listed_names(element)
        known = on_host.get(host)
        if known is None or (description not in known and description != "*"):
            record.wrong(f"members: {host},{description} is not known", "members")
            continue
        found = known if description == "*" else [description]
        (rejected if reject else wanted).update((host, item) for item in found)
    return wanted, rejected


def service_parents(record: ObjectRecord, host: str) -> tuple[ServiceKey, ...]:
    """Parents of a service: a description on the same host, or host,description pairs."""
    parts = record.names("parents")
    if len(parts) == 1:
        return ((host, parts[0]),)
    return tuple(zip(parts[::2], parts[1::2], strict=False))


@frozen
class Dependency(Generic[ObjectKey]):
    """``dependent`` depends on ``master`` for checks (``execution``) or notifications.

    ``criteria`` are the letters of the master's states in which it fails; ``period`` is empty
    for always.
    """

    master: ObjectKey
    dependent: ObjectKey
    kind: Literal["execution", "notification"]
    criteria: frozenset[str]
    period: str
    inherits_parent: bool


@frozen
class Escalation(Generic[ObjectKey]):
    """An escalation of one object; missing first and last notification are -2."""

    target: ObjectKey
    record: ObjectRecord
    first: int
    last: int


@frozen
class _Relations:
    """Reads dependencies and escalations; the fields are what those can name."""

    hosts: Mapping[str, ObjectRecord]
    hostgroups: Mapping[str, tuple[str, ...]]
    on_host: Mapping[str, list[str]]
    """Descriptions of the services of each host."""
    servicegroups: Mapping[str, tuple[ServiceKey, ...]]

    def host_dependencies(self, records: Iterable[ObjectRecord]) -> list[Dependency[str]]:
        """Every master host times every dependent host of each definition."""
        found: list[Dependency[str]] = []
        for record in records:
            masters = self._hosts(record)
            dependents = self._hosts(record, "dependent_")
            if not masters or not dependents:
                record.wrong("hostdependency without master or dependent hosts")
            found += _dependencies(record, [(m, d) for m in masters for d in dependents])
        return found

    def service_dependencies(self, records: Iterable[ObjectRecord]) -> list[Dependency[ServiceKey]]:
        """Every master service times every dependent one of each definition.

        A missing host side is the other's host.
        """
        found: list[Dependency[ServiceKey]] = []
        for record in records:
            masters = self._hosts(record)
            dependents = self._hosts(record, "dependent_")
            if masters and dependents:
                pairs = self._service_pairs(record, masters, dependents)
            else:
                pairs = [
                    pair
                    for host in masters or dependents
                    for pair in self._service_pairs(record, [host], [host])
                ]
            if not pairs and (record.names("servicegroup_name") or not (masters or dependents)):
                pairs = self._service_pairs(record, masters, dependents)
            if not pairs:
                record.wrong("servicedependency without master or dependent services")
            found += _dependencies(record, pairs)
        return found

    def host_escalations(self, records: Iterable[ObjectRecord]) -> list[Escalation[str]]:
        return [_escalation(record, name) for record in records for name in self._hosts(record)]

    def service_escalations(self, records: Iterable[ObjectRecord]) -> list[Escalation[ServiceKey]]:
        return [
            _escalation(record, key)
            for record in records
            for key in self._services(record, self._hosts(record))
        ]

    def _hosts(self, record: ObjectRecord, prefix: str = "") -> list[str]:
        found = select(record, f"{prefix}hostgroup_name", self.hosts, groups=self.hostgroups)
        own = select(record, f"{prefix}host_name", self.hosts)
        # Rejects in host lists act on group members only.
        found.rejected |= own.rejected
        return [*own.wanted, *(name for name in found.result() if name not in own.wanted)]

    def _service_pairs(
        self, record: ObjectRecord, masters: Iterable[str], dependents: Iterable[str]
    ) -> list[tuple[ServiceKey, ServiceKey]]:
        left = self._services(record, masters)
        right = self._services(record, dependents, "dependent_")
        return [(master, dependent) for master in left for dependent in right]

    def _services(
        self, record: ObjectRecord, names: Iterable[str], prefix: str = ""
    ) -> list[ServiceKey]:
        """Services by descriptions on hosts, and members of service groups."""
        description, group = f"{prefix}service_description", f"{prefix}servicegroup_name"
        wanted: dict[ServiceKey, None] = {}
        listed = listed_names(record.text(description))
        rejected = {item for item, reject in listed if reject}
        for host in names:
            for item, reject in listed:
                if reject:
                    continue
                if item != "*" and item not in self.on_host[host]:
                    record.wrong(f"{description}: {host},{item} is not known", description)
                    continue
                found = self.on_host[host] if item == "*" else [item]
                wanted.update(((host, name), None) for name in found if name not in rejected)
        for name in record.names(group):
            if name in self.servicegroups:
                wanted.update(dict.fromkeys(self.servicegroups[name]))
            else:
                record.wrong(f"{group}: {name} is not known", group)
        return list(wanted)


def _dependencies(
    record: ObjectRecord, pairs: Iterable[tuple[ObjectKey, ObjectKey]]
) -> Iterator[Dependency[ObjectKey]]:
    inherits = record.text("inherits_parent")[:1] == "1"
    kinds: list[tuple[Literal["execution", "notification"], frozenset[str]]] = [
        ("execution", record.options("execution_failure_criteria")),
        ("notification", record.options("notification_failure_criteria")),
    ]
    for master, dependent in pairs:
        if master == dependent:
            record.wrong("circular dependency: an object depends on itself")
            continue
        for kind, criteria in kinds:
            if criteria:
                yield Dependency(
                    master, dependent, kind, criteria, record.text("dependency_period"), inherits
                )


def _escalation(record: ObjectRecord, target: ObjectKey) -> Escalation[ObjectKey]:
    first, last = (int(record.number(name)) for name in ("first_notification", "last_notification"))
    return Escalation(target, record, first, last)


_NAMED = ("command", "timeperiod", "contact", "contactgroup", "host", "hostgroup", "servicegroup")
_HOST_COMMANDS = ("check_command", "event_handler")
_REFERENCES = ("check_period", "notification_period")


@define(eq=False)
class ConfiguredSite:
    """All registered objects of a site, each table in the order of the files.

    ``contacts_of_*`` hold contact names (from contacts and contact groups, without escalations)
    and ``contact_groups_of_*`` group names, after the inheritance of services from their hosts.
    """

    commands: dict[str, ObjectRecord] = field(factory=dict)
    timeperiods: dict[str, Timeperiod] = field(factory=dict)
    contacts: dict[str, ObjectRecord] = field(factory=dict)
    contactgroups: dict[str, ObjectRecord] = field(factory=dict)
    hosts: dict[str, ObjectRecord] = field(factory=dict)
    hostgroups: dict[str, ObjectRecord] = field(factory=dict)
    services: dict[ServiceKey, ObjectRecord] = field(factory=dict)
    servicegroups: dict[str, ObjectRecord] = field(factory=dict)
    contactgroup_members: dict[str, tuple[str, ...]] = field(factory=dict)
    hostgroup_members: dict[str, tuple[str, ...]] = field(factory=dict)
    servicegroup_members: dict[str, tuple[ServiceKey, ...]] = field(factory=dict)
    host_parents: dict[str, tuple[str, ...]] = field(factory=dict)
    service_parents: dict[ServiceKey, tuple[ServiceKey, ...]] = field(factory=dict)
    host_dependencies: list[Dependency[str]] = field(factory=list)
    service_dependencies: list[Dependency[ServiceKey]] = field(factory=list)
    host_escalations: list[Escalation[str]] = field(factory=list)
    service_escalations: list[Escalation[ServiceKey]] = field(factory=list)

    def contacts_of(self, record: ObjectRecord) -> tuple[str, ...]:
        """Contacts that ``contacts`` and ``contact_groups`` of an object name, sorted."""
        found = set(record.names("contacts"))
        for group in record.names("contact_groups"):
            found.update(self.contactgroup_members.get(group, ()))
        return tuple(sorted(found & self.contacts.keys()))

    def contact_source(self, key: ServiceKey) -> ObjectRecord:
        """The object whose contact lists count for a service: itself or its host."""
        record = self.services[key]
        if record.is_set("contacts") or record.is_set("contact_groups"):
            return record
        return self.hosts[key[0]]

    def from_host(self, key: ServiceKey, attribute: str) -> str:
        """The text of an attribute that a service takes from its host when it is not set."""
        record = self.services[key]
        return (record if record.is_set(attribute) else self.hosts[key[0]]).text(attribute)


def load(path: Path) -> ConfiguredSite:
    """Read all object files below a folder. Raises ObjectConfigError naming file and line."""
    try:
        files = [read_file(item) for item in find_files(path)]
    except OSError as error:
        raise unreadable(error) from None
    problems = [problem for item in files for problem in item.problems]
    if not files:
        problems.append(FileProblem(str(path), 0, "no object files (*.cfg) found"))
    return build([item for file in files for item in file.definitions], problems)


def build(
    definitions: Iterable[ObjectDefinition], problems: Iterable[FileProblem] = ()
) -> ConfiguredSite:
    """Register definitions. Raises ObjectConfigError with everything a core would refuse."""
    builder = _Registration(list(problems))
    site = builder.build(definitions)
    if builder.problems:
        raise ObjectConfigError(builder.problems)
    return site


@define(eq=False)
class _Registration:
    problems: list[FileProblem]
    site: ConfiguredSite = field(factory=ConfiguredSite)

    def build(self, definitions: Iterable[ObjectDefinition]) -> ConfiguredSite:
        resolved, problems = resolve(definitions)
        self.problems += problems
        by_type: dict[str, list[Resolved]] = {name: [] for name in OBJECT_TYPES}
        for item in resolved:
            if item.registered:
                by_type[item.type].append(item)
        site = self.site
        tables = {name: self._named(by_type[name], name) for name in _NAMED}
        site.commands, site.contacts = tables["command"], tables["contact"]
        site.contactgroups, site.hosts = tables["contactgroup"], tables["host"]
        site.hostgroups, site.servicegroups = tables["hostgroup"], tables["servicegroup"]
        self._timeperiods(tables["timeperiod"])
        site.contactgroup_members = group_members(
            site.contactgroups,
            site.contacts,
            joins="contactgroups",
            subgroups="contactgroup_members",
        )
        site.hostgroup_members = group_members(
            site.hostgroups, site.hosts, joins="hostgroups", subgroups="hostgroup_members"
        )
        self._services(by_type["service"])
        on_host: dict[str, list[str]] = {name: [] for name in site.hosts}
        for host, description in site.services:
            on_host[host].append(description)
        site.servicegroup_members = service_group_members(
            site.servicegroups, site.services, on_host
        )
        self._parents()
        self._check()
        self._relations(by_type, on_host)
        return site

    def _record(self, item: Resolved, name: str) -> ObjectRecord:
        return ObjectRecord(name, item, self.problems.append)

    def _named(self, items: Iterable[Resolved], kind: str) -> dict[str, ObjectRecord]:
        key = OBJECT_TYPES[kind].key[0]
        found: dict[str, ObjectRecord] = {}
        for item in items:
            name = item.values.get(key)
            if not name:
                self.problems.append(item.problem(f"{kind} without {key}"))
            elif name in found:
                self.problems.append(item.problem(f"duplicate {kind} {name}", key))
            else:
                found[name] = self._record(item, name)
        return found

    def _timeperiods(self, records: Mapping[str, ObjectRecord]) -> None:
        known = OBJECT_TYPES["timeperiod"].attributes
        for name, record in records.items():
            values = record.source.values
            if not values.get("alias"):
                record.wrong(f"time period {name} without alias")
            rules = [(key, text or "") for key, text in values.items() if key not in known]
            try:
                period = timeperiod(name, values.get("alias") or name, values, rules)
            except TimeperiodError as error:
                record.wrong(str(error))
                continue
            self.site.timeperiods[name] = period
            for other in period.exclude:
                if other not in records:
                    record.wrong(f"exclude: {other} is not known", "exclude")

    def _services(self, items: Iterable[Resolved]) -> None:
        direct: dict[ServiceKey, ObjectRecord] = {}
        grouped: dict[ServiceKey, ObjectRecord] = {}
        order: dict[ServiceKey, None] = {}
        for item in items:
            name = item.values.get("service_description")
            if not name:
                self.problems.append(item.problem("service without service_description"))
                continue
            record = self._record(item, name)
            if not (record.is_set("host_name") or record.is_set("hostgroup_name")):
                record.wrong(f"service {name} without host_name or hostgroup_name")
                continue
            found = select(record, "host_name", self.site.hosts)
            own = set(found.wanted)
            members = self.site.hostgroup_members
            select(record, "hostgroup_name", self.site.hosts, into=found, groups=members)
            for host in found.result():
                order[host, name] = None
                (direct if host in own else grouped)[host, name] = record
        self.site.services = {key: direct.get(key) or grouped[key] for key in order}

    def _parents(self) -> None:
        site = self.site
        for name, record in site.hosts.items():
            parents = tuple(dict.fromkeys(record.names("parents")))
            for parent in parents:
                if parent not in site.hosts or parent == name:
                    record.wrong(f"parents: {parent} cannot be a parent of {name}", "parents")
            site.host_parents[name] = parents
        for name, record in site.hosts.items():
            if _leads_back(name, site.host_parents):
                record.wrong(f"parents: {name} is its own ancestor", "parents")
        for key, record in site.services.items():
            above = service_parents(record, key[0]) if record.is_set("parents") else ()
            for pair in above:
                if pair not in site.services:
                    record.wrong(f"parents: {','.join(pair)} is not known", "parents")
            site.service_parents[key] = above

    def _check(self) -> None:
        site = self.site
        checked: set[int] = set()
        for record in (*site.hosts.values(), *site.services.values()):
            # One definition stands for services on many hosts; say it once.
            if id(record) in checked:
                continue
            checked.add(id(record))
            self._check_forms(record)
            self._check_references(record, site)
            if record.number("max_check_attempts") <= 0:
                record.wrong("max_check_attempts: a positive number expected", "max_check_attempts")
            if record.number("check_interval") < 0:
                record.wrong("check_interval: must not be negative", "check_interval")
            if record.type == "service" and not record.text("check_command"):
                record.wrong(f"service {record.name} without check_command")
        for record in site.contacts.values():
            self._check_forms(record)
            for attribute in ("host_notification_commands", "service_notification_commands"):
                if not record.names(attribute):
                    record.wrong(f"contact {record.name} without {attribute}")
                select(record, attribute, site.commands)
            for attribute in ("host_notification_period", "service_notification_period"):
                self._known(record, attribute, record.text(attribute), site.timeperiods)

    def _check_forms(self, record: ObjectRecord) -> None:
        """Report flags and options that are none, also where they are not read."""
        for name, attribute in OBJECT_TYPES[record.type].attributes.items():
            if record.source.values.get(name) is None:
                continue
            if attribute.kind == "bool":
                record.flag(name)
            elif attribute.kind == "options":
                record.options(name)

    def _check_references(self, record: ObjectRecord, site: ConfiguredSite) -> None:
        for attribute in _HOST_COMMANDS:
            command = record.text(attribute).split("!")[0]
            self._known(record, attribute, command, site.commands)
        for attribute in _REFERENCES:
            self._known(record, attribute, record.text(attribute), site.timeperiods)
        select(record, "contacts", site.contacts)
        select(record, "contact_groups", site.contactgroups)

    def _known(
        self, record: ObjectRecord, attribute: str, name: str, known: Mapping[str, object]
    ) -> None:
        if name and name not in known:
            record.wrong(f"{attribute}: {name} is not known", attribute)

    def _relations(
        self, by_type: Mapping[str, list[Resolved]], on_host: Mapping[str, list[str]]
    ) -> None:
        site = self.site
        relations = _Relations(
            site.hosts, site.hostgroup_members, on_host, site.servicegroup_members
        )
        records = {
            kind: [self._record(item, "") for item in by_type[kind]]
            for kind in (
                "hostdependency",
                "servicedependency",
                "hostescalation",
                "serviceescalation",
            )
        }
        site.host_dependencies = relations.host_dependencies(records["hostdependency"])
        site.service_dependencies = relations.service_dependencies(records["servicedependency"])
        site.host_escalations = relations.host_escalations(records["hostescalation"])
        site.service_escalations = relations.service_escalations(records["serviceescalation"])
