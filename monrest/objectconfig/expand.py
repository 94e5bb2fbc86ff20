"""Member lists: names, rejects, stars and groups to sets of objects (18.1 to 18.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from attrs import define, field

from monrest.objectconfig.records import ObjectRecord, split_names

Pair = tuple[str, str]
"""Host name and service description."""

Key = TypeVar("Key")


@define(eq=False)
class Selection:
    """What a list names: what it takes in and what it takes out."""

    wanted: dict[str, None] = field(factory=dict)
    rejected: set[str] = field(factory=set)

    def result(self) -> list[str]:
        """The names, first mention first, without the rejected ones."""
        return [name for name in self.wanted if name not in self.rejected]


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
    found = Selection() if into is None else into
    for element in record.names(attribute):
        reject = element.startswith("!")
        name = element[1:].strip() if reject else element
        if groups is not None:
            if name == "*":
                members: Iterable[str] = (item for group in groups.values() for item in group)
            elif name in groups:
                members = groups[name]
            else:
                record.wrong(f"{attribute}: {name} is not known", attribute)
                continue
        elif name == "*":
            members = known
        elif name in known:
            members = (name,)
        else:
            record.wrong(f"{attribute}: {name} is not known", attribute)
            continue
        if reject:
            found.rejected.update(members)
        else:
            found.wanted.update(dict.fromkeys(members))
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
    done: dict[str, tuple[str, ...]] = {}

    def members(name: str, open_groups: tuple[str, ...]) -> tuple[str, ...]:
        if name in done:
            return done[name]
        record = groups[name]
        if name in open_groups:
            record.wrong(f"{subgroups}: the group contains itself", subgroups)
            return ()
        found = select(record, "members", objects)
        found.wanted.update(dict.fromkeys(joined.get(name, ())))
        for other in record.names(subgroups):
            if other in groups:
                found.wanted.update(dict.fromkeys(members(other, (*open_groups, name))))
            else:
                record.wrong(f"{subgroups}: {other} is not known", subgroups)
        done[name] = tuple(sorted(found.result()))
        return done[name]

    return {name: members(name, ()) for name in groups}


def _joined(
    groups: Mapping[str, ObjectRecord], objects: Iterable[tuple[Key, ObjectRecord]], joins: str
) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = {}
    for key, record in objects:
        names = record.names(joins)
        if names:
            for name in select(record, joins, groups).result():
                found.setdefault(name, []).append(key)
    return found


def service_group_members(
    groups: Mapping[str, ObjectRecord],
    services: Mapping[Pair, ObjectRecord],
    on_host: Mapping[str, list[str]],
) -> dict[str, tuple[Pair, ...]]:
    """Members of service groups by group name, as pairs, sorted."""
    joined = _joined(groups, services.items(), "servicegroups")
    done: dict[str, tuple[Pair, ...]] = {}

    def members(name: str, open_groups: tuple[str, ...]) -> tuple[Pair, ...]:
        if name in done:
            return done[name]
        record = groups[name]
        if name in open_groups:
            record.wrong("servicegroup_members: the group contains itself", "servicegroup_members")
            return ()
        wanted, rejected = _pairs(record, on_host)
        wanted.update(joined.get(name, ()))
        for other in record.names("servicegroup_members"):
            if other in groups:
                wanted.update(members(other, (*open_groups, name)))
            else:
                record.wrong(f"servicegroup_members: {other} is not known", "servicegroup_members")
        done[name] = tuple(sorted(wanted - rejected))
        return done[name]

    return {name: members(name, ()) for name in groups}


def _pairs(record: ObjectRecord, on_host: Mapping[str, list[str]]) -> tuple[set[Pair], set[Pair]]:
    parts = record.names("members")
    if len(parts) % 2:
        record.wrong("members: pairs of host and service expected", "members")
    wanted: set[Pair] = set()
    rejected: set[Pair] = set()
    for host, element in zip(parts[::2], parts[1::2], strict=False):
        reject = element.startswith("!")
        description = element[1:].strip() if reject else element
        known = on_host.get(host)
        if known is None or (description not in known and description != "*"):
            record.wrong(f"members: {host},{description} is not known", "members")
            continue
        found = known if description == "*" else [description]
        (rejected if reject else wanted).update((host, item) for item in found)
    return wanted, rejected


def service_parents(record: ObjectRecord, host: str) -> tuple[Pair, ...]:
    """Parents of a service: a description on the same host, or host,description pairs."""
    parts = split_names(record.text("parents"))
    if len(parts) == 1:
        return ((host, parts[0]),)
    return tuple(zip(parts[::2], parts[1::2], strict=False))
