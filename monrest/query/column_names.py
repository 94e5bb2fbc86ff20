"""Names of columns: what a collection has, what a client's name means on it, who sees its value.

The catalogue of real collections is declared in ``monrest.rows.columns``; here are only the
shapes, so that the query engine stays free of any knowledge of endpoints.

A name is, in this order: a declared column, the identity of the site, an alias, a name with the
collection's own prefix, any other column that a selected core has, a custom variable, the
expanded performance data, and at last a label of performance data, which only rows can have.

Rules: docs/spec/query.md, "Names" and "Custom variables and secrets".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, Literal, TypeAlias

import re2
from attrs import field, frozen

from monrest.base.values import Column, Expansion, KeysAndValues, Row
from monrest.query import perfdata
from monrest.query.scalars import text_of

Elements: TypeAlias = Literal["text", "number", "record", "object"]
CoreType: TypeAlias = Literal["string", "int", "float", "list", "dict", "time"]

PEER_COLUMNS = ("peer_key", "peer_name", "peer_section")
"""Identity of the site, on every core row, filled in by the merge and never asked from a core."""

EMPTY: Mapping[str, Any] = {
    "string": "", "int": 0, "float": 0.0, "list": [], "dict": {}, "time": 0,
}  # fmt: skip
"""The value of a column that a core does not have, by core type. Never change one in place."""


@frozen(kw_only=True)
class CoreColumn:
    """A column that a core's table has. ``default``: part of the answer without ``columns``.

    ``elements``: what a list is a list of.
    """

    column: Column
    core_type: CoreType
    default: bool = True
    elements: Elements = "text"

    @property
    def name(self) -> str:
        """The name in the core and in the API, which are the same."""
        return self.column.name


@frozen(kw_only=True)
class DerivedColumn:
    """A column computed from core columns: ``compute`` gets the values of ``sources`` in order."""

    column: Column
    sources: tuple[str, ...]
    compute: Callable[..., Any]
    default: bool = True

    @property
    def name(self) -> str:
        return self.column.name


@frozen(kw_only=True)
class TableSchema:
    """A collection of core rows.

    ``columns``: every declared column by name. ``strip``: a prefix that clients may put before a
    name (``host_`` on hosts). ``aliases``: further names (``service_groups``); ``q_aliases`` only
    inside ``q`` (``host``, ``service``). ``order``: columns of the default order. ``perf``: (perf
    data column, prefix of its labels). ``custom``: (dictionary column, prefix of its keys).
    ``merge``: how rows of several sites become one list. ``folded``: ``=`` ignores case (front-end
    resources). ``mixed``: any value may be a text in one row and a list in the next, or be missing.
    """

    name: str
    table: str
    columns: Mapping[str, CoreColumn | DerivedColumn] = field(eq=False)
    strip: str = ""
    aliases: Mapping[str, str] = field(factory=dict, eq=False)
    q_aliases: Mapping[str, str] = field(factory=dict, eq=False)
    order: tuple[str, ...] = ()
    perf: tuple[tuple[str, str], ...] = ()
    custom: tuple[tuple[str, str], ...] = ()
    merge: Literal["concat", "groups", "logs"] = "concat"
    folded: bool = False
    mixed: bool = False
    elsewhere: frozenset[str] = frozenset()
    """Names that rows of the same path have when it is asked for other objects."""


_OF_HOST = "HOST"


# Objects of one kind have the same variables: half of the time of a row went into their names.
@lru_cache(maxsize=1024)
def _variable_keys(names: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    """The keys of variables in their order; none where two of them have the same."""
    keys = tuple([prefix + name.upper() for name in names])
    return keys if len(set(keys)) == len(keys) else ()


@frozen
class Visibility:
    """The custom variables that a user may see.

    ``patterns`` are names with or without the leading underscore, ``*`` stands for anything, and
    the case of letters does not count. ``all_visible`` is for users who see everything.
    """

    patterns: tuple[str, ...]
    all_visible: bool = False

    def visible(self, name: str, host: bool = False) -> bool:
        """Whether the variable may be seen; ``host`` for a host's variable on a service.

        The latter needs a pattern that itself begins with ``HOST``.
        """
        return self.all_visible or _matches(self.patterns, name, host)

    def filter(self, variables: Mapping[str, str], host: bool = False) -> dict[str, str]:
        if self.all_visible:
            return dict(variables)
        patterns = self.patterns
        return {
            name: variable for name, variable in variables.items() if _matches(patterns, name, host)
        }


@lru_cache(maxsize=8192)
def _matches(patterns: tuple[str, ...], name: str, host: bool) -> bool:
    full = f"{_OF_HOST}{name}".upper() if host else name.upper()
    for pattern in patterns:
        wanted = pattern.removeprefix("_").upper()
        if host and not wanted.startswith(_OF_HOST):
            continue
        parts = ".*".join(map(re2.escape, wanted.split("*")))
        if re2.fullmatch(f"(?s:{parts})", full):
            return True
    return False


Secret: TypeAlias = Literal[
    "command", "commands", "command line", "event", "variables", "names", "values", "other",
    "address", "members", "",
]  # fmt: skip
"""The part of a column that only some users may see: the arguments of a command or of a list of
them, all of a command line, the arguments of an event handler or an external command in a log line,
custom variables in one of their three shapes or in one that cannot be cut, the address of a site,
which members a host or a group has and how they are."""

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
    (re.compile(r"(?:\w+_)?(?:num|total)_(?:hosts|services)\w*"), "members"),
    (re.compile(r"(?:\w+_)?(?:members\w*|worst_\w+|services|services_with_\w+)"), "members"),
)

_ABOUT_CONTACT = re.compile(r"current_contact_(?!name$)\w+")


@lru_cache(maxsize=4096)
def secret(column: str) -> Secret:
    """The part of a core column that only some users may see."""
    return next((kind for pattern, kind in _SECRETS if pattern.fullmatch(column)), "")


@lru_cache(maxsize=4096)
def of_contact(column: str) -> bool:
    """Whether a column of a log line describes its contact further than by name."""
    return _ABOUT_CONTACT.fullmatch(column) is not None


_COMMANDS = frozenset({"command", "commands", "command line"})
_MOST_KEPT = 200

_PEER_DESCRIPTIONS = {
    "peer_key": "id of the site",
    "peer_name": "name of the site",
    "peer_section": "section of the site",
}


@frozen
class View:
    """The rights of one identity inside a row: full command lines and which custom variables.

    ``contact``: the only contact whose attributes it may see in log lines, None for all.
    ``addresses``: whether the addresses of sites are shown. ``members``: whether all members of a
    row are visible, so that what the core counts is what may be seen.
    """

    commands: bool = True
    variables: Visibility = field(factory=lambda: Visibility(patterns=(), all_visible=True))
    contact: str | None = None
    addresses: bool = True
    members: bool = True

    def masks(self, column: str) -> bool:
        """Whether the core's value of the column is not shown as it is."""
        return self.cuts(column) or (self.contact is not None and of_contact(column))

    def cuts(self, column: str) -> bool:
        """Whether parts of the column are hidden in every row."""
        kind = secret(column)
        if kind == "event":
            return not (self.commands and self.variables.all_visible)
        if kind in _COMMANDS:
            return not self.commands
        if kind == "address":
            return not self.addresses
        if kind == "members":
            return not self.members
        return bool(kind) and not self.variables.all_visible


