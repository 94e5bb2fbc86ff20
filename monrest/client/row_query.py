"""A list of the API with filters, columns, order and bounds, as an immutable value."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from copy import copy
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

from monrest.client.calling import Awaited, Blocking, Called, KindT, Operation, Stream
from monrest.client.clauses import Clause, ColumnName
from monrest.client.exchange import ApiRequest, query_of

if TYPE_CHECKING:
    from monrest.client.api_client import ApiClient

RowT = TypeVar("RowT")

PAGE = 1000
"""Rows of a page."""


class RowQuery(Called[KindT], Generic[RowT, KindT]):
    """Methods that select return a new selection; no request is sent before rows are read.

    That is with ``all``, ``first``, ``one``, ``count``, ``pages``, or by iterating.
    """

    def __init__(self, client: ApiClient[KindT], path: str, clause: Clause | None = None) -> None:
        self.kind = client.kind
        self._client, self._path, self._clause = client, path, clause
        self._parameters: dict[str, str] = {}
        self._sites: tuple[str, ...] = ()

    def _with(self, **parameters: str) -> Self:
        query = copy(self)
        query._parameters = {**self._parameters, **parameters}
        return query

    def filter(self, clause: Clause | None) -> Self:
        """Rows for which this holds as well."""
        if clause is None:
            return self
        query = copy(self)
        query._clause = clause if self._clause is None else self._clause & clause
        return query

    def columns(self, *names: str | ColumnName) -> Self:
        """Rows with these columns only; also functions and renames, as ``count(*) as n``."""
        return self._with(columns=_joined(names))

    def sort(self, *names: str | ColumnName) -> Self:
        """Sorted by these columns, descending with ``-`` in front."""
        return self._with(sort=_joined(names))

    def limit(self, rows: int) -> Self:
        """So many rows at most."""
        return self._with(limit=str(rows))

    def offset(self, rows: int) -> Self:
        """Without the first ones."""
        return self._with(offset=str(rows))

    def timeout(self, seconds: float) -> Self:
        """Sites that have not answered by then are left out and named in ``failed_sites``."""
        return self._with(timeout=str(seconds))

    def parameter(self, name: str, value: str) -> Self:
        """Any other parameter of the path."""
        return self._with(**{name: value})

    def on(self, *sites: str) -> Self:
        """Only of these sites: ids, names or sections."""
        query = copy(self)
        query._sites = sites
        return query

    def request(self, prefix: str = "", **more: str | None) -> ApiRequest:
        """The request; ValueError for a condition that the query language cannot express."""
        parameters = {**self._parameters, **more}
        if self._clause is not None:
            parameters["q"] = self._clause.text()
        return ApiRequest(self._path, query=query_of(parameters), prefix=prefix, sites=self._sites)

    async def _rows(self) -> list[RowT]:
        return cast(list[RowT], await self._client.document(self.request()))

    @Operation
    async def all(self) -> list[RowT]:
        """All rows; an ``AnsweredRows``, which names the sites that are missing."""
        return await self._rows()

    @Operation
    async def first(self) -> RowT | None:
        """The first row, None when there is none."""
        rows = await self.limit(1)._rows()
        return rows[0] if rows else None

    @Operation
    async def one(self) -> RowT:
        """The only row; LookupError when there are none or several."""
        rows = await self.limit(2)._rows()
        if len(rows) != 1:
            raise LookupError(f"expected one row, got {'several' if rows else 'none'}")
        return rows[0]

    @Operation
    async def count(self) -> int:
        """The number of rows, counted by the cores."""
        answer = await self._client.document(self.request(columns="count(*) as n", sort=None))
        row = answer[0] if isinstance(answer, list) and answer else answer
        return int(row.get("n") or 0) if isinstance(row, dict) else 0

    @Stream
    async def pages(self, size: int = PAGE) -> AsyncGenerator[list[RowT], None]:
        """The rows in lists of ``size``, each asked for when it is wanted.

        Rows that come or go between two pages may be missing or twice; sort by a name.
        """
        limit = self._parameters.get("limit")
        start, most = int(self._parameters.get("offset", "0")), int(limit) if limit else None
        while most is None or most > 0:
            wanted = size if most is None else min(size, most)
            page = await self.offset(start).limit(wanted)._rows()
            if page:
                yield page
            if len(page) < wanted:
                return
            start += wanted
            most = None if most is None else most - wanted

    @Stream
    async def _each(self) -> AsyncGenerator[RowT, None]:
        rows = self._client.each(self.request("ndjson"))
        try:
            async for row in rows:
                yield row
        finally:
            await rows.aclose()

    def __iter__(self: RowQuery[RowT, Blocking]) -> Iterator[RowT]:
        """The rows one by one as they come, in one request that needs little memory (NDJSON)."""
        return iter(self._each())

    def __aiter__(self: RowQuery[RowT, Awaited]) -> AsyncIterator[RowT]:
        """The same with ``async for``."""
        return aiter(self._each())


def _joined(names: tuple[str | ColumnName, ...]) -> str:
    return ",".join(name.name if isinstance(name, ColumnName) else name for name in names)
