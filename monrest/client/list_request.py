"""A list of the API with filters, columns, order and bounds, as an immutable value. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from typing import Any, Generic, Self, TypeVar

from monrest.client.clauses import Clause, ColumnName
from monrest.client.operations import Ask, query_of

RowT = TypeVar("RowT")

DEFAULT = "unix:/run/monrest/monrest.sock"
"""Where a daemon listens by its example configuration."""

PAGE = 1000
"""Rows of a page."""


def from_variables(more: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a client by the environment; ``more`` win."""
    named = {name: os.environ.get(f"MONREST_{name.upper()}", "") for name in ("key", "user")}
    return {"url": os.environ.get("MONREST_URL") or DEFAULT, **named, **more}


class ListRequest(Generic[RowT]):
    """Each method gives a new selection; nothing is asked before the rows are wanted."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._clause: Clause | None = None
        self._parameters: dict[str, str] = {}
        self._sites: tuple[str, ...] = ()

    def _with(self, **parameters: str) -> Self:
        made = copy(self)
        made._parameters = {**self._parameters, **parameters}
        return made

    def filter(self, clause: Clause | None) -> Self:
        """Rows for which this holds as well."""
        if clause is None:
            return self
        made = copy(self)
        made._clause = clause if self._clause is None else self._clause & clause
        return made

    def columns(self, *names: str | ColumnName) -> Self:
        """Rows with these columns only; also functions and renames, as ``count(*) as n``."""
        return self._with(columns=",".join(map(_name, names)))

    def sort(self, *names: str | ColumnName) -> Self:
        """Sorted by these columns, descending with ``-`` in front."""
        return self._with(sort=",".join(map(_name, names)))

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
        made = copy(self)
        made._sites = sites
        return made

    def ask(self, prefix: str = "", **more: str | None) -> Ask:
        """The request; ValueError for a condition that the query language cannot say."""
        parameters = {**self._parameters, **more}
        if self._clause is not None:
            parameters["q"] = self._clause.text()
        query = query_of(parameters)
        return Ask(self._path, query=query, prefix=prefix, sites=self._sites)

    @property
    def _bounds(self) -> tuple[int, int | None]:
        """Where the rows begin, and how many there are at most."""
        limit = self._parameters.get("limit")
        return int(self._parameters.get("offset", "0")), None if limit is None else int(limit)


def _name(one: str | ColumnName) -> str:
    return one.name if isinstance(one, ColumnName) else one
