"""The request of a client and the query to a core, as values.

The first half is the client's side (docs/spec/query.md, "Filters"): expressions, conditions, sort
keys. The second half is the core's side (docs/spec/livestatus.md, "Requests"): the part of a query
that is pushed down, in terms that every Livestatus core understands. Filters of both sides are
trees of one kind, with different leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Literal, TypeAlias, TypeVar

from attrs import frozen

Leaf = TypeVar("Leaf")
Connector: TypeAlias = Literal["and", "or"]


@frozen(cache_hash=True)
class Group(Generic[Leaf]):
    """Conditions joined by one connector: an ``and`` of none is true, an ``or`` of none false."""

    connector: Connector
    items: tuple[Tree[Leaf], ...]


Tree: TypeAlias = Leaf | Group[Leaf]


def leaves(trees: Iterable[Tree[Leaf]]) -> Iterator[Leaf]:
    for tree in trees:
        if isinstance(tree, Group):
            yield from leaves(tree.items)
        else:
            yield tree


def conjuncts(trees: Iterable[Tree[Leaf]]) -> Iterator[Tree[Leaf]]:
    """The conditions that all of these trees require, without groups joined by ``and``."""
    for tree in trees:
        if isinstance(tree, Group) and tree.connector == "and":
            yield from conjuncts(tree.items)
        else:
            yield tree


def rewritten(tree: Tree[Leaf], change: Callable[[Leaf], Tree[Leaf]]) -> Tree[Leaf]:
    """The same tree with something else in the place of each condition."""
    if isinstance(tree, Group):
        return Group(tree.connector, tuple(rewritten(item, change) for item in tree.items))
    return change(tree)


def joined(connector: Connector, trees: Iterable[Tree[Leaf]]) -> Tree[Leaf] | None:
    """One tree of these: a single one as it is, None of none."""
    items = tuple(trees)
    if len(items) > 1:
        return Group(connector, items)
    return items[0] if items else None


@frozen
class Ref:
    """A column by the name the client wrote (backticks removed); resolved against a schema later.

    ``quoted`` is true for a backticked name, which is never read as a calculation.
    """

    name: str
    quoted: bool = False


@frozen
class Literal_:
    """A number or a quoted text used as a function argument."""

    value: str | int | float


@frozen
class Calculation:
    """``first op operand op operand …``, strictly left to right."""

    first: Expression
    steps: tuple[tuple[str, Expression], ...]


@frozen
class Call:
    """A function by its canonical name (``lower`` for ``lc``, ``to_rows`` for ``as_rows`` …)."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Ref | Literal_ | Calculation | Call


@frozen
class Item:
    """One entry of ``columns``.

    ``key`` is the output name (alias, else the text as sent without outer backticks), ``text``
    the expression as sent without its alias, by which sort keys and filters name it.
    """

    expression: Expression
    key: str
    text: str
    renamed: bool = False


Operator: TypeAlias = Literal["=", "!=", "~", "!~", "~~", "!~~", ">", "<", ">=", "<=", "!>="]

OPERATORS: dict[str, Operator] = {
    "=": "=", "eq": "=",
    "!=": "!=", "ne": "!=",
    "~": "~", "sregex": "~",
    "!~": "!~", "snregex": "!~",
    "~~": "~~", "regex": "~~", "like": "~~",
    "!~~": "!~~", "nregex": "!~~", "unlike": "!~~",
    ">": ">", "gt": ">",
    "<": "<", "lt": "<",
    ">=": ">=", "gte": ">=",
    "<=": "<=", "lte": "<=",
    "!>=": "!>=", "notin": "!>=",
}  # fmt: skip
"""Every sign and alias of the operator table to its sign."""


@frozen
class Condition:
    """``column op value`` as sent; ``column`` may be the text of a selected expression.

    ``parameter`` names the source for error texts: the parameter's name, or ``q``.
    """

    column: str
    op: Operator
    value: str
    parameter: str = "q"


FilterTree: TypeAlias = Tree[Condition]


@frozen
class SortKey:
    """A sort key by the text the client wrote: a column, an alias or a selected expression."""

    name: str
    descending: bool = False


@frozen(kw_only=True)
class Query:
    """The parameters of a list request, parsed and checked for form.

    ``items`` is None when no columns were asked for. ``filter`` holds the parameter filters and
    every ``q``, joined by and. ``limit`` None means no limit. ``backends`` is the site
    selection by parameter. How the answer is written is not for the query engine.
    """

    items: tuple[Item, ...] | None = None
    filter: Group[Condition] = Group("and", ())
    sort: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    backends: tuple[str, ...] = ()


@frozen(cache_hash=True)
class Test:
    """One Filter line: a core column, a core operator and an operand free of control characters.

    For a dictionary column the operand is ``NAME value``. ``!>=`` is written as the negation of
    ``>=``, which all cores understand.
    """

    column: str
    op: str
    value: str


CoreFilter: TypeAlias = Tree[Test]


def columns_of(condition: CoreFilter | None) -> Iterator[str]:
    return (test.column for test in leaves(() if condition is None else (condition,)))


@frozen
class Stat:
    """One Stats column: ``function`` over ``column``, or a count of rows matching ``filter``.

    ``function`` is one of sum, min, max (never avg, std).
    """

    function: Literal["count", "sum", "min", "max"]
    column: str = ""
    filter: CoreFilter | None = None


@frozen(kw_only=True, cache_hash=True)
class Pushed:
    """The query to one core. ``columns`` are known to that core; with ``stats`` they group.

    ``sort`` is sent only to cores that sort; its keys behind the first ``own_keys`` only tell rows
    of one site apart. ``limit`` counts rows per site, offset included.
    ``waits_long`` gives the query the longer time-out of log queries. ``news`` are the seconds for
    which the core waits with its answer for a new line of its log, None for no waiting; only a
    Naemon does, and never for the table log, whose lock it would hold meanwhile.
    """

    table: str
    columns: tuple[str, ...] = ()
    filter: CoreFilter | None = None
    stats: tuple[Stat, ...] = ()
    sort: tuple[tuple[str, bool], ...] = ()
    own_keys: int = 0
    limit: int | None = None
    auth_user: str = ""
    waits_long: bool = False
    news: float | None = None
