"""Requests that sites of another instance answer there (docs/spec/sites.md, "Federation").

What is not a question to a core is sent to the same path below the site on the other side, in the
name of the asker; what comes back is joined with what is said here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from attrs import frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import Context
from monrest.base.concurrency import sliced
from monrest.base.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    RestError,
    TooLarge,
    all_sites_failed,
)
from monrest.base.values import Parameters, RestRequest, SiteProblem
from monrest.livestatus.core_errors import ConnectError, LivestatusError, first_line
from monrest.sites.federation.answers import Record, document, records
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.federation.remote import FORM, JSON, PartialBody, RefusedByRemoteError
from monrest.sites.site import Site

_SAME: dict[int, type[RestError]] = {
    one.code: one for one in (BadRequest, Forbidden, NotFound, Conflict, TooLarge)
}
_CHANGED_MAYBE = "it is not known whether it was done"


@frozen(kw_only=True)
class Listed:
    """The objects that sites of other instances list, with the sites that could not say."""

    records: tuple[tuple[FederatedSite, Record], ...] = ()
    problems: tuple[SiteProblem, ...] = ()


def far_sites(sites: Sequence[Site]) -> tuple[FederatedSite, ...]:
    """Those of the sites that are another instance's."""
    return tuple(site for site in sites if isinstance(site, FederatedSite))


async def listed(
    context: Context,
    request: RestRequest,
    sites: Sequence[Site],
    parameters: Parameters,
    *,
    alone: bool,
) -> Listed:
    """Ask the federated ones of ``sites``, all at once, for the list under the request's path.

    ``alone``: no other site answers, so that it is an error when all of them fail. What the other
    side refuses as a bad request is one here.
    """
    far = far_sites(sites)
    waiting = [Deferred.fromCoroutine(_list(context, request, site, parameters)) for site in far]
    found: list[tuple[FederatedSite, Record]] = []
    problems: list[SiteProblem] = []
    failed: list[SiteProblem] = []
    refused: list[RestError] = []
    for site, (_, outcome) in zip(
        far, await DeferredList(waiting, consumeErrors=True), strict=True
    ):
        if not isinstance(outcome, Failure):
            whole, mine = outcome
            found += [(site, record) for record in mine]
            if not whole:
                problems.append(site.incomplete())
        elif isinstance(outcome.value, LivestatusError):
            failed.append(site.problem(outcome.value))
            problems.append(failed[-1])
            if isinstance(outcome.value, RefusedByRemoteError):
                refused.append(error_of(site, outcome.value))
        else:
            outcome.raiseException()
    if alone and failed and len(failed) == len(far):
        if len(refused) == len(far):
            raise refused[0]
        raise all_sites_failed(failed)
    return Listed(records=tuple(found), problems=tuple(problems))


async def _list(
    context: Context, request: RestRequest, site: FederatedSite, parameters: Parameters
) -> tuple[bool, list[Record]]:
    """Whether the list is whole, and the list."""
    await site.verdict()
    query = urlencode(parameters, quote_via=quote)
    path = f"{_path(request)}{'?' if query else ''}{query}"
    body = await site.call("GET", path, site.config.timeout)
    return not isinstance(body, PartialBody), await sliced(records(body), context.clock)


async def changed(
    site: FederatedSite,
    request: RestRequest,
    seconds: float,
    *,
    query: Parameters = (),
    body: Any = None,
    form: Parameters = (),
) -> Any:
    """Send a change to the request's path at a site, once, and give what the other side says.

    Raise what it refuses as the same error, SitesFailed and SitesTimedOut for the rest.
    """
    sent, kind = (None, JSON) if body is None else (orjson.dumps(body), JSON)
    if form:
        sent, kind = urlencode(form, quote_via=quote).encode(), FORM
    asked = urlencode(query, quote_via=quote)
    reached = False
    try:
        await site.verdict()
        reached = True
        path = f"{_path(request)}{'?' if asked else ''}{asked}"
        return document(await site.call(request.method, path, seconds, sent, kind, reads=False))
    except RefusedByRemoteError as error:
        raise error_of(site, error) from error
    except LivestatusError as error:
        problem = site.problem(error)
        if reached and not isinstance(error, ConnectError):
            reason = f"{problem.reason}: {_CHANGED_MAYBE}"
            problem = SiteProblem(problem.site, problem.name, reason, problem.timed_out)
        raise all_sites_failed((problem,)) from error


def check_reachable(sites: Sequence[Site]) -> None:
    """Raise SitesFailed when a federated site is known to be down: nothing is begun then."""
    problems = [
        site.problem(site.breaker.error)
        for site in far_sites(sites)
        if site.breaker.error is not None
    ]
    if problems:
        raise all_sites_failed(problems)


def error_of(site: FederatedSite, error: RefusedByRemoteError) -> RestError:
    """Say here what the other side refused, with the name of the site."""
    kind = _SAME.get(error.status)
    if kind is None:
        return all_sites_failed((site.problem(error),))
    words = [error.document.get(name) for name in ("message", "description")]
    message, description = (
        site.shown(first_line(word)) if isinstance(word, str) else "" for word in words
    )
    told = error.document.get("help")
    extra = {"help": told} if isinstance(told, str) else {}
    return kind(message or "refused", f"{site.name}: {description}".rstrip(": "), extra=extra)


def _path(request: RestRequest) -> str:
    """The path of the request as it came, below the site."""
    return quote(request.path, safe="/%:@!$&'()*+,;=~-._")
