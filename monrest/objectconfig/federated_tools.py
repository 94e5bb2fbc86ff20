"""The object configuration of sites of another instance, which that one keeps.

A request is sent to the same path below the site on the other side, in the name of the user; what
comes back is joined with the answers of the sites here (docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from attrs import evolve, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import Context
from monrest.base.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    RestError,
    TooLarge,
    all_sites_failed,
)
from monrest.base.values import Column, Parameters, RestRequest, SiteProblem
from monrest.livestatus.core_errors import ConnectError, LivestatusError, first_line
from monrest.objectconfig.object_rows import COLUMNS
from monrest.objectconfig.parameters import OF_REQUEST, REFRESH
from monrest.query.bind import TYPO
from monrest.query.scan import printable
from monrest.sites.federation.answers import Record, document, records
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.federation.remote import FORM, JSON, PartialBody, RefusedByRemoteError
from monrest.sites.site import Site

_SAME: dict[int, type[RestError]] = {
    kind.code: kind for kind in (BadRequest, Forbidden, NotFound, Conflict, TooLarge)
}
_CHANGED_MAYBE = "it is not known whether it was done"
_PUSHED = (":ID", ":TYPE")
"""Filters that the other side can apply, because every object has these keys."""

_PEER = ":PEER_"


@frozen(kw_only=True)
class FederatedRows:
    """What sites of other instances list, named as here, and the sites that failed."""

    rows: tuple[Record, ...] = ()
    problems: tuple[SiteProblem, ...] = ()


@frozen(kw_only=True)
class FederatedTools:
    """The selected sites of other instances, asked in the name of the request's user."""

    context: Context
    request: RestRequest
    sites: tuple[FederatedSite, ...]

    def check_reachable(self) -> None:
        """Raise SitesFailed when one of them is known to be down: nothing is begun then."""
        problems = [
            site.problem(site.breaker.error)
            for site in self.sites
            if site.breaker.error is not None
        ]
        if problems:
            raise all_sites_failed(problems)

    async def objects(self, columns: Iterable[Column], *, alone: bool) -> FederatedRows:
        """Their objects, with every one of these keys, which all rows have here."""
        pushed = tuple(
            (name, value)
            for name, value in self.request.parameters
            if name == REFRESH.name or name.partition("[")[0] in _PUSHED
        )
        listed = await self.rows(pushed, alone=alone)
        keys = dict.fromkeys(column.name for column in columns)
        return evolve(listed, rows=tuple({**keys, **row} for row in listed.rows))

    async def rows(self, parameters: Parameters, *, alone: bool) -> FederatedRows:
        """Ask all at once for the list under the request's path.

        ``alone``: no other site answers, so that it is an error when all of them fail. What the
        other side refuses as a bad request is one here.
        """
        asked = [Deferred.fromCoroutine(self._list(site, parameters)) for site in self.sites]
        rows: list[Record] = []
        problems: list[SiteProblem] = []
        failed: list[SiteProblem] = []
        refused: list[RestError] = []
        for site, (_, outcome) in zip(
            self.sites, await DeferredList(asked, consumeErrors=True), strict=True
        ):
            if not isinstance(outcome, Failure):
                whole, mine = outcome
                rows += [_named(site, record) for record in mine]
                if not whole:
                    problems.append(site.incomplete())
            elif isinstance(outcome.value, LivestatusError):
                failed.append(site.problem(outcome.value))
                problems.append(failed[-1])
                if isinstance(outcome.value, RefusedByRemoteError):
                    refused.append(_refusal(site, outcome.value))
            else:
                outcome.raiseException()
        if alone and failed and len(failed) == len(self.sites):
            if len(refused) == len(self.sites):
                raise refused[0]
            raise all_sites_failed(failed)
        return FederatedRows(rows=tuple(rows), problems=tuple(problems))

    async def _list(self, site: FederatedSite, parameters: Parameters) -> tuple[bool, list[Record]]:
        """Whether the list is whole, and the list."""
        await site.verdict()
        body = await site.call("GET", self._path(parameters), site.config.timeout)
        return not isinstance(body, PartialBody), await records(body, self.context.memory.threads)

    async def change(self, *, filters: bool) -> list[tuple[FederatedSite, dict[str, Any]]]:
        """Send a change of objects to them, one after the other, and return their answers.

        ``filters``: the query string chooses the objects. The first site that refuses ends it.
        Names that one site does not know are no typing errors if another one knows them.
        """
        request = self.request
        if self.sites and filters and request.method in ("PATCH", "DELETE"):
            _check_body(request, self.sites[0])
        done: list[tuple[FederatedSite, dict[str, Any]]] = []
        unknown: RestError | None = None
        for site in self.sites:
            query = _query(request, site) if filters else _options(request.query)
            if query is None:
                continue
            try:
                answer = await self.send(site, query)
            except RestError as error:
                if filters and error.message == TYPO:
                    unknown = error
                    continue
                if done:
                    names = ", ".join(site.name for site, _ in done)
                    error.description = f"{error.description}; it was done on {names}"
                raise
            done.append((site, answer))
        if unknown is not None and not done:
            raise unknown
        return done

    async def send(self, site: FederatedSite, query: Parameters = ()) -> dict[str, Any]:
        """Send the request with its body to one of them, once, and return its answer.

        Raise what it refuses as the same error, SitesFailed and SitesTimedOut for the rest.
        """
        sent, kind = _body(self.request)
        seconds = self.context.config.server.longest_wait
        reached = False
        try:
            await site.verdict()
            reached = True
            path = self._path(query)
            answer = document(
                await site.call(self.request.method, path, seconds, sent, kind, reads=False)
            )
        except RefusedByRemoteError as error:
            raise _refusal(site, error) from error
        except LivestatusError as error:
            problem = site.problem(error)
            if reached and not isinstance(error, ConnectError):
                reason = f"{problem.reason}: {_CHANGED_MAYBE}"
                problem = SiteProblem(problem.site, problem.name, reason, problem.timed_out)
            raise all_sites_failed((problem,)) from error
        return answer if isinstance(answer, dict) else {"answer": answer}

    def _path(self, query: Parameters) -> str:
        path = quote(self.request.path, safe="/%:@!$&'()*+,;=~-._")
        asked = urlencode(query, quote_via=quote)
        return f"{path}{'?' if asked else ''}{asked}"


