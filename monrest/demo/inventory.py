"""From a configured site to the core's objects, all tables linked with each other."""

from __future__ import annotations

import re
from typing import Any

from attrs import define, field, fields

from monrest.demo.definitions import ObjectRecord, parse
from monrest.demo.objects import (
    Checkable,
    CheckCommand,
    ContactGroup,
    CoreContact,
    DependsOn,
    Host,
    HostGroup,
    HostOrService,
    Service,
    ServiceGroup,
)
from monrest.demo.registration import ConfiguredSite, build
from monrest.objectconfig.timeperiods import Timeperiod

_MACRO = re.compile(r"\$([A-Za-z0-9_:-]+)\$")
_EXPANDED = ("notes", "notes_url", "action_url", "icon_image")
_GROUP_TEXTS = ("alias", "notes", "notes_url", "action_url")


@define(eq=False, repr=False)
class Inventory:
    """All objects of the core by name, in the order of the files."""

    commands: dict[str, CheckCommand] = field(factory=dict)
    timeperiods: dict[str, Timeperiod] = field(factory=dict)
    contacts: dict[str, CoreContact] = field(factory=dict)
    contactgroups: dict[str, ContactGroup] = field(factory=dict)
    hosts: dict[str, Host] = field(factory=dict)
    services: dict[tuple[str, str], Service] = field(factory=dict)
    hostgroups: dict[str, HostGroup] = field(factory=dict)
    servicegroups: dict[str, ServiceGroup] = field(factory=dict)

    def replace(self, other: Inventory) -> None:
        """Take over all objects of ``other``, in the same tables."""
        for one in fields(Inventory):
            table = getattr(self, one.name)
            table.clear()
            table.update(getattr(other, one.name))

    def targets(self) -> list[HostOrService]:
        """All hosts, then all services."""
        return [*self.hosts.values(), *self.services.values()]

    def find(self, host: str, description: str = "") -> HostOrService | None:
        """A service, or the host when there is no description."""
        return self.services.get((host, description)) if description else self.hosts.get(host)


def make_inventory(site: ConfiguredSite) -> Inventory:
    """Make the core's objects. The site has been checked already."""
    found = Inventory(timeperiods=dict(site.timeperiods))
    for number, (name, record) in enumerate(site.commands.items()):
        found.commands[name] = CheckCommand(number, name, record.text("command_line"))
    _contacts(site, found)
    for number, (name, record) in enumerate(site.hosts.items()):
        found.hosts[name] = _host(site, number, record)
    cache: dict[int, dict[str, Any]] = {}
    for number, (key, record) in enumerate(site.services.items()):
        shared = cache.get(id(record))
        if shared is None:
            shared = cache[id(record)] = _service_values(record)
        found.services[key] = _service(site, number, key, shared, found.hosts[key[0]])
    _links(site, found)
    _groups(site, found)
    for target in found.targets():
        for attribute in _EXPANDED:
            text = getattr(target, attribute)
            setattr(target, f"{attribute}_expanded", expand(text, target) if text else "")
    return found