@frozen
class CoreSource:
    """A column asked from the cores."""

    column: Column
    core_type: CoreType

    @property
    def name(self) -> str:
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

    ``core_columns``: further core columns that at least one selected core has, with their types.
    ``quoted`` q keys and parameters resolve alike, except that ``q_aliases`` need ``in_q``.
    """

    schema: TableSchema
    core_columns: Mapping[str, str] = field(factory=dict, eq=False)
    kept: dict[Any, Any] = field(factory=dict, eq=False)
    """Values that were derived from these names once and serve every later request."""

    def keep(self, key: object, value: object) -> None:
        """Remember ``value`` under ``key``; what clients can make different is bounded."""
        if len(self.kept) >= _MOST_KEPT:
            self.kept.clear()
        self.kept[key] = value

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
        if source is not None:
            return source
        if name in self.core_columns:
            return CoreSource(Column(name), core_word(self.core_columns[name]))
        if name.startswith("_"):
            for column, prefix in sorted(schema.custom, key=lambda pair: -len(pair[1])):
                if name.startswith(prefix) and len(name) > len(prefix):
                    return Variable(column, prefix, name)
        for column, prefix in schema.perf:
            if name == f"{prefix}perf_data_expanded":
                return PerfList(column, name)
        return PerfValueSource(schema.perf, name) if schema.perf else None

    def impossible(self, name: str) -> bool:
        """Whether no row of the collection can have the name with any core."""
        schema = self.schema
        possible = schema.mixed or name in schema.elsewhere
        return bool(schema.columns) and not possible and self.find(name) is None

    def _declared(self, name: str) -> ColumnSource | None:
        column = self.schema.columns.get(name)
        if isinstance(column, CoreColumn):
            return CoreSource(column.column, column.core_type)
        if isinstance(column, DerivedColumn):
            return Derived(column)
        if name in PEER_COLUMNS and self.schema.table:  # records of the front end have no site
            listed = self.schema.merge == "groups"
            described = _PEER_DESCRIPTIONS[name]
            if listed:
                return SiteSource(Column(name, "array_of_strings", "", described), listed=True)
            return SiteSource(Column(name, "string", "", described))
        return None


def core_word(name: str) -> CoreType:
    """The core type by its word in the columns table; an unknown word reads as text."""
    for kind in ("int", "float", "list", "dict", "time"):
        if name == kind:
            return kind
    return "string"


# Rows are lists; an index maps the name of a core column, or of a value that is constant for a
# site, to its position. Every function made here is pure and cheap, because it runs once a row.

Getter: TypeAlias = Callable[[Row], Any]
Index: TypeAlias = Mapping[str, int]

CONSTANTS = (*PEER_COLUMNS, "program_start", "peer_addr", "now")
"""Columns that a site adds to each of its rows; never requested from the core itself.

