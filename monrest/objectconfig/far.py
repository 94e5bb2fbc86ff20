"""The object configuration of sites of other instances, which is kept there.

The other side stages, saves, checks and reloads for the same user; it is asked under the same path
and says for each of its objects what we say for ours, with our names of the site.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import define, field

from monrest.api.endpoint import Context
from monrest.api.forward import Listed, changed, far_sites, listed
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Column, Parameters, RestRequest
from monrest.objectconfig.object_rows import COLUMNS
from monrest.objectconfig.parameters import OF_REQUEST, REFRESH, note, selected_sites
from monrest.objectconfig.site_commands import FORCE
from monrest.query.bind import TYPO
from monrest.query.scan import printable
from monrest.sites.federation.site import FederatedSite
from monrest.sites.site import Site

_PUSHED = (":ID", ":TYPE")
"""Filters that the other side can apply, because every object has these keys."""
_PEER = ":PEER_"


def far_tools(context: Context, request: RestRequest) -> tuple[FederatedSite, ...]:
    """The selected sites of other instances."""
    return far_sites(selected_sites(context, request))


# -------------------------------------------------------------------- lists


async def far_objects(context: Context, request: RestRequest, *, alone: bool) -> Listed:
    """The objects of these sites, with the ids and names that the sites have here."""
    pushed = tuple(
        (name, value)
        for name, value in request.parameters
        if name == REFRESH.name or name.partition("[")[0] in _PUSHED
    )
    return await far_rows(context, request, pushed, alone=alone)


async def far_rows(
    context: Context, request: RestRequest, parameters: Parameters, *, alone: bool
) -> Listed:
    """The rows under the request's path of these sites."""
    sites = selected_sites(context, request)
    return await listed(context, request, sites, parameters, alone=alone)


def named_here(found: Listed) -> list[dict[str, Any]]:
    """The objects with the id and name of their site in the place of those of the other side."""
    return [_named(site, record) for site, record in found.records]


def whole(found: Listed, columns: Iterable[Column]) -> list[dict[str, Any]]:
    """The same with every one of these keys, which all rows have here."""
    keys = [column.name for column in columns]
    return [{**dict.fromkeys(keys), **record} for record in named_here(found)]


