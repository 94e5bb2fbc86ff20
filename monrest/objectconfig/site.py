"""A site's objects as a core registers them: resolved, expanded and checked (18 and 19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import define, field

from monrest.objectconfig.attributes import OBJECT_TYPES
from monrest.objectconfig.dependencies import (
    Dependency,
    Escalation,
    host_dependencies,
    host_escalations,
    service_dependencies,
    service_escalations,
)
from monrest.objectconfig.expand import (
    Pair,
    group_members,
    select,
    service_group_members,
    service_parents,
)
from monrest.objectconfig.parser import (
    Definition,
    FileProblem,
    ObjectConfigError,
    find_files,
    read_file,
    unreadable,
)
from monrest.objectconfig.records import ObjectRecord
from monrest.objectconfig.templates import Resolved, resolve
from monrest.objectconfig.timeperiods import Timeperiod, TimeperiodError, timeperiod

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
    services: dict[Pair, ObjectRecord] = field(factory=dict)
    servicegroups: dict[str, ObjectRecord] = field(factory=dict)
    contactgroup_members: dict[str, tuple[str, ...]] = field(factory=dict)
    hostgroup_members: dict[str, tuple[str, ...]] = field(factory=dict)
    servicegroup_members: dict[str, tuple[Pair, ...]] = field(factory=dict)
    host_parents: dict[str, tuple[str, ...]] = field(factory=dict)
    service_parents: dict[Pair, tuple[Pair, ...]] = field(factory=dict)
    host_dependencies: list[Dependency[str]] = field(factory=list)
    service_dependencies: list[Dependency[Pair]] = field(factory=list)
    host_escalations: list[Escalation[str]] = field(factory=list)
    service_escalations: list[Escalation[Pair]] = field(factory=list)

    def contacts_of(self, record: ObjectRecord) -> tuple[str, ...]:
        """Contacts that ``contacts`` and ``contact_groups`` of an object name, sorted."""
        found = set(record.names("contacts"))
        for group in record.names("contact_groups"):
            found.update(self.contactgroup_members.get(group, ()))
        return tuple(sorted(found & self.contacts.keys()))

    def contact_source(self, key: Pair) -> ObjectRecord:
        """The object whose contact lists count for a service: itself or its host (18.4)."""
        record = self.services[key]
        if record.is_set("contacts") or record.is_set("contact_groups"):
            return record
        return self.hosts[key[0]]

    def from_host(self, key: Pair, attribute: str) -> str:
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
    definitions: Iterable[Definition], problems: Iterable[FileProblem] = ()
) -> ConfiguredSite:
    """Register definitions. Raises ObjectConfigError with everything a core would refuse."""
    builder = _Builder(list(problems))
    site = builder.build(definitions)
    if builder.problems:
        raise ObjectConfigError(builder.problems)
    return site


@define(eq=False)
class _Builder:
    problems: list[FileProblem]
    site: ConfiguredSite = field(factory=ConfiguredSite)

    def build(self, definitions: Iterable[Definition]) -> ConfiguredSite:
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
        direct: dict[Pair, ObjectRecord] = {}
        grouped: dict[Pair, ObjectRecord] = {}
        order: dict[Pair, None] = {}
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
        for name in site.hosts:
            self._refuse_loop(name)
        for key, record in site.services.items():
            above = service_parents(record, key[0]) if record.is_set("parents") else ()
            for pair in above:
                if pair not in site.services:
                    record.wrong(f"parents: {','.join(pair)} is not known", "parents")
            site.service_parents[key] = above

    def _refuse_loop(self, name: str) -> None:
        seen: set[str] = set()
        open_names = list(self.site.host_parents[name])
        while open_names:
            above = open_names.pop()
            if above == name:
                self.site.hosts[name].wrong(f"parents: {name} is its own ancestor", "parents")
                return
            if above not in seen:
                seen.add(above)
                open_names += self.site.host_parents.get(above, ())

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
        """Report flags and options that are none, whether anybody reads them or not."""
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
        records = {
            kind: [self._record(item, "") for item in by_type[kind]]
            for kind in ("hostdependency", "servicedependency", "hostescalation")
        }
        hosts = (site.hosts, site.hostgroup_members)
        site.host_dependencies = host_dependencies(records["hostdependency"], *hosts)
        site.service_dependencies = service_dependencies(
            records["servicedependency"], *hosts, on_host, site.servicegroup_members
        )
        site.host_escalations = host_escalations(records["hostescalation"], *hosts)
        site.service_escalations = service_escalations(
            [self._record(item, "") for item in by_type["serviceescalation"]],
            *hosts,
            on_host,
            site.servicegroup_members,
        )
