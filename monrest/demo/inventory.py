"""From the object files of a site to the core's objects, all tables linked with each other.

The object configuration (``monrest/objectconfig``) finds and parses the files, resolves templates
and says what is wrong; here are the values as the core keeps them.

Rules: docs/spec/objectconfig.md, "Expansion".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, fields

from monrest.config import ConfigTool
from monrest.demo.objects import (
    CheckCommand,
    ContactGroup,
    CoreContact,
    DependsOn,
    Host,
    HostOrService,
    ObjectGroup,
    Service,
)
from monrest.objectconfig.attributes import (
    OBJECT_TYPES,
    core_text,
    elements,
    is_null,
    is_registered,
    listed_names,
    number_of,
)
from monrest.objectconfig.document import Block, ConfigFile
from monrest.objectconfig.inheritance import ConfigObject, NameIndex, Resolver
from monrest.objectconfig.model import SiteFile, SiteModel
from monrest.objectconfig.precheck import precheck
from monrest.objectconfig.references import Selection, members_of_groups
from monrest.objectconfig.site_files import FileSet, discover
from monrest.objectconfig.timeperiods import Timeperiod, TimeperiodError, timeperiod


class ObjectConfigError(Exception):
    """Object files that a core would refuse; ``problems`` holds at least one."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


ServiceKey = tuple[str, str]
"""Host name and service description."""


@define(eq=False, repr=False)
class Inventory:
    """All objects of the core by name, in the order of the files."""

    commands: dict[str, CheckCommand] = field(factory=dict)
    timeperiods: dict[str, Timeperiod] = field(factory=dict)
    contacts: dict[str, CoreContact] = field(factory=dict)
    contactgroups: dict[str, ContactGroup] = field(factory=dict)
    hosts: dict[str, Host] = field(factory=dict)
    services: dict[ServiceKey, Service] = field(factory=dict)
    hostgroups: dict[str, ObjectGroup[Host]] = field(factory=dict)
    servicegroups: dict[str, ObjectGroup[Service]] = field(factory=dict)

    def replace(self, other: Inventory) -> None:
        """Take over all objects of ``other``, in the same tables."""
        for attribute in fields(Inventory):
            table = getattr(self, attribute.name)
            table.clear()
            table.update(getattr(other, attribute.name))

    def targets(self) -> list[HostOrService]:
        return [*self.hosts.values(), *self.services.values()]

    def find(self, host: str, description: str = "") -> HostOrService | None:
        """A service, or the host when there is no description."""
        return self.services.get((host, description)) if description else self.hosts.get(host)


def read(path: Path) -> Inventory:
    """The objects of a folder of files, or of the main file of a core that names them.

    Raises ObjectConfigError with everything a core would refuse.
    """
    tool = ConfigTool(obj_dir=(str(path),)) if path.is_dir() else ConfigTool(core_conf=str(path))
    try:
        files = discover(tool)
        # Bytes that are not UTF-8 are kept, as the core does.
        texts = {
            file.path: Path(file.path).read_bytes().decode("utf-8", "surrogateescape")
            for file in files.files
        }
    except OSError as error:
        raise ObjectConfigError([f"cannot read {error.filename}: {error.strerror}"]) from None
    if not texts and not files.problems:
        raise ObjectConfigError([f"no object files (*.cfg) found in {path}"])
    return make_inventory(texts, files)


def make_inventory(
    texts: Mapping[str, str], files: FileSet | None = None, *, checked: bool = True
) -> Inventory:
    """The objects of the texts of object files by path. Raises ObjectConfigError.

    Without ``checked`` they are known to be good.
    """
    documents = [ConfigFile.parse_text(path, text) for path, text in texts.items()]
    objects = _resolved(documents)
    if checked:
        loaded = {
            document.path: SiteFile(document.path, document, False, None, entries)
            for document, entries in zip(documents, objects, strict=True)
        }
        model = SiteModel(files or FileSet(), loaded, () if files is None else files.problems)
        accepted = {
            problem.message
            for document in documents
            for problem in document.problems
            if not problem.fatal
        }
        problems = [problem for problem in precheck(model) if problem not in accepted]
        if problems:
            raise ObjectConfigError(problems)
    return _Registration(itertools.chain(*objects)).inventory()