def objects_of(site: FederatedSite, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that the other side has made, as they are named here."""
    told = answer.get("objects")
    made = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    found = Listed(records=tuple((site, one) for one in made))
    return whole(found, COLUMNS)


def _named(site: Site, record: dict[str, Any]) -> dict[str, Any]:
    for key, value in (("PEER_KEY", site.id), ("PEER_NAME", site.name)):
        if f":{key}" in record:
            record[f":{key}"] = value
        elif key.lower() in record:
            record[key.lower()] = value
    return record


# -------------------------------------------------------------------- changes


async def far_change(
    context: Context, request: RestRequest, sites: Sequence[FederatedSite], *, filters: bool
) -> list[tuple[FederatedSite, dict[str, Any]]]:
    """Send a change of objects to these sites, one after the other, and give what they say.

    ``filters``: the query string chooses the objects. The first site that refuses ends it. Names
    that one site does not know are no typing errors if another one knows them.
    """
    if sites and filters and request.method in ("PATCH", "DELETE"):
        _check_body(request, sites[0])
    done: list[tuple[FederatedSite, dict[str, Any]]] = []
    unknown: RestError | None = None
    for site in sites:
        query = _query(request, site) if filters else _options(request.query)
        if query is None:
            continue
        try:
            answer = await far_post(context, request, site, query)
        except RestError as error:
            if filters and error.message == TYPO:
                unknown = error
                continue
            if done:
                names = ", ".join(one.name for one, _ in done)
                error.description = f"{error.description}; it was done on {names}"
            raise
        done.append((site, answer))
    if unknown is not None and not done:
        raise unknown
    return done


async def far_post(
    context: Context, request: RestRequest, site: FederatedSite, query: Parameters = ()
) -> dict[str, Any]:
    """Send the request with its body to one site; the object that the other side answers."""
    answer = await changed(
        site,
        request,
        context.config.server.longest_wait,
        query=query,
        body=_body(request.document),
        form=tuple(pair for pair in request.form if _goes(pair[0])),
    )
    return answer if isinstance(answer, dict) else {"answer": answer}


def count_of(answer: dict[str, Any]) -> int:
    """How many objects or sites the other side says."""
    count = answer.get("count")
    return count if isinstance(count, int) else 0


def texts(value: Any) -> list[str]:
    """A list of texts, whatever the other side sent."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _goes(name: str) -> bool:
    return name not in OF_REQUEST or name == REFRESH.name


def _body(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if _goes(name)}
    return value


def _options(pairs: Parameters) -> Parameters:
    return tuple(pair for pair in pairs if _goes(pair[0]))


def _query(request: RestRequest, site: FederatedSite) -> Parameters | None:
    """The filters for one site; None when they mean other sites.

    Sites have other ids on the other side, so a filter on them is applied here. Raise BadRequest
    for one that is more than an id.
    """
    kept: list[tuple[str, str]] = []
    for name, value in _options(request.query):
        if name == ":PEER_KEY":
            if value.lower() != site.id.lower():
                return None
        elif _about_sites(name, value):
            raise _not_there(name, site)
        else:
            kept.append((name, value))
    return tuple(kept)


def _check_body(request: RestRequest, site: Site) -> None:
    """Raise BadRequest for filters on sites in the body, which goes on as it is."""
    document = request.document if isinstance(request.document, dict) else {}
    for name, value in (*request.form, *document.items()):
        if _about_sites(name, value):
            raise _not_there(name, site)


def _about_sites(name: str, value: Any) -> bool:
    """Whether a filter may look at the id or name of a site, which are others on the other side."""
    return _PEER in name or (name == "q" and _PEER in str(value))


def _not_there(name: str, site: Site) -> BadRequest:
    return BadRequest(
        "bad request",
        f"{printable(name)}: expected :PEER_KEY=<id> in the query string, backends or a site in "
        f"the path, because {site.name} is a site of another instance",
    )


# -------------------------------------------------------------------- whole sites


async def far_results(
    context: Context, request: RestRequest, site: FederatedSite, action: str
) -> list[dict[str, Any]]:
    """Check or reload a site; what went wrong is its result. None without a configuration."""
    options = tuple(pair for pair in request.query if pair[0] == FORCE.name)
    try:
        answer = await far_post(context, request, site, options)
    except RestError as error:
        result: dict[str, Any] = {"failed": True, "output": str(error)}
    else:
        rows = answer.get("answer")
        row = rows[0] if isinstance(rows, list) and rows else None
        if not isinstance(row, dict):
            return []
        result = {"failed": bool(row.get("failed")), "output": str(row.get("output"))}
    note(request, action, target=site.id, result="failed" if result["failed"] else "ok")
    return [{"peer_key": site.id, **result}]


@define(eq=False)
class Saves:
    """What saves of several sites came to; ``refused`` are those that wrote nothing at all."""

    count: int = 0
    refused: list[RestError] = field(factory=list)
    errors: list[dict[str, str]] = field(factory=list)
    warnings: list[str] = field(factory=list)

    def refuse(self, request: RestRequest, site: Site, error: RestError) -> None:
        """Take down, also in the audit log, that a site refused."""
        self.refused.append(error)
        self.errors.append({"peer_key": site.id, "message": str(error)})
        note(request, "save", target=site.id, result=error.message, error=error.description)


async def far_saves(
    context: Context, request: RestRequest, sites: Iterable[FederatedSite], saves: Saves
) -> None:
    """Save on these sites and add what came of it."""
    for site in sites:
        try:
            answer = await far_post(context, request, site)
        except RestError as error:
            saves.refuse(request, site, error)
            continue
        told = answer.get("errors")
        for one in told if isinstance(told, list) else ():
            message = str(one.get("message")) if isinstance(one, dict) else "failed"
            saves.errors.append({"peer_key": site.id, "message": message})
        saves.warnings += texts(answer.get("warnings"))
        saves.count += count_of(answer)
        note(request, "save", target=site.id, count=count_of(answer))
