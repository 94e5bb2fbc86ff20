"""Log lines, alerts and notifications (docs/spec/logs.md), and the state of the log cache.

Older lines come from the log cache where it has them; the answer is the same without it.
Updates of the cache: docs/spec/logcache.md, "Once more".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from attrs import frozen

from monrest.api.endpoint import LIST_PARAMETERS, SITE_PARAMETERS, Context, Endpoint, FamilyHandler
from monrest.api.fields import Flag, Reading, Second
from monrest.api.lists import local_schema, select
from monrest.api.visibility import SYSTEM
from monrest.api.zones import zone_of
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, all_sites_failed
from monrest.base.values import Answer, Column, Document, RestRequest, no_progress
from monrest.logs.ask import LOGCACHE, ask
from monrest.logs.cache import LogCache
from monrest.logs.importer import Again
from monrest.logs.model import CachedSite
from monrest.query.functions import Moment
from monrest.query.model import Condition, FilterTree, leaves
from monrest.query.parse import parse_query
from monrest.rows.columns import LOGS
from monrest.rows.endpoints import matching
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site
from monrest.store.stored import shown_columns, shown_values

VERSION = "1"

COLUMNS = shown_columns(
    CachedSite,
    Column("cache_version", "string", "", "version of the cache, empty before the first import"),
    Column("enabled", "boolean", "", "1 if log lines are cached"),
    Column("last_reorder", "time", "", "always 0: lines are in order from the beginning"),
    Column("mode", "string", "", "what is running at present, empty for nothing"),
    Column("name", "string", "", "name of the site"),
    Column("reorder_duration", "number", "s", "always 0"),
    Column("status", "string", "", "OK, or what keeps the cache from being used"),
)
_SCHEMA = local_schema("logcache", COLUMNS, ("key",))

_WRONG = "error during request"
_FROM = Second("from", "first second to import again: Unix time, relative time or date")
_TO = Second("to", "its end, default: now")
_FORCE = Flag(
    "force",
    "1: lines of that time that the core does not have are removed; default 0, what is cached "
    "stays",
)

UPDATED = (
    Column("code", "number", "", "200; when every site failed the answer is an error"),
    Column("errors", "array_of_strings", "", "what was in the way, with the id of the site"),
    Column("insert_count", "number", "", "number of new lines"),
    Column("message", "string", "", "that the update has ended"),
)


def _sites(context: Context, request: RestRequest) -> tuple[Site, ...]:
    """The selected sites; the log of another instance's sites is cached there."""
    query = parse_query(request.parameters)
    chosen = context.sites.select(request.sites or query.backends)
    return tuple(site for site in chosen if not isinstance(site, FederatedSite))


