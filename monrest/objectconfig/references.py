"""Who names whom: the references of an object, and the hosts of a service definition.

Rules: docs/spec/objectconfig.md, "Changes" and "Expansion".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Generic

from attrs import define, field, frozen

from monrest.objectconfig.attributes import (
    NULL,
    OBJECT_TYPES,
    core_text,
    elements,
    is_null,
    is_registered,
)
from monrest.objectconfig.inheritance import AnyObject, Resolver

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
"""Gives the text that is to stand in place of a reference's name, None to leave it."""


def references(
    kind: str, attributes: Mapping[str, str], *, extended: bool = False
) -> Iterator[Reference]:
    """The references of an object except its templates; leading ``!`` and ``+`` are taken off.

    Empty ones and ``null`` are left out, patterns given as they are. ``extended`` gives those of
    extended information too, which the core does not check.
    """
    for name, text in attributes.items():
        for part in _parts(kind, name, text, extended=extended):
            if part.name:
                yield part.reference


def rewrite(kind: str, attributes: Mapping[str, str], renamed: Renamed) -> dict[str, str]:
    """The attributes whose references are changed, with their new texts."""
    found: dict[str, str] = {}
    for name, text in attributes.items():
        parts = list(_parts(kind, name, text, extended=True))
        new = [renamed(part.reference) if part.name else None for part in parts]
        if any(item is not None for item in new):
            found[name] = ",".join(
                part.text if item is None else f"{part.before}{item}{part.after}"
                for part, item in zip(parts, new, strict=True)
            )
    return found


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


# -------------------------------------------------------------------- the hosts of services


@define(eq=False)
class ServiceHosts(Generic[AnyObject]):
    """The hosts of each definition; what is unknown or excluded is left out without a word."""

    objects: Iterable[AnyObject]
    resolver: Resolver[AnyObject]
    groups_of: dict[str, set[str]] = field(init=False, factory=dict)
    members: dict[str, set[str]] = field(init=False, factory=dict)
    _services: dict[str, list[tuple[AnyObject, Mapping[str, str]]]] = field(
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

    def definitions(self, host: str, description: str) -> list[AnyObject]:
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