The last three are only read by derived columns: the start of the core and the time of the
request in Unix time, and the address of the site where the user may see it.
"""


def needs(source: ColumnSource, view: View) -> tuple[str, ...]:
    """Names that must be in the index before ``getter`` can read the source under ``view``."""
    if isinstance(source, CoreSource):
        name = source.name
        if not view.masks(name):
            return (name,)
        # Other columns decide what of this one the user may see.
        beside = []
        if secret(name) == "values":
            beside.append(_names_of(name))
        if secret(name) == "event":
            beside.append(_LINE_KIND)
        if of_contact(name):
            beside.append(_CONTACT)
        return (name, *beside)
    if isinstance(source, SiteSource):
        return (source.column.name,)
    if isinstance(source, Derived):
        return source.spec.sources
    if isinstance(source, Variable | PerfList):
        return (source.source,)
    return tuple(name for name, _ in source.sources)


def getter(source: ColumnSource, index: Index, view: View) -> Getter:
    """A function that reads the source from a row, masked for what the identity may not see."""
    if isinstance(source, CoreSource):
        read: Getter = itemgetter(index[source.name])
        return mask(source.name, read, index, view) if view.masks(source.name) else read
    if isinstance(source, SiteSource):
        return itemgetter(index[source.column.name])
    if isinstance(source, Derived):
        return _derived(source, index, view)
    if isinstance(source, Variable):
        return _variable(source, index, view)
    if isinstance(source, PerfList):
        at = index[source.source]
        return lambda row: perfdata.expanded(row[at]) if row[at] else None
    return _perf_value(source, index)


def mask(name: str, read: Getter, index: Index, view: View) -> Getter:
    """``read`` without what the identity may not see: arguments, variables, others' addresses."""
    visible = _cut(name, read, index, view) if view.cuts(name) else read
    if view.contact is None or not of_contact(name):
        return visible
    whose, own = index[_CONTACT], view.contact

    def of_own(row: Row) -> Any:
        if row[whose] == own:
            return visible(row)
        value = read(row)
        return None if value is None else type(value)()

    return of_own


def _cut(name: str, read: Getter, index: Index, view: View) -> Getter:
    kind = secret(name)
    if kind == "command":
        return lambda row: cut_command(read(row))
    if kind == "commands":
        return lambda row: [cut_command(item) for item in _items(read(row))]
    if kind == "event":
        kinds, values = index[_LINE_KIND], view.variables.all_visible

        def cut(row: Row) -> Any:
            text, line = read(row), row[kinds]
            handler = isinstance(line, str) and line.endswith("EVENT HANDLER")
            if handler and not view.commands:
                return cut_command(text)
            return text if values else cut_arguments(text)

        return cut
    if kind == "address":
        return lambda _row: ""
    if kind == "members":
        # Rows have those that are visible by now, but for log lines, which are of one moment.
        return (lambda _row: None) if name.startswith("current_") else read
    if kind in ("command line", "other"):
        return lambda _row: None
    host = "host_" in name
    visible = view.variables.visible
    if kind == "variables":
        return lambda row: view.variables.filter(read(row) or {}, host=host)
    if kind == "names":
        return lambda row: [item for item in _items(read(row)) if visible(text_of(item), host=host)]
    # Names and values belong together by position.
    if _names_of(name) not in index:
        # A core without the names: which of the values may be seen is unknown.
        return lambda _row: []
    names = itemgetter(index[_names_of(name)])
    return lambda row: [
        value
        for item, value in zip(_items(names(row)), _items(read(row)), strict=False)
        if visible(text_of(item), host=host)
    ]


