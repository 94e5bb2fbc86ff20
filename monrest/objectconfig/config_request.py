"""A request on the object configuration: its parameters, its user, the sites here and elsewhere.

Parameters without effect are refused, since a filter that is not understood would extend a change
or a removal to more objects (docs/spec/objectconfig.md, "What a change is for").

Sites of another instance are configured there: the request is sent to the same path below the site
on the other side, in the name of the user, and what comes back is joined with the answers of the
sites here (docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from attrs import evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api import csrf
from monrest.api.csrf import PARAMETERS as TOKENS
from monrest.api.csrf import SAFE
from monrest.api.endpoint import Context
from monrest.api.fields import Flag, collected, named_in
from monrest.api.rights import require_change
from monrest.base.audit import audit
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
from monrest.objectconfig.model import ConfigSite, UnreadableError
from monrest.objectconfig.object_rows import COLUMNS
from monrest.objectconfig.service import PersonalView, Staging
from monrest.query.bind import TYPO
from monrest.query.parse import RESERVED, parse_parameter, parse_query
from monrest.query.q import EVERYTHING, parse_q
from monrest.query.scan import printable
from monrest.sites.federation.answers import Record, document, records
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.federation.remote import FORM, JSON, PartialBody, RefusedByRemoteError
from monrest.sites.site import Site

REFRESH = Flag(
    "refreshdata",
    "1: drop your own changes in files that were changed on disk as well",
)

EVERY = Flag("all", "1: without any filter all objects are meant, however many there are")

OF_REQUEST = frozenset(
    {*TOKENS, "backend", "backends", "background", "headers", "logcache", "pretty", REFRESH.name}
)
"""Parameters for the form of an answer, in the query string or in a body; never attributes."""

_OF_LISTS = frozenset({"columns", "limit", "offset", "q", "sort"})


def without(parameters: Parameters, *names: str) -> Parameters:
    """Take options out of the parameters of a list, so that they are no filters."""
    return tuple(pair for pair in parameters if pair[0] not in names)


def no_conditions(request: RestRequest, *options: str) -> None:
    """Raise BadRequest for filters in a request for whole sites.

    ``columns`` and these ``options`` are allowed.
    """
    if isinstance(request.document, list):
        raise BadRequest("bad request", "request body: expected none")
    for name, _ in request.parameters:
        if name not in OF_REQUEST and name not in ("columns", *options):
            raise BadRequest("unknown parameter", f"{printable(name)}: expected no filters here")
    parse_query(without(request.parameters, *OF_REQUEST, *options))


def attributes(request: RestRequest, *, query: bool = False) -> dict[str, Any]:
    """The attributes of a body as they were sent, JSON values as such; ``query``: in the query too.

    Raise BadRequest for a list and for parameters of lists.
    """
    given: dict[str, Any] = collected(request.query) if query else {}
    if isinstance(request.document, dict):
        given |= request.document
    elif request.document is not None:
        raise BadRequest(
            "failed to parse json data argument", "request body: expected a JSON object {…}"
        )
    given |= collected(request.form)
    for name in given:
        if name in _OF_LISTS:
            raise BadRequest(
                "bad request", f"{name}: expected attributes in the body, filters in the query"
            )
    return {name: value for name, value in given.items() if name not in OF_REQUEST}


def no_filters(request: RestRequest) -> None:
    """Raise BadRequest for parameters in the query string of a change of one object."""
    for name, _ in request.query:
        if name not in OF_REQUEST:
            raise BadRequest(
                "bad request",
                f"{printable(name)}: expected no filters, because the path names the object, and "
                "attributes in the body",
            )


def no_body(request: RestRequest) -> None:
    """Raise BadRequest for a body with attributes of objects."""
    if attributes(request) or _unread(request):
        raise BadRequest("bad request", "request body: expected none")


def change_filters(request: RestRequest) -> Parameters:
    """The filters of a change: the query string, and the keys of the body with a colon."""
    _whole(request)
    given = request.document if isinstance(request.document, dict) else {}
    pairs = [(name, _text(name, value)) for name, value in given.items() if name.startswith(":")]
    pairs += [(name, value) for name, value in request.form if name.startswith(":")]
    return _filters((*request.query, *pairs))


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, (str, int)):
        raise BadRequest("bad request", f"{printable(name)}: expected a text, for it is a filter")
    return str(value)


def removal_filters(request: RestRequest) -> Parameters:
    """The filters of a removal, from the query string or from a body.

    A body that has no filter is refused, since one was meant.
    """
    _whole(request)
    pairs = (*request.query, *request.form)
    if request.document is not None:
        given = attributes(request)
        if not request.document or any(value in (None, []) for value in given.values()):
            raise BadRequest("bad request", "request body: expected filters with values")
        pairs = (*pairs, *(pair for pair in request.parameters if pair[0] in given))
    elif _unread(request):
        raise BadRequest("bad request", "request body: expected filters as a form or JSON object")
    return _filters(dict.fromkeys(pairs))


def _whole(request: RestRequest) -> None:
    """Raise BadRequest for a path with nothing after its last slash: an id was meant."""
    if request.slashed:
        raise BadRequest("bad request", f"{request.path}/: expected an id after the slash, or none")


def _unread(request: RestRequest) -> bool:
    """Whether a body came that was not read, because of its content type."""
    headers = request.caller.headers
    length = headers.get("content-length", "0").strip()
    came = length not in ("", "0") or "transfer-encoding" in headers
    return came and not request.form and request.document is None


def _filters(pairs: Iterable[tuple[str, str]]) -> Parameters:
    """The parameters that are filters; BadRequest for one that would not narrow the list."""
    kept = tuple(pair for pair in pairs if pair[0] not in OF_REQUEST and pair[0] != EVERY.name)
    for name, value in kept:
        if name == "q":
            if parse_q(value) == EVERYTHING:
                raise BadRequest("bad request", "q: expected a condition")
        elif name in RESERVED:
            raise BadRequest("bad request", f"{name}: expected filters only, this is none")
        elif (condition := parse_parameter(name, value)) is None:
            raise BadRequest("bad request", "query: expected a name in front of every =")
        elif condition.op in ("~", "~~") and not condition.value.strip():
            raise BadRequest("bad request", f"{printable(name)}: expected a pattern, not nothing")
    return kept


_ERRORS_BY_STATUS: dict[int, type[RestError]] = {
    kind.code: kind for kind in (BadRequest, Forbidden, NotFound, Conflict, TooLarge)
}
_UNCERTAIN = "it is not known whether it was done"
_PUSHED = (":ID", ":TYPE")
"""Filters that the other side can apply, because every object has these keys."""

_PEER = ":PEER_"


@frozen(kw_only=True)
class FederatedRows:
    """The rows of sites of other instances, named as here, and the sites that failed."""

    rows: tuple[Record, ...] = ()
    problems: tuple[SiteProblem, ...] = ()


def count_of(answer: dict[str, Any]) -> int:
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
    kind = _ERRORS_BY_STATUS.get(error.status)
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
    form = _options(request.form)
    if form:
        return urlencode(form, quote_via=quote).encode(), FORM
    value = request.document
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if _is_forwarded(name)}
    return None if value is None else orjson.dumps(value), JSON


def _is_forwarded(name: str) -> bool:
    return name not in OF_REQUEST or name == REFRESH.name


def _options(pairs: Parameters) -> Parameters:
    return tuple(pair for pair in pairs if _is_forwarded(pair[0]))


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
            raise _site_filter_error(name, site)
        else:
            kept.append((name, value))
    return tuple(kept)


def _check_body(request: RestRequest, site: Site) -> None:
    """Raise BadRequest for filters on sites in the body, which is sent on unchanged."""
    document = request.document if isinstance(request.document, dict) else {}
    for name, value in (*request.form, *document.items()):
        if _about_sites(name, value):
            raise _site_filter_error(name, site)


def _about_sites(name: str, value: Any) -> bool:
    """Whether a filter may use the id or name of a site, which differ on the other side."""
    return _PEER in name or (name == "q" and _PEER in str(value))


def _site_filter_error(name: str, site: Site) -> BadRequest:
    return BadRequest(
        "bad request",
        f"{printable(name)}: expected :PEER_KEY=<id> in the query string, backends or a site in "
        f"the path, because {site.name} is a site of another instance",
    )


MOST_NAMED = 20
"""Objects that an audit line names."""


@frozen(kw_only=True)
class Tool:
    """A selected site with its object configuration, as the user sees it."""

    site: Site
    config: ConfigSite
    view: PersonalView = field(repr=False)


@frozen(kw_only=True)
class ConfigRequest:
    """``sites`` have an object configuration here, those of ``far`` at another instance."""

    staging: Staging
    context: Context
    request: RestRequest
    sites: tuple[Site, ...]
    far: tuple[FederatedSite, ...]

    @classmethod
    def of(cls, staging: Staging, context: Context, request: RestRequest) -> ConfigRequest:
        """Select the sites; those without an object configuration are left out.

        Raises BadRequest for unknown sites and for an Icinga 2, whose files are in another
        language.
        """
        selected = context.sites.select(request.sites or named_in(request.parameters))
        sites = tuple(site for site in selected if context.config.tool_of(site.config) is not None)
        for site in sites:
            if site.capabilities is not None and site.capabilities.icinga2:
                raise _icinga2(
                    site,
                    "expected a core with Nagios object files; take the configtool section away "
                    "or select other sites",
                )
        federated = tuple(site for site in selected if isinstance(site, FederatedSite))
        return cls(staging=staging, context=context, request=request, sites=sites, far=federated)

    @property
    def user(self) -> str:
        """The owner of the stash: the user, or a common name for keys without a user."""
        return self.request.identity.user or "(system)"

    def config_site(self, site: Site) -> ConfigSite:
        """The site as staging knows it; it must have an object configuration."""
        tool = self.context.config.tool_of(site.config)
        assert tool is not None
        return ConfigSite(id=site.id, name=site.name, tool=tool)

    async def tools(self) -> list[Tool]:
        """All sites here as the user sees them. Raises UnreadableError if one cannot be read."""
        tools, unreadable = await self._read()
        for _, error in unreadable:
            raise error
        return tools

    async def readable_tools(self) -> tuple[list[Tool], list[SiteProblem]]:
        """The sites that can be read, and the others; UnreadableError if no site answers at all."""
        tools, unreadable = await self._read()
        if unreadable and not tools and not self.far:
            raise unreadable[0][1]
        return tools, [SiteProblem(site.id, site.name, error.message) for site, error in unreadable]

    async def _read(self) -> tuple[list[Tool], list[tuple[Site, UnreadableError]]]:
        """Read one site after the other.

        With ``refreshdata=1`` the user's changes in files with conflicts are dropped before. Raises
        BadRequest for a site whose files are in another language.
        """
        refresh = REFRESH.asked(self.request.parameters)
        if refresh:
            await self._check_refresh()
        tools: list[Tool] = []
        unreadable: list[tuple[Site, UnreadableError]] = []
        for site in self.sites:
            config = self.config_site(site)
            try:
                if refresh and (dropped := await self.staging.refresh(config, self.user)):
                    self.note("refresh", target=site.id, files=dropped)
                view = await self.staging.view(config, self.user)
            except UnreadableError as error:
                unreadable.append((site, error))
                continue
            if view.model.files.foreign:
                raise _icinga2(site, view.model.files.foreign)
            tools.append(Tool(site=site, config=config, view=view))
        return tools, unreadable

    async def _check_refresh(self) -> None:
        """Dropping changes is a change, also by a GET: no page of another site may cause it."""
        request, context = self.request, self.context
        await require_change(request, context.contacts, context.config)
        if request.method in SAFE:
            headers = request.caller.headers
            csrf.check(request.identity, "POST", request.parameters, headers, context.names)

    def check_reachable(self) -> None:
        """Raise SitesFailed while a site of another instance is down: nothing is begun then."""
        problems = [
            site.problem(site.breaker.error) for site in self.far if site.breaker.error is not None
        ]
        if problems:
            raise all_sites_failed(problems)

    async def far_objects(self, columns: Iterable[Column], *, alone: bool) -> FederatedRows:
        """Objects of sites of other instances, with each of these keys as all rows have."""
        pushed = tuple(
            (name, value)
            for name, value in self.request.parameters
            if name == REFRESH.name or name.partition("[")[0] in _PUSHED
        )
        listed = await self.far_rows(pushed, alone=alone)
        keys = dict.fromkeys(column.name for column in columns)
        return evolve(listed, rows=tuple({**keys, **row} for row in listed.rows))

    async def far_rows(self, parameters: Parameters, *, alone: bool) -> FederatedRows:
        """Ask the sites of other instances at once for the list under the request's path.

        ``alone``: no other site answers, so that it is an error when all of them fail. What the
        other side refuses as a bad request is one here.
        """
        asked = [Deferred.fromCoroutine(self._far_list(site, parameters)) for site in self.far]
        rows: list[Record] = []
        problems: list[SiteProblem] = []
        failed: list[SiteProblem] = []
        refused: list[RestError] = []
        for site, (_, outcome) in zip(
            self.far, await DeferredList(asked, consumeErrors=True), strict=True
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
        if alone and failed and len(failed) == len(self.far):
            if len(refused) == len(self.far):
                raise refused[0]
            raise all_sites_failed(failed)
        return FederatedRows(rows=tuple(rows), problems=tuple(problems))

    async def _far_list(
        self, site: FederatedSite, parameters: Parameters
    ) -> tuple[bool, list[Record]]:
        """Whether the list is whole, and the list."""
        await site.verdict()
        body = await site.call("GET", self._path(parameters), site.config.timeout)
        return not isinstance(body, PartialBody), await records(body, self.context.memory.threads)

    async def change_far(self, *, filters: bool) -> list[tuple[FederatedSite, dict[str, Any]]]:
        """Send a change of objects to sites of other instances in turn, and return their answers.

        ``filters``: the query string chooses the objects. The first site that refuses ends it.
        Names that one site does not know are no typing errors if another one knows them.
        """
        request = self.request
        if self.far and filters and request.method in ("PATCH", "DELETE"):
            _check_body(request, self.far[0])
        done: list[tuple[FederatedSite, dict[str, Any]]] = []
        unknown: RestError | None = None
        for site in self.far:
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
        """Send the request with its body to one of those sites, once, and return its answer.

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
                reason = f"{problem.reason}: {_UNCERTAIN}"
                problem = SiteProblem(problem.site, problem.name, reason, problem.timed_out)
            raise all_sites_failed((problem,)) from error
        return answer if isinstance(answer, dict) else {"answer": answer}

    def _path(self, query: Parameters) -> str:
        path = quote(self.request.path, safe="/%:@!$&'()*+,;=~-._")
        asked = urlencode(query, quote_via=quote)
        return f"{path}{'?' if asked else ''}{asked}"

    def note(self, action: str, *, target: str = "", result: str = "ok", **more: Any) -> None:
        """Write an audit line; ``action`` is what follows ``config``."""
        identity, caller = self.request.identity, self.request.caller
        audit(identity, caller, f"config {action}", target=target, result=result, **more)

    def note_failure(self, action: str, error: RestError) -> None:
        target = ",".join(site.id for site in (*self.sites, *self.far))
        self.note(action, target=target, result=error.message, error=error.description)


def _icinga2(site: Site, reason: str) -> BadRequest:
    return BadRequest(
        "object configuration is not available for Icinga 2", f"{site.name}: {reason}"
    )


def named(records: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Objects for an audit line: type, file and id of each."""
    return tuple(f"{record[':TYPE']} {record[':FILE']} {record[':ID']}" for record in records)