def _resolved(documents: Iterable[ConfigFile]) -> list[tuple[ConfigObject, ...]]:
    """The objects of each file with everything that their templates give.

    Templates are left out: a core looks at what is wrong in one where an object uses it. An object
    still uses those that are missing, which have no name of their own.
    """
    definitions = [
        [ConfigObject("", block.type, file.path, block.line, False, block) for block in file.blocks]
        for file in documents
    ]
    names = NameIndex(itertools.chain(*definitions))
    resolver = Resolver(names.template, most=sum(map(len, definitions)) + 1)

    def resolved(item: ConfigObject) -> ConfigObject:
        values = resolver.values(item)
        used = resolver.templates(item) if "use" in item.attributes else ()
        missing = [
            name
            for name in used
            if not any(
                template.attributes.get("name") for template in names.templates(item.type, name)
            )
        ]
        if missing:
            values["use"] = ",".join(missing)
        return evolve(item, block=Block(item.type, item.line, values, "", ""))

    return [
        tuple(
            resolved(item) for item in items if not item.disabled and is_registered(item.attributes)
        )
        for items in definitions
    ]


@define(eq=False)
class _Record:
    """A registered object with everything its templates give."""

    type: str
    path: str
    values: Mapping[str, str]

    def is_set(self, *attributes: str) -> bool:
        """Whether the object or a template sets one of them, be it to ``null``."""
        return any(attribute in self.values for attribute in attributes)

    def text(self, attribute: str) -> str:
        """The text, or the default, or empty. ``=x`` defaults copy attribute x."""
        text = self.values.get(attribute)
        if text is not None:
            return "" if is_null(self.type, attribute, text) else core_text(text)
        default = OBJECT_TYPES[self.type].attributes[attribute].default
        return self.text(default[1:]) if default.startswith("=") else default

    def names(self, attribute: str) -> tuple[str, ...]:
        return tuple(elements(self.text(attribute)))

    def value(self, attribute: str) -> Any:
        """The value of the text in the core: a number, 0 or 1, letters of options, names."""
        declared, text = OBJECT_TYPES[self.type].attributes[attribute], self.text(attribute)
        if declared.kind in ("int", "number"):
            # What is no number reads as 0.
            return int(number_of(text)) if declared.kind == "int" else number_of(text)
        if declared.kind == "bool":
            return int(text[:1] == "1")
        if declared.kind == "list":
            return self.names(attribute)
        if declared.kind != "options":
            return text
        letters = declared.letters
        words = {word: letter for letter, word in letters.items()} | {"all": "a"}
        names = {words.get(item, item) for item in elements(text)}
        return frozenset(letters if "a" in names else names & letters.keys())

    def values_of_same_name(self) -> dict[str, Any]:
        return {attribute: self.value(attribute) for attribute in _SAME_NAME[self.type]}

    def custom_variables(self) -> dict[str, str]:
        """By upper-case name; one that is set to ``null`` is there without a value."""
        return {
            name[1:].upper(): "" if text == "null" else core_text(text)
            for name, text in self.values.items()
            if name.startswith("_")
        }


def _named(names: Collection[str]) -> Callable[[str], Iterable[str] | None]:
    """The objects of an element of a list of names."""

    def members(name: str) -> Iterable[str] | None:
        return names if name == "*" else (name,) if name in names else None

    return members


def _grouped(groups: Mapping[str, Collection[str]]) -> Callable[[str], Iterable[str] | None]:
    """The objects of an element of a list of groups."""

    def members(name: str) -> Iterable[str] | None:
        return itertools.chain(*groups.values()) if name == "*" else groups.get(name)

    return members


def _same_name(kind: str, objects: type) -> tuple[str, ...]:
    """The attributes of a kind of object that have the same name in the core's class."""
    names = OBJECT_TYPES[kind].attributes.keys() - _OTHERWISE
    return tuple(attribute.name for attribute in fields(objects) if attribute.name in names)


_OTHERWISE = {"name", "members", "parents", "contacts", "contact_groups", "initial_state"}
_SAME_NAME: Mapping[str, tuple[str, ...]] = {
    "host": _same_name("host", Host),
    "service": _same_name("service", Service),
    "contact": _same_name("contact", CoreContact),
    "hostgroup": _same_name("hostgroup", ObjectGroup),
    "servicegroup": _same_name("servicegroup", ObjectGroup),
}
_FROM_HOST = ("check_period", "notification_period", "notification_interval")
"""Attributes that a service takes from its host when they are not set."""


