"""Dependencies and escalations between registered objects (18.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Literal, TypeVar

from attrs import frozen

from monrest.objectconfig.expand import Pair, select
from monrest.objectconfig.records import ObjectRecord

Key = TypeVar("Key", str, Pair)


@frozen
class Dependency(Generic[Key]):
    """``dependent`` depends on ``master`` for checks (``execution``) or notifications.

    ``criteria`` are the letters of the master's states in which it fails; ``period`` is empty
    for always.
    """

    master: Key
    dependent: Key
    kind: Literal["execution", "notification"]
    criteria: frozenset[str]
    period: str
    inherits_parent: bool


@frozen
class Escalation(Generic[Key]):
    """An escalation of one object; missing first and last notification are -2."""

    target: Key
    record: ObjectRecord
    first: int
    last: int


_Hosts = Mapping[str, ObjectRecord]
_HostGroups = Mapping[str, tuple[str, ...]]
_OnHost = Mapping[str, list[str]]
_ServiceGroups = Mapping[str, tuple[Pair, ...]]


def _hosts(record: ObjectRecord, prefix: str, hosts: _Hosts, groups: _HostGroups) -> list[str]:
    found = select(record, f"{prefix}hostgroup_name", hosts, groups=groups)
    own = select(record, f"{prefix}host_name", hosts)
    # Rejects in host lists act on group members only.
    found.rejected |= own.rejected
    return [*own.wanted, *(name for name in found.result() if name not in own.wanted)]


def _services(
    record: ObjectRecord,
    names: Iterable[str],
    attributes: tuple[str, str],
    on_host: _OnHost,
    groups: _ServiceGroups,
) -> list[Pair]:
    """Services by descriptions on hosts, and members of service groups."""
    description, group = attributes
    wanted: dict[Pair, None] = {}
    elements = record.names(description)
    rejected = {item[1:].strip() for item in elements if item.startswith("!")}
    for host in names:
        for item in elements:
            if item.startswith("!"):
                continue
            if item != "*" and item not in on_host[host]:
                record.wrong(f"{description}: {host},{item} is not known", description)
                continue
            found = on_host[host] if item == "*" else [item]
            wanted.update(((host, name), None) for name in found if name not in rejected)
    for name in record.names(group):
        if name in groups:
            wanted.update(dict.fromkeys(groups[name]))
        else:
            record.wrong(f"{group}: {name} is not known", group)
    return list(wanted)


def _dependencies(
    record: ObjectRecord, pairs: Iterable[tuple[Key, Key]]
) -> Iterator[Dependency[Key]]:
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


def host_dependencies(
    records: Iterable[ObjectRecord], hosts: _Hosts, groups: _HostGroups
) -> list[Dependency[str]]:
    """Every master host times every dependent host of each definition."""
    found: list[Dependency[str]] = []
    for record in records:
        masters = _hosts(record, "", hosts, groups)
        dependents = _hosts(record, "dependent_", hosts, groups)
        if not masters or not dependents:
            record.wrong("hostdependency without master or dependent hosts")
        found += _dependencies(record, [(m, d) for m in masters for d in dependents])
    return found


def service_dependencies(
    records: Iterable[ObjectRecord],
    hosts: _Hosts,
    groups: _HostGroups,
    on_host: _OnHost,
    service_groups: _ServiceGroups,
) -> list[Dependency[Pair]]:
    """Every master service times every dependent one; a missing host side is the other's host."""
    found: list[Dependency[Pair]] = []
    master_side = ("service_description", "servicegroup_name")
    dependent_side = ("dependent_service_description", "dependent_servicegroup_name")
    for record in records:
        masters = _hosts(record, "", hosts, groups)
        dependents = _hosts(record, "dependent_", hosts, groups)
        side = (record, on_host, service_groups)
        pairs: list[tuple[Pair, Pair]] = []
        if masters and dependents:
            left = _services(record, masters, master_side, *side[1:])
            right = _services(record, dependents, dependent_side, *side[1:])
            pairs = [(m, d) for m in left for d in right]
        else:
            for host in masters or dependents:
                left = _services(record, [host], master_side, *side[1:])
                right = _services(record, [host], dependent_side, *side[1:])
                pairs += [(m, d) for m in left for d in right]
        if not pairs and (record.names("servicegroup_name") or not (masters or dependents)):
            left = _services(record, masters, master_side, *side[1:])
            right = _services(record, dependents, dependent_side, *side[1:])
            pairs = [(m, d) for m in left for d in right]
        if not pairs:
            record.wrong("servicedependency without master or dependent services")
        found += _dependencies(record, pairs)
    return found


def _escalation(record: ObjectRecord, target: Key) -> Escalation[Key]:
    first, last = (int(record.number(name)) for name in ("first_notification", "last_notification"))
    return Escalation(target, record, first, last)


def host_escalations(
    records: Iterable[ObjectRecord], hosts: _Hosts, groups: _HostGroups
) -> list[Escalation[str]]:
    """One escalation for each named host."""
    return [
        _escalation(record, name)
        for record in records
        for name in _hosts(record, "", hosts, groups)
    ]


def service_escalations(
    records: Iterable[ObjectRecord],
    hosts: _Hosts,
    groups: _HostGroups,
    on_host: _OnHost,
    service_groups: _ServiceGroups,
) -> list[Escalation[Pair]]:
    """One escalation for each named service."""
    side = ("service_description", "servicegroup_name")
    return [
        _escalation(record, pair)
        for record in records
        for pair in _services(
            record, _hosts(record, "", hosts, groups), side, on_host, service_groups
        )
    ]
