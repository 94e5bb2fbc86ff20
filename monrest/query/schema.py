"""What the query engine must know of a collection: its columns, where they come from, its order.

The catalogue of real collections is declared in ``monrest.rows.columns``; this module only
gives the shapes, so that the query engine stays free of any knowledge of endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from monrest.base.values import Column

CoreType: TypeAlias = Literal["string", "int", "float", "list", "dict", "time"]

PEER_COLUMNS = ("peer_key", "peer_name", "peer_section")
"""Identity of the site, on every core row, filled in by the merge and never asked from a core."""

EMPTY: Mapping[str, Any] = {
    "string": "", "int": 0, "float": 0.0, "list": [], "dict": {}, "time": 0,
}  # fmt: skip
"""The value of a column that a core does not have, by core type. Never change one in place."""


@frozen(kw_only=True)
class CoreColumn:
    """A column that a core's table has. ``default``: part of the answer without ``columns``."""

    column: Column
    core_type: CoreType
    default: bool = True

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
        """The name in the API."""
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
