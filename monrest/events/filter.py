"""The filter of events: types, sites, conditions, columns (docs/spec/events.md, "Filters").

A condition names a column of the event, or else one of its host or service at present.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from attrs import evolve, field, frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Column, Parameters
from monrest.events.model import TYPES, read_types
from monrest.query.column_names import CoreColumn, TableSchema
from monrest.query.model import Condition, FilterTree, Group, Query, leaves
from monrest.query.parse import parse_query
from monrest.query.scan import printable
from monrest.rows.columns import HOSTS, SERVICES

COLUMNS: tuple[Column, ...] = (
    Column("time", "time", "", "time of the event"),
    Column("class", "number", "", "class of the log line, as in /logs"),
    Column("type", "string", "", "type of the log line, for example SERVICE ALERT"),
    Column("host_name", "string", "", "name of the host"),
    Column("service_description", "string", "", "description of the service"),
    Column("state", "number", "", "the new state"),
    Column("old_state", "number", "", "the state before, null where that is not known"),
    Column("state_type", "string", "", "HARD or SOFT; of notifications the reason or the state"),
    Column("attempt", "number", "", "number of the check attempt"),
    Column("plugin_output", "string", "", "output of the check"),
    Column("perf_data", "string", "", "performance data of the check, while the event is new"),
    Column("action", "string", "", "started, stopped, canceled, added, removed, up, down, saved …"),
    Column("author", "string", "", "who acknowledged or wrote"),
    Column("comment", "string", "", "the text of a comment, acknowledgement or notification"),
    Column("contact_name", "string", "", "who was notified"),
    Column("command_name", "string", "", "the external command, or that of a notification"),
    Column("options", "string", "", "the part of the line after the type"),
    Column("message", "string", "", "the whole line with its time stamp"),
    Column("site", "string", "", "the id of a site that went up or down, or was changed"),
    Column("reason", "string", "", "why a site is down"),
    Column("job", "string", "", "the id of a job"),
    Column("percent", "number", "", "how far a job is"),
    Column("peer_key", "string", "", "id of the site, empty for events of the daemon"),
    Column("peer_name", "string", "", "name of the site"),
    Column("peer_section", "string", "", "section of the site"),
)
"""The columns of events: the keys of ``data``, those of its type."""

NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)

EVENTS = TableSchema(
    name="events",
    table="",
    columns={
        column.name: CoreColumn(
            column=column,
            core_type={"number": "float", "time": "int"}.get(column.type, "string"),  # type: ignore[arg-type]  # the values are core types
        )
        for column in COLUMNS
    },
    q_aliases={"host": "host_name", "service": "service_description"},
)
"""Events as rows, by which conditions are read."""

SHARED = frozenset({"types", "since", "snapshot", "format", "limit"})
"""Parameters of a stream that are no conditions."""

_ENDLESS = frozenset({"sort", "offset", "headers", "pretty", "logcache", "timeout"})
_OF_A_LINE = frozenset({"lineno"})


@frozen(kw_only=True, cache_hash=True)
class EventFilter:
    """The filter of a client; clients with equal filters form one group.

    ``backends`` are the sites as selected, all shown ones for none. ``query`` has the conditions
    and the columns.
    """

    types: frozenset[str] = frozenset(TYPES)
    backends: tuple[str, ...] = ()
    query: Query = field(factory=Query)

    def on_objects(self) -> Iterator[FilterTree]:
        """The largest parts of the conditions that only the present objects can answer."""
        yield from _on_objects(self.query.filter)


def read_filter(parameters: Parameters, sites: tuple[str, ...] = ()) -> EventFilter:
    """The filter that these parameters describe; ``sites`` are selected by the path.

    The same parameters describe a stored filter, which is kept as they were sent. Raise
    BadRequest, whose description names the parameter.
    """
    for name, _ in parameters:
        if name in _ENDLESS:
            raise BadRequest(
                "error during request", f"{name}: events come as they happen, expected no {name}"
            )
    types = read_types(value for name, value in parameters if name == "types")
    query = parse_query(tuple(pair for pair in parameters if pair[0] not in SHARED))
    conditions: Iterator[Condition] = leaves([query.filter])
    for condition in conditions:
        if condition.column in _OF_A_LINE:
            raise BadRequest(
                "error during request",
                f"{printable(condition.parameter)}: an event has no {condition.column}",
            )
        if condition.column == "type" and condition.op == "=" and condition.value in TYPES:
            raise BadRequest(
                "error during request",
                f"type: expected the type of a log line, such as SERVICE ALERT; did you mean "
                f"types={condition.value}?",
            )
    backends = sites or query.backends
    return EventFilter(types=types, backends=backends, query=evolve(query, backends=()))


def near_column(name: str) -> str:
    """The column of events or of their objects has nearly this name; empty for none."""
    names = {"types", *NAMES, *HOSTS.columns, *SERVICES.columns}
    near = get_close_matches(name, sorted(names - {name}), n=1, cutoff=0.75)
    return f", did you mean {near[0]}?" if near else ""


def of_event(column: str) -> bool:
    return EVENTS.columns.get(column) is not None or column in EVENTS.q_aliases


def _on_objects(tree: FilterTree) -> Iterator[FilterTree]:
    if _whole(tree):
        yield tree
    elif isinstance(tree, Group):
        for item in tree.items:
            yield from _on_objects(item)


def _whole(tree: FilterTree) -> bool:
    """Whether a tree has conditions, and all of them are on objects."""
    conditions = list(leaves([tree]))
    return bool(conditions) and not any(of_event(condition.column) for condition in conditions)


def on_host(condition: Condition) -> Condition | None:
    """The condition as one of the host of an event about the host; None where it never holds."""
    column = condition.column
    if column.startswith("current_service_"):
        return None
    for prefix, instead in (("current_host_", ""), ("host_", ""), ("_HOST", "_")):
        if column.startswith(prefix) and column != prefix:
            return evolve(condition, column=instead + column.removeprefix(prefix))
    return condition


def on_service(condition: Condition) -> FilterTree:
    """The condition as one of the service of an event about a service.

    A custom variable is one of the service or of its host.
    """
    column = condition.column
    if column.startswith("_") and not column.startswith("_HOST"):
        of_host = evolve(condition, column=f"_HOST{column[1:]}")
        neither = condition.op.startswith("!") != (condition.value == "")
        return Group("and" if neither else "or", (condition, of_host))
    if column.startswith("current_host_"):
        return evolve(condition, column="host_" + column.removeprefix("current_host_"))
    return evolve(condition, column=column.removeprefix("current_service_"))
