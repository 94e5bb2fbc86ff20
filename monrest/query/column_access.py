"""From sources to functions of a row: which core columns a source needs and how it reads them.

Rows are lists; an index maps the name of a core column, or of a value that is constant for a
site, to its position. Every function made here is pure and cheap, because it runs once a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from monrest.base.values import Row
from monrest.query import customvars, perfdata
from monrest.query.resolve import (
    ColumnSource,
    CoreSource,
    Derived,
    PerfList,
    PerfValueSource,
    SiteSource,
    Variable,
    View,
    of_contact,
    secret,
)
from monrest.query.scalars import text_of
from monrest.query.schema import PEER_COLUMNS

Getter: TypeAlias = Callable[[Row], Any]
Index: TypeAlias = Mapping[str, int]

CONSTANTS = (*PEER_COLUMNS, "program_start", "peer_addr", "now")
"""What a site adds to each of its rows when asked; never requested from the core itself.

The last three are only read by derived columns: the start of the core and the time of the
request in Unix time, and the address of the site where the asker may see it.
"""


def needs(source: ColumnSource, view: View) -> tuple[str, ...]:
    """Names that must be in the index before ``getter`` can read the source under ``view``."""
    if isinstance(source, CoreSource):
        return (source.name, *_beside(source.name)) if view.masks(source.name) else (source.name,)
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
    shown = _cut(name, read, index, view) if view.cuts(name) else read
    if view.contact is None or not of_contact(name):
        return shown
    whose, own = index[_CONTACT], view.contact
    return lambda row: shown(row) if row[whose] == own else _nothing(read(row))


def _cut(name: str, read: Getter, index: Index, view: View) -> Getter:
    kind = secret(name)
    if kind == "command":
        return lambda row: cut_command(read(row))
    if kind == "commands":
        return lambda row: [cut_command(one) for one in _items(read(row))]
    if kind == "event":
        kinds = index[_LINE_KIND]
        return lambda row: cut_command(read(row)) if _handles(row[kinds]) else read(row)
    if kind == "address":
        return lambda _row: ""
    if kind in ("command line", "other"):
        return lambda _row: None
    host = "host_" in name
    visible = view.variables.visible
    if kind == "variables":
        return lambda row: view.variables.filter(read(row) or {}, host=host)
    if kind == "names":
        return lambda row: [one for one in _items(read(row)) if visible(text_of(one), host=host)]
    # Names and values belong together by position.
    names = itemgetter(index[_names_of(name)])
    return lambda row: [
        value
        for one, value in zip(_items(names(row)), _items(read(row)), strict=False)
        if visible(text_of(one), host=host)
    ]


_CONTACT = "current_contact_name"
_LINE_KIND = "type"


def _beside(name: str) -> tuple[str, ...]:
    """Columns that tell what of ``name`` may be seen by somebody who may not see all of it."""
    beside = []
    if secret(name) == "values":
        beside.append(_names_of(name))
    if secret(name) == "event":
        beside.append(_LINE_KIND)
    if of_contact(name):
        beside.append(_CONTACT)
    return tuple(beside)


def _names_of(values: str) -> str:
    return values.removesuffix("values") + "names"


def _items(value: Any) -> Sequence[Any]:
    """The elements of a list; a site that sends something else has sent none."""
    return value if isinstance(value, list) else ()


def _nothing(value: Any) -> Any:
    """The empty value of the same type."""
    return None if value is None else type(value)()


def _handles(kind: Any) -> bool:
    """Whether a log line of this type ends with the command of an event handler."""
    return isinstance(kind, str) and kind.endswith("EVENT HANDLER")


def cut_command(text: Any) -> Any:
    """A check command without its arguments."""
    return text.split("!", 1)[0] if isinstance(text, str) else text


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
) -> Callable[[Row], Mapping[str, Any]]:
    """The further keys of a row without a column list: performance data and custom variables.

    Declared columns always win over these keys.
    """
    perf_at = [(index[name], prefix) for name, prefix in perf if name in index]
    custom_at = [(index[name], prefix) for name, prefix in custom if name in index]
    every = view.variables.all_visible

    def expand(row: Row) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for at, prefix in perf_at:
            text = row[at]
            if text:
                found.update(perfdata.expansion(text, prefix))
        for at, prefix in custom_at:
            variables = row[at]
            if variables:
                shown = variables if every else view.variables.filter(variables, prefix != "_")
                found.update(customvars.columns(shown, prefix))
        return found

    return expand
