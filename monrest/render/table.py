"""Any answer as a table of names and values, for CSV, Excel and text.

Rules: docs/spec/render.md, "Tables".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from monrest.base.errors import ClientLeftError
from monrest.base.values import Answer, Document, Row, RowList, Rows
from monrest.render.json import digits, dumps

SCALAR = "value"
"""Column name of a list of plain values and of a single plain value."""


@frozen(kw_only=True)
class Table:
    """Column names, rows, and how to get the values of a row in the order of the names.

    ``rows`` belong to the renderer, which releases them.
    """

    names: tuple[str, ...]
    rows: RowList
    values: Callable[[Row], Sequence[Any]]


def row_names(answer: Rows) -> list[str]:
    """Output names in order: as asked, or the sorted keys of the first row when it expands."""
    names = [column.name for column in answer.columns]
    if answer.expand is None:
        return names
    for row in answer.rows[:1]:
        return sorted({*names, *answer.expand(row)})
    return names


def document_names(answer: Document) -> list[str]:
    """Return the keys of the value, or of the first of its objects, in the document's order.

    Falls back on the declared columns when there is no object to look at.
    """
    value = answer.value
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if not isinstance(value, Mapping):
        return [column.name for column in answer.columns]
    leading = [name for name in answer.order if name in value]
    return leading + sorted(set(value).difference(leading))


def failed_sites(answer: Answer) -> str:
    """One line with the sites that are missing in the answer and why; empty when none is."""
    if not answer.failed_sites:
        return ""
    sites = [
        f"{failed_site.site} ({failed_site.reason})" if failed_site.reason else failed_site.site
        for failed_site in answer.failed_sites
    ]
    return f"failed sites: {', '.join(' '.join(site.split()) for site in sites)}"


def every_key(answer: Rows | Document, given_up: Callable[[], bool] = bool) -> Rows | Document:
    """A list as one row that has all keys of its rows, with the first value of each.

    Raises ClientLeftError soon after ``given_up`` has become true.
    """
    records: Iterable[Any] = ()
    if isinstance(answer, Rows):
        names, expand = [column.name for column in answer.columns], answer.expand
        records = (
            {**(expand(row) if expand else {}), **dict(zip(names, row, strict=False))}
            for row in answer.rows
        )
    elif isinstance(answer.value, list):
        records = answer.value
    else:
        return answer
    keys: dict[str, Any] = {}
    for record in records:
        if given_up():
            raise ClientLeftError
        if not isinstance(record, Mapping):
            return answer
        for name in record:
            keys.setdefault(name, record[name])
    further = answer.further if isinstance(answer, Rows) else ()
    return Document(
        value=[keys] if keys else [],
        columns=(*answer.columns, *further),
        failed_sites=answer.failed_sites,
        backend_seconds=answer.backend_seconds,
        headers=answer.headers,
        warnings=answer.warnings,
    )


def table_of(answer: Rows | Document) -> Table:
    """Make the answer a table; single objects become the columns ``key`` and ``value``."""
    return _of_rows(answer) if isinstance(answer, Rows) else _of_document(answer)


def _of_rows(answer: Rows) -> Table:
    width = len(answer.columns)
    names = tuple(row_names(answer))
    expand = answer.expand
    if expand is None:
        return Table(names=names, rows=answer.rows, values=lambda row: row[:width])
    declared = [column.name for column in answer.columns]
    further = [name for name in names if name not in set(declared)]
    place = {name: index for index, name in enumerate([*declared, *further])}
    order = [place[name] for name in names]

    def values(row: Row) -> Sequence[Any]:
        extra = expand(row)
        cells = [*row[:width], *(extra.get(name) for name in further)]
        return [cells[index] for index in order]

    return Table(names=names, rows=answer.rows, values=values)


def _of_document(answer: Document) -> Table:
    value = answer.value
    names = document_names(answer)
    if isinstance(value, Mapping):
        return Table(
            names=("key", "value"), rows=[[name, value[name]] for name in names], values=_itself
        )
    if isinstance(value, (list, tuple)):
        if not value:
            return Table(names=tuple(names), rows=[], values=_itself)
        if all(isinstance(item, Mapping) for item in value):
            return Table(
                names=tuple(names),
                rows=[[item] for item in value],
                values=lambda row: [row[0].get(name) for name in names],
            )
        return Table(names=(SCALAR,), rows=[[item] for item in value], values=_itself)
    return Table(names=(SCALAR,), rows=[[value]], values=_itself)


def _itself(row: Row) -> Row:
    return row


def number_text(value: float) -> str:
    """Shortest decimal form (5.0 is ``5``); empty for nan, infinities and endless integers."""
    if isinstance(value, int):
        return digits(value)
    if not math.isfinite(value):
        return ""
    return str(value).removesuffix(".0")


def plain_text(value: Any, no: str, yes: str) -> str:
    """A value that stands alone or in a list as text; what holds others is JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return yes if value else no
    if isinstance(value, (int, float)):
        return number_text(value)
    return dumps(value).decode()
