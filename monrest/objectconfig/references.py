"""The names by which objects refer to others, and the hosts of a service definition.

Rules: docs/spec/objectconfig.md, "Changes" and "Expansion".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeVar

from attrs import define, field, frozen

from monrest.objectconfig.attributes import (
    NULL,
    OBJECT_TYPES,
    core_text,
    is_null,
    is_registered,
    listed_names,
)
from monrest.objectconfig.inheritance import ConfigObject, Resolver

_LISTS = frozenset({"list", "pairs", "service_ref"})
_ALSO_LISTS = frozenset({("servicedependency", "service_description")})
_EXTINFO = {"host_name": "host", "hostgroup_name": "hostgroup"}


@frozen
class Reference:
    """A name in an attribute; ``host`` is the one beside it where services come in pairs.

    ``rejects``: it takes something out of the list.
    """

    attribute: str
    type: str
    name: str
    host: str = ""
    rejects: bool = False


Renamed = Callable[[Reference], str | None]
"""Returns the text that is to stand in place of a reference's name, None to leave it."""


def references(
    kind: str, attributes: Mapping[str, str], *, extended: bool = False
) -> Iterator[Reference]:
    """The references of an object except its templates; leading ``!`` and ``+`` are taken off.

    Empty ones and ``null`` are left out, patterns given as they are. ``extended`` returns those of
    extended information too, which the core does not check.
    """
    for name, text in attributes.items():
        for part in _parts(kind, name, text, extended=extended):
            if part.name:
                yield part.reference


def rewrite(kind: str, attributes: Mapping[str, str], renamed: Renamed) -> dict[str, str]:
    rewritten: dict[str, str] = {}
    for name, text in attributes.items():
        parts = list(_parts(kind, name, text, extended=True))
        new = [renamed(part.reference) if part.name else None for part in parts]
        if any(item is not None for item in new):
            rewritten[name] = ",".join(
                part.text if item is None else f"{part.before}{item}{part.after}"
                for part, item in zip(parts, new, strict=True)
            )
    return rewritten


@frozen
class _NamePiece:
    """A piece of an attribute's text between commas: what is before and after the name in it."""

    reference: Reference
    text: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return self.reference.name


def _parts(kind: str, name: str, text: str, *, extended: bool) -> Iterator[_NamePiece]:
    attribute = OBJECT_TYPES[kind].attributes.get(name)
    if attribute is None or not text or is_null(kind, name, text):
        return
    if attribute.kind == "pairs" or (attribute.kind == "service_ref" and "," in text):
        yield from _pairs(name, text)
        return
    ref = attribute.ref
    if not ref and extended and kind.endswith("extinfo"):
        ref = _EXTINFO.get(name, "")
    if not ref:
        return
    listed = attribute.kind in _LISTS or (kind, name) in _ALSO_LISTS
    for piece in text.split(",") if listed else [text]:
        yield _part(name, ref, piece)


def _pairs(attribute: str, text: str) -> Iterator[_NamePiece]:
    host = ""
    for index, piece in enumerate(text.split(",")):
        part = _part(attribute, "service" if index % 2 else "host", piece, host)
        yield part
        host = "" if index % 2 else part.name


def _part(attribute: str, ref: str, piece: str, host: str = "") -> _NamePiece:
    start = len(piece) - len(piece.lstrip())
    if piece[start : start + 1] in ("!", "+"):
        start += 1
        start += len(piece[start:]) - len(piece[start:].lstrip())
    name = piece[start:].rstrip()
    if ref == "command":
        name = name.partition("!")[0].rstrip()
    end = start + len(name)
    rejects = piece.lstrip().startswith("!")
    reference = Reference(attribute, ref, core_text(name), host, rejects)
    return _NamePiece(reference, piece, piece[:start], piece[end:])


Member = TypeVar("Member", bound=Hashable)


@define(eq=False)
class Selection:
    """The objects of a list: included and excluded ones."""

    wanted: dict[str, None] = field(factory=dict)
    rejected: set[str] = field(factory=set)

    def take(self, text: str, members: Callable[[str], Iterable[str] | None]) -> list[str]:
        """Read a list; ``members`` returns what one of its elements stands for.

        Returns the elements that stand for nothing, of which ``members`` returns None.
        """
        unknown: list[str] = []
        for name, reject in listed_names(text):
            meant = members(name)
            if meant is None:
                unknown.append(name)
            elif reject:
                self.rejected.update(meant)
            else:
                self.wanted.update(dict.fromkeys(meant))
        return unknown

    def result(self) -> list[str]:
        return [name for name in self.wanted if name not in self.rejected]