_CONTACT = "current_contact_name"
_LINE_KIND = "type"


def _names_of(values: str) -> str:
    return values.removesuffix("values") + "names"


def _items(value: Any) -> Sequence[Any]:
    """The elements of a list; a site that sends something else has sent none."""
    return value if isinstance(value, list) else ()


def cut_command(text: Any) -> Any:
    """A check command without its arguments."""
    return text.split("!", 1)[0] if isinstance(text, str) else text


_CONFIGURES = re.compile(
    r"((?:\[\d+\] EXTERNAL COMMAND: )?(?:CHANGE_|_|PROCESS_FILE)[A-Z0-9_]*;).*", re.DOTALL
)


def cut_arguments(text: Any) -> Any:
    """A log line, or its end, without the arguments of an external command that configures.

    ``CHANGE_CUSTOM_SVC_VAR`` carries a value that is as secret as a custom variable; commands with
    an underscore in front are the site's own.
    """
    match = _CONFIGURES.fullmatch(text) if isinstance(text, str) else None
    return text if match is None else f"{match[1]}…"


def _derived(source: Derived, index: Index, view: View) -> Getter:
    compute = source.spec.compute
    reads = [
        mask(name, itemgetter(index[name]), index, view)
        if view.masks(name)
        else itemgetter(index[name])
        for name in source.spec.sources
    ]
    if len(reads) == 1:
        (only,) = reads
        return lambda row: compute(only(row))
    return lambda row: compute(*[read(row) for read in reads])


def _variable(source: Variable, index: Index, view: View) -> Getter:
    name = source.key[len(source.prefix) :]
    if not view.variables.visible(name, host=source.prefix != "_"):
        return lambda _row: None
    at = index[source.source]

    def read(row: Row) -> Any:
        variables = row[at]
        value = variables.get(name) if variables else None
        if value is None and variables:
            # Icinga 2 keeps the configured case of names, the API shows them in upper case.
            return next((v for k, v in variables.items() if k.upper() == name), None)
        return value

    return read


def _perf_value(source: PerfValueSource, index: Index) -> Getter:
    key = source.key
    pairs = [(index[name], prefix) for name, prefix in source.sources]
    if len(pairs) == 1:
        ((at, prefix),) = pairs
        return lambda row: labels(row[at], prefix).get(key) if row[at] else None

    def read(row: Row) -> Any:
        for at, prefix in pairs:
            if row[at]:
                value = labels(row[at], prefix).get(key)
                if value is not None:
                    return value
        return None

    return read


@lru_cache(maxsize=2048)
def labels(text: str, prefix: str) -> Mapping[str, Any]:
    """The scalar columns of performance data; several columns of a row share one parse."""
    return perfdata.columns(text, prefix)


def expander(
    index: Index,
    view: View,
    perf: tuple[tuple[str, str], ...],
    custom: tuple[tuple[str, str], ...],
) -> Expansion:
    """The further keys of a row without a column list: performance data and custom variables.

    Declared columns always win over these keys.
    """
    texts = [
        (index[name], partial(perfdata.expansion, prefix)) for name, prefix in perf if name in index
    ]
    variables = [
        (index[name], partial(variable_columns, view.variables, prefix))
        for name, prefix in custom
        if name in index
    ]
    return Expansion((*texts, *variables))


def variable_columns(
    visible: Visibility, prefix: str, variables: Mapping[str, str]
) -> KeysAndValues:
    """The keys of variables that may be seen, and their values.

    A key is ``prefix`` (``_``, ``_HOST``) and the name in upper case. Of names that differ only in
    case the one in upper case counts, else the first.
    """
    if not visible.all_visible:
        variables = visible.filter(variables, prefix != "_")
    keys = _variable_keys(tuple(variables), prefix)
    if keys:
        return keys, tuple(variables.values())
    columns = {
        prefix + name.upper(): variables.get(name.upper(), value)
        for name, value in reversed(list(variables.items()))
    }
    return tuple(columns), tuple(columns.values())
