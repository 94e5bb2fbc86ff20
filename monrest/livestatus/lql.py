"""Building requests: the only place where a GET for a core is put together.

Nothing else formats LQL. Names of tables, columns and operators are never taken unchecked from
outside; values are literal and may hold no control character, which is the defence against
injected lines. A line that a core might not survive is never written
(docs/spec/livestatus.md): the planner does not ask for one, and here is the last look.
"""

from __future__ import annotations

import re
from functools import lru_cache

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities
from monrest.query.model import CoreFilter, Group, Pushed, Stat, Test, columns_of, conjuncts
from monrest.query.sendable import LOOKED_UP, MOST_WHOLE, asked, bounded, harmless


class HarmfulRequestError(Exception):
    """A request of ours that a core might not survive; nothing of it was sent."""


LONGEST_LINE = 65_000
"""A Naemon resets the connection at a line of more than 65,536 bytes."""

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_WHOLE = re.compile(r"-?[0-9]{1,400}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OPERATORS = frozenset({"=", "!=", "~", "!~", "=~", "!=~", "~~", "!~~", "<", ">=", ">", "<="})
_CONTACT_RIGHTS = frozenset({"naemon", "mk", "lmd"})
_STATS_NEGATE = frozenset({"naemon", "mk", "lmd"})


def build(pushed: Pushed, capabilities: Capabilities) -> bytes:
    r"""The request for one core, ending in its empty line.

    Sort goes only to cores that sort (and Limit then stays away too, or the wrong rows would be
    cut off), AuthUser only to cores that know it. Leading and trailing spaces of a value are lost
    in every core, so the planner keeps such conditions here. Raise BadRequest if a value holds a
    control character or is too long, ValueError for a name or an operator that is none, and
    HarmfulRequestError for what no core may be sent.
    """
    _require_harmless(pushed)
    lines = [
        f"GET {_identifier(pushed.table)}",
        "ResponseHeader: fixed16",
        "KeepAlive: on",
        f"OutputFormat: {'wrapped_json' if capabilities.kind == 'lmd' else 'json'}",
    ]
    if pushed.columns:
        lines.append(_columns(pushed.columns))
    writer = _Writer(pushed, capabilities, lines)
    writer.filter()
    for stat in pushed.stats:
        writer.stat(stat)
    sorts = capabilities.sorts
    if sorts:
        for column, descending in pushed.sort:
            lines.append(f"Sort: {_identifier(column)} {'desc' if descending else 'asc'}")
    if pushed.limit is not None and (sorts or not pushed.sort):
        if pushed.limit < 0:
            raise ValueError("a limit is not negative")
        lines.append(f"Limit: {pushed.limit}")
    if pushed.auth_user and capabilities.kind in _CONTACT_RIGHTS:
        lines.append(f"AuthUser: {_value(pushed.auth_user, 'the user')}")
    if pushed.news is not None:
        if capabilities.kind != "naemon" or pushed.news <= 0 or pushed.table == "log":
            raise ValueError("only a Naemon waits, never for ever and never with its log locked")
        lines += ["WaitTrigger: log", f"WaitTimeout: {max(1, int(pushed.news * 1000))}"]
    try:
        encoded = [line.encode() for line in lines]
    except UnicodeEncodeError:
        raise BadRequest("error during request", "a value is not valid Unicode") from None
    for line in encoded:
        if len(line) > LONGEST_LINE:
            # "Filter: COLUMN OPERATOR VALUE" is the only kind of line that can grow like this.
            what = line.split(b" ", 2)[1].decode()
            raise BadRequest(
                "error during request",
                f"the value of {what} is too long, expected at most {LONGEST_LINE} bytes",
            )
    return b"\n".join(encoded) + b"\n\n"


def _require_harmless(pushed: Pushed) -> None:
    """Refuse what docs/spec/livestatus.md rules out for every kind of core."""
    table = pushed.table
    if not asked(table):
        raise HarmfulRequestError(f"table {table}")
    if table == "log":
        tree = None if pushed.filter is None else simplified(pushed.filter)
        if tree is not False and (tree is True or not bounded(tree)):
            raise HarmfulRequestError("table log without a lower bound on time")
    compared = [pushed.filter, *(stat.filter for stat in pushed.stats)]
    names = [name for tree in compared for name in columns_of(tree)]
    names += [stat.column for stat in pushed.stats if stat.column]
    names += [name for name, _ in pushed.sort]
    if pushed.stats:
        names += pushed.columns
    for name in names:
        if not harmless(table, name):
            raise HarmfulRequestError(f"column {name} of table {table} may only be read")


@lru_cache(maxsize=512)
def _columns(names: tuple[str, ...]) -> str:
    # Requests for single objects differ in a value and share their hundred columns.
    return "Columns: " + " ".join(map(_identifier, names))


def _identifier(name: str) -> str:
    if not _IDENTIFIER.match(name):
        raise ValueError(f"not a name of Livestatus: {name!r}")
    return name


def _value(text: str, what: str) -> str:
    if _CONTROL.search(text):
        raise BadRequest(
            "error during request",
            f"control characters are not allowed in the value of {what}, expected printable text",
        )
    return text


def simplified(tree: CoreFilter) -> CoreFilter | bool:
    """The tree without empty and one-item groups; True or False if it does not depend on rows."""
    if isinstance(tree, Test):
        return tree
    deciding = tree.connector == "or"  # one true item decides an Or, one false item an And
    items: list[CoreFilter] = []
    for item in tree.items:
        inner = simplified(item)
        if inner is deciding:
            return deciding
        if isinstance(inner, Group) and inner.connector == tree.connector:
            items += inner.items
        elif not isinstance(inner, bool):
            items.append(inner)
    if not items:
        return not deciding
    if len(items) == 1:
        return items[0]
    return Group(tree.connector, tuple(items))


@frozen
class _Writer:
    """Puts filter and Stats lines on the stack of the core."""

    pushed: Pushed
    capabilities: Capabilities
    lines: list[str]

    def filter(self) -> None:
        if self.pushed.filter is None:
            return
        tree = simplified(self.pushed.filter)
        if tree is True:
            return
        if tree is False:
            tree = self._never()
        # What is left on the stack is joined by And anyway.
        for item in conjuncts([tree]):
            self._put(item, "Filter", "")

    def stat(self, stat: Stat) -> None:
        if stat.function != "count":
            self.lines.append(f"Stats: {stat.function} {_identifier(stat.column)}")
            return
        tree = True if stat.filter is None else simplified(stat.filter)
        if isinstance(tree, bool):
            never = self._never()
            tree = Group("or", never.items) if tree else never
        self._put(tree, "Stats", "Stats")

    def _never(self) -> Group[Test]:
        """A contradiction that every core accepts; its items joined by Or are always true.

        Of a log it is one on the time, for which a core opens no file.
        """
        if self.pushed.table == "log":
            return Group("and", (Test("time", "=", "0"), Test("time", "!=", "0")))
        types = self.capabilities.tables.get(self.pushed.table, {})
        given = [*self.pushed.columns, *(s.column for s in self.pushed.stats if s.column), *types]
        names = [name for name in given if harmless(self.pushed.table, name)]
        simple = ("int", "time", "string", "")
        name = next((n for n in names if types.get(n, "") in simple), names[0] if names else "name")
        return Group("and", (Test(name, "=", "0"), Test(name, "!=", "0")))

    def _put(self, tree: CoreFilter, word: str, prefix: str) -> None:
        if isinstance(tree, Group):
            for item in tree.items:
                self._put(item, word, prefix)
            joint = "Or" if tree.connector == "or" else "And"
            self.lines.append(f"{prefix}{joint}: {len(tree.items)}")
            return
        table, column, op, value = self.pushed.table, _identifier(tree.column), tree.op, tree.value
        negate = False
        if op == "!>=":
            negate, op = True, ">="
            if word == "Stats" and self.capabilities.kind not in _STATS_NEGATE:
                negate, op = False, "<"
        elif op == "!=" and word == "Filter" and (table, column) in LOOKED_UP:
            negate, op = True, "="  # the core would misread it
        if op not in _OPERATORS:
            raise ValueError(f"not an operator of Livestatus: {op!r}")
        if (
            self.capabilities.tables.get(table, {}).get(column) in ("int", "time")
            and _WHOLE.match(value)
            and abs(int(value)) > MOST_WHOLE
        ):
            # No further than every core can read.
            value = str(MOST_WHOLE if int(value) > 0 else -MOST_WHOLE)
        self.lines.append(f"{word}: {column} {op} {_value(value, column)}".rstrip(" "))
        if negate:
            self.lines.append(f"{prefix}Negate:")