def expand(text: str, target: HostOrService) -> str:
    """Replace the macros of configuration texts; unknown ones stay."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        host = target.host
        known = {
            "HOSTNAME": host.name,
            "HOSTALIAS": host.alias,
            "HOSTDISPLAYNAME": host.display_name,
            "HOSTADDRESS": host.address,
        }
        if isinstance(target, Service):
            known["SERVICEDESC"] = target.description
            known["SERVICEDISPLAYNAME"] = target.display_name
            known |= {f"_SERVICE{key}": item for key, item in target.custom_variables.items()}
        known |= {f"_HOST{key}": item for key, item in host.custom_variables.items()}
        return known.get(name, match[0])

    return _MACRO.sub(value, text).replace("$$", "$")


def _contacts(site: ConfiguredSite, found: Inventory) -> None:
    groups: dict[str, list[str]] = {}
    for number, (name, record) in enumerate(site.contactgroups.items()):
        members = site.contactgroup_members[name]
        found.contactgroups[name] = ContactGroup(number, name, record.text("alias"), members)
        for member in members:
            groups.setdefault(member, []).append(name)
    for number, (name, record) in enumerate(site.contacts.items()):
        periods = ("host_notification_period", "service_notification_period")
        flags = ("host_notifications_enabled", "service_notifications_enabled")
        options = ("host_notification_options", "service_notification_options")
        commands = ("host_notification_commands", "service_notification_commands")
        values: dict[str, Any] = {
            **{key: record.text(key) for key in ("alias", "email", "pager", *periods)},
            **{key: record.flag(key) for key in flags},
            **{key: record.options(key) for key in options},
            **{key: record.names(key) for key in commands},
        }
        found.contacts[name] = CoreContact(
            id=number,
            name=name,
            addresses=tuple(record.text(f"address{index}") for index in range(1, 7)),
            can_submit_commands=record.flag("can_submit_commands"),
            groups=tuple(sorted(groups.get(name, ()))),
            custom_variables=_variables(record),
            **values,
        )


_TEXTS = ("display_name", "check_command", "event_handler", "notes", "notes_url", "action_url",
          "icon_image", "icon_image_alt")  # fmt: skip
_FLOATS = ("check_interval", "retry_interval", "first_notification_delay", "low_flap_threshold",
           "high_flap_threshold")  # fmt: skip
_INTEGERS = ("max_check_attempts", "check_timeout", "hourly_value", "freshness_threshold")
_FLAGS = ("active_checks_enabled", "check_freshness", "event_handler_enabled",
          "flap_detection_enabled", "notifications_enabled")  # fmt: skip


def _variables(record: ObjectRecord) -> dict[str, str]:
    """Custom variables; one that is set to ``null`` is there without a value."""
    return {name: "" if text == "null" else text for name, text in record.custom.items()}


def _common(record: ObjectRecord) -> dict[str, Any]:
    states = "odu" if record.type == "host" else "owcu"
    return {
        **{name: record.text(name) for name in _TEXTS},
        **{name: record.number(name) for name in _FLOATS},
        **{name: int(record.number(name)) for name in _INTEGERS},
        **{name: record.flag(name) for name in _FLAGS},
        "accept_passive_checks": record.flag("passive_checks_enabled"),
        "process_performance_data": record.flag("process_perf_data"),
        "obsess": record.flag(f"obsess_over_{record.type}"),
        "notification_options": record.options("notification_options"),
        "flap_detection_options": record.options("flap_detection_options"),
        "initial_state": max(states.find(record.text("initial_state")[:1]), 0),
    }


def _host(site: ConfiguredSite, number: int, record: ObjectRecord) -> Host:
    values = _common(record)
    coordinates = [float(part) for part in record.names("3d_coords")[:3]]
    flat = [float(part) for part in record.names("2d_coords")[:2]]
    x, y, z = (coordinates or [*flat, 0.0] if coordinates or flat else [0.0] * 3)[:3]
    return Host(
        id=number,
        name=record.name,
        filename=record.source.definition.file,
        alias=record.text("alias"),
        address=record.text("address"),
        statusmap_image=record.text("statusmap_image"),
        coordinates=(x, y, z),
        check_period=record.text("check_period"),
        notification_period=record.text("notification_period"),
        notification_interval=record.number("notification_interval"),
        contacts=site.contacts_of(record),
        contact_groups=tuple(sorted(record.names("contact_groups"))),
        custom_variables=_variables(record),
        should_be_scheduled=int(bool(values["check_command"])),
        **values,
    )


def _service_values(record: ObjectRecord) -> dict[str, Any]:
    return _common(record) | {"custom": _variables(record)}


def _service(
    site: ConfiguredSite, number: int, key: tuple[str, str], shared: dict[str, Any], host: Host
) -> Service:
    values = dict(shared)
    custom = dict(values.pop("custom"))
    record = site.services[key]
    source = site.contact_source(key)
    own = source is record
    interval = record.is_set("notification_interval")
    service = Service(
        id=number,
        host=host,
        description=key[1],
        check_period=site.from_host(key, "check_period"),
        notification_period=site.from_host(key, "notification_period"),
        notification_interval=record.number("notification_interval")
        if interval
        else host.notification_interval,
        contacts=site.contacts_of(record) if own else host.contacts,
        contact_groups=tuple(sorted(record.names("contact_groups")))
        if own
        else host.contact_groups,
        custom_variables=custom,
        **values,
    )
    host.services.append(service)
    return service


def _links(site: ConfiguredSite, found: Inventory) -> None:
    for name, parents in site.host_parents.items():
        host = found.hosts[name]
        host.parents = [found.hosts[parent] for parent in parents]
        for parent in host.parents:
            parent.children.append(host)
    for key, above in site.service_parents.items():
        if above:
            found.services[key].parents = [found.services[pair] for pair in above]
    edges: list[tuple[Checkable, HostOrService, Any]] = [
        *((found.hosts[d.dependent], found.hosts[d.master], d) for d in site.host_dependencies),
        *(
            (found.services[d.dependent], found.services[d.master], d)
            for d in site.service_dependencies
        ),
    ]
    for dependent, master, edge in edges:
        link = DependsOn(master, edge.criteria, edge.period, edge.inherits_parent)
        if edge.kind == "execution":
            dependent.execution_dependencies.append(link)
        else:
            dependent.notification_dependencies.append(link)
    shared: dict[tuple[str, ...], frozenset[str]] = {}
    for target in found.targets():
        names = target.contacts
        target.authorized = shared.setdefault(names, frozenset(names))
    for step in site.host_escalations:
        found.hosts[step.target].authorized |= set(site.contacts_of(step.record))
    for rung in site.service_escalations:
        found.services[rung.target].authorized |= set(site.contacts_of(rung.record))


def _groups(site: ConfiguredSite, found: Inventory) -> None:
    names: dict[int, list[str]] = {}
    for number, (name, record) in enumerate(site.hostgroups.items()):
        members = [found.hosts[member] for member in site.hostgroup_members[name]]
        texts = {key: record.text(key) for key in _GROUP_TEXTS}
        found.hostgroups[name] = HostGroup(number, name, members=members, **texts)
        for host in members:
            names.setdefault(id(host), []).append(name)
    for number, (name, record) in enumerate(site.servicegroups.items()):
        pairs = [found.services[pair] for pair in site.servicegroup_members[name]]
        texts = {key: record.text(key) for key in _GROUP_TEXTS}
        found.servicegroups[name] = ServiceGroup(number, name, members=pairs, **texts)
        for service in pairs:
            names.setdefault(id(service), []).append(name)
    for target in found.targets():
        target.groups = tuple(sorted(names.get(id(target), ())))


_CHECKS = ("ping", "disk", "load", "mem", "http", "users", "procs", "traffic", "temp", "backup")

_COMMON = """
define timeperiod {
    timeperiod_name 24x7
    alias Always
    sunday 00:00-24:00
    monday 00:00-24:00
    tuesday 00:00-24:00
    wednesday 00:00-24:00
    thursday 00:00-24:00
    friday 00:00-24:00
    saturday 00:00-24:00
}
define command {
    command_name notify
    command_line /usr/bin/printf "%b" "$NOTIFICATIONTYPE$" | /usr/bin/mail -s demo $CONTACTEMAIL$
}
define contact {
    contact_name admin
    alias Administrator
    email admin@example.org
    host_notification_period 24x7
    service_notification_period 24x7
    host_notification_options d,u,r
    service_notification_options w,u,c,r
    host_notification_commands notify
    service_notification_commands notify
}
define contactgroup {
    contactgroup_name admins
    alias Administrators
    members admin
}
define host {
    name generic-host
    check_command check_host!3000.0,80%!5000.0,100%
    max_check_attempts 3
    check_interval 5
    retry_interval 1
    check_period 24x7
    notification_period 24x7
    notification_interval 60
    contact_groups admins
    notes_url https://wiki.example.org/host/$HOSTNAME$
    _DATACENTER east
    register 0
}
define service {
    name generic-service
    max_check_attempts 3
    check_interval 5
    retry_interval 1
    check_period 24x7
    notification_period 24x7
    notification_interval 60
    contact_groups admins
    action_url https://graphs.example.org/$HOSTNAME$/$SERVICEDESC$
    register 0
}
define command {
    command_name check_host
    command_line $USER1$/check_icmp -H $HOSTADDRESS$ -w $ARG1$ -c $ARG2$
}
"""


def synthetic_site(hosts: int, services: int) -> ConfiguredSite:
    """A site with that many hosts and services, the services spread evenly over the hosts."""
    text = [
        _COMMON,
        *(
            f"define command {{\ncommand_name check_{word}\n"
            f"command_line $USER1$/check_{word} -H $HOSTADDRESS$ -w $ARG1$ -c $ARG2$\n}}\n"
            f"define servicegroup {{\nservicegroup_name {word}\nalias All {word}\n}}\n"
            for word in _CHECKS
        ),
    ]
    groups = max(hosts // 50, 1)
    text += [
        f"define hostgroup {{\nhostgroup_name group-{number:03}\nalias Group {number}\n}}\n"
        for number in range(groups)
    ]
    most, rest = divmod(services, max(hosts, 1))
    for number in range(hosts):
        name = f"host-{number:05}"
        text.append(
            f"define host {{\nuse generic-host\nhost_name {name}\nalias Demo host {number}\n"
            f"address 10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}\n"
            f"hostgroups group-{number % groups:03}\n_RACK r{number % 40}\n"
            f"{'_NOTE null' if number % 7 == 0 else ''}\n}}\n"
        )
        for index in range(most + (number < rest)):
            word = _CHECKS[index % len(_CHECKS)]
            text.append(
                f"define service {{\nuse generic-service\nhost_name {name}\n"
                f"service_description {word} {index:02}\ncheck_command check_{word}!80!90\n"
                f"servicegroups {word}\n_LEVEL {index % 4}\n}}\n"
            )
    parsed = parse("".join(text), "synthetic")
    return build(parsed.definitions, parsed.problems)