def count_of(answer: dict[str, Any]) -> int:
    """The number of objects or sites in an answer of the other side."""
    count = answer.get("count")
    return count if isinstance(count, int) else 0


def strings_of(value: Any) -> list[str]:
    """The texts of a list, nothing for any other value that the other side sent."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def objects_of(site: FederatedSite, answer: dict[str, Any]) -> list[Record]:
    """The objects that the other side has made, as they are named here."""
    objects = answer.get("objects")
    rows = (
        [record for record in objects if isinstance(record, dict)]
        if isinstance(objects, list)
        else []
    )
    keys = dict.fromkeys(column.name for column in COLUMNS)
    return [{**keys, **_named(site, row)} for row in rows]


def _named(site: Site, record: Record) -> Record:
    """A row with the id and name of its site in the place of those of the other side."""
    for key, value in (("PEER_KEY", site.id), ("PEER_NAME", site.name)):
        if f":{key}" in record:
            record[f":{key}"] = value
        elif key.lower() in record:
            record[key.lower()] = value
    return record


def _refusal(site: FederatedSite, error: RefusedByRemoteError) -> RestError:
    """The refusal of the other side as an error here, with the name of the site."""
    kind = _SAME.get(error.status)
    if kind is None:
        return all_sites_failed((site.problem(error),))
    words = [error.document.get(name) for name in ("message", "description")]
    message, description = (
        site.public_reason(first_line(word)) if isinstance(word, str) else "" for word in words
    )
    text = error.document.get("help")
    extra = {"help": text} if isinstance(text, str) else {}
    return kind(message or "refused", f"{site.name}: {description}".rstrip(": "), extra=extra)


def _body(request: RestRequest) -> tuple[bytes | None, str]:
    """The body of a request for another instance, and its type."""
    form = _options(request.form)
    if form:
        return urlencode(form, quote_via=quote).encode(), FORM
    value = request.document
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if _goes(name)}
    return None if value is None else orjson.dumps(value), JSON


def _goes(name: str) -> bool:
    return name not in OF_REQUEST or name == REFRESH.name


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
    """Raise BadRequest for filters on sites in the body, which is sent on unchanged."""
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
