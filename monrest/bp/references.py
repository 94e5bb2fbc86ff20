"""Which hosts and services a process is about (docs/spec/bp.md, "Record"); pure."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

from monrest.base.values import Row
from monrest.bp.leaves import matched
from monrest.bp.live import HOST, PEER, SERVICE, Live
from monrest.bp.model import Definition, Node
from monrest.bp.search import Moment, test_of
from monrest.bp.syntax import matching_of, text_at

Key: TypeAlias = tuple[str, str]
"""A host and a service; no service: the host itself."""

Place: TypeAlias = tuple[str, str, str]
"""A site with a host and a service of it; no service: the host itself."""

_SLICE = 500


def references(
    definition: Definition, live: Live, moment: Moment
) -> Generator[None, None, set[Key]]:
    """Give everything that the nodes refer to and that is there.

    ``live`` has what ``add_needs`` adds with members.
    """
    found: set[Key] = set()
    for node in definition.nodes:
        yield
        places = yield from places_of(node, live, moment)
        found.update((host, service) for _, host, service in places)
    return found


def places_of(node: Node, live: Live, moment: Moment) -> Generator[None, None, set[Place]]:
    """Give what one node refers to and what is there; ``live`` as for ``references``."""
    found: set[Place] = set()
    if node.function.name == "status":
        host = not text_at(node.function.arguments, 1)
        found.update(_place(row, host=host) for row in _status(node, live))
    elif node.function.name == "groupstatus":
        yield from _group(node, live, found)
    elif node.function.name == "statusfilter":
        yield from _searches(node, live, moment, found)
    return found


def _status(node: Node, live: Live) -> list[Row]:
    host, service, op = (text_at(node.function.arguments, at) for at in range(3))
    op, pattern, _ = matching_of(service, op) if service else ("", "", False)
    if service and op != "=":
        return matched(live.by_host.get(host, ()), op, pattern)
    row = live.services.get((host, service)) if service else live.hosts.get(host)
    return [] if row is None else [row]


def _group(node: Node, live: Live, found: set[Place]) -> Generator[None]:
    kind, name = (text_at(node.function.arguments, at) for at in range(2))
    of_hosts = kind.lower() == "hostgroup"
    at = live.service_index.get("host_groups" if of_hosts else "groups")
    for count, row in enumerate(live.services.values() if at is not None else ()):
        if count % _SLICE == _SLICE - 1:
            yield
        if at is not None and isinstance(row[at], list) and name in row[at]:
            found.add(_place(row))
    at = live.host_index.get("groups") if of_hosts else None
    for row in live.hosts.values() if at is not None else ():
        if at is not None and isinstance(row[at], list) and name in row[at]:
            found.add(_place(row, host=True))


def _searches(node: Node, live: Live, moment: Moment, found: set[Place]) -> Generator[None]:
    kind, searches = node.function.arguments[1], node.function.arguments[2]
    searches = [searches] if isinstance(searches, dict) else searches
    if kind != "services":
        test = test_of(searches, live.host_index, moment, hosts=True)
        for count, row in enumerate(live.hosts.values()):
            if count % _SLICE == _SLICE - 1:
                yield
            if test(row):
                found.add(_place(row, host=True))
    if kind != "hosts":
        test = test_of(searches, live.service_index, moment, hosts=False)
        for count, row in enumerate(live.services.values()):
            if count % _SLICE == _SLICE - 1:
                yield
            if test(row):
                found.add(_place(row))


def _place(row: Row, *, host: bool = False) -> Place:
    return row[PEER], row[HOST], "" if host else row[SERVICE]
