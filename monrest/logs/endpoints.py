"""Log lines, alerts and notifications (docs/spec/logs.md).

Older lines come from the log cache where it has them; the answer is the same without it.
"""

from __future__ import annotations

from collections.abc import Callable

from monrest.api.endpoint import LIST_PARAMETERS, SITE_PARAMETERS, Context, Endpoint, FamilyHandler
from monrest.base.values import Answer, RestRequest
from monrest.logs.ask import LOGCACHE, ask
from monrest.logs.cache import LogCache
from monrest.query.model import Condition, FilterTree, leaves
from monrest.query.parse import parse_query
from monrest.rows.columns import LOGS
from monrest.rows.endpoints import matching

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
