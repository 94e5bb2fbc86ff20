"""What an LMD reports of its sites and its columns (docs/spec/lmd.md, "Sites" and "Columns")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import first_line
from monrest.sites.capabilities import Program, digest
from monrest.sites.static import NAEMON, joined

SITE_COLUMNS = (
    *("addr", "bytes_received", "bytes_send", "federation_addr", "federation_key"),
    *("federation_name", "federation_type", "federation_version", "flags", "idling", "key"),
    *("last_error", "last_online", "last_query", "last_update", "lmd_version", "name", "parent"),
    *("peer_key", "peer_name", "queries", "response_time", "section", "status"),
)
PROGRAM_COLUMNS = (
    *("peer_key", "program_version", "livestatus_version", "program_start", "nagios_pid"),
    "localtime",
)
COLUMN_COLUMNS = ("table", "name", "type")

_UP = (0, 1)
"""Up, and up with data that were not brought up to date lately."""
_BEGINS = (4, 5)
"""Not looked at yet, and read for the first time."""
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}\Z")
_TEXTS = frozenset(
    {"addr", "key", "last_error", "lmd_version", "name", "parent"}
    | {"peer_key", "peer_name", "section"}
)
_LISTS = frozenset(
    {"flags"} | {column for column in SITE_COLUMNS if column.startswith("federation_")}
)
_ALSO_LOGGED = ("current_host_contacts", "current_service_contacts")
"""Joined columns that the log of an LMD has."""


@frozen(kw_only=True)
class LmdFacts:
    """What an LMD reports of one site; ``record`` is its row, ``program`` what runs there."""

    id: str
    name: str
    section: str
    address: str
    status: int
    last_error: str
    parent: str
    record: Mapping[str, Any] = field(repr=False)
    program: Program | None = None

    @property
    def icinga2(self) -> bool:
        """Whether its core is an Icinga 2, as the LMD found or as it was configured."""
        return any(flag.lower() == "icinga2" for flag in self.record["flags"])

    @property
    def up(self) -> bool:
        """Whether it answers for the site."""
        return self.status in _UP and self.program is not None

    @property
    def begins(self) -> bool:
        """Whether it will know in a moment."""
        return self.status in _BEGINS or (self.status in _UP and self.program is None)


def facts_of(
    sites: Sequence[Row], programs: Sequence[Row], run: str
) -> tuple[dict[str, LmdFacts], list[str]]:
    """The sites by id, in the order of their ids, and the ids that cannot be used.

    ``run`` is the run of the LMD itself. A site that only stands for those behind it is left out
    once these are there.
    """
    running = {str(row[0]): _program(row, run) for row in programs}
    records = sorted(map(_record, sites), key=lambda record: str(record["key"]))
    parents = {record["parent"] for record in records}
    facts: dict[str, LmdFacts] = {}
    strange: list[str] = []
    for record in records:
        key = record["key"]
        if not _ID.match(key) or key in ("ALL", "LOCAL"):
            strange.append(key)
        elif key not in parents or "MultiBackend" not in record["flags"]:
            facts[key] = LmdFacts(
                id=key,
                name=record["name"] or key,
                section=record["section"] or "Default",
                address=record["addr"],
                status=int(record["status"]),
                last_error=first_line(record["last_error"]),
                parent=record["parent"],
                record=record,
                program=running.get(key),
            )
    return facts, strange


def _record(row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in zip(SITE_COLUMNS, row, strict=True):
        if name in _TEXTS:
            record[name] = first_line(value) if isinstance(value, str) else ""
        elif name in _LISTS:
            record[name] = [str(item) for item in value] if isinstance(value, list) else []
        else:
            record[name] = value if isinstance(value, (int, float)) else 0
    return record


def _program(row: Row, run: str) -> Program:
    _, version, livestatus, start, pid, localtime = row
    return Program(
        program_version=str(version or ""),
        livestatus_version=str(livestatus or ""),
        program_start=start if isinstance(start, int) else 0,
        nagios_pid=pid if isinstance(pid, int) else 0,
        localtime=localtime if isinstance(localtime, (int, float)) else None,
        instances=(run,),
    )


def capabilities_of(columns: Sequence[Row]) -> Capabilities:
    """What the sites of an LMD with this table of columns can do.

    It serves the columns of other tables under their prefix as well, which it does not list. Of
    its own ones those count that a core has, with their types there.
    """
    listed: dict[str, set[str]] = {}
    for table, name, _ in columns:
        listed.setdefault(str(table), set()).add(str(name))
    own = {
        table: {
            name: kind for name, kind in types.items() if name in listed.get(table, frozenset())
        }
        for table, types in NAEMON.items()
    }
    tables = joined(own)
    tables["log"] = {
        **own["log"],
        **{name: "list" for name in _ALSO_LOGGED if name in listed.get("log", frozenset())},
    }
    return Capabilities(kind="lmd", tables=tables, key=digest("lmd", tables))


def behind(capabilities: Capabilities, *, icinga2: bool) -> Capabilities:
    """What one site can do, by what its core is."""
    if not icinga2:
        return capabilities
    return evolve(capabilities, over_icinga2=True, key=f"{capabilities.key}-icinga2")
