"""The common parts of all descriptions of the API: chapters, and the columns of collections."""

from __future__ import annotations

from collections.abc import Iterator

from monrest.api.endpoint import Endpoint
from monrest.base.values import Column
from monrest.query.column_names import PEER_COLUMNS, ColumnNames, TableSchema
from monrest.rows.columns import JOINED

COMMAND_CHAPTER = "External commands"

CHAPTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Collections", ("hosts", "services", "hostgroups", "servicegroups", "contacts",
                     "contactgroups", "commands", "timeperiods", "comments", "downtimes")),
    ("Object configuration", ("config",)),
    ("Log", ("events", "logs", "alerts", "notifications")),
    ("Cores and sites", ("checks", "processinfo", "sites", "lmd")),
    ("Instance", ("", "index", "openapi.json", "mon")),
    (COMMAND_CHAPTER, ()),
)  # fmt: skip
"""Titles with the first words of their paths, in the order of a page."""


def root_of(endpoint: Endpoint) -> str:
    """The first word of the path, empty for ``/``."""
    return endpoint.segments[0] if endpoint.segments else ""


def chapter_of(endpoint: Endpoint) -> str:
    """The title of the chapter; ValueError for a path that belongs to none."""
    named = endpoint.segments[-2:-1] == ("cmd",) and endpoint.variables[-1:] == ("command",)
    if named or endpoint.path == "/cmd":
        return COMMAND_CHAPTER
    root = root_of(endpoint)
    for title, roots in CHAPTERS:
        if root in roots:
            return title
    raise ValueError(f"no heading for {endpoint.path}")


def columns_of(schema: TableSchema) -> Iterator[tuple[Column, bool]]:
    """The columns of a collection, and whether each is part of an answer without ``columns``.

    Those of a joined collection are left out unless they are part of such an answer.
    """
    joined = JOINED.get(schema.name, ())
    for name, spec in sorted(schema.columns.items()):
        if spec.default or not any(name.startswith(join.prefix) for join in joined):
            yield spec.column, spec.default
    names = ColumnNames(schema)
    for name in PEER_COLUMNS:
        if source := names.find(name):
            yield source.column, True


def further_columns(schema: TableSchema) -> list[str]:
    """The further columns of a collection, each kind as a sentence in Markdown."""
    return [
        *(
            f"every column of {join.collection} as `{join.prefix}<column>`"
            for join in JOINED.get(schema.name, ())
        ),
        *(
            f"the values of `{source}` as `{prefix}<label>` and `{prefix}<label>_unit`, and as a "
            f"list of objects in `{prefix}perf_data_expanded`"
            for source, prefix in schema.perf
        ),
        *(f"the entries of `{source}` as `{prefix}<NAME>`" for source, prefix in schema.custom),
    ]