class _Registration:
    """Registers the objects of a site, whose files have been checked."""

    def __init__(self, objects: Iterable[ConfigObject]) -> None:
        self.result = Inventory()
        self.records: dict[str, list[_Record]] = {kind: [] for kind in OBJECT_TYPES}
        for item in objects:
            self.records[item.type].append(_Record(item.type, item.path, item.attributes))
        self.hosts = self._by_name("host")
        self.contacts = self._by_name("contact")
        self.contactgroups = self._by_name("contactgroup")
        self.contacts_in = self._members("contact", self.contacts)
        self.hosts_in = self._members("host", self.hosts)
        self.services = self._services()
        self.on_host: dict[str, list[str]] = {name: [] for name in self.hosts}
        for host, description in self.services:
            self.on_host[host].append(description)
        self.services_in = self._members("service", self.services)

    def inventory(self) -> Inventory:
        objects = self.result
        for number, (name, record) in enumerate(self._by_name("command").items()):
            objects.commands[name] = CheckCommand(number, name, record.text("command_line"))
        attributes = OBJECT_TYPES["timeperiod"].attributes
        for name, record in self._by_name("timeperiod").items():
            values = {key: record.text(key) for key in record.values if key in attributes}
            rules = [(key, text) for key, text in record.values.items() if key not in attributes]
            try:
                objects.timeperiods[name] = timeperiod(name, values["alias"], values, rules)
            except TimeperiodError as error:
                raise ObjectConfigError([f"timeperiod {name}: {error}"]) from None
        self._make_contacts()
        self._make_hosts()
        self._make_services()
        self._make_groups()
        self._link()
        for target in objects.targets():
            for name in ("notes", "notes_url", "action_url", "icon_image"):
                if text := getattr(target, name):
                    setattr(target, f"{name}_expanded", expand(text, target))
        return objects

    def _by_name(self, kind: str) -> dict[str, _Record]:
        key = OBJECT_TYPES[kind].key[0]
        return {record.text(key): record for record in self.records[kind]}

    def _pairs(self, group: _Record) -> tuple[set[ServiceKey], set[ServiceKey]]:
        """The members of a service group, which come as host,description pairs."""
        wanted: set[ServiceKey] = set()
        rejected: set[ServiceKey] = set()
        parts = group.names("members")
        for host, element in zip(parts[::2], parts[1::2], strict=True):
            ((description, rejects),) = listed_names(element)
            services = _named(self.on_host.get(host, ()))(description) or ()
            (rejected if rejects else wanted).update((host, item) for item in services)
        return wanted, rejected

    def _members(self, kind: str, objects: Mapping[Any, _Record]) -> dict[str, list[Any]]:
        """The sorted members of each group: hosts, contacts, or services with their hosts."""
        groups = self._by_name(f"{kind}group")
        direct: dict[str, set[Any]] = {}
        rejected: dict[str, set[Any]] = {}
        for name, group in groups.items():
            if kind == "service":
                direct[name], rejected[name] = self._pairs(group)
            else:
                listed = Selection()
                listed.take(group.text("members"), _named(objects))
                direct[name], rejected[name] = set(listed.wanted), listed.rejected
        for key, record in objects.items():
            joined = Selection()
            joined.take(record.text(f"{kind}groups"), _named(groups))
            for name in joined.result():
                direct[name].add(key)
        below = {name: group.names(f"{kind}group_members") for name, group in groups.items()}
        members = members_of_groups(direct, rejected, below)
        return {name: sorted(members[name]) for name in groups}

    def _services(self) -> dict[ServiceKey, _Record]:
        """The definition of each service: one that names the host goes before one for groups."""
        direct: dict[ServiceKey, _Record] = {}
        services: dict[ServiceKey, _Record] = {}
        for record in self.records["service"]:
            description = record.text("service_description")
            hosts = Selection()
            hosts.take(record.text("host_name"), _named(self.hosts))
            own = set(hosts.wanted)
            hosts.take(record.text("hostgroup_name"), _grouped(self.hosts_in))
            for host in hosts.result():
                services[host, description] = record
                if host in own:
                    direct[host, description] = record
        return services | direct

    def _contacts_of(self, record: _Record) -> tuple[str, ...]:
        """Contacts that ``contacts`` and ``contact_groups`` of an object name, sorted."""
        names = set(record.names("contacts"))
        for group in record.names("contact_groups"):
            names.update(self.contacts_in.get(group, ()))
        return tuple(sorted(names & self.contacts.keys()))

    def _make_contacts(self) -> None:
        groups: dict[str, list[str]] = {name: [] for name in self.contacts}
        for number, (name, record) in enumerate(self.contactgroups.items()):
            members = tuple(self.contacts_in[name])
            self.result.contactgroups[name] = ContactGroup(
                number, name, record.text("alias"), members
            )
            for member in members:
                groups[member].append(name)
        for number, (name, record) in enumerate(self.contacts.items()):
            self.result.contacts[name] = CoreContact(
                id=number,
                name=name,
                addresses=tuple(record.text(f"address{index}") for index in range(1, 7)),
                groups=tuple(sorted(groups[name])),
                custom_variables=record.custom_variables(),
                **record.values_of_same_name(),
            )

    def _checkable(self, record: _Record, letters: str) -> dict[str, Any]:
        """The common attributes of hosts and services; ``letters`` are those of their states."""
        return record.values_of_same_name() | {
            "accept_passive_checks": record.value("passive_checks_enabled"),
            "process_performance_data": record.value("process_perf_data"),
            "obsess": record.value(f"obsess_over_{record.type}"),
            "initial_state": max(letters.find(record.text("initial_state")[:1]), 0),
            "contacts": self._contacts_of(record),
            "contact_groups": tuple(sorted(record.names("contact_groups"))),
        }

    def _make_hosts(self) -> None:
        for number, (name, record) in enumerate(self.hosts.items()):
            values = self._checkable(record, Host.letters)
            places = record.names("3d_coords") or (*record.names("2d_coords"), "0")
            x, y, z = map(number_of, places[:3] if len(places) > 2 else "000")
            self.result.hosts[name] = Host(
                id=number,
                name=name,
                filename=record.path,
                coordinates=(x, y, z),
                custom_variables=record.custom_variables(),
                should_be_scheduled=int(bool(values["check_command"])),
                **values,
            )

    def _make_services(self) -> None:
        # One definition may stand for services on many hosts.
        made_for: dict[int, dict[str, Any]] = {}
        for number, ((name, description), record) in enumerate(self.services.items()):
            host = self.result.hosts[name]
            values = made_for.get(id(record))
            if values is None:
                values = made_for[id(record)] = self._checkable(record, Service.letters)
            inherited = [attribute for attribute in _FROM_HOST if not record.is_set(attribute)]
            if not record.is_set("contacts", "contact_groups"):
                inherited += ("contacts", "contact_groups")
            service = Service(
                id=number,
                host=host,
                description=description,
                custom_variables=record.custom_variables(),
                **values | {attribute: getattr(host, attribute) for attribute in inherited},
            )
            self.result.services[name, description] = service
            host.services.append(service)

    def _make_groups(self) -> None:
        inventory = self.result
        names: dict[int, list[str]] = {id(target): [] for target in inventory.targets()}
        tables: tuple[tuple[str, dict[str, Any], Mapping[Any, Any], Mapping[str, Any]], ...] = (
            ("hostgroup", inventory.hostgroups, inventory.hosts, self.hosts_in),
            ("servicegroup", inventory.servicegroups, inventory.services, self.services_in),
        )
        for kind, groups, objects, members_in in tables:
            for number, (name, record) in enumerate(self._by_name(kind).items()):
                members = [objects[key] for key in members_in[name]]
                texts = record.values_of_same_name()
                groups[name] = ObjectGroup(number, name, members, **texts)
                for member in members:
                    names[id(member)].append(name)
        for target in inventory.targets():
            target.groups = tuple(sorted(names[id(target)]))

    def _link(self) -> None:
        """Parents, dependencies, and who may see an object: its contacts, by escalations too."""
        hosts, services = self.result.hosts, self.result.services
        for name, host in hosts.items():
            parents = dict.fromkeys(self.hosts[name].names("parents"))
            host.parents = [hosts[parent] for parent in parents if parent in hosts]
            for parent in host.parents:
                parent.children.append(host)
        for key, service in services.items():
            parts = self.services[key].names("parents")
            if len(parts) == 1:
                parts = (key[0], *parts)
            pairs = zip(parts[::2], parts[1::2], strict=True)
            service.parents = [services[pair] for pair in pairs if pair in services]
        shared: dict[tuple[str, ...], frozenset[str]] = {}
        for target in self.result.targets():
            names = target.contacts
            target.authorized = shared.setdefault(names, frozenset(names))
        for record in self.records["hostescalation"]:
            for name in self._hosts_of(record):
                hosts[name].authorized |= set(self._contacts_of(record))
        for record in self.records["serviceescalation"]:
            for key in self._services_of(record, self._hosts_of(record)):
                services[key].authorized |= set(self._contacts_of(record))
        for record in self.records["hostdependency"]:
            sides = [self._hosts_of(record), self._hosts_of(record, "dependent_")]
            for master, dependent in itertools.product(*sides):
                _depend(record, hosts[master], hosts[dependent])
        for record in self.records["servicedependency"]:
            for key, other in self._service_dependency(record):
                _depend(record, services[key], services[other])

    def _hosts_of(self, record: _Record, prefix: str = "") -> list[str]:
        groups, own = Selection(), Selection()
        groups.take(record.text(f"{prefix}hostgroup_name"), _grouped(self.hosts_in))
        own.take(record.text(f"{prefix}host_name"), _named(self.hosts))
        # Rejects in host lists act on group members only.
        groups.rejected |= own.rejected
        return list(dict.fromkeys([*own.wanted, *groups.result()]))

    def _services_of(
        self, record: _Record, hosts: Iterable[str], prefix: str = ""
    ) -> list[ServiceKey]:
        """Services by descriptions on hosts, and members of service groups."""
        services: list[ServiceKey] = []
        for host in hosts:
            named = Selection()
            named.take(record.text(f"{prefix}service_description"), _named(self.on_host[host]))
            services += [(host, name) for name in named.result()]
        for name in record.names(f"{prefix}servicegroup_name"):
            services += self.services_in.get(name, ())
        return list(dict.fromkeys(services))

    def _service_dependency(self, record: _Record) -> Iterator[tuple[ServiceKey, ServiceKey]]:
        """Every master service with every dependent one; a missing host side is the other's."""
        masters, dependents = self._hosts_of(record), self._hosts_of(record, "dependent_")
        sides = [(masters, dependents)]
        if bool(masters) is not bool(dependents) and not record.names("servicegroup_name"):
            sides = [([host], [host]) for host in masters or dependents]
        for left, right in sides:
            yield from itertools.product(
                self._services_of(record, left), self._services_of(record, right, "dependent_")
            )


