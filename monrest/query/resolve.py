"""Names to sources: what a column name of a client means on a collection.

A name is, in this order: a declared column, the identity of the site, an alias, a name with the
collection's own prefix, any other column that a selected core has, a custom variable, the
expanded performance data, and at last a label of performance data, which only the rows can tell.

Rules: docs/spec/query.md, "Names".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from monrest.base.values import Column
from monrest.query.customvars import Visibility
from monrest.query.schema import PEER_COLUMNS, CoreColumn, CoreType, DerivedColumn, TableSchema

Secret: TypeAlias = Literal[
    "command", "commands", "command line", "event", "variables", "names", "values", "other",
    "address", "",
]  # fmt: skip
"""What of a column only some may see: the arguments of a command or of a list of them, all of a
command line, the arguments of an event handler in a log line, custom variables in one of their
three shapes or in one that cannot be cut, the address of a site."""

# Under every prefix by which a table shows columns of another: host_, service_, current_host_ …
_SECRETS: tuple[tuple[re.Pattern[str], Secret], ...] = (
    (re.compile(r"(?:\w+_)?(?:check_command|event_handler)"), "command"),
    (re.compile(r"(?:\w+_)?(?:host|service)_notification_commands"), "commands"),
    (re.compile(r"(?:\w+_)?check_command_expanded|\w+_command_line"), "command line"),
    (re.compile(r"(?:\w+_)?custom_variables"), "variables"),
    (re.compile(r"(?:\w+_)?custom_variable_names"), "names"),
    (re.compile(r"(?:\w+_)?custom_variable_values"), "values"),
    (re.compile(r"(?:\w+_)?(?:vars_variable\w+|original_attributes)"), "other"),
    # Columns of log lines; an LMD adds what it knows of the site to every table.
    (re.compile(r"message|options|command_name"), "event"),
    (re.compile(r"(?:peer|federation)_addr|peer_last_error"), "address"),
)

_CONTACT = re.compile(r"current_contact_(?!name$)\w+")


@lru_cache(maxsize=4096)
def secret(column: str) -> Secret:
    """What of a core column is not for everybody."""
    return next((kind for pattern, kind in _SECRETS if pattern.fullmatch(column)), "")


@lru_cache(maxsize=4096)
def of_contact(column: str) -> bool:
    """Whether a column of a log line tells about its contact more than the name."""
    return _CONTACT.fullmatch(column) is not None


_COMMANDS = frozenset({"command", "commands", "command line", "event"})
_MOST_KEPT = 200

_PEER_DESCRIPTIONS = {
    "peer_key": "id of the site",
    "peer_name": "name of the site",
    "peer_section": "section of the site",
}


@frozen
class View:
    """What one identity may see inside a row: full command lines and which custom variables.

    ``contact``: the only contact whose attributes it may see in log lines, None for all.
    ``addresses``: whether the addresses of sites are shown.
    """

    commands: bool = True
    variables: Visibility = field(factory=lambda: Visibility(patterns=(), all_visible=True))
    contact: str | None = None
    addresses: bool = True

    def masks(self, column: str) -> bool:
        """Whether the core's value of the column is not shown as it is."""
        return self.cuts(column) or (self.contact is not None and of_contact(column))

    def cuts(self, column: str) -> bool:
        """Whether parts of the column are hidden in every row."""
        kind = secret(column)
        if kind in _COMMANDS:
            return not self.commands
        if kind == "address":
            return not self.addresses
        return bool(kind) and not self.variables.all_visible


@frozen
class CoreSource:
    """A column asked from the cores."""

    column: Column
    core_type: CoreType

    @property
    def name(self) -> str:
        """The core's name of it."""
        return self.column.name


@frozen
class SiteSource:
    """A column that is constant for a site: its identity, or the start time of its core."""

    column: Column
    listed: bool = False
    """Merged groups carry lists of sites."""


@frozen
class Derived:
    """A column computed from others."""

    spec: DerivedColumn = field(eq=False)

    @property
    def column(self) -> Column:
        """Its declaration."""
        return self.spec.column


@frozen
class Variable:
    """One custom variable: the dictionary column that holds it and its key in the output."""

    source: str
    prefix: str
    key: str

    @property
    def column(self) -> Column:
        """Custom variables are text."""
        return Column(self.key, "string", "", "custom variable")


@frozen
class PerfList:
    """All performance data of a row as a list of objects."""

    source: str
    key: str

    @property
    def column(self) -> Column:
        """A list of objects; the interface has one word for all lists."""
        return Column(self.key, "array_of_strings", "", "performance data, one object per value")


@frozen
class PerfValueSource:
    """A label of performance data (or its ``_unit``), known only once rows are there."""

    sources: tuple[tuple[str, str], ...]
    key: str

    @property
    def column(self) -> Column:
        """The type is known by the row only."""
        return Column(self.key)


ColumnSource: TypeAlias = CoreSource | SiteSource | Derived | Variable | PerfList | PerfValueSource


@frozen
class ColumnNames:
    """The names of one collection over the selected sites.

    ``known``: further core columns that at least one selected core has, with their types.
    ``quoted`` q keys and parameters resolve alike, except that ``q_aliases`` need ``in_q``.
    """

    schema: TableSchema
    known: Mapping[str, str] = field(factory=dict, eq=False)
    made: dict[Any, Any] = field(factory=dict, eq=False)
    """What was derived from these names once and serves every later request."""

    def keep(self, key: object, value: object) -> None:
        """Remember ``value`` under ``key``; what clients can make different is bounded."""
        if len(self.made) >= _MOST_KEPT:
            self.made.clear()
        self.made[key] = value

    def find(self, name: str, *, in_q: bool = False) -> ColumnSource | None:
        """The source of ``name``, or None when nothing on this collection can have it."""
        schema = self.schema
        source = self._declared(name)
        if source is None and name in schema.aliases:
            source = self._declared(schema.aliases[name])
        if source is None and schema.strip and name.startswith(schema.strip):
            source = self._declared(name[len(schema.strip) :])
        if source is None and in_q and name in schema.q_aliases:
            source = self._declared(schema.q_aliases[name])
        if source is None and name in self.known:
            return CoreSource(Column(name), core_word(self.known[name]))
        return source or self._expanded(name)

    def _declared(self, name: str) -> ColumnSource | None:
        found = self.schema.columns.get(name)
        if isinstance(found, CoreColumn):
            return CoreSource(found.column, found.core_type)
        if isinstance(found, DerivedColumn):
            return Derived(found)
        if name in PEER_COLUMNS and self.schema.table:  # records of the front end have no site
            listed = self.schema.merge == "groups"
            described = _PEER_DESCRIPTIONS[name]
            if listed:
                return SiteSource(Column(name, "array_of_strings", "", described), listed=True)
            return SiteSource(Column(name, "string", "", described))
        return None

    def _expanded(self, name: str) -> ColumnSource | None:
        if name.startswith("_"):
            for source, prefix in sorted(self.schema.custom, key=lambda pair: -len(pair[1])):
                if name.startswith(prefix) and len(name) > len(prefix):
                    return Variable(source, prefix, name)
        for source, prefix in self.schema.perf:
            if name == f"{prefix}perf_data_expanded":
                return PerfList(source, name)
        if self.schema.perf:
            return PerfValueSource(self.schema.perf, name)
        return None


def core_word(name: str) -> CoreType:
    """The core type by its word in the columns table; an unknown word reads as text."""
    for kind in ("int", "float", "list", "dict", "time"):
        if name == kind:
            return kind
    return "string"
