"""The one list of endpoints: every family is imported here and nowhere else."""

from __future__ import annotations

from functools import lru_cache

from monrest.accounts import key_endpoints as api_keys
from monrest.accounts import login_endpoints as login
from monrest.accounts import session_endpoints as sessions
from monrest.accounts import user_endpoints as users
from monrest.api.dispatch import Dispatch
from monrest.api.endpoint import Endpoint
from monrest.api.router import Router
from monrest.availability import endpoints as availability
from monrest.bp import endpoints as bp
from monrest.broadcasts import endpoints as broadcasts
from monrest.cluster import endpoints as cluster
from monrest.commands import endpoints as commands
from monrest.commands import listing as catalogue
from monrest.commands import removals
from monrest.downtimes import endpoints as downtimes
from monrest.instance import endpoints as instance
from monrest.instance import index
from monrest.instance import settings_in_force as settings
from monrest.instance import stats as figures
from monrest.jobs import endpoints as jobs
from monrest.jobs.endpoints import start
from monrest.logs import cache_endpoints as logcache
from monrest.logs import endpoints as logs
from monrest.nodecontrol import endpoints as nodecontrol
from monrest.objectconfig import core_endpoints as config_core
from monrest.objectconfig import editor_endpoints as editor
from monrest.objectconfig import file_endpoints as config_files
from monrest.objectconfig import object_endpoints as config_objects
from monrest.panorama import endpoints as panorama
from monrest.reports import endpoints as reports
from monrest.reports import output_endpoints as reportoutput
from monrest.rows import commandline, statistics
from monrest.rows import endpoints as core
from monrest.rows import site_endpoints as sites

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
    *cluster.ENDPOINTS,
    *panorama.ENDPOINTS,
    *nodecontrol.ENDPOINTS,
    *reports.ENDPOINTS,
    *reportoutput.ENDPOINTS,
)


@lru_cache(maxsize=8)
def dispatch_of(app: str) -> Dispatch:
    """All endpoints, with ``app`` as the word of the front end's own paths."""
    router = Router(app)
    router.add(ENDPOINTS)
    return Dispatch(router, start)
