"""The one list of endpoints: every family of resources is imported here and nowhere else."""

from __future__ import annotations

from functools import lru_cache

from monrest.resources import (
    api_keys,
    availability,
    bp,
    bp_objects,
    broadcasts,
    catalogue,
    cluster,
    commandline,
    commands,
    config_core,
    config_files,
    config_objects,
    core,
    downtimes,
    editor,
    figures,
    index,
    instance,
    jobs,
    logcache,
    login,
    logs,
    nodecontrol,
    panorama,
    removals,
    reportoutput,
    reports,
    sessions,
    settings,
    sites,
    statistics,
    users,
)
from monrest.resources.declare import Endpoint
from monrest.resources.router import Router

ENDPOINTS: tuple[Endpoint, ...] = (
    *index.ENDPOINTS,
    *core.ENDPOINTS,
    *statistics.ENDPOINTS,
    *logs.ENDPOINTS,
    *availability.ENDPOINTS,
    *logcache.ENDPOINTS,
    *commandline.ENDPOINTS,
    *commands.ENDPOINTS,
    *catalogue.ENDPOINTS,
    *removals.ENDPOINTS,
    *config_objects.ENDPOINTS,
    *config_files.ENDPOINTS,
    *config_core.ENDPOINTS,
    *editor.ENDPOINTS,
    *sites.ENDPOINTS,
    *instance.ENDPOINTS,
    *figures.ENDPOINTS,
    *settings.ENDPOINTS,
    *users.ENDPOINTS,
    *login.ENDPOINTS,
    *sessions.ENDPOINTS,
    *api_keys.ENDPOINTS,
    *jobs.ENDPOINTS,
    *downtimes.ENDPOINTS,
    *broadcasts.ENDPOINTS,
    *bp.ENDPOINTS,
    *bp_objects.ENDPOINTS,
    *cluster.ENDPOINTS,
    *panorama.ENDPOINTS,
    *nodecontrol.ENDPOINTS,
    *reports.ENDPOINTS,
    *reportoutput.ENDPOINTS,
)


@lru_cache(maxsize=8)
def router(app: str) -> Router:
    """All endpoints, with ``app`` as the word of the front end's own paths."""
    made = Router(app)
    made.add(ENDPOINTS)
    return made