@frozen(eq=False, kw_only=True)
class CacheEndpoints:
    """The log cache: how it is, and updating it."""

    logcache: LogCache

    def _require(self) -> None:
        if not self.logcache.enabled:
            raise BadRequest("logcache is disabled", "logcache.enabled: expected true")

    def _status(self, context: Context, cached: CachedSite | None) -> str:
        if cached is None or cached.covered_from is None:
            return "logcache not yet created"
        if self.logcache.busy(cached):
            since = datetime.fromtimestamp(cached.mode_since, context.zone)
            pid = cached.owner.split(":")[1]
            return f"running {cached.mode} since {since:%Y-%m-%d %H:%M:%S} (pid: {pid})"
        return "OK" if cached.progress == 1 else f"importing, {cached.progress:.0%} done"

    def _record(self, context: Context, site: Site, cached: CachedSite | None) -> dict[str, Any]:
        return {
            **shown_values(cached or CachedSite(site=site.id)),
            "cache_version": "" if cached is None else VERSION,
            "enabled": 1,
            "last_reorder": 0,
            "mode": cached.mode if cached is not None and self.logcache.busy(cached) else "",
            "name": site.name,
            "reorder_duration": 0,
            "status": self._status(context, cached),
        }

    @Endpoint(
        path="/mon/logcache/stats",
        description="lists log cache statistics",
        text="400 while `logcache.enabled` is false.",
        parameters=(*LIST_PARAMETERS, *SITE_PARAMETERS),
        columns=COLUMNS,
    )
    async def stats(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        self._require()
        sites = _sites(context, request)
        records = [self._record(context, site, await self.logcache.record(site)) for site in sites]
        return await select(context, request, _SCHEMA, records)

    @Endpoint(
        path="/mon/logcache/update",
        description="runs the log cache delta update",
        text=(
            "The newest lines of the selected sites are fetched before the answer; the first "
            "import continues by itself. With `background=1` the job lasts until the first import "
            "is done as well, in any process, and shows how far it is; canceling it loses "
            "nothing, the daemon continues with its next update. A site that is being updated "
            "already is named in `errors` and no failure. With `from` the lines of a time are "
            "imported once more, also those that should be there already, and what is missing back "
            "to it; long times are work for a job. 400 while `logcache.enabled` is false."
        ),
        methods=("POST",),
        shape="object",
        parameters=(
            _FROM,
            _TO,
            _FORCE,
            *SITE_PARAMETERS,
        ),
        columns=UPDATED,
        roles=(SYSTEM,),
    )
    async def update(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        """Fetch the newest lines of the sites now; as a job, everything that is missing."""
        self._require()
        sites = _sites(context, request)
        again = await _again(context, request)
        if request.progress is no_progress:
            done = await self.logcache.update_all(sites, again)
        else:
            done = await self.logcache.import_all(sites, request.progress, again)
        result = (
            "ok"
            if not done.failed
            else f"failed at {','.join(problem.site for problem in done.failed)}"
        )
        target = ",".join(site.id for site in sites)
        audit(request.identity, request.caller, "logcache update", target=target, result=result)
        if sites and len(done.failed) == len(sites):
            raise all_sites_failed(done.failed)
        value = {
            "code": 200,
            "errors": [
                *(f"{problem.site}: {problem.reason}" for problem in done.failed),
                *done.skipped,
            ],
            "insert_count": done.inserted,
            "message": f"logcache update finished, {done.removed} lines removed."
            if again is not None and again.exactly
            else "logcache update finished.",
        }
        return Document(value=value, columns=UPDATED, failed_sites=done.failed)


async def _again(context: Context, request: RestRequest) -> Again | None:
    """The time that is to be imported once more; None for nothing but what is new."""
    at = Reading(present=Moment(context.wall.now(), await zone_of(context, request.identity)))
    start, end = _FROM.asked(request.parameters, at), _TO.asked(request.parameters, at)
    force = bool(_FORCE.asked(request.parameters))
    if start is None:
        if end is not None or force:
            name = "force" if end is None else "to"
            raise BadRequest(_WRONG, f"{name}: expected beside from, where the time begins")
        return None
    now = context.wall.now()
    end = int(now) + 1 if end is None else end
    if start >= end:
        raise BadRequest(_WRONG, "to: expected a moment after from")
    keep = context.config.logcache.keep
    if keep and start < now - keep:
        raise BadRequest(_WRONG, "from: lines of that age are removed, see logcache.keep")
    return Again(start=start, end=end, exactly=force)


WINDOW = 86400
"""Seconds of log that are read when no condition names the time."""

ALERTS = Condition("type", "~", "^(HOST|SERVICE) ALERT$", "path")
NOTIFICATIONS = Condition("class", "=", "3", "path")


def names_time(tree: FilterTree) -> bool:
    """Whether a filter holds a real condition on the column time."""
    return any(condition.column == "time" for condition in leaves([tree]))


def _lines(conditions: Callable[[tuple[str, ...]], tuple[Condition, ...]]) -> FamilyHandler:
    async def handler(
        cache: LogCache, context: Context, request: RestRequest, arguments: tuple[str, ...]
    ) -> Answer:
        extra = conditions(arguments)
        if not names_time(parse_query(request.parameters).filter):
            since = int(context.wall.now()) - WINDOW
            extra = (Condition("time", ">=", str(since), "path"), *extra)
        return await ask(cache, context, request, LOGS, extra=extra)

    return handler


_WINDOW_TEXT = (
    "Without a condition on `time` the last 24 hours are read. Oldest first. Lines that are in "
    "the log cache are read there, the newest ones from the core."
)
_PARAMETERS = (
    *LIST_PARAMETERS,
    LOGCACHE,
    *SITE_PARAMETERS,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/logs",
        description="lists log lines",
        text=_WINDOW_TEXT,
        handler=_lines(lambda _: ()),
        schema=LOGS,
        parameters=_PARAMETERS,
    ),
    Endpoint(
        path="/alerts",
        description="alias of /logs with the type of host and service alerts",
        text=_WINDOW_TEXT,
        handler=_lines(lambda _: (ALERTS,)),
        schema=LOGS,
        parameters=_PARAMETERS,
    ),
    Endpoint(
        path="/notifications",
        description="alias of /logs?class=3",
        text=_WINDOW_TEXT,
        handler=_lines(lambda _: (NOTIFICATIONS,)),
        schema=LOGS,
        parameters=_PARAMETERS,
    ),
    Endpoint(
        path="/hosts/<name>/alerts",
        description="alerts of a host and its services",
        text=f"The name may hold wildcards. {_WINDOW_TEXT}",
        handler=_lines(lambda arguments: (ALERTS, matching("host_name", arguments[0]))),
        schema=LOGS,
        parameters=_PARAMETERS,
    ),
    Endpoint(
        path="/hosts/<name>/notifications",
        description="alias of /logs?class=3&host_name=<name>",
        text=f"The name may hold wildcards. {_WINDOW_TEXT}",
        handler=_lines(lambda arguments: (NOTIFICATIONS, matching("host_name", arguments[0]))),
        schema=LOGS,
        parameters=_PARAMETERS,
    ),
)
