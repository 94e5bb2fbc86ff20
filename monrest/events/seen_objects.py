"""Rows of hosts and services as somebody sees them, for whoever judges events."""

from __future__ import annotations

from collections.abc import Sequence

from monrest.api.endpoint import Context
from monrest.base.errors import SitesFailed
from monrest.base.values import Identity, RestRequest, Row, Rows
from monrest.query.column_names import TableSchema
from monrest.query.model import FilterTree
from monrest.rows.fetch import fetch


async def rows_of_objects(
    context: Context,
    who: Identity,
    sites: tuple[str, ...],
    schema: TableSchema,
    columns: Sequence[str],
    conditions: tuple[FilterTree, ...],
) -> tuple[list[Row], frozenset[str]]:
    """The rows of some sites, and the sites that did not answer.

    ``context`` has the sites that exist for ``who``. Raise BadRequest for conditions on what the
    objects do not have.
    """
    request = RestRequest(
        method="GET",
        path=f"/{schema.name}",
        segments=(schema.name,),
        parameters=(("columns", ",".join(columns)),),
        sites=sites,
        identity=who,
    )
    try:
        answer = await fetch(context, request, schema, extra=conditions)
    except SitesFailed as error:
        return [], frozenset(problem.site for problem in error.problems)
    assert isinstance(answer, Rows)
    return list(answer.once()), frozenset(problem.site for problem in answer.failed_sites)
