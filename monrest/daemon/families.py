"""The one list of endpoints: every family is imported here and nowhere else."""

from __future__ import annotations

from functools import lru_cache

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

_MODULES = (
    *(index, rows, statistics, logs, availability, cache_endpoints, commandline),
    *(commands, listing, removals),
    *(object_endpoints, file_endpoints, core_endpoints, editor_endpoints),
    *(site_endpoints, instance, stats, settings_in_force),
    *(user_endpoints, login_endpoints, session_endpoints, key_endpoints),
    *(jobs, downtimes, broadcasts, bp, cluster, panorama, nodecontrol),
    *(reports, output_endpoints),
)
"""What declares endpoints, in the order of the reference page."""

ENDPOINTS: tuple[Endpoint, ...] = tuple(
    endpoint for module in _MODULES for endpoint in module.ENDPOINTS
)


@lru_cache(maxsize=8)
def dispatch_of(app: str) -> Dispatch:
    """All endpoints, with ``app`` as the word of the front end's own paths."""
    router = Router(app)
    router.add(ENDPOINTS)
    return Dispatch(router, jobs.start)