def members_of_groups(
    direct: Mapping[str, AbstractSet[Member]],
    rejected: Mapping[str, AbstractSet[Member]],
    subgroups: Mapping[str, Iterable[str]],
) -> dict[str, set[Member]]:
    """Members of each group: they go up into the groups around it until nothing changes.

    ``direct`` and ``rejected`` are what a group itself takes in and takes out.
    """
    around: dict[str, list[str]] = {}
    for name, below in subgroups.items():
        for sub in below:
            around.setdefault(sub, []).append(name)
    none: set[Member] = set()
    members = {
        name: set(direct.get(name, none)).difference(rejected.get(name, none))
        for name in {**direct, **subgroups}
    }
    waiting = list(members)
    while waiting:
        name = waiting.pop()
        for outer in around.get(name, ()):
            more = members.get(name, none) - members[outer] - rejected.get(outer, none)
            if more:
                members[outer] |= more
                waiting.append(outer)
    return members


@define(eq=False)
class ServiceHosts:
    """The hosts of each definition, without those that are unknown or excluded."""

    objects: Iterable[ConfigObject]
    resolver: Resolver
    groups_of: dict[str, set[str]] = field(init=False, factory=dict)
    members: dict[str, set[str]] = field(init=False, factory=dict)
    _services: dict[str, list[tuple[ConfigObject, Mapping[str, str]]]] = field(
        init=False, factory=dict
    )
    _on_host: dict[str, set[str]] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        groups: list[Mapping[str, str]] = []
        for item in self.objects:
            if item.disabled or item.type not in ("host", "hostgroup", "service"):
                continue
            values = self.resolver.values(item)
            if not is_registered(values):
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
        return self.groups_of.keys()

    @property
    def descriptions(self) -> Collection[str]:
        return self._services.keys()

    @property
    def on_host(self) -> Mapping[str, Collection[str]]:
        if self._on_host is None:
            on_host: dict[str, set[str]] = {name: set() for name in self.hosts}
            for description, definitions in self._services.items():
                for _, values in definitions:
                    for host in self.covered(values):
                        on_host[host].add(description)
            self._on_host = on_host
        return self._on_host

    def definitions(self, host: str, description: str) -> list[ConfigObject]:
        """The definitions of a description that apply to a host, also to one that is not known."""
        return [
            item
            for item, values in self._services.get(description, ())
            if self.applies(values, host)
        ]

    def definitions_of(self, description: str) -> list[set[str]]:
        return [self.covered(values) for _, values in self._services.get(description, ())]

    def applies(self, values: Mapping[str, str], host: str) -> bool:
        """Whether ``host_name`` and ``hostgroup_name`` take a host in and nothing takes it out."""
        groups = self.groups_of.get(host, set())
        wanted = False
        for attribute in ("host_name", "hostgroup_name"):
            for name, reject in listed_names(_list(values, attribute)):
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
        selection = Selection()
        selection.take(_list(values, host_name), self._hosts_named)
        selection.take(_list(values, hostgroup_name), self._hosts_in)
        return set(selection.result())

    def _hosts_named(self, name: str) -> Collection[str]:
        if "*" not in name:
            return (name,) if name in self.groups_of else ()
        return list(filter(matcher(name), self.groups_of))

    def _hosts_in(self, group: str) -> Collection[str]:
        if "*" not in group:
            return self.members.get(group, ())
        matches = matcher(group)
        return {host for name, hosts in self.members.items() if matches(name) for host in hosts}

    def _host(self, values: Mapping[str, str]) -> None:
        name = core_text(values.get("host_name", ""))
        if name:
            groups = Selection()
            groups.take(_list(values, "hostgroups"), lambda group: (group,))
            self.groups_of.setdefault(name, set()).update(groups.result())

    def _groups(self, groups: Iterable[Mapping[str, str]]) -> None:
        own: dict[str, Selection] = {}
        subgroups: dict[str, list[str]] = {}
        for host, names in self.groups_of.items():
            for name in names:
                own.setdefault(name, Selection()).wanted[host] = None
        for values in groups:
            name = core_text(values.get("hostgroup_name", ""))
            members = own.setdefault(name, Selection())
            members.take(_list(values, "members"), self._hosts_named)
            subgroups[name] = [sub for sub, _ in listed_names(_list(values, "hostgroup_members"))]
        self.members |= members_of_groups(
            {name: lists.wanted.keys() for name, lists in own.items()},
            {name: lists.rejected for name, lists in own.items()},
            subgroups,
        )
        for names in self.groups_of.values():
            names.clear()
        for name, hosts in self.members.items():
            for host in hosts:
                self.groups_of[host].add(name)


def _list(values: Mapping[str, str], attribute: str) -> str:
    """The text of a list as the core keeps it; nothing for ``null``."""
    text = values.get(attribute, "")
    return "" if text == NULL else core_text(text)


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
        start = text.find(part, at, end)
        if start < 0:
            return False
        at = start + len(part)
    return True