def _depend(record: _Record, master: Host | Service, dependent: HostOrService) -> None:
    inherits = bool(record.value("inherits_parent"))
    for kind, links in (
        ("execution", dependent.execution_dependencies),
        ("notification", dependent.notification_dependencies),
    ):
        criteria = record.value(f"{kind}_failure_criteria")
        if criteria and master is not dependent:
            links.append(DependsOn(master, criteria, record.text("dependency_period"), inherits))


_MACRO = re.compile(r"\$([A-Za-z0-9_:-]+)\$")


def expand(text: str, target: HostOrService) -> str:
    """Replace the macros of configuration texts; unknown ones stay."""
    host = target.host
    macros = {
        "HOSTNAME": host.name,
        "HOSTALIAS": host.alias,
        "HOSTDISPLAYNAME": host.display_name,
        "HOSTADDRESS": host.address,
        **{f"_HOST{key}": item for key, item in host.custom_variables.items()},
    }
    if isinstance(target, Service):
        macros["SERVICEDESC"] = target.description
        macros["SERVICEDISPLAYNAME"] = target.display_name
        macros |= {f"_SERVICE{key}": item for key, item in target.custom_variables.items()}
    return _MACRO.sub(lambda match: macros.get(match[1], match[0]), text).replace("$$", "$")
