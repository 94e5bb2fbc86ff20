"""Columns of availability and outage rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from monrest.api.lists import local_schema
from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.availability.report_arguments import ObjectKinds
from monrest.base.values import Column
from monrest.query.column_names import TableSchema

_INDETERMINATE = (
    ("time_indeterminate_nodata", "without any known state"),
    ("time_indeterminate_notrunning", "while the core was not running"),
    ("time_indeterminate_outside_timeperiod", "outside of the time period of the report"),
    ("scheduled_time_indeterminate", "without any known state, in downtimes"),
)


def _times(words: Iterable[str]) -> tuple[Column, ...]:
    described = [
        *((f"time_{word}", f"time in state {word}") for word in words),
        *((f"scheduled_time_{word}", f"time in state {word} in downtimes") for word in words),
        *((name, f"time {text}") for name, text in _INDETERMINATE),
    ]
    found = []
    for name, text in described:
        found.append(Column(name, "number", "s", text))
        found.append(Column(f"{name}_percent", "number", "%", f"{text}, of the whole report"))
    return tuple(sorted(found, key=lambda one: one.name))


HOST_TIMES = _times(HOST_WORDS)
SERVICE_TIMES = _times(SERVICE_WORDS)
_HOST = Column("host", "string", "", "name of the host")
_SERVICE = Column("service", "string", "", "description of the service, only of services")
ALL_TIMES = (
    _HOST,
    _SERVICE,
    *sorted({*HOST_TIMES, *SERVICE_TIMES}, key=lambda one: one.name),
)
OUTAGE_COLUMNS = (
    Column("class", "string", "", "down, unreachable, critical or unknown, as it was last"),
    Column("duration", "number", "s", "length within the report"),
    Column("end", "time", "", "end within the report"),
    _HOST,
    Column("plugin_output", "string", "", "output of the latest line"),
    _SERVICE,
    Column("start", "time", "", "start within the report"),
    Column("type", "string", "", "type of the latest line, for example HOST DOWN (HARD)"),
)


def _schema(name: str, columns: tuple[Column, ...]) -> TableSchema:
    # Names of hosts and services differ by case, as they do in the cores.
    return evolve(local_schema(name, columns, ("host",)), folded=False)


LISTS: Mapping[ObjectKinds, TableSchema] = {
    "hosts": _schema("availability", (_HOST, *HOST_TIMES)),
    "services": _schema("availability", (_HOST, _SERVICE, *SERVICE_TIMES)),
    "both": _schema("availability", ALL_TIMES),
}
OUTAGES = _schema("outages", OUTAGE_COLUMNS)
ONLY_SOME = frozenset({"service", *(one.name for one in {*HOST_TIMES} ^ {*SERVICE_TIMES})})
"""Columns that only hosts or only services have."""
