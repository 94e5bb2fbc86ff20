"""The parts of the log and its cache."""

from __future__ import annotations

from monrest.api.endpoint import declared
from monrest.api.family import Common, Family, Life, Served
from monrest.logs import endpoints
from monrest.logs.cache import LogCache


def _log_cache(common: Common) -> LogCache:
    """Make the cache, in the database of all or in one of its own."""
    config, registry = common.config.logcache, common.registry
    database, wall = common.database, common.wall
    if config.url:
        database, wall = common.connect(config.url)

    def updates() -> bool:
        """Whether it is this process that updates the cache."""
        if not database.url.startswith("sqlite:"):
            return common.does("log cache")
        # A file is each node's own.
        return common.workers.count == 1 or common.does(f"log cache {common.node.id}")

    cache = LogCache(common.reactor, wall, database, config, registry.direct, duty=updates)
    registry.changed.hear(lambda: cache.follow(registry.direct))
    common.meters.offer(cache.measured, of_all=True)
    return cache


FAMILY = Family(
    life=Life(
        _log_cache,
        open=lambda common, cache: cache.identify(f"{common.process.id}:{common.process.pid}"),
        configure=lambda common, cache: cache.configure(
            common.config.logcache, common.registry.direct
        ),
    ),
    served=(
        Served(endpoints.ENDPOINTS, lambda common: common.the(LogCache)),
        Served(
            declared(endpoints.CacheEndpoints),
            lambda common: endpoints.CacheEndpoints(logcache=common.the(LogCache)),
        ),
    ),
)
