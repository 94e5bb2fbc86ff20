"""Asking many sites for what may take long: who is too late is named beside the others' rows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList, FirstError
from twisted.internet.defer import TimeoutError as TooLate

from monrest.api.endpoint import Context
from monrest.base.errors import all_sites_failed
from monrest.base.values import RestRequest, SiteProblem, nobody_follows
from monrest.livestatus.core_errors import LivestatusError
from monrest.sites.site import Site

T = TypeVar("T")

_PATIENCE = 0.8
"""Part of a request's time after which a site is left out, so that the others are answered.

A core may take minutes for a log query, which is longer than a request may last. A job has all
the time there is.
"""


async def asked_in_time(
    context: Context,
    request: RestRequest,
    sites: Sequence[Site],
    ask: Callable[[Site], Coroutine[Any, Any, T]],
) -> list[tuple[Site, T | SiteProblem]]:
    """Ask all sites at once; the answer or the problem of each, in their order.

    Whatever else ``ask`` raises ends the others and is raised.
    """
    seconds = context.config.server.request_timeout * _PATIENCE

    async def one(site: Site) -> T | SiteProblem:
        try:
            return await Deferred.fromCoroutine(ask(site)).addTimeout(seconds, context.clock)
        except LivestatusError as error:
            return site.problem(error)
        except TooLate:
            more = ", background=1 gives it more time" if request.progress is nobody_follows else ""
            reason = f"its log was not read in {seconds:g} s{more}"
            return SiteProblem(site.id, site.name, reason, timed_out=True)

    waiting = [Deferred.fromCoroutine(one(site)) for site in sites]
    try:
        outcomes = await DeferredList(waiting, fireOnOneErrback=True, consumeErrors=True)
    except FirstError as first:
        for left in waiting:
            left.cancel()
        first.subFailure.raiseException()
    return [(site, value) for site, (_, value) in zip(sites, outcomes, strict=True)]


def require_answers(sites: Sequence[Site], problems: Sequence[SiteProblem]) -> None:
    """Raise SitesFailed, or SitesTimedOut, where no site has answered."""
    if sites and len(problems) == len(sites):
        raise all_sites_failed(problems)
