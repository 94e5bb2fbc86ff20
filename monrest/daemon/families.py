"""The one list of endpoints: every family is imported here, with what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from attrs import frozen

from monrest import __version__
from monrest.accounts import key_endpoints, login_endpoints, session_endpoints, user_endpoints
from monrest.api.dispatch import Dispatch
from monrest.api.endpoint import Endpoint
from monrest.api.router import Router
from monrest.availability import endpoints as availability
from monrest.bp import endpoints as bp
from monrest.broadcasts import endpoints as broadcasts
from monrest.cluster import endpoints as cluster
from monrest.commands import endpoints as commands
from monrest.commands import listing, removals
from monrest.downtimes import endpoints as downtimes
from monrest.instance import endpoints as instance
from monrest.instance import index, settings_in_force, stats
from monrest.jobs import endpoints as jobs
from monrest.logs import cache_endpoints
from monrest.logs import endpoints as logs
from monrest.nodecontrol import endpoints as nodecontrol
from monrest.objectconfig import (
    core_endpoints,
    editor_endpoints,
    file_endpoints,
    object_endpoints,
)
from monrest.panorama import endpoints as panorama
from monrest.reports import endpoints as reports
from monrest.reports import output_endpoints
from monrest.rows import commandline, site_endpoints, statistics
from monrest.rows import endpoints as rows

if TYPE_CHECKING:
    from monrest.daemon.parts import Parts


@frozen
class Family:
    """Some endpoints with the object whose methods answer there, made once for a configuration.

    None where a request has all that its handlers need.
    """

    endpoints: tuple[Endpoint, ...]
    made: Callable[[Parts], object] = lambda _: None


FAMILIES = (
    Family(index.ENDPOINTS),
    Family(rows.ENDPOINTS),
    Family(statistics.ENDPOINTS),
    Family((*logs.ENDPOINTS, *availability.ENDPOINTS), lambda parts: parts.logcache),
    Family(
        cache_endpoints.ENDPOINTS,
        lambda parts: cache_endpoints.CacheEndpoints(logcache=parts.logcache),
    ),
    Family(commandline.ENDPOINTS),
    Family(commands.ENDPOINTS),
    Family(listing.ENDPOINTS),
    Family(removals.ENDPOINTS),
    Family(
        (*object_endpoints.ENDPOINTS, *file_endpoints.ENDPOINTS, *core_endpoints.ENDPOINTS),
        lambda parts: parts.staging,
    ),
    Family(editor_endpoints.ENDPOINTS),
    Family(site_endpoints.ENDPOINTS),
    Family(
        instance.ENDPOINTS,
        lambda parts: instance.InstanceEndpoints(version=__version__, config_path=parts.path),
    ),
    Family(stats.ENDPOINTS, lambda parts: stats.FigureEndpoints(figures=parts.figures)),
    Family(
        settings_in_force.ENDPOINTS,
        lambda parts: settings_in_force.SettingEndpoints(
            version=__version__, config_path=parts.path
        ),
    ),
    Family(
        user_endpoints.ENDPOINTS,
        lambda parts: user_endpoints.UserEndpoints(
            users=parts.users,
            contacts=parts.contacts,
            passwords=parts.passwords,
            figures=parts.figures,
        ),
    ),
    Family(
        login_endpoints.ENDPOINTS,
        lambda parts: login_endpoints.LoginEndpoints(
            sessions=parts.sessions,
            passwords=parts.passwords,
            users=parts.users,
            slowdown=parts.slowdown,
        ),
    ),
    Family(
        session_endpoints.ENDPOINTS,
        lambda parts: session_endpoints.SessionEndpoints(
            sessions=parts.sessions, passwords=parts.passwords, figures=parts.figures
        ),
    ),
    Family(key_endpoints.ENDPOINTS, lambda parts: key_endpoints.KeyEndpoints(keys=parts.keys)),
    Family(jobs.ENDPOINTS, lambda parts: jobs.JobEndpoints(jobs=parts.jobs)),
    Family(
        downtimes.ENDPOINTS,
        lambda parts: downtimes.RecurringDowntimeRecords(database=parts.database),
    ),
    Family(
        broadcasts.ENDPOINTS,
        lambda parts: broadcasts.Broadcasts(database=parts.database),
    ),
    Family(bp.ENDPOINTS, lambda parts: bp.ProcessEndpoints(bp=parts.bp, figures=parts.figures)),
    Family(cluster.ENDPOINTS, lambda parts: cluster.ClusterEndpoints(cluster=parts.cluster)),
    Family(
        panorama.ENDPOINTS,
        lambda parts: panorama.DashboardRecords(database=parts.database, panorama=parts.panorama),
    ),
    Family(
        nodecontrol.ENDPOINTS,
        lambda parts: nodecontrol.NodeEndpoints(nodecontrol=parts.nodecontrol, jobs=parts.jobs),
    ),
    Family(
        (*reports.ENDPOINTS, *output_endpoints.ENDPOINTS),
        lambda parts: reports.ReportRecords(database=parts.database, reports=parts.reports),
    ),
)
"""All of them, in the order of the reference page."""

ENDPOINTS: tuple[Endpoint, ...] = tuple(
    endpoint for family in FAMILIES for endpoint in family.endpoints
)


def dispatch_of(app: str, parts: Parts, families: Iterable[Family] = FAMILIES) -> Dispatch:
    """All endpoints of these families, with ``app`` as the word of the front end's own paths."""
    router = Router(app)
    for family in families:
        router.add(family.endpoints, family.made(parts))
    return Dispatch(router, jobs.JobEndpoints(jobs=parts.jobs).start)
