"""Finding out what a core is and which columns it has.

Naemon, MK Livestatus and LMD are asked (``GET columns``); Icinga 2 and Shinken have no such table
and get fixed lists. Rules: docs/spec/livestatus.md, "Which core it is".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from attrs import frozen

from monrest.base.values import Capabilities, Row
from monrest.config.sections import AN_LMD
from monrest.livestatus.core_errors import LivestatusError, ProtocolError, RefusedError
from monrest.query.model import Pushed
from monrest.sites.static import icinga2, shinken

CoreKind: TypeAlias = Literal["naemon", "mk", "icinga2", "shinken", "lmd", "rest"]

UNKNOWN = Capabilities(kind="mk")
"""The capabilities of a core that was not asked yet: the least of all kinds."""

STATUS_COLUMNS = ("program_version", "livestatus_version", "program_start", "nagios_pid")
COLUMNS_QUERY = Pushed(table="columns", columns=("table", "name", "type"))

_TYPES = frozenset({"string", "int", "float", "list", "dict", "time"})
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_BY_VERSION: tuple[CoreKind, ...] = ("icinga2", "shinken", "naemon")
_MOST_SHARED = 64
_FIRST_CHANGED = "\ud800"
"""The first of the surrogates and replacement characters, which stand for other bytes."""

AskCore: TypeAlias = Callable[[Pushed], Awaitable[list[Row]]]


@frozen(kw_only=True)
class Program:
    """The status row of a core; ``localtime`` is its clock, None where it has no such column.

    ``several`` rows mean an LMD or a federation behind the address. ``process`` is the process at
    the other end of a Unix socket where that is the core itself, else 0. ``instances`` are the ids
    of the instances in front of the core, each of which has a new one after each start.
    """

    program_version: str = ""
    livestatus_version: str = ""
    program_start: int = 0
    nagios_pid: int = 0
    localtime: float | None = None
    several: bool = False
    process: int = 0
    instances: tuple[str, ...] = ()

    def same_run(self, other: Program) -> bool:
        """Whether the core was not restarted between the two rows."""
        return (
            self.program_start == other.program_start
            and self.nagios_pid == other.nagios_pid
            and self.program_version == other.program_version
            and self.instances == other.instances
        )

    def same_process(self, other: Program) -> bool:
        """Whether the core has certainly lived on between the two rows, reloaded or not.

        The process id that the core reports is not enough: in a container it is the same after
        each start, and a proxy lives on when the core behind it does not.
        """
        return self.process != 0 and self.process == other.process


def status_query(capabilities: Capabilities | None) -> Pushed:
    """The cheap query that shows whether a core lives and whether it was restarted."""
    more = ("localtime",) if capabilities and capabilities.has("status", "localtime") else ()
    return Pushed(table="status", columns=STATUS_COLUMNS + more)


def read_status(rows: Sequence[Row]) -> Program:
    """The program data from the rows of ``status_query``; ProtocolError if there are none."""
    if not rows:
        raise ProtocolError("the status table is empty")
    version, livestatus, start, pid, *more = rows[0]
    return Program(
        program_version=str(version or ""),
        livestatus_version=str(livestatus or ""),
        program_start=int(_number(start)),
        nagios_pid=int(_number(pid)),
        localtime=_number(more[0]) if more else None,
        several=len(rows) > 1,
    )


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 0


async def detect(program: Program, ask: AskCore) -> Capabilities:
    """The capabilities of the core of ``program``; ``ask`` runs a query with those of UNKNOWN.

    Raise LivestatusError if the core does not answer, or is an LMD, which is not asked like a
    core; a refusal of the columns table is an answer.
    """
    versions = f"{program.program_version} {program.livestatus_version}".lower()
    kind: CoreKind = next((name for name in _BY_VERSION if name in versions), "mk")
    if kind in ("icinga2", "shinken"):
        return _capabilities(program, kind, icinga2() if kind == "icinga2" else shinken())
    try:
        rows = await ask(COLUMNS_QUERY)
    except RefusedError:
        return _capabilities(program, "shinken", shinken())
    tables: dict[str, dict[str, str]] = {}
    for row in rows:
        table, name, kind_of_column = map(str, row)
        if _NAME.match(table) and _NAME.match(name):
            column_type = kind_of_column if kind_of_column in _TYPES else "string"
            # Names that are in the code already need no memory of their own.
            tables.setdefault(table, {})[sys.intern(name)] = sys.intern(column_type)
    if not tables:
        raise ProtocolError("the columns table is empty")
    if program.several or "peer_key" in tables.get("hosts", {}):
        raise LivestatusError(AN_LMD)
    return _capabilities(program, kind, tables)


def in_order(rows: Sequence[Row]) -> bool:
    """Whether each of these rows of names comes after the one before, by code points.

    Not if a core may have sorted by something else than it sends: characters beyond U+FFFF arrive
    changed, and so do bytes that are no UTF-8. Nor if a name is no text.
    """
    names = (name for row in rows for name in row)
    whole = all(isinstance(name, str) and max(name, default="") < _FIRST_CHANGED for name in names)
    return whole and all(before < after for before, after in pairwise(rows))


def ends_in_order(rows: list[Row]) -> list[Row]:
    """The first and the last row of a batch, which are ``in_order`` only if the whole batch is.

    So the order of a large table is checked batch by batch, without all of its names in memory.
    """
    return [rows[0], rows[-1 if in_order(rows) else 0]] if len(rows) > 1 else rows


_shared_tables: dict[str, Mapping[str, Mapping[str, str]]] = {}


def _capabilities(
    program: Program, kind: CoreKind, tables: Mapping[str, Mapping[str, str]]
) -> Capabilities:
    key = digest(kind, tables)
    if len(_shared_tables) > _MOST_SHARED:
        _shared_tables.clear()
    return Capabilities(
        kind=kind,
        program_version=program.program_version,
        livestatus_version=program.livestatus_version,
        # A hundred sites with the same core share one set of tables.
        tables=_shared_tables.setdefault(key, tables),
        key=key,
    )


def digest(kind: str, tables: Mapping[str, Mapping[str, str]]) -> str:
    """Equal for cores with equal capabilities: ``Capabilities.key``."""
    lines = [kind]
    for table in sorted(tables):
        lines.append(table)
        lines += [f"\t{name}\t{tables[table][name]}" for name in sorted(tables[table])]
    return sha256("\n".join(lines).encode()).hexdigest()[:24]
