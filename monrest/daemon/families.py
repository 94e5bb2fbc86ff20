"""The one list of families: each is imported here and declares itself what it is made of."""

from __future__ import annotations

from collections.abc import Iterable

from monrest.accounts import family as accounts
from monrest.api.dispatch import Dispatch
from monrest.api.endpoint import Endpoint
from monrest.api.family import Common, Family
from monrest.api.router import Router
from monrest.availability import endpoints as availability
from monrest.bp import family as bp
from monrest.broadcasts import endpoints as broadcasts
from monrest.cluster import family as cluster
from monrest.commands import endpoints as commands
from monrest.downtimes import endpoints as downtimes
from monrest.events import family as events
from monrest.explorer import endpoints as explorer
from monrest.instance import endpoints as instance
from monrest.jobs import family as jobs
from monrest.logs import family as logs
from monrest.nodecontrol import endpoints as nodecontrol
from monrest.objectconfig import family as objectconfig
from monrest.panorama import endpoints as panorama
from monrest.reports import family as reports
from monrest.rows import family as rows
from monrest.webhooks import family as webhooks

FAMILIES = (
    instance.FAMILY,
    explorer.FAMILY,
    rows.FAMILY,
    accounts.FAMILY,
    jobs.FAMILY,
    cluster.FAMILY,
    logs.FAMILY,
    availability.FAMILY,
    objectconfig.FAMILY,
    events.FAMILY,
    commands.FAMILY,
    downtimes.FAMILY,
    broadcasts.FAMILY,
    bp.FAMILY,
    panorama.FAMILY,
    nodecontrol.FAMILY,
    reports.FAMILY,
    webhooks.FAMILY,
)
"""All of them in the order of their lives: after those they stand on, and where they are free in
that of the reference page."""


def endpoints_of(families: Iterable[Family]) -> tuple[Endpoint, ...]:
    return tuple(
        endpoint for family in families for served in family.served for endpoint in served.endpoints
    )


ENDPOINTS = endpoints_of(FAMILIES)


def dispatch_of(
    app: str, common: Common, families: Iterable[Family] = FAMILIES, *, public_docs: bool = True
) -> Dispatch:
    """All endpoints of these families, with ``app`` as the word of the front end's own paths."""
    router = Router(app, public_docs)
    for family in families:
        for served in family.served:
            router.add(served.endpoints, served.handlers(common))
    return Dispatch(router, jobs.job_records(common).start)
