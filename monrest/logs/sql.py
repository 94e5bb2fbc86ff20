"""The one builder of SQL that reads log lines: what a core would be asked, asked of the cache.

Filters come in the terms of a core (``query.model``), of which ``query.pushdown`` has chosen those
that mean the same everywhere, so that they mean the same here. Values travel as parameters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import orjson
from attrs import frozen
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    cast,
    column,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    true,
)

from monrest.logs.line import COLUMNS, STAMP
from monrest.query.model import CoreFilter, Pushed, Stat, Test, leaves
from monrest.query.regex import compile_pattern, escape
from monrest.store.tables import logcache_lines as lines

_NUMBERS = frozenset(name for name, kind in COLUMNS if kind == "int")
_COMPARED: dict[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}
_FOUND = "monrest_found"
_HOSTS, _SERVICES, _HOST = "current_host_contacts", "current_service_contacts", "current_host_name"


@frozen(kw_only=True)
class Visible:
    """The objects of a core that a user is a contact of, as the core has them now."""

    hosts: tuple[str, ...] = ()
    services: tuple[tuple[str, str], ...] = ()


EVERYTHING = Visible()
"""For filters that do not ask for contacts."""


def contact_of(wanted: CoreFilter | None) -> str | None:
    """The contact that a filter asks for, None if it asks for none."""
    tests = leaves(() if wanted is None else (wanted,))
    return next((test.value for test in tests if test.column in (_HOSTS, _SERVICES)), None)


@frozen(kw_only=True)
class Builder:
    """Builds statements for one connection; ``visible`` answers tests for contacts."""

    connection: Connection
    visible: Visible = EVERYTHING

    @property
    def _postgres(self) -> bool:
        return self.connection.dialect.name == "postgresql"

    def select(self, site: int, pushed: Pushed, start: int, end: int) -> Select[Any]:
        """The lines of ``site`` with ``start <= time < end`` that ``pushed`` wants of a core."""
        self._ready()
        groups = [self.column(name) for name in pushed.columns]
        numbers = [_number(stat) for stat in pushed.stats]
        statement = select(*groups, *numbers).where(
            lines.c.site == site, lines.c.time >= start, lines.c.time < end
        )
        if pushed.stats:
            # By their places: an expression with parameters would be another one each time.
            statement = statement.group_by(
                *(literal_column(str(at + 1)) for at in range(len(groups)))
            )
        if pushed.filter is not None:
            statement = statement.where(self.condition(pushed.filter))
        for name, descending in pushed.sort:
            key = self.column(name) if name in _NUMBERS else self._plain(name)
            statement = statement.order_by(key.desc() if descending else key.asc())
        return statement.limit(pushed.limit)

    def column(self, name: str) -> ColumnElement[Any]:
        """A column of the log table of a core."""
        if name != "options":
            return lines.c[name]
        text = func.substr(lines.c.message, STAMP + 1)
        colon = (func.strpos if self._postgres else func.instr)(text, ":")
        derived = case((colon == 0, ""), else_=func.ltrim(func.substr(text, colon + 1), " "))
        return func.coalesce(lines.c.options, derived).label("options")

    def _plain(self, name: str) -> ColumnElement[Any]:
        """A text that is compared by code points, as everywhere else here."""
        text = self.column(name)
        return text.collate("C") if self._postgres else text

    def condition(self, wanted: CoreFilter) -> ColumnElement[bool]:
        """A filter as SQL."""
        if isinstance(wanted, Test):
            return self._test(wanted)
        items = [self.condition(item) for item in wanted.items]
        return and_(true(), *items) if wanted.connector == "and" else or_(false(), *items)

    def _test(self, test: Test) -> ColumnElement[bool]:
        if test.column == _HOSTS:
            return self._among(lines.c.host_name, self.visible.hosts)
        if test.column == _SERVICES:
            both = lines.c.host_name + literal("\n") + lines.c.service_description
            return self._among(both, ["\n".join(pair) for pair in self.visible.services])
        if test.column == _HOST:
            # Where a line names a host, this adds nothing; where it does not, there is none.
            return false() if test.op == "!=" else true()
        if test.column in _NUMBERS:
            return _COMPARED[test.op](lines.c[test.column], int(test.value))
        if test.op in ("=", "!="):
            return _COMPARED[test.op](self.column(test.column), test.value)
        condition = self._matching(test.column, test.value, folded=test.op.endswith("~~"))
        return not_(condition) if test.op[0] == "!" else condition

    def _matching(self, name: str, pattern: str, *, folded: bool) -> ColumnElement[bool]:
        if self._postgres:
            condition: ColumnElement[bool] = self._plain(name).bool_op("~*" if folded else "~")(
                pattern
            )
            return condition
        if not folded and escape(pattern) == pattern:
            # A function of ours would be called for each line.
            return func.instr(self.column(name), pattern) > 0
        matches: ColumnElement[bool] = getattr(func, _FOUND)(pattern, folded, self.column(name))
        return matches == 1

    def _among(self, value: ColumnElement[Any], names: Iterable[str]) -> ColumnElement[bool]:
        """Whether a text is one of many, sent as one parameter however many there are."""
        if self._postgres:
            from sqlalchemy.dialects.postgresql import JSONB

            document = cast(list(names), JSONB)
            element = func.jsonb_array_elements_text(document).column_valued("one")
            return value.in_(select(element))
        each = func.json_each(json.dumps(list(names))).table_valued(column("value"))
        return value.in_(select(each.c.value))

    def _ready(self) -> None:
        """Give SQLite our regular expressions, which take linear time."""
        if not self._postgres:
            driver: Any = self.connection.connection.driver_connection
            driver.create_function(_FOUND, 3, _search, deterministic=True)


def fetched(connection: Connection, statement: Select[Any]) -> list[list[Any]]:
    """All rows at once.

    Each row of SQLite would have to wait for the interpreter, which is busy with the rows before.
    """
    if connection.dialect.name == "postgresql":
        return [list(row) for row in connection.execute(statement)]
    columns = list(statement.selected_columns)
    named = statement.with_only_columns(
        *(column.label(f"c{at}") for at, column in enumerate(columns)), maintain_column_froms=True
    )
    rows = func.json_group_array(func.json_array(*named.subquery().c))
    return list(orjson.loads(connection.execute(select(rows)).scalar_one()))


def _number(stat: Stat) -> ColumnElement[Any]:
    """The column of a Stats line; of no lines it is 0, as with a core."""
    if stat.function == "count":
        return func.count()
    return func.coalesce(getattr(func, stat.function)(lines.c[stat.column]), 0)


def _search(pattern: str, folded: int, text: str) -> bool:
    return compile_pattern(pattern, ignore_case=bool(folded), parameter="q").matches(text)
