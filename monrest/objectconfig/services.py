"""Which hosts a service definition applies to, by names, patterns and groups.

Rules: docs/spec/objectconfig.md, "Expansion".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Generic

from attrs import define, field

from monrest.objectconfig.names import Item
from monrest.objectconfig.parser import core_text
from monrest.objectconfig.resolve import NULL, Resolver
from monrest.objectconfig.values import elements


@define(eq=False)
class ServiceHosts(Generic[Item]):
    """The hosts of each definition; what is unknown or excluded is left out without a word."""

    objects: Iterable[Item]
    resolver: Resolver[Item]
    groups_of: dict[str, set[str]] = field(init=False, factory=dict)
    members: dict[str, set[str]] = field(init=False, factory=dict)
    _services: dict[str, list[tuple[Item, Mapping[str, str]]]] = field(init=False, factory=dict)
    _on_host: dict[str, set[str]] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        groups: list[Mapping[str, str]] = []
        for item in self.objects:
            if item.disabled or item.type not in ("host", "hostgroup", "service"):
                continue
            values = self.resolver.values(item)
            if values.get("register", "1").strip()[:1] == "0":
                continue
            if item.type == "host":
                self._host(values)
            elif item.type == "hostgroup":
                groups.append(values)
            else:
                name = core_text(values.get("service_description", ""))
                self._services.setdefault(name, []).append((item, values))
        self._groups(groups)

    @property
    def hosts(self) -> Collection[str]:
        """The names of all registered hosts."""
        return self.groups_of.keys()

    @property
    def descriptions(self) -> Collection[str]:
        """The descriptions of all services."""
        return self._services.keys()

    @property
    def on_host(self) -> Mapping[str, Collection[str]]:
        """Descriptions of the services of each host."""
        if self._on_host is None:
            found: dict[str, set[str]] = {name: set() for name in self.hosts}
            for description, definitions in self._services.items():
                for _, values in definitions:
                    for host in self.covered(values):
                        found[host].add(description)
            self._on_host = found
        return self._on_host

    def definitions(self, host: str, description: str) -> list[Item]:
        """The definitions of a description that apply to a host, also to one that is not known."""
        return [
            item
            for item, values in self._services.get(description, ())
            if self.applies(values, host)
        ]

    def definitions_of(self, description: str) -> list[set[str]]:
        """The hosts of each definition of a description."""
        return [self.covered(values) for _, values in self._services.get(description, ())]

    def applies(self, values: Mapping[str, str], host: str) -> bool:
        """Whether ``host_name`` and ``hostgroup_name`` take a host in and nothing takes it out."""
        groups = self.groups_of.get(host, set())
        wanted = False
        for attribute in ("host_name", "hostgroup_name"):
            for name, reject in _names(values.get(attribute)):
                matches = matcher(name)
                if any(map(matches, groups if attribute == "hostgroup_name" else (host,))):
                    if reject:
                        return False
                    wanted = True
        return wanted

    def covered(
        self,
        values: Mapping[str, str],
        host_name: str = "host_name",
        hostgroup_name: str = "hostgroup_name",
    ) -> set[str]:
        """The known hosts that two attributes name together."""
        wanted: set[str] = set()
        rejected: set[str] = set()
        for attribute, groups in ((host_name, False), (hostgroup_name, True)):
            for name, reject in _names(values.get(attribute)):
                (rejected if reject else wanted).update(self._hosts_of(name, groups=groups))
        return wanted - rejected

    def _hosts_of(self, name: str, *, groups: bool) -> Collection[str]:
        if groups:
            if "*" not in name:
                return self.members.get(name, ())
            matches = matcher(name)
            return {
                host for group, hosts in self.members.items() if matches(group) for host in hosts
            }
        if "*" not in name:
            return (name,) if name in self.groups_of else ()
        return [host for host in self.groups_of if matcher(name)(host)]

    def _host(self, values: Mapping[str, str]) -> None:
        name = core_text(values.get("host_name", ""))
        if name:
            own = self.groups_of.setdefault(name, set())
            groups = _names(values.get("hostgroups"))
            rejected = {group for group, reject in groups if reject}
            own.update(group for group, reject in groups if not reject and group not in rejected)

    def _groups(self, groups: Iterable[Mapping[str, str]]) -> None:
        direct: dict[str, set[str]] = {}
        rejected: dict[str, set[str]] = {}
        subgroups: dict[str, list[str]] = {}
        for host, names in self.groups_of.items():
            for name in names:
                direct.setdefault(name, set()).add(host)
        for values in groups:
            name = core_text(values.get("hostgroup_name", ""))
            for member, reject in _names(values.get("members")):
                place = rejected if reject else direct
                place.setdefault(name, set()).update(self._hosts_of(member, groups=False))
            subgroups[name] = [sub for sub, _ in _names(values.get("hostgroup_members"))]
        self.members |= _members(direct, rejected, subgroups)
        for names in self.groups_of.values():
            names.clear()
        for name, hosts in self.members.items():
            for host in hosts:
                self.groups_of[host].add(name)


def _members(
    direct: Mapping[str, set[str]],
    rejected: Mapping[str, set[str]],
    subgroups: Mapping[str, list[str]],
) -> dict[str, set[str]]:
    """The hosts of each group: members go up into the groups around it until nothing changes."""
    around: dict[str, list[str]] = {}
    for name, below in subgroups.items():
        for sub in below:
            around.setdefault(sub, []).append(name)
    none: set[str] = set()
    found = {
        name: direct.get(name, none) - rejected.get(name, none) for name in {**direct, **subgroups}
    }
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        for outer in around.get(name, ()):
            more = found.get(name, none) - found[outer] - rejected.get(outer, none)
            if more:
                found[outer] |= more
                waiting.append(outer)
    return found


def _names(text: str | None) -> list[tuple[str, bool]]:
    """Elements of a list and whether each takes out."""
    if text is None or text == NULL:
        return []
    return [
        (core_text(part.removeprefix("!").strip()), part.startswith("!")) for part in elements(text)
    ]


def matcher(name: str) -> Callable[[str], bool]:
    """A test for a name that may have ``*`` for any text."""
    if "*" not in name:
        return name.__eq__
    return partial(_fits, name.split("*"))


def _fits(parts: list[str], text: str) -> bool:
    # By hand: a regular expression with many stars would try them all against each other.
    head, *middle, tail = parts
    if len(text) < len(head) + len(tail):
        return False
    if not text.startswith(head) or not text.endswith(tail):
        return False
    at, end = len(head), len(text) - len(tail)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
