"""What another instance lists of its sites (docs/spec/sites.md, "Federation").

An instance lists its sites under ``/sites``. What goes beyond the API's columns comes when it is
named, from an instance that has it: the way to the core, what the core can do, who may use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from monrest.base.values import Capabilities
from monrest.livestatus.core_errors import ProtocolError, first_line
from monrest.sites.capabilities import digest
from monrest.sites.federation.answers import Record
from monrest.sites.federation.remote import MOST_HOPS
from monrest.sites.static import naemon

_API = (
    "connected", "federation_addr", "federation_key", "federation_name", "federation_type",
    "federation_version", "id", "last_error", "localtime", "name", "section",
)  # fmt: skip
ON_DEMAND = ("core", "groups", "hidden", "instances", "program_start")
"""Columns of ``/sites`` for instances that federate; ``tables`` is asked once for each core."""

LISTING = f"/sites?columns={','.join((*_API, *ON_DEMAND))}"

_MOST_SITES = 1000
_MOST_TABLES = 100
_MOST_COLUMNS = 2000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z", re.ASCII)
_TYPES = frozenset({"string", "int", "float", "list", "dict", "time"})


@frozen(kw_only=True)
class Facts:
    """One site of the other side, by the id that it has there.

    ``core`` is a digest of what its core can do, empty when the other side does not list it.
    """

    id: str
    name: str
    section: str = ""
    connected: bool = False
    last_error: str = ""
    localtime: float = 0.0
    program_start: int = 0
    core: str = ""
    hidden: bool = False
    groups: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()


def facts(records: Sequence[Record], instance: str) -> tuple[Facts, ...]:
    """The sites in the other side's order, without those that are reached through ``instance``.

    Those that no request could reach any more are left out too. Raise ProtocolError when it is
    not a list of sites.
    """
    if len(records) > _MOST_SITES:
        raise ProtocolError(f"a list of more than {_MOST_SITES} sites")
    sites: dict[str, Facts] = {}
    for record in records:
        own_facts = _facts_of(record)
        if own_facts.id in sites:
            raise ProtocolError(f"two sites with the id {own_facts.id}")
        near = max(len(own_facts.instances), len(own_facts.keys)) <= MOST_HOPS
        if near and instance not in own_facts.instances:
            sites[own_facts.id] = own_facts
    return tuple(sites.values())


def _facts_of(record: Record) -> Facts:
    key, name = record.get("id"), record.get("name")
    if not isinstance(key, str) or not _ID.match(key) or not isinstance(name, str):
        raise ProtocolError("a site without id and name")
    hops = {
        word: _texts(record.get(f"federation_{word}"))
        for word in ("key", "name", "addr", "type", "version")
    }
    longest = max(1, *map(len, hops.values()))
    keys, names, addresses, kinds, versions = (
        (*hop, *[""] * (longest - len(hop))) for hop in hops.values()
    )
    return Facts(
        id=key,
        name=first_line(name) or key,
        section=_text(record.get("section")),
        connected=record.get("connected") in (1, True),
        last_error=_text(record.get("last_error")),
        localtime=_number(record.get("localtime")),
        program_start=int(_number(record.get("program_start"))),
        core=_text(record.get("core")),
        hidden=record.get("hidden") in (1, True),
        groups=_texts(record.get("groups")),
        keys=keys,
        names=names,
        addresses=addresses,
        kinds=kinds,
        versions=versions,
        instances=_texts(record.get("instances")),
    )


def _text(value: Any) -> str:
    return first_line(value) if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(map(_text, listed[: 4 * MOST_HOPS]))


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and 0 <= value < 2**53 else 0


def capabilities(tables: Mapping[str, Mapping[str, str]], version: str) -> Capabilities:
    """What can be asked of a core with these tables over another instance."""
    key = digest("rest", tables)
    return Capabilities(kind="rest", livestatus_version=version, tables=tables, key=key)


def tables(records: Iterable[Record]) -> Mapping[str, Mapping[str, str]]:
    """Tables and columns of the first site that has them, with their types.

    Those of a Naemon when none does: what the core lacks is empty in the rows of its instance.
    """
    listed: Mapping[str, Any] = next(
        (record["tables"] for record in records if isinstance(record.get("tables"), dict)), {}
    )
    by_instance: dict[str, dict[str, str]] = {}
    for table, columns in list(listed.items())[:_MOST_TABLES]:
        if _NAME.match(table) and isinstance(columns, dict):
            by_instance[table] = {
                name: kind
                for name, kind in list(columns.items())[:_MOST_COLUMNS]
                if _NAME.match(name) and kind in _TYPES
            }
    return by_instance if by_instance.get("hosts") else naemon()
