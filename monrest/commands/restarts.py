"""Commands that make a core read its object files again, which are checked before."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import Context
from monrest.base.errors import Conflict, RestError
from monrest.base.values import RestRequest
from monrest.commands.orders import PreparedCommand
from monrest.objectconfig.site_commands import check, check_command, environment_of
from monrest.sites.site import Site

_RESTARTS = frozenset({"RESTART_PROCESS", "RESTART_PROGRAM"})
_MOST_TOLD = 4000
"""Characters of a check's output in an error."""


async def unchecked_restarts(
    context: Context, request: RestRequest, jobs: Sequence[PreparedCommand]
) -> dict[int, RestError]:
    """Why commands that restart cores must not be sent, by index: their files do not load."""
    restarts = {
        job.asked.index: [
            site
            for site in job.sites
            if check_command(context, site)
            and any(order.name in _RESTARTS for order in job.orders.get(site.id, ()))
        ]
        for job in jobs
    }
    sites = {site.id: site for found in restarts.values() for site in found}
    told = dict(zip(sites, await _outputs(context, request, sites.values()), strict=True))
    return {
        index: Conflict("the object files do not load", "; ".join(broken))
        for index, found in restarts.items()
        if (broken := [f"{site.name}: {told[site.id]}" for site in found if told[site.id]])
    }


async def _outputs(context: Context, request: RestRequest, sites: Collection[Site]) -> list[str]:
    """What the checks of sites say against their files, all at the same time."""

    async def one(site: Site) -> str:
        result = await check(context, request, site, await environment_of(context, request, site))
        if not result.failed:
            return ""
        output = result.output.strip() or f"exit status {result.status}"
        return f"obj_check_cmd (force=1 skips it): {output[-_MOST_TOLD:]}"

    running = [Deferred.fromCoroutine(one(site)) for site in sites]
    outputs: list[str] = []
    for _, value in await DeferredList(running, consumeErrors=True):
        if isinstance(value, Failure):
            value.raiseException()
        outputs.append(value)
    return outputs
